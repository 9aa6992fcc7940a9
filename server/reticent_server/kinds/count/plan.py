# SPDX-License-Identifier: Apache-2.0
"""The number of records in use: one noisy count, Δ = 1; by group one a level, Δ = √2.

A record in use adds 1 to the count of its own group: replacing one moves at most two counts, by 1
each, with m rows of a unit by √2 m in all.

Proof of privacy: mechanisms.noisy_sum, CountSum; kinds.shared.by.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.steps import Block, CountSum, FloatArray, SumStep
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.shared.by import ByPlan, by_plan, group_mask, groups_by
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.one_row import RowMap, Which, counted, one_row_map, one_row_part
from reticent_server.kinds.shared.tables import TablePlan, cells_part, level_axis
from reticent_server.mechanisms import noisy_sum
from reticent_server.numerics.evaluate import in_use


@dataclass(frozen=True, slots=True)
class _CountMap:
    design: Design

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return (np.where(in_use(self.design, block), 0.0, -1.0),)


@dataclass(frozen=True, slots=True)
class CountPlan(Planned):
    """A planned count of the records in use."""

    deadline_shares: ClassVar = (0.03, 0.06)

    design: Design
    part: CountSum
    n: int
    per: Which | None = field(default=None, kw_only=True)

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian count",
            reference="Canonne, Kamath & Steinke (2020)",
            # m rows that count alike are the farthest that a person's sum can be
            of_persons=True,
            gaussian_counts=(self.part,),
        )

    @property
    def precision(self) -> ForecastPrecision:
        return single("count", noisy_sum.noise_sd(self.part), 0.0)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"privacy_standard_error": noisy_sum.noise_sd(self.part)}

    @property
    def _map(self) -> RowMap:
        return one_row_map(_CountMap(self.design), self.design, self.per, self.part.person_rows)

    def run(self) -> Recipe:
        """One step; the value may lie outside 0..n, and is an unbiased estimate."""
        (count,) = yield SumStep("count", (self.part,), self._map)
        return _estimate(float(count.values[0]), count.sd, self.n)


@dataclass(frozen=True, slots=True)
class GroupCountPlan(TablePlan):
    """A planned count of the records in use of each group."""

    deadline_shares: ClassVar = (0.05, 0.05)

    def run(self) -> Recipe:
        """One step; values are unbiased and may lie outside 0..n."""
        counts = self.counts(*(yield self.step))
        return [asdict(_estimate(value, counts.sd, self.n)) for value in counts.values.tolist()]


def _estimate(value: float, sd: float, n: int) -> Estimate:
    return Estimate(
        value=value,
        standard_error=sd,
        confidence_level=CONFIDENCE,
        confidence_interval=normal_interval(value, sd, 0.0, n),
        n=n,
    )


def plan_count(
    facts: DatasetFacts, design: Design, rho: int, per: Which | None = None
) -> CountPlan:
    """A count at `rho` (RHO_UNITS); design: mask and columns only. per: whether of persons."""
    part = one_row_part(CountSum(1, rho, facts.schema.unit.max_rows), per)
    return CountPlan(design, part, counted(facts, per), per=per)


def plan_group_count(facts: DatasetFacts, where: str | None, by: str, rho: int) -> ByPlan:
    """Counts at `rho` (RHO_UNITS). Raises InvalidQuery."""
    groups, axes = groups_by(facts, by), (level_axis(declared(facts, by)),)
    part = cells_part(facts, axes, rho)
    return by_plan(facts, GroupCountPlan(group_mask(facts, where, by), axes, part, facts.n), groups)
