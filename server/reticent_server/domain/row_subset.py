"""A public part of a table's rows: of every `stride` runs of eight consecutive rows, one.

Which run it is comes from a fixed hash of the group's number, so membership is a function of the stored
position and of `stride` alone: the same in every process, for every source, and before a cell is read.
Runs are short, and one is taken everywhere: a table in the order of a column is sampled evenly along
it, a pattern in the order of the rows does not meet the pattern of the hash, and rows that resemble
their neighbours are few in a run. A run of eight float64 values is what the memory delivers at once.

Source of the hash: Steele, Lea & Flood (2014), "Fast splittable pseudorandom number generators".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RUN = 8
_ODD, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


@dataclass(frozen=True, slots=True)
class RowSubset:
    """One run of every `stride`, a power of two up to 2¹⁶; 1: all rows."""

    stride: int

    @property
    def group(self) -> int:
        """Rows of which one run is taken."""
        return RUN * self.stride

    def positions(self, start: int, stop: int) -> NDArray[np.int64]:
        """The stored positions of the subset in [start, stop), increasing."""
        groups = np.arange(start // self.group, -(-stop // self.group), dtype=np.int64)
        runs = groups * self.group + RUN * _hashed(groups, self.stride)
        found = (runs[:, None] + np.arange(RUN)).ravel()
        return found[np.searchsorted(found, start) : np.searchsorted(found, stop)]

    def count(self, stop: int, start: int = 0) -> int:
        """How many positions of the subset are in [start, stop)."""
        return self._below(stop) - self._below(start)

    def _below(self, stop: int) -> int:
        whole = stop // self.group
        return whole * RUN + len(self.positions(whole * self.group, stop))


def _hashed(groups: NDArray[np.int64], stride: int) -> NDArray[np.int64]:
    """A number in [0, stride) for each group: the lowest bits of splitmix64's output."""
    z = (groups.astype(np.uint64) + np.uint64(1)) * np.uint64(_ODD)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
    return ((z ^ (z >> np.uint64(31))) & np.uint64(stride - 1)).astype(np.int64)
