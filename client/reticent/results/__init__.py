# SPDX-License-Identifier: Apache-2.0
"""Results that several kinds share, and how their coefficients are written and drawn."""
