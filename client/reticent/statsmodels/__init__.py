# SPDX-License-Identifier: Apache-2.0
"""Entry points in statsmodels' words: see reticent.statsmodels.formula.api."""
