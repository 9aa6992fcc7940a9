# SPDX-License-Identifier: Apache-2.0
"""Projections with the 25 %-trimmed mean as location and the trimmed mean deviation as scale.

    m = (1/N) Σ_{i=a..b} X_(i),   s = (1/N) Σ_{i=a..b} |X_(i) − m|,
    a = ⌊n/4⌋ + 1,   b = n − ⌊n/4⌋,   N = b − a + 1.

Let A^(k) = (X_(b+1+k) − X_(a−1−k))/N. *Claim*: one replacement on any sample within k replacements
moves m by at most A^(k) and s by at most 2A^(k). *Proof*: all order statistics move in one
direction by at most a rank, so Σ|X₂_(i) − X₁_(i)| ≤ Σ (X₁_(i+1) − X₁_(i)) = X₁_(b+1) − X₁_(a),
or ≤ X₁_(b) − X₁_(a−1), and X₁_(i) lies between X_(i−k) and X_(i+k). For s add the change of m.
Hence on every sample within k

    |m − m(D)| ≤ Σ_{i<k} A^(i),   s ≥ s(D) − 2 Σ_{i<k} A^(i).

*Shift*: X′_(b+k) ≤ X_(b+k+1) and X′_(a−k) ≥ X_(a−k−1), so A^(k−1) of a neighbour is ≤ A^(k); the
sums follow, with |m′ − m| ≤ A^(0) and |s′ − s| ≤ 2A^(0) as their first terms. A^(k) hardly grows
with k: an average is far less sensitive than an order statistic. It breaks down at 25 % of bad
records.

All of this holds for the computed values, which are exact: with T = Σ X_(i), and P and T⁺ the
number and the sum of the X_(i) above T/N, Nm = T and N²s = 2(NT⁺ − PT) are whole numbers. A float64
would not do: neighbours may differ by as little as 1/N in values of any size.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.depth import Whole, projected
from reticent_server.numerics.order_statistics import partial_windows

IntArray = NDArray[np.int64]

_HALF = 26  # bits: of whole numbers below 2⁵² both halves add up in int64 for n < 2³⁶


def trimmed_ranks(n: int) -> tuple[int, int]:
    """a and b, from 1."""
    return n // 4 + 1, n - n // 4


@dataclass(frozen=True, slots=True, eq=False)
class TrimmedProjections:
    """kept: N. total, scale: T and N²s (K,). spans (K, c): N A^(k), k = 0..c − 1, as far as it is
    finite."""

    kept: int
    total: Whole
    scale: Whole
    spans: IntArray

    @classmethod
    def measure(cls, data: FloatArray, directions: FloatArray, reach: int) -> "TrimmedProjections":
        """data (d, n), directions (K, d): whole numbers; see numerics.depth.projected."""
        n = data.shape[1]
        a, b = trimmed_ranks(n)
        finite = min(reach, n - b, a - 1)
        total: Whole = []
        scale: Whole = []
        spans = np.empty((len(directions), finite), dtype=np.int64)
        for rows, projections in projected(data, directions):
            low, high = partial_windows(projections, (a, b), reach)
            middle = projections[:, a - 1 : b].astype(np.int64)
            for T, row in zip(exact_sums(middle), middle, strict=True):
                above = row[row > T // len(row)]
                (largest,) = exact_sums(above[None, :])
                total.append(T)
                scale.append(2 * (len(row) * largest - len(above) * T))
            ends = high[:, reach + 1 :], low[:, :reach][:, ::-1]
            spans[rows] = (ends[0][:, :finite] - ends[1][:, :finite]).astype(np.int64)
        return cls(b - a + 1, total, scale, spans)

    @property
    def denominator(self) -> int:
        """N², N the number of values that trimming leaves: the scale is a mean of distances
        to a mean."""
        return self.kept**2

    @property
    def location(self) -> Whole:
        """(K,) trimmed means."""
        return [self.kept * T for T in self.total]

    def location_change(self, k: int) -> Whole | None:
        """(K,) A^(k), a span of order statistics over N."""
        if k >= self.spans.shape[1]:
            return None
        return [self.kept * span for span in self.spans[:, k].tolist()]

    def scale_change(self, k: int) -> Whole | None:
        """(K,) 2A^(k)."""
        change = self.location_change(k)
        return None if change is None else [2 * c for c in change]

    def least_scale(self, k: int) -> Whole | None:
        """(K,) the scale less twice what k replacements move the location by."""
        moved = self._moved(k)
        if moved is None:
            return None
        return [s - 2 * move for s, move in zip(self.scale, moved, strict=True)]

    def location_range(self, k: int) -> tuple[Whole, Whole] | None:
        """(K,) and (K,): the location, less and more what k replacements move it by."""
        moved = self._moved(k)
        if moved is None:
            return None
        both = list(zip(self.location, moved, strict=True))
        return [m - move for m, move in both], [m + move for m, move in both]

    def _moved(self, k: int) -> Whole | None:
        """N² Σ_{i<k} A^(i)."""
        if k > self.spans.shape[1]:
            return None
        return [self.kept * total for total in exact_sums(self.spans[:, :k])]


def exact_sums(rows: IntArray) -> Whole:
    """The sums (k,) of rows (k, n) of whole numbers below 2⁵² in size."""
    high = (rows >> _HALF).sum(axis=1).tolist()
    low = (rows & ((1 << _HALF) - 1)).sum(axis=1).tolist()
    return [(top << _HALF) + rest for top, rest in zip(high, low, strict=True)]
