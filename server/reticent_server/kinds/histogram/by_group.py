# SPDX-License-Identifier: Apache-2.0
"""A histogram of each group: the cells of a table of group × bin, Δ = √2 as for one histogram.

A record in use adds 1 to one cell, that of its group and its bin, so replacing one moves two cells at most. Privacy:
kinds.shared.tables; kinds.shared.by.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.schema import Column
from reticent_server.kinds.histogram.plan import HistogramResult, axis_of, bars
from reticent_server.kinds.shared.by import group_mask, groups_by
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.tables import TablePlan, cells_part, level_axis


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistogram(HistogramResult):
    """The histogram of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistograms:
    """One histogram a level of the column `by`, in the order of its declared levels, over the same bins or levels."""

    by: str
    groups: list[GroupHistogram]
    n: int


@dataclass(frozen=True, slots=True)
class GroupHistogramPlan(TablePlan):
    """Planned histograms; the axes are the groups and the bins."""

    taken: ClassVar = (0.03, 0.03)

    groups: Groups

    def run(self) -> Recipe:
        """One step."""
        counts = self.counts(*(yield self.step))
        _, bins = self.axes
        rows = np.reshape(counts.values, (self.groups.size, bins.size)).tolist()
        histograms = [
            GroupHistogram(**bars(bins, row, counts.sd), n=self.n, level=level)
            for level, row in zip(self.groups.levels, rows, strict=True)
        ]
        return GroupHistograms(by=self.groups.column or "", groups=histograms, n=self.n)


def plan_group_histogram(
    facts: DatasetFacts,
    where: str | None,
    by: str,
    column: Column,
    bins: tuple[float, ...] | None,
    rho: int,
) -> GroupHistogramPlan:
    """Counts by group and bin at `rho` (RHO_UNITS). Raises InvalidQuery."""
    groups = groups_by(facts, by, column.name)
    axes = (level_axis(declared(facts, by)), axis_of(column, bins))
    design = group_mask(facts, where, by, column.name)
    return GroupHistogramPlan(design, axes, cells_part(facts, axes, rho), facts.n, groups)
