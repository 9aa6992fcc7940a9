# SPDX-License-Identifier: Apache-2.0
"""A public grid of candidate values, as the few numbers that it is made of."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

CELLS = 1 << 15  # a count of records by cell is then 256 KiB, which stays in a processor's cache
_LOG_RANGE = 2.0**-24  # the geometric half begins here, as a share of the farther bound


@dataclass(frozen=True, slots=True)
class Grid:
    """Increasing candidates from `lower` to `upper`, at most CELLS + 1 of them.

    integers: every whole number, where there are that few. Else half of the cells are uniform and
    half in geometric progression away from zero, so that wide bounds do not cost resolution near
    zero; of integers, the whole numbers nearest to these.
    """

    lower: float
    upper: float
    integers: bool = False

    @property
    def points(self) -> FloatArray:
        """The candidates, read-only."""
        return _points(self)

    def __len__(self) -> int:
        return len(_points(self))


@lru_cache(maxsize=64)
def _points(grid: Grid) -> FloatArray:
    points = _whole(grid) if grid.integers and grid.upper - grid.lower < CELLS else _mixed(grid)
    points.flags.writeable = False
    return points


def _whole(grid: Grid) -> FloatArray:
    return np.arange(grid.lower, grid.upper + 1, dtype=np.float64)


def _mixed(grid: Grid) -> FloatArray:
    if not grid.lower < grid.upper:
        return np.array([float(grid.lower)])
    uniform = np.linspace(grid.lower, grid.upper, CELLS // 2)
    points = np.concatenate([uniform, *_geometric(grid.lower, grid.upper)])
    if grid.integers:
        points = np.rint(points)
    points = np.unique(points)
    return points[(points >= grid.lower) & (points <= grid.upper)] + 0.0


def _geometric(lower: float, upper: float) -> list[FloatArray]:
    """Bounds that are almost denormal numbers have no progression: the uniform half is fine
    enough."""
    if lower > 0 or upper < 0:
        return [np.geomspace(lower, upper, CELLS // 2)]
    sides = [s for s in (lower, upper) if s * _LOG_RANGE != 0]
    count = CELLS // 2 // max(len(sides), 1)
    return [np.zeros(1)] + [np.geomspace(side * _LOG_RANGE, side, count) for side in sides]
