# SPDX-License-Identifier: Apache-2.0
"""Medians by group: one selection a group from the public grid, all in one pass and charge.

Privacy: mechanisms.disjoint_groups. A selection's levels move by d when a record is replaced inside its group, which is
ε-DP at 2L(d) ≤ ε; a record that moves changes the selections of two groups, each by ⌈d/2⌉ levels, as its rank is about half of the
records': 4L(⌈d/2⌉) ≤ ε together. So all groups are ε-DP, without δ, at the scale of one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Part, QuantileTree
from reticent_server.fitting.results import Value
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.quantile_cells import CodeMap, quantile_part, trees
from reticent_server.mechanisms import disjoint_groups, quantile_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValue(Value):
    """The value of one group; n: the records of the whole data set."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValues:
    """One value a level of the column `by`, in the order of its declared levels."""

    by: str
    groups: list[GroupValue]
    n: int


@dataclass(frozen=True, slots=True)
class GroupMediansPlan(Planned):
    """Planned medians of all groups. part: of each of them. epsilon: in EPSILON_UNITS, of all together."""

    taken: ClassVar = (0.08, 0.16)

    map_fn: CodeMap
    part: QuantileTree
    groups: Groups
    epsilon: int
    n: int
    mechanism: str = "exponential mechanism on a public grid"
    reference: str = "McSherry & Talwar (2007); McSherry (2009)"

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
    def own_cost(self) -> PrivacyCost:
        """(ε, 0), and the ρ of what is selected."""
        return PrivacyCost(self.epsilon, 0, self.rho)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records of a group as large as the others."""
        return {"rank_error": quantile_tree.scale(self.part) * self.groups.size / self.n}

    def run(self) -> Recipe:
        released = yield trees("medians", self.groups, self.map_fn, self.part)
        groups = [
            GroupValue(level=level, value=float(each.values[0]), n=self.n)
            for level, each in zip(self.groups.levels, released, strict=True)
        ]
        return GroupValues(by=self.groups.column or "", groups=groups, n=self.n)


def plan_group_medians(
    facts: DatasetFacts, design: Design, groups: Groups, column: Column, epsilon: int
) -> GroupMediansPlan:
    """Medians of every group at `epsilon` (EPSILON_UNITS), ε-DP. Raises InvalidPrivacy."""
    part, spent = _part(facts, column, epsilon), epsilon
    while (moved := quantile_tree.moving_epsilon(part)) > epsilon:
        spent -= moved - epsilon
        part = _part(facts, column, spent)
    return GroupMediansPlan(CodeMap(design, column), part, groups, epsilon, facts.n)


def _part(facts: DatasetFacts, column: Column, epsilon: int) -> QuantileTree:
    rho = max(epsilon, 0) ** 2 * RHO_UNITS // (8 * EPSILON_UNITS**2)
    return quantile_part(facts, column, (0.5,), rho)
