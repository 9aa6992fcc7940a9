# SPDX-License-Identifier: Apache-2.0
"""Quantiles of a column by group: one recursion of exponential mechanisms a group, all in one pass and charge.

Privacy: mechanisms.disjoint_groups with one tree a group. A record that moves leaves one tree and enters another, and
changes one sub-problem a level in each: for quartiles, whose ranks move by half, that costs no more than a record that
is replaced inside a group; for one probability p it costs up to 2 max(p, 1 − p)² of it, and the trees have that much less.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Part, QuantileTree
from reticent_server.kinds.quantiles.plan import QuantilesResult, checked_probabilities
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.quantile_cells import CodeMap, part_by_group, quantile_part, trees
from reticent_server.mechanisms import disjoint_groups, quantile_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantiles(QuantilesResult):
    """The quantiles of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesByGroup:
    """Quantiles for each level of the column `by`, in the order of its declared levels."""

    by: str
    groups: list[GroupQuantiles]
    n: int


@dataclass(frozen=True, slots=True)
class GroupQuantilesPlan(Planned):
    """Planned quantiles of all groups. part: of each of them. rho: of all together. probabilities: as asked."""

    taken: ClassVar = (0.07, 0.17)

    map_fn: CodeMap
    part: QuantileTree
    groups: Groups
    probabilities: tuple[float, ...]
    n: int
    mechanism: str = "recursive exponential mechanisms"
    reference: str = "Kaplan, Schnapp & Stemmer (2022); McSherry (2009)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.map_fn.design.columns

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.part,) * self.groups.size

    @property
    def holds_for_persons(self) -> bool:
        """There are no standard errors that rows of a person would make too small."""
        return True

    @property
    def rho(self) -> int:
        return disjoint_groups.of_equal_parts(self.part)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records of a group as large as the others."""
        return {"rank_error": quantile_tree.scale(self.part) * self.groups.size / self.n}

    def run(self) -> Recipe:
        """One step; within a group larger probabilities have no smaller values."""
        released = yield trees("quantiles", self.groups, self.map_fn, self.part)
        groups = []
        for level, each in zip(self.groups.levels, released, strict=True):
            found = dict(zip(self.part.probabilities, each.values.tolist(), strict=True))
            values = [found[p] for p in self.probabilities]
            groups.append(
                GroupQuantiles(
                    level=level, probabilities=list(self.probabilities), values=values, n=self.n
                )
            )
        return QuantilesByGroup(by=self.groups.column or "", groups=groups, n=self.n)


def plan_group_quantiles(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: Column,
    probabilities: tuple[float, ...],
    rho: int,
) -> GroupQuantilesPlan:
    """Quantiles of every group at `rho` (RHO_UNITS). Raises InvalidQuery."""
    distinct = checked_probabilities(probabilities)
    part = part_by_group(quantile_part(facts, column, distinct, rho), rho)
    return GroupQuantilesPlan(CodeMap(design, column), part, groups, probabilities, facts.n)
