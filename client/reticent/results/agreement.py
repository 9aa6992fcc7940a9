# SPDX-License-Identifier: Apache-2.0
"""Cohen's kappa of a released two-way table, with an interval that counts sampling and noise.

With shares P of the cells, margins r and c and weights W (1 on the diagonal), a = ΣW P,
e = Σ W r cᵀ and κ = (a − e)/(1 − e). Its gradient in P is

    g_ij = (W_ij(1 − e) − (Σ_l W_il c_l + Σ_k W_kj r_k)(1 − a))/(1 − e)²,

sampling has the variance (ΣP g² − (ΣP g)²)/N (Fleiss, Cohen & Everitt 1969), and noise of variance
σ² in each cell has σ²‖u‖², u = (g − ΣP g)/N. Where the table's sum is public the noise has none in
that direction, σ²(‖u‖² − (Σu)²/K) of K cells. Post-processing, free.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

FloatArray = NDArray[np.float64]
_CLEAR = 3.0
"""Standard deviations of its noise that the table's sum must be above 0 for an interval."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Cohen's kappa: value, bse (sampling and noise), privacy_bse (noise alone).

    sure: whether the table's sum is clear of its noise; else the interval is [−1, 1].
    """

    value: float
    bse: float
    privacy_bse: float
    sure: bool = True

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) of the 1 − alpha interval, within [−1, 1]."""
        if not self.sure:
            return -1.0, 1.0
        half = float(ndtri(1 - alpha / 2)) * self.bse
        return max(self.value - half, -1.0), min(self.value + half, 1.0)

    def __repr__(self) -> str:
        low, high = self.conf_int()
        return f"Cohen's kappa {self.value:.3f}, 95 % interval [{low:.3f}, {high:.3f}]"


def weights_of(k: int, kind: str | None) -> FloatArray:
    """(k, k) weights of agreement. Raises ValueError for an unknown kind."""
    distance = np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / max(k - 1, 1)
    if kind is None:
        return np.eye(k)
    if kind == "linear":
        return np.asarray(1 - distance)
    if kind == "quadratic":
        return np.asarray(1 - distance**2)
    raise ValueError("weights is None, 'linear' or 'quadratic'")


def kappa(counts: FloatArray, sd: float, W: FloatArray, *, total: bool) -> Agreement:
    """Of noisy counts (k, k). sd: the standard error of one; total: whether their sum is public."""
    cells = counts.size
    sigma = sd / sqrt(1 - 1 / cells) if total else sd
    N = max(float(counts.sum()), 1.0)
    value, _ = _kappa(counts / N, W)
    kept = np.maximum(counts, 0.0)
    P = kept / max(float(kept.sum()), 1.0)
    _, g = _kappa(P, W)
    centred = g - float((P * g).sum())
    u = centred / N
    noise = sigma**2 * max(float((u**2).sum()) - (float(u.sum()) ** 2 / cells if total else 0.0), 0)
    sampling = float((P * centred**2).sum()) / N
    sure = total or _CLEAR * sigma * sqrt(cells) < N
    return Agreement(min(max(value, -1.0), 1.0), sqrt(sampling + noise), sqrt(noise), sure)


def _kappa(P: FloatArray, W: FloatArray) -> tuple[float, FloatArray]:
    """κ and its gradient (k, k) in the shares."""
    r, c = P.sum(axis=1), P.sum(axis=0)
    a, e = float((W * P).sum()), float(r @ W @ c)
    by_chance = np.add.outer(W @ c, W.T @ r)
    rest = max(1 - e, np.finfo(float).eps)
    return (a - e) / rest, np.asarray((W * rest - by_chance * (1 - a)) / rest**2)
