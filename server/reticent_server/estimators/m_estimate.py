"""A planned one-dimensional M-estimate (Huber's location) by the exponential mechanism.

All in public terms: the tuning constant c in the units of the column (1.345 of the profile's normalised
interquartile range where it is left out), a lattice of c/2²⁰ or finer, and a base that is uniform on, or
the Cauchy law with quartiles at, [lower, upper] (the declared bounds where they are left out).

Proof: mechanisms.m_estimate. Source: Chaudhuri & Hsu (2012), §5.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, isfinite, ldexp, log2
from typing import Any

from reticent_server.domain.columns import Lattice, MEstimate
from reticent_server.domain.cost import EPSILON_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.query import MEstimateQuery
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import ColumnStep
from reticent_server.errors import InvalidQuery
from reticent_server.estimators.scales import SORT_NANOSECONDS
from reticent_server.estimators.whole_columns import ColumnsMap, released_quartiles
from reticent_server.mechanisms import m_estimate

NORMAL_IQR, HUBER_TUNING = 1.349, 1.345
_STEPS_IN_C = 20
_LARGEST = 2**50


@dataclass(frozen=True, slots=True)
class MEstimatePlan:
    """A planned M-estimate; satisfies EstimatorPlan. tuning: c in the units of the data."""

    column: Column
    part: MEstimate
    tuning: float
    n: int
    passes: int = 1
    mechanism: str = "exponential mechanism on the estimating equation, sampled exactly"
    reference: str = "Chaudhuri & Hsu (2012), section 5.2, with 4K for 2K"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column.name,)

    @property
    def cost(self) -> PrivacyCost:
        return m_estimate.cost(self.part)

    @property
    def rho(self) -> int:
        return self.cost.rho

    @property
    def column_ms(self) -> int:
        return 6 * ceil(self.n * SORT_NANOSECONDS / 10**6)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise's standard deviation where half of the records are within c of the estimate."""
        spread = 8 * self.tuning * EPSILON_UNITS / (self.part.epsilon * self.n)
        return {"privacy_standard_error": 2**0.5 * spread, "tuning": self.tuning}

    def run(self) -> Recipe:
        """One step; always a reply."""
        (found,) = yield ColumnStep("m-estimate", (self.part,), ColumnsMap(self.columns))
        return {"value": float(found.values[0]), "tuning": self.tuning, "n": self.n}


def plan_m_estimate(
    facts: DatasetFacts, column: Column, query: MEstimateQuery, epsilon: int
) -> MEstimatePlan:
    """An M-estimate at `epsilon` (EPSILON_UNITS). Raises InvalidQuery for what has no density."""
    tuning = _tuning(facts, column) if query.tuning is None else query.tuning
    lower = column.lower if query.lower is None else query.lower
    upper = column.upper if query.upper is None else query.upper
    if not (isfinite(tuning) and tuning > 0 and isfinite(lower) and lower < upper < float("inf")):
        raise InvalidQuery("tuning must be above 0, and lower below upper, all finite.")
    step = ldexp(1.0, floor(log2(tuning)) - _STEPS_IN_C)
    c = round(tuning / step)
    inside = max(abs(lower - column.lower), abs(upper - column.lower)) / step
    size = ceil((column.upper - column.lower) / step)
    if max(inside, size) > _LARGEST or (upper - lower) < step:
        raise InvalidQuery("tuning and the bounds are too far apart; give a larger tuning.")
    low, high = ((bound - column.lower) / step for bound in (lower, upper))
    lattice = Lattice(column.lower, step, size)
    part = MEstimate(lattice, float(c), query.base, low, high, epsilon)
    return MEstimatePlan(column, part, c * step, facts.n)


def _tuning(facts: DatasetFacts, column: Column) -> float:
    quartiles = released_quartiles(facts, column.name)
    if quartiles is None:
        raise InvalidQuery(
            "tuning is needed, in the units of the column: no profile covers the column."
        )
    return HUBER_TUNING * (quartiles[2] - quartiles[0]) / NORMAL_IQR
