# SPDX-License-Identifier: Apache-2.0
"""A planned one-dimensional M-estimate (Huber's location) by the exponential mechanism.

All in public terms: the tuning constant c in the units of the column (1.345 of the profile's
normalised interquartile range where it is left out), and a base that is uniform on, or the Cauchy
law with quartiles at, [lower, upper] (the declared bounds where they are left out). Its candidates
are as many as make a cell an eighth of the estimate's smallest error, up to 2²⁰. A tuning constant
beyond the distance between any record and any candidate gives the same estimates as that distance,
and more noise: it is lowered to it.

Proof: mechanisms.m_estimate. Source: Chaudhuri & Hsu (2012), §5.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, hypot, isfinite, pi, sqrt
from typing import Any, ClassVar

from reticent_server.domain.columns import Lattice, MEstimate
from reticent_server.domain.cost import EPSILON_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import ColumnStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Value
from reticent_server.kinds.m_estimate.query import MEstimateQuery
from reticent_server.kinds.shared.answers import ROBUST_LOCATION
from reticent_server.kinds.shared.columns import ColumnsMap, released_quartiles
from reticent_server.kinds.shared.stable_bins import SORT_NANOSECONDS
from reticent_server.mechanisms import m_estimate

# 2Φ⁻¹(3/4), and Huber's c of 95 % efficiency at the normal law: a default tuning only
NORMAL_IQR, HUBER_TUNING = 1.349, 1.345
STEPS_IN_C = 1 << 16  # a record's rounding is then 2⁻¹⁷ c, below the error of 10⁹ records
# of the selection's grid: the fewest take 1 ms at 250 ns a cell; the most is mechanisms.selection's
# limit
_FEWEST_CELLS, _MOST_CELLS = 1 << 12, 1 << 20
_CELLS_IN_ERROR = 8  # a cell's uniform error is then 4 % of the estimate's, .1 % in all
_CELL_NANOSECONDS = 500  # measured 250 ns: two searches, the weights, and one draw
_MOST_STEPS = 2**52  # whole numbers stay exact in float64


@dataclass(frozen=True, slots=True)
class MEstimatePlan(Planned):
    """A planned M-estimate. tuning: c in the units of the data."""

    deadline_shares: ClassVar = (0.03, 0.04)

    column: Column
    part: MEstimate
    tuning: float
    n: int

    @property
    def outline(self) -> Outline:
        own_cost = m_estimate.cost(self.part)
        return Outline(
            answers=ROBUST_LOCATION,
            columns=(self.column.name,),
            rho=own_cost.rho,
            mechanism="exponential mechanism on the estimating equation, over a public grid",
            reference="Chaudhuri & Hsu (2012), section 5.2, with 4K for 2K",
            column_ms=self._column_ms,
            steady=False,
            own_cost=own_cost,
        )

    @property
    def _column_ms(self) -> int:
        nanoseconds = 6 * self.n * SORT_NANOSECONDS + self.part.cells * _CELL_NANOSECONDS
        return ceil(nanoseconds / 10**6)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise's standard deviation where half of the records are within c of the estimate,
        the rounding to candidates in it, and how far apart candidates are.
        """
        noise = _noise(self.tuning, self.part.epsilon, self.n)
        cell = _width(self.part) / self.part.cells
        farthest = self.part.limits[1] - self.part.limits[0]
        return {
            "privacy_standard_error": min(hypot(noise, cell / sqrt(12)), farthest),
            "tuning": self.tuning,
            "resolution": cell,
        }

    def run(self) -> Recipe:
        """One step; always a reply."""
        (released,) = yield ColumnStep("m-estimate", (self.part,), ColumnsMap(self.columns))
        return Value(value=float(released.values[0]), tuning=self.tuning, n=self.n)


def plan_m_estimate(
    facts: DatasetFacts, column: Column, query: MEstimateQuery, epsilon: int
) -> MEstimatePlan:
    """An M-estimate at `epsilon` (EPSILON_UNITS). Raises InvalidQuery for what has no density."""
    tuning = _tuning(facts, column) if query.tuning is None else query.tuning
    lower = column.lower if query.lower is None else query.lower
    upper = column.upper if query.upper is None else query.upper
    if not (isfinite(tuning) and tuning > 0 and lower < upper and isfinite(upper - lower)):
        raise InvalidQuery("tuning must be above 0, and lower below upper, all finite.")
    limits = (lower, upper) if query.base == "uniform" else (column.lower, column.upper)
    farthest = max(limits[1], column.upper) - min(limits[0], column.lower)
    tuning = min(tuning, farthest)
    lattice = _lattice(tuning, limits)
    part = MEstimate(lattice, STEPS_IN_C, query.base, lower, upper, limits, _MOST_CELLS, epsilon)
    if not (0 < lattice.size <= _MOST_STEPS and _width(part) <= tuning * _MOST_CELLS):
        raise InvalidQuery(
            "tuning and the bounds are too far apart; give a larger tuning, or lower and upper "
            "nearer "
            f"to each other ({_MOST_CELLS:,} times the tuning apart at most)."
        )
    part = _with_cells(part, tuning, facts.n)
    return MEstimatePlan(column, part, tuning, facts.n)


def _lattice(tuning: float, limits: tuple[float, float]) -> Lattice:
    """From c below the lower limit to c above the upper one: records beyond have the ψ of its ends.
    Size 0 where c has no part that float64 can hold.
    """
    step = tuning / STEPS_IN_C
    if not step > 0:
        return Lattice(limits[0], 1.0, 0)
    size = (limits[1] - limits[0]) / step + 2 * STEPS_IN_C + 2
    return Lattice(limits[0] - tuning, step, ceil(min(size, 2.0 * _MOST_STEPS)))


def _with_cells(part: MEstimate, tuning: float, n: int) -> MEstimate:
    """As many cells as make one an eighth of the error of n records that are all within c."""
    error = hypot(_noise(tuning, part.epsilon, n) / 2, tuning / sqrt(3 * n))
    wanted = min(_CELLS_IN_ERROR * _width(part) / error, _MOST_CELLS)
    return replace(part, cells=max(_FEWEST_CELLS, 1 << (ceil(wanted) - 1).bit_length()))


def _noise(tuning: float, epsilon: int, n: int) -> float:
    """√2·8c/(εn): the standard deviation of a law that falls as exp(−εn|θ|/(8c))."""
    return sqrt(2) * 8 * (tuning / n) / (epsilon / EPSILON_UNITS)


def _width(part: MEstimate) -> float:
    """The cells' widths together, were all as wide as the narrowest: those of a Cauchy base at its
    middle.
    """
    width = part.upper - part.lower
    return width if part.base == "uniform" else pi * width / 2


def _tuning(facts: DatasetFacts, column: Column) -> float:
    quartiles = released_quartiles(facts, column.name)
    if quartiles is None:
        raise InvalidQuery(
            "tuning is needed, in the units of the column: no profile covers the column."
        )
    return HUBER_TUNING * (quartiles[2] - quartiles[0]) / NORMAL_IQR
