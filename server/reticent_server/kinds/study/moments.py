# SPDX-License-Identifier: Apache-2.0
"""Noisy second moments of a study's columns, and least squares from them. Everything here is
post-processing.

z̃ (q,) are the standardised columns, the intercept first. Released is S_u = Σ ω uuᵀ + E with
u = Wz̃, ω = min(1, R²/‖u‖²) and symmetric Gaussian noise E, sd s on the diagonal and s/√2 off it.
In z̃ that is S = W⁻¹S_uW⁻ᵀ with the noise N = CᵀEC, C = W⁻ᵀ its *root*, and with Q = CᵀC

    cov(Nv) = (s²/2)[(vᵀQv)Q + (Qv)(Qv)ᵀ]    for a fixed v.

Of y = aᵀz̃ on x = Xz̃ (X (p, q)): θ = S_XX⁻¹S_Xy with S_XX = XSXᵀ, v = a − Xᵀθ, and with errors
from

- noise     V = (s²/2)·S_XX⁻¹[(vᵀQv)Q_XX + (XQv)(XQv)ᵀ]S_XX⁻¹;
- sampling  σ²S_XX⁻¹, σ² = max(vᵀSv, s·vᵀQv)/S₀₀: vᵀSv may be negative, its noise has the sd s·vᵀQv.

V is of first order in the noise. It holds while the noise of S_XX is far below S_XX: in the frame
in which Q_XX is I the noise is a p × p Gaussian matrix of operator norm s√(2p) at most (with
probability near 1), and with λ the smallest eigenvalue of S_XX in that frame the *gate* is
g = s√(2p)/λ. Above 1/3 no interval is given: in a simulation the noise had the sd 203 there where V
said 15.

S is never repaired: an eigenvalue that is raised biases every θ. Only where the gate is shut are
eigenvalues raised to the noise's norm, so that there is a number at all.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.trust import moments_hold
from reticent_server.numerics.matrices import eigen, power, rebuild

_TINY = 1e-12  # of a relative eigenvalue, where there is no noise to compare with


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquares:
    """θ (p,) of y on x; privacy (p, p) its noise; inverse (p, p) S_XX⁻¹; variance σ²; gate g;
    residual v (q,).

    weakest: (p,) the combination of the columns x that the noise hides most.
    """

    theta: FloatArray
    privacy: FloatArray
    inverse: FloatArray
    variance: float
    gate: float
    residual: FloatArray
    weakest: FloatArray

    @property
    def sampling(self) -> FloatArray:
        """(p, p) for errors of one variance."""
        return np.asarray(self.variance * self.inverse)

    @property
    def open(self) -> bool:
        """Whether intervals may be given."""
        return moments_hold(self.gate)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """S (q, q), sums over the records; root C (q, q), noise CᵀEC; sd s."""

    sums: FloatArray
    root: FloatArray
    sd: float

    @property
    def overlap(self) -> FloatArray:
        """Q = CᵀC (q, q)."""
        return np.asarray(self.root.T @ self.root)

    def least_squares(self, y: FloatArray, X: FloatArray) -> LeastSquares:
        """The least squares fit of yᵀz̃ on Xz̃: y (q,), X (p, q) of rank p."""
        S, Q, p = self.sums, self.overlap, len(X)
        frame = power(X @ Q @ X.T, -0.5, np.finfo(float).tiny)
        values, vectors = eigen(frame @ (X @ S @ X.T) @ frame)
        norm = self.sd * sqrt(2 * p)
        gate = norm / values[0] if values[0] > 0 else np.inf
        least = max(norm, _TINY * float(values[-1]), np.finfo(float).tiny)
        usable = values if moments_hold(gate) else np.maximum(values, least)
        inverse = frame @ rebuild(1 / usable, vectors) @ frame
        theta = inverse @ (X @ S @ y)
        v = y - X.T @ theta
        return LeastSquares(
            theta=theta,
            privacy=self._noise(v, X, inverse),
            inverse=inverse,
            variance=self._variance(v),
            gate=float(gate),
            residual=v,
            weakest=frame @ vectors[:, 0],
        )

    def _noise(self, v: FloatArray, X: FloatArray, inverse: FloatArray) -> FloatArray:
        Q = self.overlap
        across = X @ Q @ v
        inner = (v @ Q @ v) * (X @ Q @ X.T) + np.outer(across, across)
        return np.asarray(self.sd**2 / 2 * inverse @ inner @ inverse)

    def _variance(self, v: FloatArray) -> float:
        variance = max(float(v @ self.sums @ v), self.sd * float(v @ self.overlap @ v))
        return variance / max(float(self.sums[0, 0]), 1.0)
