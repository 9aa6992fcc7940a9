# SPDX-License-Identifier: Apache-2.0
"""Projections with the median as location and the interquartile range as scale.

Windows of the three quartiles hold all that is needed; numerics.order_statistics has the proofs.
One replacement moves both quartiles in one direction, so it changes their difference by at most the
larger of their changes. The scale breaks down at 25 % of bad records.

Projections are whole numbers below 2⁵², so differences of two are exact in float64.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.depth import Whole, certain, projected, whole_numbers
from reticent_server.numerics.order_statistics import (
    local_sensitivity,
    partial_windows,
    quartile_ranks,
    smallest_gap,
)


@dataclass(frozen=True, slots=True, eq=False)
class IqrProjections:
    """Windows (K, 2 reach + 1) of the lower quartile, the median and the upper quartile."""

    first: FloatArray
    median: FloatArray
    third: FloatArray

    @classmethod
    def measure(cls, data: FloatArray, directions: FloatArray, reach: int) -> "IqrProjections":
        """data (d, n), directions (K, d): whole numbers; see numerics.depth.projected."""
        ranks = quartile_ranks(data.shape[1])
        tables = tuple(np.empty((len(directions), 2 * reach + 1)) for _ in ranks)
        for rows, projections in projected(data, directions):
            windows = partial_windows(projections, ranks, reach)
            for whole, part in zip(tables, windows, strict=True):
                whole[rows] = part
        return cls(*tables)

    @property
    def _centre(self) -> int:
        return int(self.median.shape[1]) // 2

    @property
    def denominator(self) -> int:
        """1: quartiles and medians of whole numbers are whole."""
        return 1

    @property
    def location(self) -> Whole:
        """(K,) medians."""
        return certain(whole_numbers(self.median[:, self._centre]))

    @property
    def scale(self) -> Whole:
        """(K,) third less first quartiles."""
        return certain(whole_numbers(self.third[:, self._centre] - self.first[:, self._centre]))

    def location_change(self, k: int) -> Whole | None:
        """(K,) the median's local sensitivity at distance k."""
        return whole_numbers(local_sensitivity(self.median, k))

    def scale_change(self, k: int) -> Whole | None:
        """(K,) the larger of the quartiles' local sensitivities: one replacement moves
        one of them."""
        changes = local_sensitivity(self.first, k), local_sensitivity(self.third, k)
        return whole_numbers(np.maximum(*changes))

    def least_scale(self, k: int) -> Whole | None:
        """(K,) the smallest gap between the quartiles within k replacements."""
        return whole_numbers(smallest_gap(self.first, self.third, k))

    def location_range(self, k: int) -> tuple[Whole, Whole] | None:
        """(K,) and (K,): the medians within k replacements."""
        return median_range(self.median, k)


def median_range(median: FloatArray, k: int) -> tuple[Whole, Whole] | None:
    """X_(h−k) and X_(h+k) from windows (K, 2 reach + 1) of the median."""
    centre = median.shape[1] // 2
    low, high = (whole_numbers(median[:, at]) for at in (centre - k, centre + k))
    return None if low is None or high is None else (low, high)
