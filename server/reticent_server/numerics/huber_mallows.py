# SPDX-License-Identifier: Apache-2.0
"""Noise-free Huber–Mallows regression: what the noisy recipe estimates, for the curator's
demonstration.

    Σ w_i ψ_c(r_i/s) x_i = 0,  r = y − Xβ,

with given weights w and a scale s that is measured on the residuals. It is solved to the precision
of floats, by Newton steps that fall back to reweighting. Of terms that depend on each other the
solution of the least norm is found; their covariance is that of what the data identify.

Source: Huber & Ronchetti (2009), ch. 7.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.matrices import pseudo_inverse
from reticent_server.numerics.psi import Huber

# a bound that is not reached where the loss has a minimum: iteration ends at the gradient's
# rounding before
NEWTON_STEPS = 60
LEAST_SCALE = 1e-100  # of residuals that are all 0: its square's inverse is still within the floats


@dataclass(frozen=True, slots=True)
class HuberFit:
    """coefficients (q,), scale, weights w (n,), and the sandwich covariance (q, q) at fixed scale.

    residual: the largest |mean estimating equation|; converged: whether it is below 1e-10.
    """

    coefficients: FloatArray
    scale: float
    weights: FloatArray
    covariance: FloatArray
    residual: float

    @property
    def converged(self) -> bool:
        """Whether the estimating equation holds to 10⁻¹⁰."""
        return self.residual < 1e-10

    @property
    def standard_errors(self) -> FloatArray:
        """(p,) the roots of the covariance's diagonal."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def sandwich(X: FloatArray, z: FloatArray, s: float, w: FloatArray, family: Huber) -> FloatArray:
    """V = M⁻¹QM⁻¹/n, M = (1/(ns)) Σ wψ′xxᵀ, Q = (1/n) Σ w²ψ²xxᵀ, z = r/s; s taken as known."""
    n = len(z)
    M = (X.T * (w * family.derivative(z))) @ X / (n * s)
    Q = (X.T * (w * family.psi(z)) ** 2) @ X / n
    inverse = pseudo_inverse(M)
    return np.asarray(inverse @ Q @ inverse / n)


def regress(
    X: FloatArray,
    y: FloatArray,
    s: float,
    w: FloatArray,
    family: Huber,
    start: FloatArray,
    steps: int = NEWTON_STEPS,
) -> FloatArray:
    """Minimises Σ w ρ_c((y − Xβ)/s) at fixed s by Newton steps that fall back to reweighting."""
    beta = start
    for _ in range(steps):
        z = (y - X @ beta) / s
        gradient = X.T @ (w * family.psi(z))
        if np.max(np.abs(gradient)) <= 1e-15 * max(1.0, float(w.sum())):
            break
        beta = _step(X, y, s, w, family, beta, z, gradient)
    return beta


def _step(
    X: FloatArray,
    y: FloatArray,
    s: float,
    w: FloatArray,
    family: Huber,
    beta: FloatArray,
    z: FloatArray,
    gradient: FloatArray,
) -> FloatArray:
    loss = float(w @ family.loss(z))
    for curvature in (family.derivative(z), family.weight(z)):
        hessian = (X.T * (w * curvature)) @ X
        moved = beta + s * (pseudo_inverse(hessian) @ gradient)
        if float(w @ family.loss((y - X @ moved) / s)) <= loss * (1 + 1e-15):
            break
    return np.asarray(moved)


def finished(
    X: FloatArray,
    y: FloatArray,
    s: float,
    w: FloatArray,
    family: Huber,
    beta: FloatArray,
) -> HuberFit:
    """The fit of X (n, q), y (n,) and weights w (n,) at the scale s, solved from `beta` (q,), with
    its covariance."""
    beta = regress(X, y, s, w, family, beta)
    z = (y - X @ beta) / s
    residual = float(np.max(np.abs(X.T @ (w * family.psi(z))))) / len(y)
    return HuberFit(beta, s, w, sandwich(X, z, s, w, family), residual)


def fit_mallows(
    X: FloatArray,
    y: FloatArray,
    c: float,
    weights: FloatArray,
    measure: Callable[[FloatArray], float],
) -> HuberFit:
    """Solves Σ w ψ_c(r/s) x = 0, s = measure(r), for X (n, q), y (n,) and given weights w (n,)."""
    family = Huber(c)
    beta = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], np.float64)
    s = max(measure(y - X @ beta), LEAST_SCALE)
    for _ in range(500):
        beta = regress(X, y, s, weights, family, beta, steps=3)
        previous, s = s, max(measure(y - X @ beta), LEAST_SCALE)
        if abs(s - previous) <= 1e-14 * s:
            break
    return finished(X, y, s, weights, family, beta)
