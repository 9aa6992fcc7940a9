# SPDX-License-Identifier: Apache-2.0
"""What fits share: public rows, whitening, steps, covariance, identifiability, forecasts."""
