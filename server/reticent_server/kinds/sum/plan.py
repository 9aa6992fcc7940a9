# SPDX-License-Identifier: Apache-2.0
"""The sum of a bounded column over the records in use.

A record's contribution is u x, u ∈ {0, 1} saying whether it is in use: it lies in [a, b], the
declared bounds stretched to 0 where a record can be out of use. With c, h their middle and half
width, v = (u x − c)/h ∈ [−1, 1] and the sum is h Σv + n c, n public: Δ = 2h, the least that
replacing one record allows. The interval is for the sum in this table, so the noise alone widens
it.

Privacy: mechanisms.noisy_sum, VectorSum. Source: Dwork & Smith (2009), Theorem 6.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray, SumStep, VectorSum
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import Estimate
from reticent_server.kinds.shared.one_row import Which, counted, one_row_map, one_row_part
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import in_use


@dataclass(frozen=True, slots=True)
class _SumMap:
    design: Design
    column: str
    centre: float
    half: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = np.where(in_use(self.design, block), block.columns[self.column], 0.0)
        return (((used - self.centre) / self.half)[None, :],)


@dataclass(frozen=True, slots=True)
class SumPlan(Planned):
    """A planned sum."""

    deadline_shares: ClassVar = (0.03, 0.05)

    map_fn: _SumMap
    part: VectorSum
    n: int
    per: Which | None = None

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.map_fn.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian sum",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            # m rows that count alike are the farthest that a person's sum can be
            of_persons=True,
            gaussian_counts=(),
        )

    @property
    def precision(self) -> ForecastPrecision:
        return single("sum", self.map_fn.half * noisy_sum.noise_sd(self.part), 0.0)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"privacy_standard_error": self.map_fn.half * noisy_sum.noise_sd(self.part)}

    def run(self) -> Recipe:
        """One step; the value is unbiased and may lie outside what the bounds allow."""
        design, m = self.map_fn.design, self.part.person_rows
        map_fn = one_row_map(self.map_fn, design, self.per, m)
        (total,) = yield SumStep("sum", (self.part,), map_fn)
        value = self.map_fn.half * float(total.values[0]) + self.n * self.map_fn.centre
        error = self.map_fn.half * total.sd
        half = half_width(error)
        return Estimate(
            value=value,
            standard_error=error,
            confidence_level=CONFIDENCE,
            confidence_interval=(value - half, value + half),
            n=self.n,
        )


def plan_sum(
    facts: DatasetFacts, design: Design, column: Column, rho: int, per: Which | None = None
) -> SumPlan:
    """A sum at `rho` (RHO_UNITS); design: mask and columns only. per: which row of a person alone
    counts."""
    low, high = column.lower, column.upper
    if design.masked:
        low, high = min(low, 0.0), max(high, 0.0)
    map_fn = _SumMap(design, column.name, (low + high) / 2, (high - low) / 2 or 1.0)
    part = VectorSum(1, 1.0, rho, facts.schema.unit.max_rows)
    if map_fn.centre:  # what a record out of use adds is taken off n times
        part = exactly(part, abs(map_fn.centre) / map_fn.half)
    if column.kind.is_whole:
        part = noisy_sum.unrounded(part, 0.5 / map_fn.half, facts.n)
    part = one_row_part(part, per)
    return SumPlan(map_fn, part, counted(facts, per), per)
