# SPDX-License-Identifier: Apache-2.0
"""A median by one selection from the public grid (kinds.shared.quantile_cells).

The recursion of mechanisms.quantile_tree is one selection whose score is minus the distance of N/2
from the ranks of c (*Ties* there), of sensitivity m (rows per unit), at the scale b = 2m/ε: the
exponential mechanism, ε-DP and ε²/8-zCDP (mechanisms.selection), so it costs no δ. With `per` the
sensitivity is 1: a single selection moves by no more than one person's weight; with weights by no
more than the largest.

By group there is one selection a group, all in one pass and charge (mechanisms.disjoint_groups). A
selection's levels move by d when a record is replaced inside its group, which is ε-DP at 2L(d) ≤ ε;
a record that moves changes the selections of two groups, each by ⌈d/2⌉ levels, as its rank is about
half of the records': 4L(⌈d/2⌉) ≤ ε together. So all groups are ε-DP, without δ, at the scale of
one. The candidate of a group without records (*No records* in mechanisms.quantile_tree) moves by no
more: by ⌈d/2⌉ where a record leaves or enters, and not at all inside its group.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import QuantileTree, Released, SumStep
from reticent_server.fitting.results import Value
from reticent_server.kinds.shared.by import ByPlan, by_plan, group_mask, groups_by
from reticent_server.kinds.shared.one_row import counted
from reticent_server.kinds.shared.quantile_cells import (
    CodeMap,
    GroupSelections,
    Selecting,
    Weighing,
    codes_map,
    quantile_part,
    reported,
    total_weight,
)
from reticent_server.kinds.shared.sparse_groups import empty_warnings
from reticent_server.mechanisms import quantile_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValue:
    """The value of one group, null where it has hardly any records; n: the records of the whole
    data set."""

    value: float | None
    n: int
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupValues:
    """One value a level of the column `by`, in the order of its declared levels."""

    by: str
    groups: list[GroupValue]
    n: int
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ExponentialMedianPlan(Selecting):
    """A planned median by one selection. epsilon: in EPSILON_UNITS. weighed: of weights, what all
    records count.
    """

    deadline_shares: ClassVar = (0.06, 0.23)

    map_fn: CodeMap
    part: QuantileTree
    epsilon: int
    n: int
    per: Weighing | None = field(default=None, kw_only=True)
    weighed: float | None = field(default=None, kw_only=True)

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.map_fn.design.columns,
            rho=self.part.rho,
            mechanism="exponential mechanism on a public grid",
            reference="McSherry & Talwar (2007)",
            parts=(self.part,),
            holds_for_persons=True,  # it says nothing of sampling
            own_cost=PrivacyCost(self.epsilon, 0, self.part.rho),  # (ε, 0), and ε²/8-zCDP.
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        total = self.n if self.weighed is None else self.weighed
        return {"rank_error": quantile_tree.scale(self.part) / total}

    @property
    def step(self) -> SumStep:
        """The one step, which releases the value."""
        return SumStep("median", (self.part,), codes_map(self.map_fn, self.part, self.per))

    def run(self) -> Recipe:
        (released,) = yield self.step
        return Value(**self.members(released))

    def members(self, released: Released) -> dict[str, Any]:
        """The value; None where the records are said to be none."""
        return {"value": reported(released)[0], "n": self.n}


def plan_exponential_median(
    facts: DatasetFacts, design: Design, column: Column, epsilon: int, per: Weighing | None = None
) -> ExponentialMedianPlan:
    """A median at `epsilon` (EPSILON_UNITS), ε-DP. per: what counts of a person's rows."""
    n, weighed = counted(facts, per), total_weight(facts, design)
    part = _part(facts, column, epsilon, per, weighted=weighed is not None)
    rows = CodeMap(design, column)
    return ExponentialMedianPlan(rows, part, epsilon, n, per=per, weighed=weighed)


def plan_group_medians(
    facts: DatasetFacts, where: str | None, by: str, column: Column, epsilon: int
) -> ByPlan:
    """Medians of every group at `epsilon` (EPSILON_UNITS), ε-DP. Raises InvalidQuery and
    InvalidPrivacy."""
    groups = groups_by(facts, by, column.name)
    design = group_mask(facts, where, by, column.name)
    part, spent = _part(facts, column, epsilon), epsilon
    while (moved := quantile_tree.moving_epsilon(part)) > epsilon:
        spent -= moved - epsilon
        part = _part(facts, column, spent)
    part = replace(part, may_be_empty=True)
    one = ExponentialMedianPlan(CodeMap(design, column), part, epsilon, facts.n)
    return by_plan(facts, GroupSelections(one, groups), groups, GroupValue, _by_group)


def _by_group(by: str, groups: list[GroupValue], n: int) -> GroupValues:
    empty = empty_warnings([group.level for group in groups if group.value is None])
    return GroupValues(by=by, groups=groups, n=n, warnings=empty)


def _part(
    facts: DatasetFacts,
    column: Column,
    epsilon: int,
    per: Weighing | None = None,
    *,
    weighted: bool = False,
) -> QuantileTree:
    rho = max(epsilon, 0) ** 2 * RHO_UNITS // (8 * EPSILON_UNITS**2)
    return quantile_part(facts, column, (0.5,), rho, per, weighted=weighted)
