"""Projections with the median as location and the interquartile range as scale.

Windows of the three quartiles hold all that is needed; numerics.order_statistics has the proofs. One
replacement moves both quartiles in one direction, so it changes their difference by at most the larger
of their changes. The scale breaks down at 25 % of bad records.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.depth import projected
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
        found = tuple(np.empty((len(directions), 2 * reach + 1)) for _ in ranks)
        for rows, projections in projected(data, directions):
            windows = partial_windows(projections, ranks, reach)
            for whole, part in zip(found, windows, strict=True):
                whole[rows] = part
        return cls(*found)

    @property
    def _centre(self) -> int:
        return int(self.median.shape[1]) // 2

    @property
    def location(self) -> FloatArray:
        return self.median[:, self._centre]

    @property
    def scale(self) -> FloatArray:
        return np.asarray(self.third[:, self._centre] - self.first[:, self._centre])

    def location_change(self, k: int) -> FloatArray:
        return local_sensitivity(self.median, k)

    def scale_change(self, k: int) -> FloatArray:
        changes = local_sensitivity(self.first, k), local_sensitivity(self.third, k)
        return np.maximum(*changes)

    def least_scale(self, k: int) -> FloatArray:
        return smallest_gap(self.first, self.third, k)

    def location_range(self, k: int) -> tuple[FloatArray, FloatArray]:
        return self.median[:, self._centre - k], self.median[:, self._centre + k]
