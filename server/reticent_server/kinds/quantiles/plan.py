"""Quantiles of a column, its interquartile range, and its median, over the records in use.

All select from the public grid of numerics.grids by mechanisms.quantile_tree: one recursion for all
probabilities, so that the values never decrease. For the median alone the recursion is one selection
with score −|#{x ≤ c} − N/2| of sensitivity m (rows per unit) at the scale b = 2m/ε: the exponential
mechanism, ε-DP and ε²/8-zCDP (mechanisms.selection), so it costs no δ. The range is the difference of the
two quartiles: it always replies.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, FloatArray, QuantileTree, SumStep
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.mechanisms import quantile_tree
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.grids import candidate_grid, cell_codes, repeats

MAX_PROBABILITIES = 99
QUARTILES = (0.25, 0.75)


@dataclass(frozen=True, slots=True)
class _CodeMap:
    """(rows,) cell of a record in use on the column's public grid."""

    design: Design
    column: Column

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block) if self.design.masked else None
        values = block.columns[self.column.name]
        return (cell_codes(values, candidate_grid(self.column), used),)


@dataclass(frozen=True, slots=True)
class QuantilesPlan:
    """Planned quantiles; satisfies EstimatorPlan. probabilities: as asked, in any order."""

    map_fn: _CodeMap
    part: QuantileTree
    probabilities: tuple[float, ...]
    n: int
    passes: int = 1
    mechanism: str = "recursive exponential mechanisms"
    reference: str = "Kaplan, Schnapp & Stemmer (2022)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.map_fn.design.columns

    @property
    def rho(self) -> int:
        return self.part.rho

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records."""
        return {"rank_error": quantile_tree.scale(self.part) / self.n}

    def run(self) -> Recipe:
        """One step; equal probabilities have equal values, and larger ones no smaller."""
        (found,) = yield SumStep("quantiles", (self.part,), self.map_fn)
        by_probability = dict(zip(self.part.probabilities, found.values.tolist(), strict=True))
        return {
            "probabilities": list(self.probabilities),
            "values": [by_probability[p] for p in self.probabilities],
            "n": self.n,
        }


@dataclass(frozen=True, slots=True)
class RangePlan:
    """A planned interquartile range by quantiles; satisfies EstimatorPlan."""

    quartiles: QuantilesPlan
    passes: int = 1
    mechanism: str = "recursive exponential mechanisms"
    reference: str = "Kaplan, Schnapp & Stemmer (2022)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.quartiles.columns

    @property
    def part(self) -> QuantileTree:
        return self.quartiles.part

    @property
    def rho(self) -> int:
        return self.quartiles.rho

    @property
    def forecast(self) -> Mapping[str, Any]:
        return self.quartiles.forecast

    def run(self) -> Recipe:
        """One step; always a reply."""
        (found,) = yield SumStep("quartiles", (self.part,), self.quartiles.map_fn)
        first, third = found.values.tolist()
        return {"value": third - first, "quartiles": [first, third], "n": self.quartiles.n}


@dataclass(frozen=True, slots=True)
class ExponentialMedianPlan:
    """A planned median by one selection; satisfies EstimatorPlan. epsilon: in EPSILON_UNITS."""

    map_fn: _CodeMap
    part: QuantileTree
    epsilon: int
    n: int
    passes: int = 1
    mechanism: str = "exponential mechanism on a public grid"
    reference: str = "McSherry & Talwar (2007)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.map_fn.design.columns

    @property
    def rho(self) -> int:
        return self.part.rho

    @property
    def cost(self) -> PrivacyCost:
        """(ε, 0), and ε²/8-zCDP."""
        return PrivacyCost(self.epsilon, 0, self.part.rho)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"rank_error": quantile_tree.scale(self.part) / self.n}

    def run(self) -> Recipe:
        (found,) = yield SumStep("median", (self.part,), self.map_fn)
        return {"value": float(found.values[0]), "n": self.n}


def plan_quantiles(
    facts: DatasetFacts, design: Design, column: Column, probabilities: tuple[float, ...], rho: int
) -> QuantilesPlan:
    """Quantiles at `rho` (RHO_UNITS). Raises InvalidQuery for probabilities outside (0, 1)."""
    distinct = tuple(sorted(set(probabilities)))
    if not 1 <= len(probabilities) <= MAX_PROBABILITIES:
        raise InvalidQuery(f"Ask for 1 to {MAX_PROBABILITIES} probabilities.")
    try:
        quantile_tree.exact_probabilities(distinct)
    except ValueError:
        raise InvalidQuery(
            "probabilities lie strictly between 0 and 1, and differ by 1e-4 at least."
        ) from None
    part = quantile_part(facts, column, distinct, rho)
    return QuantilesPlan(_CodeMap(design, column), part, probabilities, facts.n)


def plan_range(facts: DatasetFacts, design: Design, column: Column, rho: int) -> RangePlan:
    """An interquartile range at `rho` (RHO_UNITS)."""
    return RangePlan(plan_quantiles(facts, design, column, QUARTILES, rho))


def quantile_part(
    facts: DatasetFacts, column: Column, probabilities: tuple[float, ...], rho: int
) -> QuantileTree:
    """Quantiles at increasing probabilities. Raises InvalidPrivacy where `rho` selects nothing."""
    grid = candidate_grid(column)
    part = QuantileTree(grid, probabilities, rho, facts.schema.unit.max_rows, repeats(grid))
    if not quantile_tree.ladder(part).steps:
        raise InvalidPrivacy("epsilon is too small to select a value; raise it.")
    return part


def plan_exponential_median(
    facts: DatasetFacts, design: Design, column: Column, epsilon: int
) -> ExponentialMedianPlan:
    """A median at `epsilon` (EPSILON_UNITS), ε-DP."""
    rho = epsilon**2 * RHO_UNITS // (8 * EPSILON_UNITS**2)
    part = quantile_part(facts, column, (0.5,), rho)
    return ExponentialMedianPlan(_CodeMap(design, column), part, epsilon, facts.n)
