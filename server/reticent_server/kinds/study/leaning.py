# SPDX-License-Identifier: Apache-2.0
"""What clipping may still have moved, judged by what a narrower radius has moved. Everything here is post-processing.

The last whitening round has released the moments S₂ = Σω₂z̃z̃ᵀ + N₂ at a narrower radius r² < R². Of S = Σωz̃z̃ᵀ what is missing is
T = Σ(1 − ω)z̃z̃ᵀ, and D = S − S₂ is what lies between the radii. With the traces of both, τ_R and τ_r − τ_R in the frame of u, from a
released histogram, T is about λD in the directions that matter,

    λ = τ_R/(τ_r − τ_R),       0 ≤ λ ≤ 5.

A coefficient θ = A·X S(…) with the residual v moves by AXTv to first order, so that its clipping bias is about

    b = λ AX(S − S₂)v,       with the noise  V_b = λ²·(s₂²/2)·A[(vᵀQ₂v)XQ₂Xᵀ + (XQ₂v)(XQ₂v)ᵀ]Aᵀ.

Least squares has XSv = 0. b is not taken off, as it is no more than a guess of size and direction: each standard error e is lengthened
to √(e² + (b² − V_b)₊), with the coefficient's own b and V_b, so that nothing is added where b is no larger than its noise. With a known
bias b intervals of the variance e² + b² hold a coefficient in at least 95 % of samples, whatever b/e. Correlations of coefficients stay.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray

MOST = 5.0  # λ: beyond, the histogram says that nearly all of the tail is missing, and D hardly knows where it is
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True, eq=False)
class NarrowMoments:
    """S₂ (q, q), its root C₂ (q, q) and sd s₂, as of Moments; ratio λ."""

    sums: FloatArray
    root: FloatArray
    sd: float
    ratio: float

    def leaning(self, sums: FloatArray, v: FloatArray, X: FloatArray, A: FloatArray) -> "Leaning":
        """For a residual v (q,), columns X (p, q) and A (p, p) of the moments `sums`."""
        Q = self.root.T @ self.root
        across = X @ Q @ v
        inner = (v @ Q @ v) * (X @ Q @ X.T) + np.outer(across, across)
        moved = self.ratio * (A @ (X @ (sums - self.sums) @ v))
        return Leaning(moved, self.ratio**2 * self.sd**2 / 2 * A @ inner @ A.T)


@dataclass(frozen=True, slots=True, eq=False)
class Leaning:
    """b (p,) and its noise (p, p)."""

    moved: FloatArray
    noise: FloatArray

    def squares(self, L: FloatArray) -> FloatArray:
        """(k,) (b² − V_b)₊ of the coefficients Lθ, L (k, p)."""
        return np.asarray(np.maximum((L @ self.moved) ** 2 - np.diag(L @ self.noise @ L.T), 0.0))


def lengthened(covariance: FloatArray, squares: FloatArray) -> FloatArray:
    """The covariance (k, k) with (k,) added to its variances, and with its own correlations."""
    variances = np.maximum(np.diag(covariance), _TINY)
    stretch = np.sqrt(1 + squares / variances)
    return np.asarray(covariance * np.outer(stretch, stretch))


def ratio(missing: float, narrow: float) -> float:
    """λ from τ_R and τ_r."""
    if missing <= 0:
        return 0.0
    between = narrow - missing
    return min(missing / between, MOST) if between > 0 else 1.0
