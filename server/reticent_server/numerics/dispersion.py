# SPDX-License-Identifier: Apache-2.0
"""The dispersion of a family from the mean square of its clipped Pearson residuals."""

from math import inf, sqrt

import numpy as np
from scipy.optimize import brentq

from reticent_server.numerics.families import Family, Gamma, gamma_moments
from reticent_server.numerics.psi import Huber


def estimated_dispersion(family: Family, mean_square: float, c: float) -> float:
    """φ′ at which E ψ_c²(r) is `mean_square`, r being standardised with the family's φ.

    mean_square is clipped inside the values that are possible, φ′/φ to [1/64, 64].
    """
    unit = family.dispersion

    def excess(log_ratio: float) -> float:
        return reference_square(family, float(np.exp(log_ratio)) * unit, c) - mean_square

    low, high = -np.log(64.0), np.log(64.0)
    if excess(low) >= 0:
        return unit / 64
    if excess(high) <= 0:
        return unit * 64
    return unit * float(np.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14)))


def reference_square(family: Family, dispersion: float, c: float) -> float:
    """E ψ_c²(r) where the true dispersion is another: Gamma's own law; normal for other
    families."""
    if isinstance(family, Gamma):
        return gamma_moments(dispersion, family.dispersion, c)[2]
    ratio = dispersion / family.dispersion
    return ratio if c == inf else ratio * Huber(c / sqrt(ratio)).mean_square
