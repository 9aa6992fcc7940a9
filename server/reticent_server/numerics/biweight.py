# SPDX-License-Identifier: Apache-2.0
"""Tukey's biweight: a redescending score, and its noise-free regression from a given start.

    ψ(z) = z (1 − (z/c)²)² for |z| ≤ c, 0 beyond;   ψ(z)/z = (1 − (z/c)²)²;   |ψ| ≤ 16c/(25√5)

The equation Σ w ψ(r/s) x = 0 has several solutions: what is computed is the one that iterative
reweighting reaches from `start`.

Source: Beaton & Tukey (1974); Maronna, Martin & Yohai (2006), ch. 4–5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from scipy.special import ndtr

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.matrices import pseudo_inverse

# c: 95 % efficient at the normal law, as R's MASS::psi.bisquare (4.685)
EFFICIENT_95 = 4.685061
_MAD_TO_SD = 0.6744897501960817  # Φ⁻¹(3/4): the median of |z| under the normal law
# 200 nodes integrate polynomials of degree 399 exactly: more than the smooth integrands on [−c, c]
# need
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


@dataclass(frozen=True)
class Biweight:
    """The biweight at the tuning constant c > 0; methods elementwise on standardised residuals.

    The properties are moments under a standard normal residual.
    """

    c: float = EFFICIENT_95

    def psi(self, z: FloatArray) -> FloatArray:
        """ψ(z)."""
        return np.asarray(z * self.weight(z))

    def weight(self, z: FloatArray) -> FloatArray:
        """ψ(z)/z ∈ [0, 1]."""
        inside = np.maximum(1 - (z / self.c) ** 2, 0.0)
        return np.asarray(inside * inside)

    def derivative(self, z: FloatArray) -> FloatArray:
        """ψ′(z) = (1 − v)(1 − 5v), v = (z/c)², 0 beyond c; it is negative for v > 1/5."""
        v = np.minimum((z / self.c) ** 2, 1.0)
        return np.asarray((1 - v) * (1 - 5 * v))

    def loss(self, z: FloatArray) -> FloatArray:
        """ρ(z) = c²/6 (1 − (1 − v)³)."""
        v = np.minimum((z / self.c) ** 2, 1.0)
        return np.asarray(self.c**2 / 6 * (1 - (1 - v) ** 3))

    @property
    def bound(self) -> float:
        """sup |ψ| = 16c/(25√5), at z = c/√5."""
        return 16 * self.c / (25 * sqrt(5))

    @cached_property
    def mean_derivative(self) -> float:
        """E ψ′(z)."""
        return self._mean(self.derivative)

    def mean_derivative_at(self, variance: FloatArray) -> FloatArray:
        """E ψ′(z) for normal z of these variances (any shape): M₀ − 6M₂/c² + 5M₄/c⁴, M_k = E[z^k;
        |z| ≤ c]."""
        a = self.c / np.sqrt(variance)
        density = np.exp(-a * a / 2) / sqrt(2 * np.pi)
        inside = 2 * ndtr(a) - 1
        second = (inside - 2 * a * density) / a**2
        fourth = (3 * inside - 2 * a * (a * a + 3) * density) / a**4
        return np.asarray(inside - 6 * second + 5 * fourth)

    @property
    def signed(self) -> bool:
        """Whether ψ′ has both signs."""
        return True

    @cached_property
    def mean_square(self) -> float:
        """E ψ²(z)."""
        return self._mean(lambda z: self.psi(z) ** 2)

    def _mean(self, function: Callable[[FloatArray], FloatArray]) -> float:
        """∫ f φ over [−c, c] by Gauss–Legendre (f vanishes beyond)."""
        z = self.c * _NODES
        density = np.exp(-z * z / 2) / sqrt(2 * np.pi)
        return float(self.c * np.sum(_WEIGHTS * density * function(z)))


@dataclass(frozen=True, slots=True, eq=False)
class BiweightFit:
    """coefficients (q,), scale, sandwich covariance (q, q) at fixed scale, largest |mean
    equation|."""

    coefficients: FloatArray
    scale: float
    covariance: FloatArray
    residual: float

    @property
    def converged(self) -> bool:
        """Whether the estimating equation holds to 10⁻¹⁰."""
        return self.residual < 1e-10


def fit_biweight(
    X: FloatArray,
    y: FloatArray,
    start: FloatArray,
    c: float = EFFICIENT_95,
    *,
    scale: float | None = None,
    weights: FloatArray | None = None,
) -> BiweightFit:
    """Reweights from `start` (q,) for X (n, q), y (n,).

    scale None: median|r|/.6745, estimated again at each step (R's `rlm`); weights: Mallows' w (n,).
    """
    family, w = Biweight(c), np.ones(len(y)) if weights is None else weights
    beta, s = start, 1.0
    for _ in range(5000):
        r = y - X @ beta
        s = _mad(r) if scale is None else scale
        a = w * family.weight(r / s)
        hessian = (X.T * a) @ X
        moved = beta + pseudo_inverse(hessian) @ (X.T @ (a * r))
        change = float(np.max(np.abs(moved - beta)))
        beta = moved
        if change <= 1e-14 * max(1.0, float(np.max(np.abs(beta)))):
            break
    z = (y - X @ beta) / s
    residual = float(np.max(np.abs(X.T @ (w * family.psi(z))))) / len(y)
    return BiweightFit(beta, s, _sandwich(X, z, s, w, family), residual)


def _sandwich(
    X: FloatArray, z: FloatArray, s: float, w: FloatArray, family: Biweight
) -> FloatArray:
    n = len(z)
    inverse = pseudo_inverse((X.T * (w * family.derivative(z))) @ X / (n * s))
    Q = (X.T * (w * family.psi(z)) ** 2) @ X / n
    return np.asarray(inverse @ Q @ inverse / n)


def _mad(residuals: FloatArray) -> float:
    return max(float(np.median(np.abs(residuals))) / _MAD_TO_SD, float(np.finfo(float).tiny))
