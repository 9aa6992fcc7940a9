"""Projections with the 25 %-trimmed mean as location and the trimmed mean deviation as scale.

    m = (1/N) Σ_{i=a..b} X_(i),   s = (1/N) Σ_{i=a..b} |X_(i) − m|,   a = ⌊n/4⌋ + 1, b = n − ⌊n/4⌋, N = b − a + 1.

Let A^(k) = (X_(b+1+k) − X_(a−1−k))/N. *Claim*: one replacement on any sample within k replacements moves m
by at most A^(k) and s by at most 2A^(k). *Proof*: all order statistics move in one direction by at most
a rank, so Σ|X₂_(i) − X₁_(i)| ≤ Σ (X₁_(i+1) − X₁_(i)) = X₁_(b+1) − X₁_(a), or ≤ X₁_(b) − X₁_(a−1), and
X₁_(i) lies between X_(i−k) and X_(i+k). For s add the change of m. Hence on every sample within k

    |m − m(D)| ≤ Σ_{i<k} A^(i),   s ≥ s(D) − 2 Σ_{i<k} A^(i).

*Shift*: X′_(b+k) ≤ X_(b+k+1) and X′_(a−k) ≥ X_(a−k−1), so A^(k−1) of a neighbour is ≤ A^(k); the sums follow,
with |m′ − m| ≤ A^(0) and |s′ − s| ≤ 2A^(0) as their first terms. A^(k) hardly grows with k: an average is far
less sensitive than an order statistic. It breaks down at 25 % of bad records.

m and s are float64 sums of whole numbers centred at the median, with relative errors near 10⁻¹⁵.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.depth import projected
from reticent_server.numerics.order_statistics import partial_windows


def trimmed_ranks(n: int) -> tuple[int, int]:
    """a and b, from 1."""
    return n // 4 + 1, n - n // 4


@dataclass(frozen=True, slots=True, eq=False)
class TrimmedProjections:
    """location and scale (K,); changes (K, reach): A^(k), k = 0..reach − 1."""

    location: FloatArray
    scale: FloatArray
    changes: FloatArray

    @classmethod
    def measure(cls, data: FloatArray, directions: FloatArray, reach: int) -> "TrimmedProjections":
        """data (d, n), directions (K, d): whole numbers; see numerics.depth.projected."""
        K = len(directions)
        found = cls(np.empty(K), np.empty(K), np.empty((K, reach)))
        a, b = trimmed_ranks(data.shape[1])
        for rows, projections in projected(data, directions):
            low, high = partial_windows(projections, (a, b), reach)
            middle = projections[:, a - 1 : b]
            centre = middle[:, :1].copy()
            middle -= centre
            means = middle.mean(axis=1)
            found.location[rows] = centre[:, 0] + means
            found.scale[rows] = np.abs(middle - means[:, None]).mean(axis=1)
            found.changes[rows] = (high[:, reach + 1 :] - low[:, :reach][:, ::-1]) / (b - a + 1)
        return found

    def location_change(self, k: int) -> FloatArray:
        return self.changes[:, k]

    def scale_change(self, k: int) -> FloatArray:
        return 2 * self.changes[:, k]

    def least_scale(self, k: int) -> FloatArray:
        return np.asarray(self.scale - 2 * self.changes[:, :k].sum(axis=1))

    def location_range(self, k: int) -> tuple[FloatArray, FloatArray]:
        moved = self.changes[:, :k].sum(axis=1)
        return self.location - moved, self.location + moved
