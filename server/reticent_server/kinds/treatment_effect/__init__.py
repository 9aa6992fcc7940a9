# SPDX-License-Identifier: Apache-2.0
"""The effect of a treatment, adjusted for covariates."""
