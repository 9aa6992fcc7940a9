# SPDX-License-Identifier: Apache-2.0
"""The Brier score of released probabilities, from their residuals by bins.

Residuals r of a bin are centred at c and scaled by h, z = (r − c)/h, and its released sums N, S and
Q of 1, z and z² have noise of the variances s², s²/2 and s². So Σr² = h²Q + 2hcS + c²N, the score
is B = ΣΣr²/ΣN (Brier 1950), and its noise has the variance s²Σ(h⁴ + 2h²c² + (c² − B)²)/(ΣN)². s is
told by the released error of a mean, s²(m² + ½)h²/N² at m = (r̄ − c)/h. Sampling: E(y − μ)⁴ − B²
over the records, with the bins' observed shares. Post-processing, free.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BrierScore:
    """The mean squared difference of outcomes and probabilities: value, bse (sampling and noise),
    privacy_bse (noise alone).
    """

    value: float
    bse: float
    privacy_bse: float

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) of the 1 − alpha interval, within [0, 1]."""
        half = float(ndtri(1 - alpha / 2)) * self.bse
        return max(self.value - half, 0.0), min(self.value + half, 1.0)

    def __repr__(self) -> str:
        low, high = self.conf_int()
        return f"Brier score {self.value:.4f}, 95 % interval [{low:.4f}, {high:.4f}]"


def brier_score(
    numbers: FloatArray,
    residuals: FloatArray,
    deviations: FloatArray,
    fitted: FloatArray,
    privacy: FloatArray,
    ranges: FloatArray,
) -> BrierScore:
    """Of bins (b,): numbers, means and deviations of residuals, middles, the noise's errors of the
    means, and (b, 2) the ranges of residuals.
    """
    c, h = ranges.mean(axis=1), np.diff(ranges, axis=1)[:, 0] / 2
    N, total = np.maximum(numbers, 1.0), max(float(numbers.sum()), 1.0)
    squares = float(np.sum((N - 1) * deviations**2 + N * residuals**2))
    B = min(squares / total, 1.0)
    m = (residuals - c) / h
    s = float(np.median(privacy * N / (h * np.sqrt(m**2 + 0.5))))
    noise = s**2 * float(np.sum(h**4 + 2 * h**2 * c**2 + (c**2 - B) ** 2)) / total**2
    p = np.clip(fitted + residuals, 0.0, 1.0)
    fourth = float(np.sum(N * (p * (1 - fitted) ** 4 + (1 - p) * fitted**4))) / float(N.sum())
    sampling = max(fourth - B**2, 0.0) / total
    return BrierScore(B, sqrt(sampling + noise), sqrt(noise))
