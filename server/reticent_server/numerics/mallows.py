# SPDX-License-Identifier: Apache-2.0
"""Mallows weights: a record's influence is bounded through its place in the design alone.

    w(u) = min(1, R²/‖u‖²), so that ‖w u‖ ≤ R and w‖u‖² ≤ R²

Source: Mallows (1975); Hampel, Ronchetti, Rousseeuw & Stahel (1986), ch. 6.
"""

import numpy as np
from scipy.special import gammainc

from reticent_server.domain.steps import FloatArray


def mallows_weights(norms_squared: FloatArray, radius_squared: float) -> FloatArray:
    """w for records with squared norms ‖u‖² (any shape); 1 where ‖u‖² ≤ R²."""
    bound = max(radius_squared, float(np.finfo(np.float64).tiny))
    return np.asarray(bound / np.maximum(norms_squared, bound))


def mean_weighted_norm(slopes: int, radius_squared: float, intercept: bool = True) -> float:
    """κ = E[w(u)‖u‖²]/q for u = (1, N(0, I_p)), q = p + 1 (u = N(0, I_p), q = p: no intercept).

    With ‖u‖² = 1 + χ²_p and a = R² − 1: (P(χ²_p ≤ a) + p P(χ²_{p+2} ≤ a) + R² P(χ²_p > a))/q.
    """
    if slopes == 0:
        return min(1.0, radius_squared)
    one = 1.0 if intercept else 0.0
    a = max(radius_squared - one, 0.0)
    below = float(gammainc(slopes / 2, a / 2))
    moment = slopes * float(gammainc(slopes / 2 + 1, a / 2))
    return (one * below + moment + radius_squared * (1 - below)) / (slopes + one)
