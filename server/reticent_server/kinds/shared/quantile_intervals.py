# SPDX-License-Identifier: Apache-2.0
"""Quantiles with intervals: two more selections for each probability, of ranks on both sides of it,
and counts of the records that lie below what was selected.

The p-quantile q of the law that the records come from is the least value with P(x ≤ q) ≥ p. A
selection alone says little of where its value lies: where many records share a value and next to
it are candidates that no record has, the noise may choose one of these. So an end is believed by
its counts. Let A be the number of records in use below an end, C the number of the others, and

    D = (1 − p)(A + noise) − p(C + noise),    Var noise = η((1 − p)² a + p² c)

with η the variance of a count's noise, a and c the numbers of counts that A and C are made of. An
end e at which x < e is counted and e > q has all records with x ≤ q below it, whose number is at
least binomial(N, p); one at which x ≤ e is counted and e < q has less than that. So

    D ≤ −k at a lower end,   D ≥ k at an upper one,   k = z √(mNp(1 − p) + Var noise)

each fail by chance in 2.5 % of tables at most, whatever the law, and however the end was chosen: D
at e > q is at least what it is at q, whose noise knows nothing of e. An end that does not hold
becomes the column's bound, which always does. Where rows of a person count as they are, their
numbers vary m times as much: Var Σ_t 1{x_t ≤ q} of a person with T ≤ m rows is at most m times the
sum of the rows' variances.

Ends are aimed at p ± K/N, with K larger than k by what selections and counts err together in all
but one table of a hundred.

Privacy: mechanisms.quantile_tree; the counts are one CountSum (mechanisms.noisy_sum). Which
probabilities are selected is public, or follows from the released number of records in use, and
where counts are parted from released values; no part's ρ depends on them. Source: Woodruff (1952),
"Confidence intervals for medians and other position measures"; Clopper & Pearson (1934); Kaplan,
Schnapp & Stemmer (2022).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, isfinite, nextafter, sqrt
from typing import Annotated, Any, ClassVar, Literal, cast

import numpy as np
from pydantic import Field
from scipy.special import ndtri

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.grid import Grid
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import (
    Block,
    CountSum,
    FloatArray,
    QuantileTree,
    Released,
    SumStep,
)
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.normal import CONFIDENCE, half_width
from reticent_server.fitting.results import Interval
from reticent_server.kinds.shared.one_row import (
    RowMap,
    counted,
    one_row_map,
    one_row_part,
)
from reticent_server.kinds.shared.quantile_cells import CodeMap, codes_map, quantile_part
from reticent_server.mechanisms import noisy_sum, quantile_tree
from reticent_server.numerics.evaluate import in_use

End = tuple[float | None, float | None]
"""Shares of the records at which an interval is aimed to end; None: beyond all records."""
Show = Callable[[list[float], list[Interval], int], Any]
"""A kind's result, of the values (k,), their intervals (k,) and n."""

INTERVALS = (
    "With 95 % intervals that count sampling and noise; values have about three quarters as much "
    "noise again, as their budget pays for the ends of the intervals too. An end that the noisy "
    "counts below it cannot distinguish from the quantile is the column's bound. Where a person "
    "has several rows, not with per='person'."
)
Intervals = Annotated[bool, Field(description=f"{INTERVALS} Not with `by`.")]

_STEP = 1e-4  # between the probabilities that a tree tells apart (mechanisms.quantile_tree)
_COUNT_SHARE = 20  # a 20th of ρ says how many records are in use: known to 3 at ε = 1
_BELOW_SHARE = 0.3  # of ρ, for the counts below the ends: widths hardly change from .2 to .4
_FEWEST = 4.0  # records: with fewer in use both ends are bounds, whatever the probability
_ROUNDS = 4  # the noise's scale depends on the ranks, and they on it: settled to 1 % after three
_LOST = float(ndtri(0.99))  # deviations: one end of a hundred is not believed by chance
_BY = "intervals cannot be combined with `by`: ask with `where` for one group."
_WEIGHTS = (
    "intervals cannot be combined with weights: ask for the weighted share below a value, a mean "
    "with weights of a 0/1 column, which has an interval."
)
_PERSON = (
    "intervals cannot be combined with per='person': ask with per='first' or 'last', or leave "
    "`per` out."
)


@dataclass(frozen=True, slots=True)
class BelowMap:
    """(rows,) how many of the increasing edges are at most the value of a record; −1 where it is
    not in use."""

    rows: CodeMap
    edges: FloatArray

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        values = block.columns[self.rows.column.name]
        codes = np.searchsorted(self.edges, values, side="right").astype(np.float64)
        used = np.isfinite(values)
        if self.rows.design.masked:
            used &= in_use(self.rows.design, block)
        return (np.where(used, codes, -1.0),)


@dataclass(frozen=True, slots=True)
class QuantileIntervalsPlan(Planned):
    """Planned quantiles with intervals. probabilities: (k,) as asked, in any order. count: of a
    design with a condition or missing cells. below: the counts below the ends. size: places or
    persons of the table. m: rows of a person that count. ends: (k,) of the intervals. level: of
    each interval.
    """

    deadline_shares: ClassVar = (0.06, 0.23)

    map_fn: CodeMap
    part: QuantileTree
    count: CountSum | None
    below: CountSum
    probabilities: tuple[float, ...]
    size: int
    m: int
    ends: tuple[End, ...]
    level: float
    show: Show
    per: Literal["first", "last"] | None = field(default=None, kw_only=True)

    @property
    def outline(self) -> Outline:
        counts = () if self.count is None else (self.count,)
        parts = (*counts, self.part, self.below)
        return Outline(
            columns=self.map_fn.design.columns,
            rho=sum(part.rho for part in parts),
            mechanism="recursive exponential mechanisms, discrete Gaussian counts",
            reference="Kaplan, Schnapp & Stemmer (2022); Woodruff (1952)",
            parts=parts,
            passes=len(parts),
            of_persons=True,  # the variance of ranks is the farthest that persons' rows can have
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of the share of the records below each value."""
        tree = self.part
        scales = dict(zip(tree.probabilities, quantile_tree.error_scales(tree), strict=True))
        noise = tuple(sqrt(2) * scales[p] / self.size for p in self.probabilities)
        sampling = tuple(sqrt(self.m * p * (1 - p) / self.size) for p in self.probabilities)
        names = tuple(f"{100 * p:g}%" for p in self.probabilities)
        return ForecastPrecision(names, noise, sampling, in_units=False)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The scale of a selection's noise, as a share of the records."""
        return {"rank_error": quantile_tree.scale(self.part) / self.size}

    def run(self) -> Recipe:
        """Two steps, or three: the number of records in use first."""
        part, ends = self.part, self.ends
        if self.count is not None:
            used = self._one_row(BelowMap(self.map_fn, np.zeros(0)), self.count)
            (number,) = yield SumStep("records in use", (self.count,), used)
            least = float(number.values[0]) - half_width(number.sd)
            records = min(max(least, _FEWEST), self.size)
            part, ends = with_ends(
                part, self.probabilities, records, self.m, self.below, self.level
            )
        (found,) = yield SumStep("quantiles", (part,), codes_map(self.map_fn, part, self.per))
        at = dict(zip(part.probabilities, found.values.tolist(), strict=True))
        selected = [self._interval(pair, at) for pair in ends]
        edges = edges_of(selected)
        part_below = replace(self.below, bins=len(edges) + 1)
        below = self._one_row(BelowMap(self.map_fn, edges), part_below)
        (counts,) = yield SumStep("records below", (part_below,), below)
        held = [
            self._held(p, pair, edges, counts)
            for p, pair in zip(self.probabilities, selected, strict=True)
        ]
        return self.show([at[p] for p in self.probabilities], held, self.size)

    def _one_row(self, rows: RowMap, part: CountSum) -> RowMap:
        return one_row_map(rows, self.map_fn.design, self.per, part.person_rows)

    def _interval(self, ranks: End, at: Mapping[float, float]) -> Interval:
        grid, (low, high) = self.part.candidates, ranks
        lower = grid.lower if low is None else _least_value(grid, at[low])
        return lower, grid.upper if high is None else at[high]

    def _held(self, p: float, pair: Interval, edges: FloatArray, counts: Released) -> Interval:
        """The interval, with the column's bound for an end that its counts do not tell."""
        (low, high), grid = pair, self.part.candidates
        under, need = distance(p, float(low), edges, counts, self.m, self.level)
        over, wanted = distance(p, _after(high), edges, counts, self.m, self.level)
        return (
            float(low) if under <= -need else grid.lower,
            float(high) if over >= wanted else grid.upper,
        )


def plan_quantile_intervals(
    facts: DatasetFacts,
    rows: CodeMap,
    probabilities: tuple[float, ...],
    rho: int,
    per: str | None,
    show: Show,
    *,
    joint: int = 1,
) -> QuantileIntervalsPlan:
    """Quantiles with intervals at `rho` (RHO_UNITS). probabilities: checked, in any order. joint:
    how many of the intervals hold at once at 95 % (Bonferroni). Raises InvalidQuery and
    InvalidPrivacy.
    """
    level = 1 - (1 - CONFIDENCE) / joint
    which = _one(per)
    size, unit_rows = counted(facts, which), facts.schema.unit.max_rows
    count = None
    if rows.design.masked:
        count = one_row_part(CountSum(1, rho // _COUNT_SHARE, unit_rows), which)
    bins = 2 * len(set(probabilities)) + 1
    below = one_row_part(CountSum(bins, int(_BELOW_SHARE * rho), unit_rows), which)
    rest = rho - below.rho - (0 if count is None else count.rho)
    plain = quantile_part(facts, rows.column, tuple(sorted(set(probabilities))), rest, which)
    m = 1 if which else unit_rows
    part, ends = with_ends(plain, probabilities, size, m, below, level)
    return QuantileIntervalsPlan(
        rows, part, count, below, probabilities, size, m, ends, level, show, per=which
    )


def _one(per: str | None) -> Literal["first", "last"] | None:
    if per == "person":
        raise InvalidQuery(_PERSON)
    return cast('Literal["first", "last"] | None', per)


def without_groups(by: str | None, weights: str | None = None) -> None:
    """Raises InvalidQuery for groups and weights."""
    if by is not None:
        raise InvalidQuery(_BY)
    if weights is not None:
        raise InvalidQuery(_WEIGHTS)


def with_ends(
    part: QuantileTree,
    probabilities: tuple[float, ...],
    records: float,
    m: int,
    below: CountSum,
    level: float = CONFIDENCE,
) -> tuple[QuantileTree, tuple[End, ...]]:
    """The part with the ranks of the intervals' ends beside those of the quantiles, and the ends:
    rounded away from the quantile."""
    ends: tuple[End, ...] = ()
    noise = 0.0
    for _ in range(_ROUNDS):  # never less than before: without an end its tree has less noise
        noise = max(noise, *quantile_tree.error_scales(part))
        ends = tuple(
            _end(p, allowance(p, records, m, noise, below, level) / records) for p in probabilities
        )
        ranks = {*probabilities, *(end for pair in ends for end in pair if end is not None)}
        part = replace(part, probabilities=tuple(sorted(ranks)))
    return part, ends


def _end(p: float, share: float) -> End:
    if not isfinite(share):  # the ends' selections would leave none of them any budget
        return None, None
    low, high = floor((p - share) / _STEP) * _STEP, ceil((p + share) / _STEP) * _STEP
    return (
        round(low, 4) if low >= _STEP else None,
        round(high, 4) if high <= 1 - _STEP else None,
    )


def allowance(
    p: float, records: float, m: int, noise: float, below: CountSum, level: float = CONFIDENCE
) -> float:
    """K in ranks. noise: the scale of a selection's error."""
    counts = noisy_sum.noise_sd(below) ** 2 * below.bins * max(p, 1 - p) ** 2
    sampling = m * records * p * (1 - p)
    return half_width(sqrt(sampling + counts), level) + _LOST * sqrt(counts + 2 * noise**2)


def edges_of(selected: Sequence[Interval]) -> FloatArray:
    """(e,) increasing and different: at the lower ends, and just after the upper ones."""
    edges = [edge for low, high in selected for edge in (float(low), _after(high))]
    return np.unique(np.array(edges, dtype=np.float64))


def distance(
    p: float, edge: float, edges: FloatArray, counts: Released, m: int, level: float = CONFIDENCE
) -> tuple[float, float]:
    """(D, k) at one of the edges: how far the released number of records below it is from the share
    p of all of them, and how far it may be by chance."""
    number = int(np.searchsorted(edges, edge)) + 1
    below, above = counts.values[:number], counts.values[number:]
    noise = counts.sd**2 * ((1 - p) ** 2 * len(below) + p**2 * len(above))
    records = max(float(np.sum(counts.values)), 1.0)
    found = (1 - p) * float(np.sum(below)) - p * float(np.sum(above))
    return found, half_width(sqrt(m * records * p * (1 - p) + noise), level)


def _after(value: float) -> float:
    return nextafter(value, inf)


def _least_value(grid: Grid, candidate: float) -> float:
    """Above which the values lie whose candidate it is: the one before, or itself where the grid
    holds every value."""
    points = grid.points
    if grid.integers and len(points) == grid.upper - grid.lower + 1:
        return candidate
    return float(points[max(int(np.searchsorted(points, candidate)) - 1, 0)])
