# SPDX-License-Identifier: Apache-2.0
"""The number of records in use: one noisy count, Δ = 1.

Proof of privacy: mechanisms.noisy_sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.steps import Block, CountSum, FloatArray, SumStep
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.shared.one_row import RowMap, Which, counted, one_row_map, one_row_part
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

    taken: ClassVar = (0.03, 0.06)

    design: Design
    part: CountSum
    n: int
    per: Which | None = field(default=None, kw_only=True)
    mechanism: str = "discrete Gaussian count"
    reference: str = "Canonne, Kamath & Steinke (2020)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def gaussian_counts(self) -> tuple[CountSum, ...] | None:
        return (self.part,)

    @property
    def of_persons(self) -> bool:
        """m rows that count alike are the farthest that a person's sum can be: no more than m times a row's bound."""
        return True

    @property
    def rho(self) -> int:
        return self.part.rho

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
        value = float(count.values[0])
        return Estimate(
            value=value,
            standard_error=count.sd,
            confidence_level=CONFIDENCE,
            confidence_interval=normal_interval(value, count.sd, 0.0, self.n),
            n=self.n,
        )


def plan_count(
    facts: DatasetFacts, design: Design, rho: int, per: Which | None = None
) -> CountPlan:
    """A count at `rho` (RHO_UNITS); design: mask and columns only. per: whether of persons."""
    part = one_row_part(CountSum(1, rho, facts.schema.unit.max_rows), per)
    return CountPlan(design, part, counted(facts, per), per=per)
