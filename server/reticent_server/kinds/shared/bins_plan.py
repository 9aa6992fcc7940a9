# SPDX-License-Identifier: Apache-2.0
"""What tests of counts by group and bin have in common as plans: one CountSum, one pass.

Privacy: kinds.shared.group_bins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import CountSum, SumStep
from reticent_server.kinds.shared.group_bins import (
    GroupBins,
    GroupBinsMap,
    bins_part,
    group_bins,
)
from reticent_server.kinds.shared.groups import Groups
from reticent_server.mechanisms import noisy_sum

GROUP_NANOSECONDS = 15  # of a record, planned for each group; measured: 5


@dataclass(frozen=True, slots=True)
class BinsPlan(Planned):
    """A planned test of counts by group and bin; a kind's plan says what is made of them, in
    `result`."""

    cells: GroupBinsMap
    part: CountSum
    confidence_level: float
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.cells.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian counts by group",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            parts=(self.part,),
            column_ms=self.counting_ms,
            gaussian_counts=(self.part,),
        )

    @property
    def groups(self) -> Groups:
        """The groups whose bins are counted, in the reply's order."""
        return self.cells.groups

    @property
    def counting_ms(self) -> int:
        """The planned time of the map beyond its pass."""
        each = self.groups.size * GROUP_NANOSECONDS + self.cells.nanoseconds
        return ceil(self.n * each / 10**6)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of one count, and the number of bins."""
        bins = len(self.cells.edges) + 1
        return {"count_standard_error": noisy_sum.noise_sd(self.part), "bins": bins}

    def run(self) -> Recipe:
        """1. Counts by group and bin. 2. The test."""
        (released,) = yield SumStep("counts by group and bin", (self.part,), self.cells)
        return self.result(group_bins(released, self.groups.size))

    def result(self, bins: GroupBins) -> Any:
        """The kind's result, of released counts."""
        raise NotImplementedError


def cells_of(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: Column,
    edges: tuple[float, ...],
    rho: int,
) -> tuple[GroupBinsMap, CountSum]:
    """The map and the part of a plan at `rho` (RHO_UNITS); design: mask and columns only."""
    cells = GroupBinsMap(design, groups, column.name, edges)
    return cells, bins_part(facts, groups, edges, rho)
