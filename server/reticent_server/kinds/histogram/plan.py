# SPDX-License-Identifier: Apache-2.0
"""A planned histogram: noisy counts by bin of public edges, or by value (kinds.shared.tables has
the proof).

By group it has the cells of a table of group × bin, Δ = √2 as for one histogram: a record in use
adds 1 to one cell, that of its group and its bin, so replacing one moves two cells at most
(kinds.shared.by).
"""

from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.schema import Column
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import Interval, Share, Size
from reticent_server.kinds.shared.by import ByPlan, by_plan, group_mask, groups_by
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.one_row import Which, counted
from reticent_server.kinds.shared.tables import Axis, TablePlan, cells_part, level_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramResult:
    """Noisy counts (bins,), which are unbiased and can be negative; edges (bins + 1,), or levels
    (bins,)."""

    edges: list[float] | None = None
    levels: list[str] | None = None
    values: list[float]
    standard_error: Size
    confidence_level: Share
    confidence_intervals: list[Interval]
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistogram(HistogramResult):
    """The histogram of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistograms:
    """One histogram a level of the column `by`, in the order of its declared levels, over the same
    bins or levels."""

    by: str
    groups: list[GroupHistogram]
    n: int


@dataclass(frozen=True, slots=True)
class HistogramPlan(TablePlan):
    """A planned histogram, of one axis."""

    deadline_shares: ClassVar = (0.03, 0.05)

    def run(self) -> Recipe:
        """One step."""
        counts = self.counts(*(yield self.step))
        (axis,) = self.axes
        return HistogramResult(**bars(axis, counts.values.tolist(), counts.sd), n=self.n)


@dataclass(frozen=True, slots=True)
class GroupHistogramPlan(TablePlan):
    """Planned histograms; the axes are the groups and the bins."""

    deadline_shares: ClassVar = (0.03, 0.03)

    def run(self) -> Recipe:
        """One step."""
        counts = self.counts(*(yield self.step))
        groups, bins = self.axes
        rows = np.reshape(counts.values, (groups.size, bins.size)).tolist()
        return [bars(bins, row, counts.sd) | {"n": self.n} for row in rows]


def bars(axis: Axis, values: list[float], sd: float) -> dict[str, Any]:
    """The members of a HistogramResult but n."""
    half = half_width(sd)
    return {
        "edges": list(axis.edges) if axis.edges else None,
        "levels": None if axis.edges else list(axis.levels),
        "values": values,
        "standard_error": sd,
        "confidence_level": CONFIDENCE,
        "confidence_intervals": [(max(0.0, v - half), max(0.0, v + half)) for v in values],
    }


def plan_histogram(
    facts: DatasetFacts,
    design: Design,
    column: Column,
    bins: tuple[float, ...] | None,
    rho: int,
    per: Which | None = None,
) -> HistogramPlan:
    """Counts by bin of public edges, or by value where there are none, at `rho` (RHO_UNITS)."""
    axes = (axis_of(column, bins),)
    part = cells_part(facts, axes, rho, per)
    return HistogramPlan(design, axes, part, counted(facts, per), per=per)


def plan_group_histogram(
    facts: DatasetFacts,
    where: str | None,
    by: str,
    column: Column,
    bins: tuple[float, ...] | None,
    rho: int,
) -> ByPlan:
    """Counts by group and bin at `rho` (RHO_UNITS). Raises InvalidQuery."""
    groups = groups_by(facts, by, column.name)
    axes = (level_axis(declared(facts, by)), axis_of(column, bins))
    design = group_mask(facts, where, by, column.name)
    plan = GroupHistogramPlan(design, axes, cells_part(facts, axes, rho), facts.n)
    return by_plan(facts, plan, groups, GroupHistogram, GroupHistograms)


def axis_of(column: Column, bins: tuple[float, ...] | None) -> Axis:
    """The axis of the bins, or of the values where there are none. Raises InvalidQuery."""
    if bins is not None:
        return _binned_axis(column, bins)
    if not column.kind.is_whole:
        raise InvalidQuery(f"{column.name} is numeric: give bins, edges in increasing order.")
    return level_axis(column)


def _binned_axis(column: Column, edges: tuple[float, ...]) -> Axis:
    if column.kind.has_levels:
        raise InvalidQuery("A column with levels has no bins; leave bins out.")
    if len(edges) < 2 or not all(map(isfinite, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise InvalidQuery("bins must be two or more finite edges in increasing order.")
    whole = edges[0] <= column.lower and column.upper <= edges[-1]
    return Axis(column.name, len(edges) - 1, (), (), edges, whole)
