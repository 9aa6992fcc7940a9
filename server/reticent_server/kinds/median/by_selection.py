# SPDX-License-Identifier: Apache-2.0
"""A median by one selection from the public grid (kinds.shared.quantile_cells).

The recursion of mechanisms.quantile_tree is one selection with score −|#{x ≤ c} − N/2| of sensitivity m (rows per
unit) at the scale b = 2m/ε: the exponential mechanism, ε-DP and ε²/8-zCDP (mechanisms.selection), so it costs no δ. With `per` the
sensitivity is 1: a single selection moves by no more than one person's weight.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Part, QuantileTree, SumStep
from reticent_server.fitting.results import Value
from reticent_server.kinds.shared.one_row import counted
from reticent_server.kinds.shared.quantile_cells import (
    CodeMap,
    Weighing,
    codes_map,
    quantile_part,
    rank_precision,
)
from reticent_server.mechanisms import quantile_tree


@dataclass(frozen=True, slots=True)
class ExponentialMedianPlan(Planned):
    """A planned median by one selection. epsilon: in EPSILON_UNITS."""

    taken: ClassVar = (0.06, 0.23)

    map_fn: CodeMap
    part: QuantileTree
    epsilon: int
    n: int
    per: Weighing | None = field(default=None, kw_only=True)
    mechanism: str = "exponential mechanism on a public grid"
    reference: str = "McSherry & Talwar (2007)"

    @property
    def holds_for_persons(self) -> bool:
        """It says nothing of sampling."""
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.map_fn.design.columns

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.part,)

    @property
    def rho(self) -> int:
        return self.part.rho

    @property
    def own_cost(self) -> PrivacyCost:
        """(ε, 0), and ε²/8-zCDP."""
        return PrivacyCost(self.epsilon, 0, self.part.rho)

    @property
    def precision(self) -> ForecastPrecision:
        """Of the share of the records below the value."""
        return rank_precision(self.part, self.n)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"rank_error": quantile_tree.scale(self.part) / self.n}

    def run(self) -> Recipe:
        map_fn = codes_map(self.map_fn, self.part, self.per)
        (released,) = yield SumStep("median", (self.part,), map_fn)
        return Value(value=float(released.values[0]), n=self.n)


def plan_exponential_median(
    facts: DatasetFacts, design: Design, column: Column, epsilon: int, per: Weighing | None = None
) -> ExponentialMedianPlan:
    """A median at `epsilon` (EPSILON_UNITS), ε-DP. per: what counts of a person's rows."""
    rho = epsilon**2 * RHO_UNITS // (8 * EPSILON_UNITS**2)
    n, part = counted(facts, per), quantile_part(facts, column, (0.5,), rho, per)
    return ExponentialMedianPlan(CodeMap(design, column), part, epsilon, n, per=per)
