# SPDX-License-Identifier: Apache-2.0
"""Planned quantiles of a column over the records in use (kinds.shared.quantile_cells).

Privacy: mechanisms.quantile_tree. Source: Kaplan, Schnapp & Stemmer (2022).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Part, QuantileTree, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Share
from reticent_server.kinds.shared.one_row import counted
from reticent_server.kinds.shared.quantile_cells import (
    CodeMap,
    Weighing,
    codes_map,
    quantile_part,
    rank_precision,
)
from reticent_server.mechanisms import quantile_tree

MAX_PROBABILITIES = 99  # percentiles


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantilesResult:
    """values (k,) at probabilities (k,), in the units of the data."""

    probabilities: list[Share]
    values: list[float]
    n: int


@dataclass(frozen=True, slots=True)
class QuantilesPlan(Planned):
    """Planned quantiles. probabilities: as asked, in any order."""

    taken: ClassVar = (0.06, 0.2)

    map_fn: CodeMap
    part: QuantileTree
    probabilities: tuple[float, ...]
    n: int
    per: Weighing | None = field(default=None, kw_only=True)
    mechanism: str = "recursive exponential mechanisms"
    reference: str = "Kaplan, Schnapp & Stemmer (2022)"

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
    def step(self) -> SumStep:
        """The one step, which releases the values."""
        return SumStep("quantiles", (self.part,), codes_map(self.map_fn, self.part, self.per))

    @property
    def precision(self) -> ForecastPrecision:
        """Of the share of the records below each value."""
        return rank_precision(self.part, self.n)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records."""
        return {"rank_error": quantile_tree.scale(self.part) / self.n}

    def run(self) -> Recipe:
        """One step; equal probabilities have equal values, and larger ones no smaller."""
        (released,) = yield self.step
        by_probability = dict(zip(self.part.probabilities, released.values.tolist(), strict=True))
        return QuantilesResult(
            probabilities=list(self.probabilities),
            values=[by_probability[p] for p in self.probabilities],
            n=self.n,
        )


def plan_quantiles(
    facts: DatasetFacts,
    design: Design,
    column: Column,
    probabilities: tuple[float, ...],
    rho: int,
    per: Weighing | None = None,
) -> QuantilesPlan:
    """Quantiles at `rho` (RHO_UNITS). per: what counts of a person's rows. Raises InvalidQuery for probabilities outside (0, 1)."""
    distinct = checked_probabilities(probabilities)
    n, part = counted(facts, per), quantile_part(facts, column, distinct, rho, per)
    return QuantilesPlan(CodeMap(design, column), part, probabilities, n, per=per)


def checked_probabilities(probabilities: tuple[float, ...]) -> tuple[float, ...]:
    """The different ones in increasing order. Raises InvalidQuery for probabilities outside (0, 1)."""
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
