# SPDX-License-Identifier: Apache-2.0
"""How many records' scores are longer than a length: what a clip of whole scores is chosen by, and
what it takes.

The length ‖s_i‖ of each record's score falls into a bin of a public geometric grid, and the numbers
N(e) of records beyond each edge e are released with little noise at all edges at once
(mechanisms.running_counts: position 0 is the farthest bin). Everything below is post-processing.
About the last edge e₀ at which N is clear of its noise, with x = ln(e/e₀),

    ln N(e) = b − a x − ½ a κ x²          (the slope beyond x = 1.2 stays what it is there)

is fitted to the edges where N is clear, by precision, with a public prior of a and κ: a Pareto tail
has κ = 0, a normal one κ = 2, real tables .2 to 1. Where the law of a response given its predictor
is known, as that of a yes or no is, the public rows say what shape N has, P(e), and

    N(e) = c P(e/r)

is fitted in its place: such scores have an end, which no power of e has. From the curve come the
length C beyond which about `rank` records lie, the tail index α = −d ln N/d ln e at C, and what
clipping at C takes, E = Σ(‖s‖ − C)₊ = ∫_C^∞ N(e) de.

*The slope before.* Near the last clear edge the curve's bend is known from little, and one that
noise has made turns a tail of index 1.2 into one of 2. So the mean slope of ln N over the last
factor of four that is well clear of noise is told too, which no prior and no bend enters: where it
is below thresholds.BULK_INDEX, a standard deviation of its noise taken off, no index at the cut is
believed.

*An end.* Where the declared bounds leave a score of least squares little longer than C, as a
response of 0 and 1 does, no tail is asked: with L the longest (fitting.longest_score), E ≤
N(C)(L − C), and the noise of N is known. The slope before says
nothing of such scores: of a yes or no they are of two sorts, short and long, and N hardly falls
between. So without this a table was declined at ε = 4 that had intervals at 1, where the slope
before is not clear of its noise, and at 16, where it is that of the longer sort.

*Allowance.* Clipping moves the sum of scores by a vector of length E at most, and in any one
direction by `leaning` of it as a rule: tails have several directions, and the more coordinates
there are the less of the vector is along one of them. It is added to the covariance as a
noise of that size would be: for a bias b of a normal estimate with error s, 1.96 √(s² + b²) is
longer than the interval that holds with 95 % whatever the bias's sign (Armstrong & Kolesár 2018).
Where that is not enough no interval is given (fitting.trust).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log, sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, RunningCounts
from reticent_server.fitting.trust.thresholds import (
    BULK_INDEX,
    RESOLVED,
)
from reticent_server.mechanisms.running_counts import noise_sd
from reticent_server.numerics.matrices import floored
from reticent_server.numerics.running_factor import FACTOR_BITS, running_factor

LEANING = 0.3  # of E, in one direction, of likelihoods: chosen on real tables
_WHOLE_LEANING = 0.85  # of E, of least squares: see `leaning`
_BULK_SHARE, _FACTOR = 0.2, 4.0  # of the records; of the number at the last edge
_WELL_CLEAR, _LEAST_EDGES = 5.0, 3  # standard deviations of noise; steps between edges
_CAUTION = 0.5  # standard deviations by which the tail is taken to be heavier than it looks
_END_SURE, _FAR_END = 2.0, 4.0  # standard deviations; cuts, beyond which a tail has room
_LEAST_ALPHA, _MOST_RAISED = 1.05, 20.0
_FIRST, _RATIO, _EDGES = 0.5, 2**0.25, 48  # of the unit: .5 to 1,700 in steps of 19 %
_BULK = 0.3  # of the records: an edge that more are beyond is not of the tail
_SPAN = 30.0  # times the number beyond e₀, of the edges that are fitted
_RANKS = 4.0  # ranks of records, up to which edges are fitted at least
_MISFIT = 0.14  # of a number beyond an edge: the curve is not closer than that
_SLOPE, _SLOPE_SD = 3.0, 1.5  # prior of a
_BEND, _BEND_SD, _MOST_BEND = 0.4, 0.4, 2.0  # prior of κ, and what a normal tail has
_BENDS_TO = 1.2  # x from which the slope stays as it is: three times e₀
_FARTHEST, _STEP = (
    4.2,
    0.02,
)  # x up to which the curve is followed, and in what steps; Pareto beyond
_LEAST_SLOPE = 0.5
_LEVEL_SD, _STRETCH_SD = 0.5, 0.3  # prior of ln c and ln r: regressors are not independent
_STRETCHED = 0.3  # of ln c or ln r in one of the steps
_SLOPE_OVER = 0.09  # half of an edge's step: over which P's slope is taken
_NONE = 1e-12  # of the records: none
_OVER = 0.5  # of ln: by which a shape's lengths go beyond its longest
_SHAPE_SD = 0.5  # of ln E, which a shape is wrong by
_LEAST_EXCESS = 1 / 15  # of rank times C: a tail index of 16
_LEAST_CURVATURE = 1e-3  # of the largest
_UNSURE = 0.2  # of the trace beyond a cut, of which public rows tell how long it is
_UNTOLD = 4.0  # units: the cut where no tail is told; without intervals
_TAIL = (0.025, 0.1)  # shares of the records beyond which a public tail is looked at
_LONGEST, _BISECTIONS = 1e3, 60  # of planned_cut
_SHORTEST = 1e-300  # of a row: a length that is divided by
_ROUNDS = 12  # Gauss-Newton steps; each leaves a tenth
_LARGEST_MOVE = 1.0  # of a in one of them


@dataclass(frozen=True, slots=True)
class LengthGrid:
    """The public grid of lengths, in units of a typical one."""

    unit: float

    @property
    def edges(self) -> FloatArray:
        """(E,) increasing."""
        return np.asarray(self.unit * _FIRST * _RATIO ** np.arange(_EDGES))

    def codes(self, lengths: FloatArray) -> FloatArray:
        """(rows,) the position of each length, 0 for the farthest; −1 at or below the first
        edge.
        """
        beyond = np.searchsorted(self.edges, lengths, side="left")
        return np.where(beyond > 0, _EDGES - beyond, -1).astype(np.float64)

    def part(self, rho: int, unit_rows: int, lines: int = 1) -> RunningCounts:
        """What is released. lines: groups of records, with numbers of their own."""
        return RunningCounts(lines, _EDGES, rho, unit_rows)

    def beyond(self, released: Released) -> tuple[FloatArray, FloatArray]:
        """N (E,) at each edge, and the standard deviation (E,) of its noise."""
        numbers = _root() @ released.values
        return numbers[::-1], self._noise(released.sd)

    def tells(self, N: FloatArray, part: RunningCounts, count: float, rank: float) -> bool:
        """Whether a release is expected to tell a tail: N (E,) records of `count` at the edges."""
        return tail_edges(N, self._noise(noise_sd(part)), count, rank) is not None

    def _noise(self, sd: float) -> FloatArray:
        root = _root()
        return np.asarray((sd**2 * root @ root.T)[::-1, ::-1])


@lru_cache(maxsize=1)
def _root() -> FloatArray:
    """B (E, E): the running sums of what is released are B times it, as B B = the running sums."""
    exact = running_factor(_EDGES) / (1 << FACTOR_BITS)
    return np.asarray(np.tri(_EDGES) @ np.linalg.inv(exact))


@dataclass(frozen=True, slots=True)
class RowCut:
    """Where scores are cut. length: C; beyond: records; alpha: the tail index, 0 where nothing was
    clear; excess: E; shaped: whether that is of a shape that is known; bulk: the slope before, None
    where too few edges tell it.
    """

    length: float
    beyond: float
    alpha: float
    excess: float
    squares: float = 0.0
    shaped: bool = False
    bulk: float | None = None

    @property
    def told(self) -> bool:
        """Whether the tail's shape is known, or some tail is clear of noise whose slope before the
        cut is not that of a few records'. How heavy it is beyond is in E."""
        slow = self.bulk is not None and self.bulk < BULK_INDEX.value
        return self.shaped or (self.alpha > 0 and not slow)

    def ended(self, excess: float) -> "RowCut":
        """With at most `excess` beyond it, whatever the tail."""
        if self.told or not np.isfinite(excess):
            return replace(self, excess=min(self.excess, excess))
        return replace(self, excess=excess, shaped=True)

    @property
    def of_likelihood(self) -> "RowCut":
        """Without the slope before: BULK_INDEX is of residuals. Most scores of a count, a cost or a
        time fall slowly whatever their tail is, and a twentieth of sound fits would be declined.
        """
        return replace(self, bulk=None)

    @property
    def allowance(self) -> float:
        """By how much the sum of a likelihood's scores may be off in one direction."""
        return LEANING * self.excess


def leaning(size: int) -> float:
    """The share of E that what is cut of least squares moves one direction of q by: as of a vector
    of length .85 E in any direction. On 21 real tables its length was .15 to .8 E and its largest
    coordinate 1 to 1.6 E/√q, so that one number for all q is too small for q of 4 to 8 and too
    large for q of 14 and more.
    """
    return min(_WHOLE_LEANING / sqrt(size), 1.0)


def allowance_covariance(mean: float, H: FloatArray) -> FloatArray:
    """(q, q) of the solution, where the mean score may be off by `mean` in any one direction. H:
    (q, q), the curvature, about I in white coordinates over the score's unit: directions of less
    than a thousandth are not resolved in any case.
    """
    if not mean:
        return np.zeros_like(H)
    A = np.linalg.inv(floored(H, _LEAST_CURVATURE * float(np.max(np.diag(H)))))
    return np.asarray(mean**2 * A @ A.T)


def tail_index(distances: FloatArray) -> float:
    """Of public distances (rows,): the slope of the logarithm of the share beyond a distance by
    that of the distance; infinite where there is no tail.

    Between the shares of _TAIL, which a profile's noise leaves in place: a Pareto tail has one
    slope everywhere, a normal one 4.4 here.
    """
    outer, inner = _TAIL
    far, near = np.quantile(distances, (1 - outer, 1 - inner))
    return log(inner / outer) / log(far / near) if far > near > 0 else np.inf


def planned_cut(
    lengths: FloatArray,
    count: float,
    rank: float,
    tail: Callable[[FloatArray], FloatArray],
    distances: FloatArray | None = None,
) -> RowCut:
    """The cut to be expected of rows of these lengths (rows,). tail: the share of residuals beyond
    a length (any shape). distances: (rows or more,), signed, of the responses of the same public
    rows from their median, None where no profile has the tails. From the tail that they show to the
    cut its slope grows as κ is expected to make it."""
    low, high = 0.0, _LONGEST * float(np.max(lengths))
    share = min(rank / count, 1.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        beyond = float(np.mean(tail(middle / np.maximum(lengths, _SHORTEST))))
        low, high = (middle, high) if beyond > share else (low, middle)
    alpha, seen = _SLOPE * (1 + _BEND), None
    if distances is not None:
        score = lengths * distances[: len(lengths)]
        seen = min(tail_index(score), tail_index(-score))
        x = min(max(log(sqrt(_TAIL[0] * _TAIL[1]) / share) / seen, 0.0), _BENDS_TO)
        alpha = max(min(alpha, seen * (1 + _BEND * x)), _LEAST_ALPHA)
    return RowCut(high, rank, alpha, rank * high / (alpha - 1), bulk=seen)


def chosen_cut(
    grid: LengthGrid,
    released: Released,
    count: float,
    rank: float,
    shape: "TailShape | None" = None,
) -> RowCut:
    """The cut at a rank from the top. shape: of the lengths, where it is known."""
    N, cov = grid.beyond(released)
    inside = tail_edges(N, cov, count, rank)
    if inside is None:
        return RowCut(_UNTOLD * grid.unit, rank, 0.0, 0.0)
    first = inside[0]
    if shape is not None:
        found = shape.fitted(grid.edges[first:], N[first:], cov[first:, first:], count).cut(rank)
        return replace(found, squares=mean_square(grid, N, count, found.length))
    found = TailCurve.fitted(grid.edges, N, cov, inside).cut(rank)
    squares = mean_square(grid, N, count, found.length)
    return replace(found, squares=squares, bulk=bulk_slope(grid.edges, N, cov, count))


def most_beyond(grid: LengthGrid, released: Released, cut: RowCut, longest: float) -> float:
    """E of lengths that end at `longest`: N(C)(L − C), with _END_SURE standard deviations of N's
    noise. Infinite where nothing is clear of noise, or the end is _FAR_END cuts away.
    """
    C, first = cut.length, int(np.sum(grid.edges <= cut.length)) - 1
    if cut.alpha <= 0 or first < 0 or longest > _FAR_END * C:
        return np.inf
    noise = float(np.sqrt(grid.beyond(released)[1][first, first]))
    return (cut.beyond + _END_SURE * noise) * max(longest - C, 0.0)


def bulk_slope(edges: FloatArray, N: FloatArray, cov: FloatArray, count: float) -> float | None:
    """The mean of −d ln N/d ln e over the last factor of four, at most from a fifth of the records,
    to the last edge that is well clear of its noise; a standard deviation below its estimate. None
    of fewer than three steps.
    """
    sd = np.sqrt(np.diag(cov))
    last = int(np.argmax(np.append(_WELL_CLEAR * sd >= N, True))) - 1
    if last < _LEAST_EDGES:
        return None
    most = min(_FACTOR * float(N[last]), _BULK_SHARE * count)
    first = int(np.sum(N[: last + 1] > most))
    if last - first < _LEAST_EDGES:
        return None
    unsure = float(np.hypot(sd[first] / N[first], sd[last] / N[last]))
    return (log(N[first] / N[last]) - unsure) / log(edges[last] / edges[first])


def chosen_reach(
    grid: LengthGrid,
    released: Released,
    count: float,
    public: FloatArray,
    unit: float,
    least: float,
) -> tuple[float, float]:
    """L of the rows' second moment, and the mean trace beyond the public rows' (lengths: (rows,))
    that a cut at L takes: the least sum of that and of the noise, `unit` at a length of 1. least:
    the smallest L.
    """
    N, cov = grid.beyond(released)
    unclear = np.flatnonzero(RESOLVED.value * np.sqrt(np.diag(cov)) >= N)
    upto = int(unclear[0]) if len(unclear) else len(N)
    share = np.where(np.arange(len(N)) < upto, np.maximum(N, 0.0), 0.0) / count
    more = share - np.mean(public[:, None] > grid.edges, axis=0)
    squared = grid.edges**2
    taken = np.maximum(_beyond(more, squared), 0.0)
    unsure = taken + _UNSURE * _beyond(share, squared) + unit * squared
    at = int(np.argmin(np.where(grid.edges >= least, unsure, np.inf)))
    return float(grid.edges[at]), float(taken[at])


def _beyond(share: FloatArray, squared: FloatArray) -> FloatArray:
    """(E,) ∫ share d(length²) beyond each edge."""
    steps = (share[1:] + share[:-1]) / 2 * np.diff(squared)
    return np.append(np.cumsum(steps[::-1])[::-1], 0.0)


def mean_square(grid: LengthGrid, N: FloatArray, count: float, length: float) -> float:
    """The mean of min(‖s‖, length)², of a length on the grid."""
    inside = grid.edges <= length
    squared = np.append(0.0, grid.edges[inside] ** 2)
    upto = np.clip(np.append(count, N[inside]), 0.0, count)
    return float(np.sum((upto[1:] + upto[:-1]) / 2 * np.diff(squared))) / count


def tail_edges(N: FloatArray, cov: FloatArray, count: float, rank: float) -> tuple[int, int] | None:
    """The first edge of the tail, and the first whose number is not clear of its noise; None where
    all edges are beyond it.
    """
    sd = np.maximum(np.sqrt(np.diag(cov)), 1.0)  # a record, where noise is less
    low = np.flatnonzero(RESOLVED.value * sd >= N)
    last = int(low[0]) if len(low) else len(N) - 1
    most = min(_BULK * count, max(_SPAN * float(sd[last]), _RANKS * rank))
    inside = np.flatnonzero(most >= N)
    first = min(int(inside[0]) if len(inside) else last, last - 3)
    return None if first < 0 else (first, last)


@dataclass(frozen=True, slots=True, eq=False)
class TailShape:
    """N(e) = exp(level) P(e exp(−stretch)) of `count` records. lengths (k,), increasing by one
    factor; shares (k,): P at these, 0 beyond them.
    """

    lengths: FloatArray
    shares: FloatArray
    count: float = 1.0
    level: float = 0.0
    stretch: float = 0.0

    def fitted(
        self, edges: FloatArray, N: FloatArray, cov: FloatArray, count: float
    ) -> "TailShape":
        """To the numbers N (E,) beyond `edges`, with the covariance (E, E) of their noise."""
        shape = replace(self, count=count)
        prior = np.diag([_LEVEL_SD**-2, _STRETCH_SD**-2])
        for _ in range(_ROUNDS):
            at = np.array([shape.level, shape.stretch])
            f, D = shape.numbers(edges)
            V = np.linalg.inv(cov + np.diag((_MISFIT * f) ** 2 + f + 1))
            move = np.linalg.solve(D.T @ V @ D + prior, D.T @ V @ (N - f) - prior @ at)
            at = at + np.clip(move, -_STRETCHED, _STRETCHED)
            shape = replace(shape, level=float(at[0]), stretch=float(at[1]))
        return shape

    def numbers(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """N (E,) and its derivatives (E, 2) by level and stretch."""
        x = np.log(edges) - self.stretch

        def at(moved: FloatArray) -> FloatArray:
            log_P = np.interp(moved, np.log(self.lengths), np.log(self.shares + _NONE))
            return self.count * np.exp(self.level + log_P)

        f = at(x)
        slope = (at(x - _SLOPE_OVER) - at(x + _SLOPE_OVER)) / (2 * _SLOPE_OVER)
        return f, np.column_stack([f, slope])

    def cut(self, rank: float) -> RowCut:
        """E is made larger by CAUTION standard deviations of what a shape is wrong by."""
        lengths = self.lengths * np.exp(self.stretch)
        number = self.numbers(lengths)[0]
        at = min(int(np.sum(number > rank)), len(lengths) - 1)
        inner = (number[at + 1 :] + number[at:-1]) / 2 * np.diff(lengths[at:])
        excess = float(np.sum(inner)) * np.exp(_CAUTION * _SHAPE_SD)
        C, beyond = float(lengths[at]), float(number[at])
        least = _LEAST_EXCESS * beyond * C
        excess = max(float(excess), least)
        return RowCut(C, beyond, 1 + beyond * C / excess, excess, shaped=True)


def tail_shape(lengths: FloatArray, weights: FloatArray) -> TailShape:
    """Of lengths (k,) with weights (k,) that add up to 1."""
    order = np.argsort(lengths)
    L = lengths[order]
    beyond = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
    top = max(float(L[-1]), np.finfo(float).tiny)
    grid = top * np.exp(np.arange(-_FARTHEST, _OVER, _STEP))
    return TailShape(grid, beyond[np.searchsorted(L, grid, side="right")])


@dataclass(frozen=True, slots=True)
class TailCurve:
    """ln N(e) = level − slope x − slope·bend x²/2, x = ln(e/edge), from `first` on. unsure: (3, 3)
    the covariance of the three.
    """

    edge: float
    level: float
    slope: float
    bend: float
    first: float
    unsure: FloatArray

    @classmethod
    def fitted(
        cls, edges: FloatArray, N: FloatArray, cov: FloatArray, inside: tuple[int, int]
    ) -> "TailCurve":
        """inside: as of tail_edges."""
        first, last = inside
        sd = np.maximum(np.sqrt(np.diag(cov)), 1.0)
        x, y = np.log(edges[first:] / edges[last]), N[first:]
        spread = cov[first:, first:]
        prior = np.array([0.0, _SLOPE_SD**-2, _BEND_SD**-2])
        at = np.array([log(RESOLVED.value * sd[last]), _SLOPE, _BEND])
        for _ in range(_ROUNDS):
            f, D = _curve(at, x)
            misfit = np.diag((_MISFIT * f) ** 2 + f)
            V = np.linalg.inv(spread + misfit)
            P = D.T @ V @ D + np.diag(prior)
            pull = prior * (np.array([0.0, _SLOPE, _BEND]) - at)
            move = np.linalg.solve(P, D.T @ V @ (y - f) + pull)
            at = at + np.clip(move, -_LARGEST_MOVE, _LARGEST_MOVE)
            at[1] = max(at[1], _LEAST_SLOPE)
            at[2] = np.clip(at[2], 0.0, _MOST_BEND)
        b, a, kappa = map(float, at)
        return cls(float(edges[last]), b, a, kappa, float(x[0]), np.asarray(np.linalg.inv(P)))

    def cut(self, rank: float) -> RowCut:
        """The length beyond which the curve expects `rank` records, and what these add."""
        x = np.arange(self.first, _FARTHEST, _STEP)
        curve = np.log(_curve(np.array([self.level, self.slope, self.bend]), x)[0] + 1e-300)
        at = int(np.argmin(np.abs(curve - log(rank))))
        slope = self.slope * (1 + self.bend * np.minimum(x, _BENDS_TO))
        length, number = self.edge * np.exp(x[at:]), np.exp(curve[at:])
        rest = number[-1] * length[-1] / max(slope[-1] - 1, _LEAST_SLOPE)
        inner = float(np.sum((number[1:] + number[:-1]) / 2 * np.diff(length)))
        turn = min(x[at], _BENDS_TO)
        g = np.array([0.0, 1 + self.bend * turn, self.slope * turn])
        alpha = float(slope[at])
        heavy = max(alpha - _CAUTION * float(np.sqrt(g @ self.unsure @ g)), _LEAST_ALPHA)
        excess = (inner + float(rest)) * min(max((alpha - 1) / (heavy - 1), 1.0), _MOST_RAISED)
        return RowCut(float(length[0]), float(number[0]), heavy, excess)


def _curve(at: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """N (E,) and its derivatives (E, 3)."""
    b, a, kappa = at
    t = np.minimum(x, _BENDS_TO)
    half = t * t / 2 + np.maximum(x - _BENDS_TO, 0.0) * _BENDS_TO
    f = np.exp(np.minimum(b - a * x - a * kappa * half, 40.0))
    return f, np.column_stack([f, -f * (x + kappa * half), -f * a * half])
