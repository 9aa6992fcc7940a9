# SPDX-License-Identifier: Apache-2.0
"""The law of Σ λ_i Z_i², Z_i independent standard normal, λ_i ≥ 0: the null law of LR-type tests.

With K(s) = −½ Σ log(1 − 2λ_i s) the survival function is the inverse Laplace integral

    P(Σ λ_i Z_i² > x) = (1/2πi) ∫ exp(K(s) − sx)/s ds

over any path from −i∞ to +i∞ that crosses the real axis inside (0, 1/(2 max λ)). The path taken is
the parabola s = c + b u² + i w u through the integrand's saddle point c: it goes round the branch
cut on the right, where exp(−sx) decays, and the trapezoidal rule in v, u = sinh v, converges
geometrically, with a small relative error deep in the tail as well (Helstrom 1996).
"""

import numpy as np
from scipy.optimize import brentq

from reticent_server.domain.steps import FloatArray

# of the trapezoidal rule, which converges geometrically: fewer lose digits of a p-value, more take
# time
_POINTS = 1500
# exponent at which the integrand is cut: e⁻⁴⁵ = 3·10⁻²⁰ of its peak, below float64's rounding
_DECAY = 45.0
# of the largest λ: such a term moves the sum by 10⁻¹² of it and only slows the integral
_NEGLIGIBLE = 1e-12


def survival(x: float, weights: FloatArray) -> float:
    """P(Σ λ_i Z_i² > x) for λ (k,) ≥ 0; where all λ are 0 the sum is 0."""
    largest = float(np.max(weights, initial=0.0))
    if x <= 0:
        return 1.0
    if not (np.isfinite(largest) and largest > 0):
        return 0.0
    lam = np.asarray(weights, dtype=np.float64) / largest
    return _integral(x / largest, lam[lam > _NEGLIGIBLE])


def _integral(x: float, lam: FloatArray) -> float:
    c = _saddle(x, lam)
    w = 1 / np.sqrt(np.sum(2 * lam**2 / (1 - 2 * lam * c) ** 2) + 1 / c**2)
    b = 0.5 * w
    v = np.linspace(0.0, np.arcsinh(np.sqrt(_DECAY / (x * b))), _POINTS)
    u = np.sinh(v)
    s = c + b * u**2 + 1j * w * u
    slope = (2 * b * u + 1j * w) * np.cosh(v)
    exponent = -0.5 * np.log(1 - 2 * np.outer(lam, s)).sum(axis=0) - s * x
    values = np.imag(np.exp(exponent) / s * slope)
    total = (values.sum() - 0.5 * (values[0] + values[-1])) * (v[1] - v[0])
    return float(np.clip(total / np.pi, 0.0, 1.0))


def _saddle(x: float, lam: FloatArray) -> float:
    """The minimum of K(s) − sx − log s on (0, 1/2) (max λ = 1)."""

    def slope(s: float) -> float:
        return float(np.sum(lam / (1 - 2 * lam * s))) - x - 1 / s

    return float(brentq(slope, 1e-300, 0.5 * (1 - 1e-15), xtol=1e-300, rtol=1e-14, maxiter=2000))
