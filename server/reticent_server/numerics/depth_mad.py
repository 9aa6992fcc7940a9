# SPDX-License-Identifier: Apache-2.0
"""Projections with the median as location and the median absolute deviation as scale.

m = X_(h), s the h-th smallest of |X_i − m|. Let [M⁻_k, M⁺_k] = [X_(h−k), X_(h+k)], which holds the
median of every sample within k replacements, and

    s⁻_k = min{r: #{i: M⁻_k − r ≤ X_i ≤ M⁺_k + r} ≥ h − k}
    s⁺_k = min{r: #{i: M⁺_k − r ≤ X_i ≤ M⁻_k + r} ≥ h + k}.

*Claim*: s of every sample within k replacements lies in [s⁻_k, s⁺_k]. *Proof*: such a sample has h
records within s of its median m′; h − k of them are records of X, and the interval lies in that of
s⁻_k. The interval of s⁺_k lies in [m′ − s⁺_k, m′ + s⁺_k] and has h + k records of X, so h of the
sample's. *Shift*: the intervals of a neighbour at k − 1 lie within (for s⁻) or around (for s⁺)
those at k, and the counts asked for differ by one, as do the two samples. One replacement on a
sample within k changes s by at most s⁺_{k+1} − s⁻_{k+1}, since both of its ends are within k + 1;
this has the shift property with the two. The breakdown point is 50 %. Projections are whole
numbers, so r is found by halving, exactly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.depth import Whole, certain, projected, whole_numbers
from reticent_server.numerics.depth_iqr import median_range
from reticent_server.numerics.order_statistics import local_sensitivity, quartile_ranks, window


@dataclass(frozen=True, slots=True, eq=False)
class MadProjections:
    """median: windows (K, 2 reach + 1); least, most (K, reach + 1): s⁻_k and s⁺_k, k = 0..reach."""

    median: FloatArray
    least: FloatArray
    most: FloatArray

    @classmethod
    def measure(cls, data: FloatArray, directions: FloatArray, reach: int) -> "MadProjections":
        """data (d, n), directions (K, d): whole numbers; see numerics.depth.projected."""
        K = len(directions)
        tables = cls(np.empty((K, 2 * reach + 1)), *np.empty((2, K, reach + 1)))
        for rows, projections in projected(data, directions):
            projections.sort(axis=1)
            for row, ordered in zip(range(K)[rows], projections, strict=True):
                _, h, _ = quartile_ranks(len(ordered))
                w = window(ordered, h, reach)
                tables.median[row] = w
                tables.least[row], tables.most[row] = _bounds(ordered, w, h)
        return tables

    @property
    def _centre(self) -> int:
        return int(self.median.shape[1]) // 2

    @property
    def denominator(self) -> int:
        """1: medians of whole numbers are whole."""
        return 1

    @property
    def location(self) -> Whole:
        """(K,) medians."""
        return certain(whole_numbers(self.median[:, self._centre]))

    @property
    def scale(self) -> Whole:
        """(K,) medians of the distances from the median."""
        return certain(whole_numbers(self.least[:, 0]))

    def location_change(self, k: int) -> Whole | None:
        """(K,) the median's local sensitivity at distance k."""
        return whole_numbers(local_sensitivity(self.median, k))

    def scale_change(self, k: int) -> Whole | None:
        """(K,) the largest less the smallest scale within k + 1 replacements."""
        return whole_numbers(self.most[:, k + 1] - self.least[:, k + 1])

    def least_scale(self, k: int) -> Whole | None:
        """(K,) the smallest scale within k replacements."""
        return whole_numbers(self.least[:, k])

    def location_range(self, k: int) -> tuple[Whole, Whole] | None:
        """(K,) and (K,): the medians within k replacements."""
        return median_range(self.median, k)


def _bounds(ordered: FloatArray, w: FloatArray, h: int) -> tuple[FloatArray, FloatArray]:
    """s⁻_k and s⁺_k (reach + 1,) of one sorted projection (n,), whose median has the window w."""
    c = len(w) // 2
    k = np.arange(c + 1)
    low, high = w[c - k], w[c + k]
    least = _smallest_radius(ordered, low, high, h - k)
    most = _smallest_radius(ordered, high, low, h + k)
    return np.where(np.isfinite(high - low), least, 0.0), most


def _smallest_radius(
    ordered: FloatArray, left: FloatArray, right: FloatArray, wanted: NDArray[np.int64]
) -> FloatArray:
    """min{r ≥ 0: #{i: left − r ≤ X_i ≤ right + r} ≥ wanted} for each entry; inf where there is
    none."""
    finite = np.isfinite(left) & np.isfinite(right)
    left, right = np.where(finite, left, 0.0), np.where(finite, right, 0.0)
    all_of_it = 2 * float(ordered[-1] - ordered[0]) + 1
    low, high = np.full(left.shape, -1.0), np.full(left.shape, all_of_it + 1)
    for _ in range(int(all_of_it).bit_length() + 1):
        r = np.floor((low + high) / 2)
        count = np.searchsorted(ordered, right + r, side="right") - np.searchsorted(
            ordered, left - r, side="left"
        )
        enough = count >= wanted
        low, high = np.where(enough, low, r), np.where(enough, r, high)
    return np.where(finite & (high <= all_of_it), np.maximum(high, 0.0), np.inf)
