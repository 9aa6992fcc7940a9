# SPDX-License-Identifier: Apache-2.0
"""Planned quantiles of a column over the records in use (kinds.shared.quantile_cells).

Privacy: mechanisms.quantile_tree. By group: mechanisms.disjoint_groups with one tree a group. A
record that moves leaves one tree and enters another, and changes one sub-problem a level in each:
for quartiles, whose ranks move by half, that costs no more than a record that is replaced inside a
group; for one probability p it costs up to 2 max(p, 1 − p)² of it, and the trees have that much
less. Source: Kaplan, Schnapp & Stemmer (2022).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import QuantileTree, Released, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Interval, Share
from reticent_server.kinds.shared.by import ByPlan, by_plan, group_mask, groups_by
from reticent_server.kinds.shared.one_row import counted
from reticent_server.kinds.shared.quantile_cells import (
    CodeMap,
    GroupSelections,
    Selecting,
    Weighing,
    codes_map,
    part_by_group,
    quantile_part,
    reported,
    total_weight,
)
from reticent_server.kinds.shared.sparse_groups import empty_warnings
from reticent_server.mechanisms import quantile_tree

MAX_PROBABILITIES = 99  # percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesResult:
    """values (k,) at probabilities (k,), in the units of the data; confidence_intervals (k,): of
    the quantiles of the law that the records come from, sampling and noise counted.
    """

    probabilities: list[Share]
    values: list[float]
    n: int
    confidence_level: Share | None = None
    confidence_intervals: list[Interval] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupQuantiles:
    """The quantiles of one group, all null where it has hardly any records; n: the records of the
    whole data set."""

    probabilities: list[Share]
    values: list[float | None]
    n: int
    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesByGroup:
    """Quantiles for each level of the column `by`, in the order of its declared levels."""

    by: str
    groups: list[GroupQuantiles]
    n: int
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class QuantilesPlan(Selecting):
    """Planned quantiles. probabilities: as asked, in any order. weighed: of weights, what all
    records count.
    """

    deadline_shares: ClassVar = (0.06, 0.2)

    map_fn: CodeMap
    part: QuantileTree
    probabilities: tuple[float, ...]
    n: int
    per: Weighing | None = field(default=None, kw_only=True)
    weighed: float | None = field(default=None, kw_only=True)

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.map_fn.design.columns,
            rho=self.part.rho,
            mechanism="recursive exponential mechanisms",
            reference="Kaplan, Schnapp & Stemmer (2022)",
            parts=(self.part,),
            holds_for_persons=True,  # it says nothing of sampling
        )

    @property
    def step(self) -> SumStep:
        """The one step, which releases the values."""
        return SumStep("quantiles", (self.part,), codes_map(self.map_fn, self.part, self.per))

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records."""
        total = self.n if self.weighed is None else self.weighed
        return {"rank_error": quantile_tree.scale(self.part) / total}

    def run(self) -> Recipe:
        """One step; equal probabilities have equal values, and larger ones no smaller."""
        (released,) = yield self.step
        return QuantilesResult(**self.members(released))

    def members(self, released: Released) -> dict[str, Any]:
        """The values in the order of the probabilities; None where the records are said to be
        none."""
        by_probability = dict(zip(self.part.probabilities, reported(released), strict=True))
        values = [by_probability[p] for p in self.probabilities]
        return {"probabilities": list(self.probabilities), "values": values, "n": self.n}


def plan_quantiles(
    facts: DatasetFacts,
    design: Design,
    column: Column,
    probabilities: tuple[float, ...],
    rho: int,
    per: Weighing | None = None,
) -> QuantilesPlan:
    """Quantiles at `rho` (RHO_UNITS). per: what counts of a person's rows. Raises InvalidQuery for
    probabilities outside (0, 1)."""
    distinct = checked_probabilities(probabilities)
    n, weighed = counted(facts, per), total_weight(facts, design)
    part = quantile_part(facts, column, distinct, rho, per, weighted=weighed is not None)
    rows = CodeMap(design, column)
    return QuantilesPlan(rows, part, probabilities, n, per=per, weighed=weighed)


def plan_group_quantiles(
    facts: DatasetFacts,
    where: str | None,
    by: str,
    column: Column,
    probabilities: tuple[float, ...],
    rho: int,
) -> ByPlan:
    """Quantiles of every group at `rho` (RHO_UNITS). Raises InvalidQuery and InvalidPrivacy."""
    groups = groups_by(facts, by, column.name)
    design = group_mask(facts, where, by, column.name)
    distinct = checked_probabilities(probabilities)
    part = part_by_group(quantile_part(facts, column, distinct, rho), rho)
    part = replace(part, may_be_empty=True)
    one = QuantilesPlan(CodeMap(design, column), part, probabilities, facts.n)
    return by_plan(facts, GroupSelections(one, groups), groups, GroupQuantiles, _by_group)


def _by_group(by: str, groups: list[GroupQuantiles], n: int) -> QuantilesByGroup:
    empty = empty_warnings([group.level for group in groups if None in group.values])
    return QuantilesByGroup(by=by, groups=groups, n=n, warnings=empty)


def checked_probabilities(probabilities: tuple[float, ...]) -> tuple[float, ...]:
    """The different ones in increasing order. Raises InvalidQuery for probabilities outside
    (0, 1)."""
    distinct = tuple(sorted(set(probabilities)))
    if not 1 <= len(probabilities) <= MAX_PROBABILITIES:
        raise InvalidQuery(f"Ask for 1 to {MAX_PROBABILITIES} probabilities.")
    try:
        quantile_tree.exact_probabilities(distinct)
    except ValueError:
        raise InvalidQuery(
            "probabilities lie strictly between 0 and 1, and differ by 1e-4 at least."
        ) from None
    return distinct
