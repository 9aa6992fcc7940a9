# SPDX-License-Identifier: Apache-2.0
"""Quantiles with intervals: for each probability two more selections, of ranks on both sides of it.

The p-quantile q of the law that the records come from has #{x ≤ q} = Np + S, S of variance
s² = Np(1 − p). A value that is selected at rank aN has rank aN + E, where E is the selections'
noise of scale B (mechanisms.quantile_tree.error_scales). The value is below q where
aN + E ≤ Np + S, so the lower end is aimed at

    a = p − k/N,   P(S + E > k) = .025,   S ~ N(0, s²), E ~ Laplace(B)

and the upper end at p + k/N. Nothing is assumed of the law but that records are independent: no
density is estimated, and values that tie only make the intervals wider. Candidates are the upper
ends of cells, so a lower end is moved down by one. Ends beyond the ranks 0 and 1 are the column's
bounds.

A selection is as of Laplace's law where candidates are as dense as records. Where none of K is near
but the right one (a value that many records share, or candidates far from all records), it strays
by t ranks with probability K exp(−t/B): where that is not below .005 at a fifth of the records, or
at all those on the far side of an end, there is no interval.

 Where rows of a person count as they are, s² is m times as large: Var Σ_t 1{x_t ≤ q} of a
person with T ≤ m rows is at most m times the sum of the rows' variances.

Privacy: mechanisms.quantile_tree; which probabilities are selected is public, or follows from the
released number of records in use (a CountSum; mechanisms.noisy_sum), and the tree's ρ does not
depend on them. Source: Woodruff (1952), "Confidence intervals for medians and other position
measures"; Kaplan, Schnapp & Stemmer (2022).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, isfinite, log, sqrt
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field
from scipy.optimize import brentq
from scipy.special import log_ndtr

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import Block, CountSum, FloatArray, QuantileTree, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import OpenInterval
from reticent_server.kinds.shared.one_row import Which, counted, one_row_map, one_row_part
from reticent_server.kinds.shared.quantile_cells import (
    CodeMap,
    Weighing,
    codes_map,
    quantile_part,
)
from reticent_server.mechanisms import quantile_tree
from reticent_server.numerics.evaluate import in_use

End = tuple[float | None, float | None]
Ends = tuple[End | None, ...]
Show = Callable[[list[float], list[OpenInterval], int], Any]
"""A kind's result, of the values (k,), their intervals (k,) and n."""

INTERVALS = (
    "With 95 % intervals that count sampling and noise; values have about half as much noise "
    "again, as their budget buys the ends of the intervals too."
)
Intervals = Annotated[bool, Field(description=f"{INTERVALS} Not with `by`.")]

_STEP = 1e-4  # between the probabilities that a tree tells apart (mechanisms.quantile_tree)
_COUNT_SHARE = 20  # a 20th of ρ says how many records are in use: known to 3 at ε = 1
_FEWEST = 4.0  # records: with fewer in use both ends are bounds, whatever the probability
_ROUNDS = 4  # the noise's scale depends on the ranks, and they on it: settled to 1 % after three
_STRAYS = 0.005  # how likely a selection strays farther than is looked at: a fifth of an interval's
_MOST_STRAYED = 0.2  # of the records: values that so many share are not jumped over
_UNEVEN = 1.2  # candidates are denser on one side: that of 0 under a normal law with wide bounds
_BY = "intervals cannot be combined with `by`: ask with `where` for one group."


@dataclass(frozen=True, slots=True)
class UsedMap:
    """(rows,) 0 for a record in use, −1 for one that is not."""

    rows: CodeMap

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        return (np.where(in_use(self.rows.design, block), 0.0, -1.0),)


@dataclass(frozen=True, slots=True)
class QuantileIntervalsPlan(Planned):
    """Planned quantiles with intervals. probabilities: (k,) as asked, in any order. count: of a
    design with a condition or missing cells. size: places or persons of the table. m: rows of a
    person that count. ends: (k,) at which ranks the intervals end.
    """

    deadline_shares: ClassVar = (0.06, 0.23)

    map_fn: CodeMap
    part: QuantileTree
    count: CountSum | None
    probabilities: tuple[float, ...]
    size: int
    m: int
    ends: Ends
    show: Show
    per: Weighing | None = field(default=None, kw_only=True)

    @property
    def outline(self) -> Outline:
        parts = (self.part,) if self.count is None else (self.count, self.part)
        return Outline(
            columns=self.map_fn.design.columns,
            rho=sum(part.rho for part in parts),
            mechanism="recursive exponential mechanisms",
            reference="Kaplan, Schnapp & Stemmer (2022); Woodruff (1952)",
            parts=parts,
            passes=len(parts),
            of_persons=True,  # the variance of ranks is the farthest that persons' rows can have
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of the share of the records below each value."""
        scales = dict(
            zip(self.part.probabilities, quantile_tree.error_scales(self.part), strict=True)
        )
        noise = tuple(sqrt(2) * scales[p] / self.size for p in self.probabilities)
        sampling = tuple(sqrt(self.m * p * (1 - p) / self.size) for p in self.probabilities)
        names = tuple(f"{100 * p:g}%" for p in self.probabilities)
        return ForecastPrecision(names, noise, sampling, in_units=False)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records."""
        return {"rank_error": quantile_tree.scale(self.part) / self.size}

    def run(self) -> Recipe:
        """One step, or two: the number of records in use first."""
        part, ends = self.part, self.ends
        if self.count is not None:
            which: Which | None = "any" if self.per == "person" else self.per
            used = one_row_map(
                UsedMap(self.map_fn), self.map_fn.design, which, self.count.person_rows
            )
            (number,) = yield SumStep("records in use", (self.count,), used)
            least = float(number.values[0]) - half_width(number.sd)
            records = min(max(least, _FEWEST), self.size)
            part, ends = with_ends(part, self.probabilities, records, self.m)
        (found,) = yield SumStep("quantiles", (part,), codes_map(self.map_fn, part, self.per))
        at = dict(zip(part.probabilities, found.values.tolist(), strict=True))
        intervals = [self._interval(pair, at) for pair in ends]
        return self.show([at[p] for p in self.probabilities], intervals, self.size)

    def _interval(self, ranks: End | None, at: Mapping[float, float]) -> OpenInterval:
        if ranks is None:
            return (None, None)
        grid, (low, high) = self.part.candidates, ranks
        lower = grid.lower if low is None else _least_value(grid, at[low])
        return lower, grid.upper if high is None else at[high]


def plan_quantile_intervals(
    facts: DatasetFacts,
    rows: CodeMap,
    probabilities: tuple[float, ...],
    rho: int,
    per: Weighing | None,
    show: Show,
) -> QuantileIntervalsPlan:
    """Quantiles with intervals at `rho` (RHO_UNITS). probabilities: checked, in any order. Raises
    InvalidQuery and InvalidPrivacy.
    """
    size, unit_rows = counted(facts, per), facts.schema.unit.max_rows
    count = None
    if rows.design.masked:
        which: Which | None = "any" if per == "person" else per
        count = one_row_part(CountSum(1, rho // _COUNT_SHARE, unit_rows), which)
    rest = rho if count is None else rho - count.rho
    plain = quantile_part(facts, rows.column, tuple(sorted(set(probabilities))), rest, per)
    m = 1 if per else unit_rows
    part, ends = with_ends(plain, probabilities, size, m)
    return QuantileIntervalsPlan(rows, part, count, probabilities, size, m, ends, show, per=per)


def without_groups(by: str | None) -> None:
    """Raises InvalidQuery for groups."""
    if by is not None:
        raise InvalidQuery(_BY)


def with_ends(
    part: QuantileTree, probabilities: tuple[float, ...], records: float, m: int
) -> tuple[QuantileTree, Ends]:
    """The part with the ranks of the intervals' ends beside those of the quantiles, and the ends:
    shares of `records`, rounded away from the quantile, None beyond all records."""
    ends: Ends = ()
    noise = 0.0
    for _ in range(_ROUNDS):  # never less than before: without an end its tree has less noise
        noise = max(noise, *quantile_tree.error_scales(part))
        ends = tuple(_ends(p, records, m, noise, len(part.candidates)) for p in probabilities)
        found = (end for pair in ends if pair for end in pair if end is not None)
        ranks = {*probabilities, *found}
        part = replace(part, probabilities=tuple(sorted(ranks)))
    return part, ends


def _ends(p: float, records: float, m: int, noise: float, cells: int) -> End | None:
    if not isfinite(noise):  # the ends' selections would leave none of them any budget
        return None
    share = allowance(sqrt(m * records * p * (1 - p)), _UNEVEN * noise) / records
    low, high = floor((p - share) / _STEP) * _STEP, ceil((p + share) / _STEP) * _STEP
    strays = noise * log(cells / _STRAYS) / records
    if strays > min(_MOST_STRAYED, 1 - low, high):
        return None
    return (
        round(low, 4) if low >= _STEP else None,
        round(high, 4) if high <= 1 - _STEP else None,
    )


def allowance(sampling: float, noise: float, level: float = CONFIDENCE) -> float:
    """k with P(S + E > k) = (1 − level)/2 for S ~ N(0, sampling²), E ~ Laplace(noise): ranks."""
    tail = (1 - level) / 2
    most = half_width(sampling, level) + half_width(1.0, level) * 4 * noise + 1

    def excess(k: float) -> float:
        return _normal_laplace_tail(k, sampling, noise) - tail

    return float(brentq(excess, 0.0, most))


def _normal_laplace_tail(k: float, s: float, b: float) -> float:
    """P(S + E > k), k ≥ 0. Source: Reed (2006), "The normal-Laplace distribution"."""
    z, r = k / s, s / b
    upper = np.exp(-k / b + r * r / 2 + log_ndtr(z - r))
    lower = np.exp(k / b + r * r / 2 + log_ndtr(-z - r))
    return float(np.exp(log_ndtr(-z)) + (upper - lower) / 2)


def _least_value(grid: Grid, candidate: float) -> float:
    """Above which the values lie whose candidate it is: the one before, or itself where the grid
    holds every value."""
    points = grid.points
    if grid.integers and len(points) == grid.upper - grid.lower + 1:
        return candidate
    return float(points[max(int(np.searchsorted(points, candidate)) - 1, 0)])
