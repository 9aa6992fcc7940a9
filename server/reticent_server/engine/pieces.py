# SPDX-License-Identifier: Apache-2.0
"""What a pass is cut into: rows of arrays in memory, before a thread or a process takes them up."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import Block, FloatArray

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """Columns, masks of missing values, and marks of cells that cannot be read; of one length.

    ends: of rows in the order of groups, where each group ends.
    """

    columns: Mapping[str, FloatArray]
    missing: Mapping[str, BoolArray]
    marks: tuple[BoolArray, ...] = ()
    ends: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RowSlice:
    """The rows [low, high) of the arrays. start: the stored position of the first; records: as in
    Block."""

    arrays: Arrays
    start: int
    low: int
    high: int
    records: NDArray[np.int64] | None = None

    def block(self, scratch: Scratch = FRESH) -> Block:
        """Views of the rows."""
        rows = slice(self.low, self.high)
        return Block(
            start=self.start,
            rows=self.high - self.low,
            columns={name: values[rows] for name, values in self.arrays.columns.items()},
            missing={name: mask[rows] for name, mask in self.arrays.missing.items()},
            scratch=scratch,
            unusable=_any([marks[rows] for marks in self.arrays.marks]),
            records=self.records,
            ends=self._ends(),
        )

    def _ends(self) -> tuple[int, ...] | None:
        """Where the groups end within these rows."""
        if self.arrays.ends is None:
            return None
        return tuple(min(max(end, self.low), self.high) - self.low for end in self.arrays.ends)


def _any(marks: list[BoolArray]) -> BoolArray | None:
    if not marks:
        return None
    union = marks[0].copy()
    for each in marks[1:]:
        union |= each
    return union
