# SPDX-License-Identifier: Apache-2.0
"""An interquartile range as the difference of the two private quartiles: it always replies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import QuantileTree
from reticent_server.fitting.normal import CONFIDENCE
from reticent_server.fitting.results import Interval, Value
from reticent_server.kinds.quantiles.plan import QuantilesPlan, plan_quantiles
from reticent_server.kinds.shared.quantile_cells import Weighing

QUARTILES = (0.25, 0.75)  # what an interquartile range is the difference of


@dataclass(frozen=True, slots=True)
class RangePlan(Planned):
    """A planned interquartile range by quantiles."""

    deadline_shares: ClassVar = (0.06, 0.2)

    quartiles: QuantilesPlan

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.quartiles.columns,
            rho=self.quartiles.rho,
            mechanism="recursive exponential mechanisms",
            reference="Kaplan, Schnapp & Stemmer (2022)",
            parts=self.quartiles.parts,
            holds_for_persons=True,  # it says nothing of sampling
        )

    @property
    def part(self) -> QuantileTree:
        """The quantile tree that selects both quartiles."""
        return self.quartiles.part

    @property
    def forecast(self) -> Mapping[str, Any]:
        return self.quartiles.forecast

    def run(self) -> Recipe:
        """One step; always a reply."""
        (released,) = yield self.quartiles.step
        first, third = released.values.tolist()
        return Value(value=third - first, quartiles=(first, third), n=self.quartiles.n)


def range_with_interval(values: list[float], intervals: list[Interval], n: int) -> Value:
    """The range of two quartiles, between the least and the largest that intervals which hold both
    at once allow. Nothing is assumed of how the quartiles go together."""
    (first, third), ((a, b), (c, d)) = values, intervals
    return Value(
        value=third - first,
        quartiles=(first, third),
        n=n,
        confidence_level=CONFIDENCE,
        confidence_interval=(max(0.0, c - b), d - a),
    )


def plan_range(
    facts: DatasetFacts, design: Design, column: Column, rho: int, per: Weighing | None = None
) -> RangePlan:
    """An interquartile range at `rho` (RHO_UNITS). per: what counts of a person's rows."""
    return RangePlan(plan_quantiles(facts, design, column, QUARTILES, rho, per))
