# SPDX-License-Identifier: Apache-2.0
"""What a profile measures of a column: quantiles of a number, counts of levels, missing cells.

An integer column of few values is counted value by value: its counts say what quantiles cannot, which
values are rare, and its quantiles follow from them. A categorical column's missing cells are one more
bin of its counts, at no cost; another column that may be missing has a count of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.facts import ColumnProfile
from reticent_server.domain.schema import ABSENT, Column
from reticent_server.domain.steps import Block, CountSum, FloatArray, Part, QuantileTree, Released
from reticent_server.mechanisms.quantile_tree import scale
from reticent_server.numerics.grids import candidate_grid, cell_codes, repeats
from reticent_server.numerics.known_total import with_total

MOST_COUNTED = 100  # values of an integer column that is counted; above, the noise of a sum of counts is larger than a quantile's
_EMPTY = log(4096)  # candidates where no record is, for each one near a quantile
SURE = 2.0  # scales of a Gumbel selection: exceeded with probability e⁻²
_ENDS = (0.01, 0.025, 0.05)  # probabilities beyond which those asked for are left out
_FEWER = (  # fewer ones have a recursion of fewer levels, and less noise each
    (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95),
    (0.1, 0.25, 0.5, 0.75, 0.9),
    (0.25, 0.5, 0.75),
)
# relative parts of the profile's ρ: what a fit leans on most gets most; a share of missing cells is of one cell
_QUANTILE_WEIGHT, _VALUE_WEIGHT, _LEVEL_WEIGHT, _MISSING_WEIGHT = 16, 16, 8, 2


def is_counted(column: Column) -> bool:
    """Whether a column's values are counted one by one."""
    few = column.upper - column.lower < MOST_COUNTED
    return column.kind.is_whole and (few or not column.kind.is_number)


@dataclass(frozen=True, slots=True)
class Measure:
    """One part of a profile. what: "quantiles", "counts" or "missing"."""

    column: Column
    what: str

    @property
    def weight(self) -> int:
        """Its share of ρ, relative to others'."""
        if self.what == "counts":
            levels = not self.column.kind.is_number or self.column.is_dummy
            return _LEVEL_WEIGHT if levels else _VALUE_WEIGHT
        return _QUANTILE_WEIGHT if self.what == "quantiles" else _MISSING_WEIGHT

    @property
    def bins(self) -> int:
        values = int(self.column.upper - self.column.lower) + 1
        return values + self.column.may_be_missing

    def part(self, rho: int, unit_rows: int, n: int, probabilities: Sequence[float]) -> Part:
        """Its release from n records; quantiles at those of the probabilities that are reliable."""
        if self.what == "quantiles":
            grid = candidate_grid(self.column)
            tree = QuantileTree(grid, tuple(probabilities), rho, unit_rows, repeats(grid))
            return replace(tree, probabilities=reliable(tree, n, probabilities))
        return CountSum(self.bins if self.what == "counts" else 1, rho, unit_rows)

    def codes(self, block: Block, used: NDArray[np.bool_] | None) -> FloatArray:
        """(rows,) codes of this part; −1 where the record does not count. used: records in use; None: all."""
        missing, absent = block.missing.get(self.column.name), block.missing.get(ABSENT)
        if absent is not None:
            used = ~absent if used is None else used & ~absent
        if self.what == "missing":
            codes = np.where(block.missing[self.column.name], 0.0, -1.0)
            return codes if used is None else np.where(used, codes, -1.0)
        values = block.columns[self.column.name]
        if self.what == "quantiles":
            present = used if missing is None else (~missing if used is None else used & ~missing)
            return cell_codes(values, candidate_grid(self.column), present)
        codes = np.asarray(values - self.column.lower)
        codes = codes if missing is None else np.where(missing, float(self.bins - 1), codes)
        return codes if used is None else np.where(used, codes, -1.0)


def measures(column: Column) -> list[Measure]:
    """What is measured of a column."""
    if is_counted(column):
        return [Measure(column, "counts")]
    missing = [Measure(column, "missing")] if column.may_be_missing else []
    return [Measure(column, "quantiles"), *missing]


def reliable(part: QuantileTree, n: int, probabilities: Sequence[float]) -> tuple[float, ...]:
    """The first of some sets of probabilities whose ranks a tree of this ρ can find: all further from both ends than
    the noise of a selection among all candidates is likely to reach; the median where no set is."""
    interior = [tuple(p for p in probabilities if min(p, 1 - p) >= end) for end in _ENDS]
    for chosen in (tuple(probabilities), *interior, *_FEWER):
        reach = scale(replace(part, probabilities=chosen)) * (_EMPTY + SURE)
        if chosen and min(min(p, 1 - p) for p in chosen) * n > reach:
            return chosen
    return (0.5,)


def column_profile(
    column: Column,
    released: Sequence[tuple[Measure, Part, Released]],
    probabilities: Sequence[float],
    total: float | None = None,
) -> ColumnProfile:
    """The profile of a column from what was released of it; quantiles from counts at `probabilities`.

    total: the public number of records that counts add up to, None where there is none.
    """
    quantiles, counts, missing, sd = None, None, None, None
    for measure, part, value in released:
        if measure.what == "quantiles":
            quantiles = tuple(float(v) for v in value.values)
            probabilities = part.probabilities if isinstance(part, QuantileTree) else probabilities
        elif measure.what == "missing":
            missing = max(0.0, float(value.values[0]))
        else:
            counted = value if total is None else with_total(value, total)
            sd = counted.sd
            counts = tuple(max(0.0, float(v)) for v in counted.values)
            if column.may_be_missing:
                counts, missing = counts[:-1], counts[-1]
    if counts is not None and column.kind.is_number and not column.is_dummy:
        quantiles = counted_quantiles(counts, column.lower, probabilities)
    return ColumnProfile(
        quantiles=quantiles,
        counts=counts,
        missing=missing,
        probabilities=tuple(probabilities),
        first=column.lower,
        count_sd=sd,
    )


def counted_quantiles(
    counts: Sequence[float], first: float, probabilities: Sequence[float]
) -> tuple[float, ...]:
    """Quantiles of whole numbers from `first` on, from their counts."""
    edges = np.cumsum(np.asarray(counts))
    if edges[-1] <= 0:
        edges = np.cumsum(np.ones(len(edges)))
    at = np.searchsorted(edges, np.asarray(probabilities) * edges[-1], side="left")
    return tuple(float(first + k) for k in np.minimum(at, len(edges) - 1))
