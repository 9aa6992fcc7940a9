# SPDX-License-Identifier: Apache-2.0
"""A person's score of Cox's partial likelihood, given a public baseline: functions of the person
and of public values only.

With the public cumulative hazard Λ₀(t), the public means ū(t) of the regressors u of those at risk
(weighted by their hazards), η = x̃ᵀβ + o and a follow-up from s to t that ends with the event or
without (d = 1 or 0), the score is the stochastic integral of u − ū over the person's martingale
residual,

    score  ∫ (u − ū) dM = d (u − ū(t)) − e^η (u H − G),   H = Λ₀(t) − Λ₀(s),   G = ∫_s^t ū dΛ₀
    root   √(e^η H) (u − G/H)

whose sum over all persons is Cox's score where Λ₀ and ū are those of the table at β. Where they are
not, it is off by the product of both errors: Σ_j (ū's error)_j (Λ₀'s error)_j, so neither has to be
known well. Λ₀ is linear and ū constant in the intervals of a fine public grid. The roots' second
moment is the information but for the change of ū along one person's follow-up.

No norm is bounded here: the sums that these go into cut them (mechanisms.quantise), at lengths that
are chosen from released numbers. Whatever η, Λ₀ and ū are, and however long a follow-up is, the
bounds hold. u is exact (fitting.maps), all else is elementwise: a person's values are bit-identical
whatever block it comes in.

Source: Cox (1975), Biometrika 62; Breslow (1974), Biometrics 30; Lin & Wei (1989), JASA 84.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.design import Design
from reticent_server.domain.steps import Block, Contribution, FloatArray, Scaled
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.curvature import Growing, ScoreCurvature, log_link
from reticent_server.fitting.maps import FitState, coordinates, on_lattice, standardised
from reticent_server.fitting.row_tail import (
    LEANING,
    LengthGrid,
    TailShape,
    leaning,
    tail_shape,
)
from reticent_server.fitting.trust.thresholds import LIKELIHOOD_BEND
from reticent_server.fitting.whole_scores import PlainScore
from reticent_server.kinds.hazard_regression.offset import centred
from reticent_server.kinds.hazard_regression.strata import ONE_STRATUM
from reticent_server.kinds.shared.follow_up.question import EVENT, FollowUp, FollowUpGroups
from reticent_server.numerics.evaluate import in_use
from reticent_server.numerics.lengths import squared_lengths
from reticent_server.numerics.mallows import mallows_weights

_FARTHEST = 8.0
"""|η| at the most: a hazard ratio of 3,000 to the middle keeps exp(η) within the floats."""
_UNLIKE = 0.35  # relative error of the information that public persons lead to expect
_LEAST_HAZARD = 1e-12  # of a cumulative hazard that is divided by


@dataclass(frozen=True, slots=True)
class FollowUpColumns:
    """Which columns are a person's follow-up, and what is known of offsets: public. strata, until:
    the strata, each with follow-up up to then, one after the other (hazard_regression.strata).
    """

    design: Design
    time: str
    event: str
    start: str | None
    middle: float = 0.0
    strata: FollowUpGroups = ONE_STRATUM
    until: float = np.inf

    def begins(self, block: Block) -> FloatArray:
        """(rows,) where a record's piece of the axis of all strata begins; of a record of no
        stratum 0, as it is not in use.
        """
        if self.strata.column is None:
            return np.zeros(block.rows)
        group = self.strata.codes(block)
        inside = (group >= 0) & (group < len(self.strata.labels))
        return np.where(inside, group, 0.0) * self.until


@dataclass(frozen=True, slots=True, eq=False)
class KnownBaseline:
    """A public baseline on a grid of K intervals.

    ends: (K,). hazards: (K,) Λ₀ of each interval. means: (K, k) ū in x̃, without the intercept.
    stop: the cumulative hazard at which a person's follow-up ends.
    """

    ends: FloatArray
    hazards: FloatArray
    means: FloatArray
    stop: float = np.inf

    @property
    def nodes(self) -> FloatArray:
        """(K + 1,) from 0 on."""
        return np.append(0.0, self.ends)

    @property
    def cumulative(self) -> FloatArray:
        """(K + 1,) Λ₀ at the nodes."""
        return np.append(0.0, np.cumsum(self.hazards))

    @property
    def areas(self) -> FloatArray:
        """(K + 1, k) ∫ ū dΛ₀ up to the nodes."""
        k = self.means.shape[1]
        return np.vstack([np.zeros(k), np.cumsum(self.hazards[:, None] * self.means, axis=0)])


@dataclass(frozen=True, slots=True, eq=False)
class FarWeights:
    """A person weighs min(1, R²/‖A x̃ − a‖²): matrix A (k, k), centre a (k,), public."""

    matrix: FloatArray
    centre: FloatArray
    radius_squared: float

    def of(self, x: FloatArray) -> FloatArray:
        """(rows,) of regressors x̃ (k, rows)."""
        v = coordinates(self.matrix, x) - self.centre[:, None]
        return mallows_weights(squared_lengths(v, np.empty(v.shape[1])), self.radius_squared)


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """Follow-up of persons (rows,): from start to time, and whether it ended with the event."""

    start: FloatArray
    time: FloatArray
    event: FloatArray

    def residuals(
        self, known: KnownBaseline, u: FloatArray, W: FloatArray, eta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Scores and roots (k, rows) of regressors u = Wx̃ (k, rows)."""
        rate = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST))
        return self.stopped(known, rate).unstopped_residuals(known, u, W, rate)

    def unstopped_residuals(
        self, known: KnownBaseline, u: FloatArray, W: FloatArray, rate: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same of follow-up as it is, rate: (rows,) e^η."""
        nodes, last = known.nodes, known.ends[-1]
        H = rate * self._over(nodes, known.cumulative)
        position = np.minimum(np.searchsorted(known.ends, self.time), len(known.ends) - 1)
        d = self.event * (self.time <= last)
        # Of public arrays: no product with private values, whose last bits would depend on blocks.
        means, areas = known.means @ W.T, known.areas @ W.T
        G = np.stack([rate * self._over(nodes, area) for area in areas.T])
        scores = u * (d - H) - d * means[position].T + G
        roots = np.sqrt(H) * (u - G / np.maximum(H, _LEAST_HAZARD))
        return scores, roots

    def by_interval(self, cuts: FloatArray, known: KnownBaseline, eta: FloatArray) -> FloatArray:
        """(J, rows) events less cumulative hazards in the intervals that end at cuts (J,)."""
        rate = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST))
        begins = np.append(0.0, cuts[:-1])[:, None]
        upto = np.interp(np.minimum(self.time, cuts[:, None]), known.nodes, known.cumulative)
        since = np.interp(np.maximum(self.start, begins), known.nodes, known.cumulative)
        inside = (self.time > begins) & (self.time <= cuts[:, None])
        return np.asarray(inside * self.event - rate * np.maximum(upto - since, 0.0))

    def stopped(self, known: KnownBaseline, rate: FloatArray) -> "Followed":
        """Up to where the cumulative hazard is known.stop."""
        begun = np.interp(self.start, known.nodes, known.cumulative)
        nodes, cumulative = known.nodes, known.cumulative + 1e-12 * np.arange(len(known.nodes))
        ends = np.interp(begun + known.stop / rate, cumulative, nodes, right=np.inf)
        return Followed(self.start, np.minimum(self.time, ends), self.event * (self.time <= ends))

    def within(self, begins: FloatArray, ends: FloatArray) -> "Followed":
        """The piece between two times (rows,): its events are those after `begins`, up to
        `ends`."""
        inside = (self.time > begins) & (self.time <= ends)
        start, time = (np.clip(x, begins, ends) for x in (self.start, self.time))
        return Followed(start, time, self.event * inside)

    def in_stratum(self, group: FloatArray, until: float) -> "Followed":
        """On the axis of all strata, group (rows,) 0, 1, …; follow-up ends at `until`."""
        begins = group * until
        start, time = (begins + np.minimum(x, until) for x in (self.start, self.time))
        return Followed(start, time, self.event * (self.time <= until))

    def _over(self, nodes: FloatArray, values: FloatArray) -> FloatArray:
        """(rows,) what a piecewise linear function (K + 1,) grows by over the follow-up."""
        grown = np.interp(self.time, nodes, values) - np.interp(self.start, nodes, values)
        return np.asarray(grown)


def binned_scores(
    persons: Followed,
    known: KnownBaseline,
    u: FloatArray,
    W: FloatArray,
    eta: FloatArray,
    begins: FloatArray,
    ends: FloatArray,
) -> FloatArray:
    """(B, k, rows) what the follow-up between two of `ends` (B,) adds to the scores of `residuals`.
    begins: (rows,) where the persons' axis begins.
    """
    rate = np.exp(np.clip(eta, -_FARTHEST, _FARTHEST))
    kept = persons.stopped(known, rate)
    edges = begins + np.append(0.0, ends)[:, None]
    pieces = (kept.within(a, b) for a, b in pairwise(edges))
    return np.stack([p.unstopped_residuals(known, u, W, rate)[0] for p in pieces])


def followed(columns: FollowUpColumns, block: Block) -> tuple[Followed, NDArray[np.bool_]]:
    """The follow-up of a block's records, and whether each is in use (rows,): one that leaves
    before it comes was never there."""
    time = block.columns[columns.time]
    start = block.columns[columns.start] if columns.start else np.zeros(block.rows)
    used = np.asarray(in_use(columns.design, block), dtype=bool) & (time >= 0)
    if columns.start:
        used = used & (start < time)
    return Followed(np.minimum(start, time), time, block.columns[columns.event]), used


def placed(columns: FollowUpColumns, block: Block) -> tuple[Followed, NDArray[np.bool_]]:
    """The same on the axis of all strata; a record of no stratum is not in use."""
    persons, used = followed(columns, block)
    if columns.strata.column is None:
        return persons, used
    group = columns.strata.codes(block)
    inside = (group >= 0) & (group < len(columns.strata.labels))
    return persons.in_stratum(np.where(inside, group, 0.0), columns.until), used & inside


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartialScore(PlainScore):
    """What a fit asks of the score, at a place. known: the baseline there. lengths, weights: (j,)
    how long scores are expected to be, and how often. weighed: whether persons far off count less.
    """

    known: KnownBaseline
    lengths: FloatArray = field(default_factory=lambda: np.ones(1))
    weights: FloatArray = field(default_factory=lambda: np.ones(1))
    varies: bool = True
    unlike: float = _UNLIKE
    weighed: bool = False

    @property
    def curvature(self) -> ScoreCurvature:
        """That of a log link, up to the error of a predictor that LIKELIHOOD_BEND says."""
        return Growing(growth, most_off=LIKELIHOOD_BEND.value)

    def leaning(self, size: int, share: float) -> float:  # noqa: ARG002 - one interface
        """That of least squares, as what was cut of eight real tables was of the length .4 to .9
        E; where persons far off count less, that of likelihoods, at .6 of the width.
        """
        return LEANING if self.weighed else leaning(size)

    def expected_shape(self) -> TailShape:
        """The tail of the scores that public persons have."""
        return tail_shape(self.lengths, self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class PersonsMap:
    """What the maps of a place have in common: a block's scores and roots (k, rows) in u = Wx̃."""

    coding: Coding
    columns: FollowUpColumns
    point: FitState
    known: KnownBaseline
    far: FarWeights | None

    def predictor(self, x: FloatArray, block: Block) -> FloatArray:
        """(rows,) η."""
        eta = on_lattice(self.point.theta, len(x)) @ x
        return eta + centred(self.columns.design, self.columns.middle, block)

    def binned(self, block: Block, ends: FloatArray) -> FloatArray:
        """(B, k, rows) scores by bins of time that end at `ends` (B,)."""
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            u = coordinates(self.point.transform, x, block.scratch)
            persons, used = placed(self.columns, block)
            eta, W = self.predictor(x, block), self.point.transform
            begins = self.columns.begins(block)
            pieces = binned_scores(persons, self.known, u, W, eta, begins, ends)
            if self.far is not None:
                pieces = pieces * self.far.of(x)
        return np.where(used, pieces, 0.0)

    def parts(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Scores and roots, each (k, rows); 0 of records that are not in use."""
        with np.errstate(all="ignore"):
            x = standardised(self.coding, block)
            u = coordinates(self.point.transform, x, block.scratch)
            persons, used = placed(self.columns, block)
            W = self.point.transform
            scores, roots = persons.residuals(self.known, u, W, self.predictor(x, block))
            if self.far is not None:
                w = self.far.of(x)
                scores, roots = scores * w, roots * np.sqrt(w)
        return np.where(used, scores, 0.0), np.where(used, roots, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class PartialScoreMap(PersonsMap):
    """Gives the score (k, rows); with `curvature` the root after it, with `meat` the score
    again."""

    curvature: bool = False
    meat: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        scores, roots = self.parts(block)
        if self.curvature:
            return scores, roots
        whole = Scaled(scores, np.ones(block.rows))
        return (whole, whole) if self.meat else (whole,)


@dataclass(frozen=True, slots=True, eq=False)
class PartialLengthsMap(PersonsMap):
    """Gives (rows,) the position of each score's length on a grid, that of each root's, and (J,
    rows) events less cumulative hazards between the cuts.
    """

    scores: LengthGrid
    rows: LengthGrid
    cuts: tuple[float, ...]

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        scores, roots = self.parts(block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            eta = self.predictor(standardised(self.coding, block), block)
            persons, used = placed(self.columns, block)
            rest = persons.by_interval(np.asarray(self.cuts), self.known, eta)
            lengths = (np.sqrt(squared_lengths(v, np.empty(v.shape[1]))) for v in (scores, roots))
            first, second = (np.where(np.isfinite(x), x, 0.0) for x in lengths)
        rest = np.where(used, rest, 0.0)
        return self.scores.codes(first), self.rows.codes(second), rest


@dataclass(frozen=True, slots=True)
class PersonCellsMap:
    """(rows,) a person's cell among those of kinds.shared.follow_up: when and how follow-up ends;
    with a start also (rows,) the number of intervals before whose middle it has not begun.
    """

    asked: FollowUp
    columns: FollowUpColumns

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        J = self.asked.intervals
        persons, used = followed(self.columns, block)
        group, interval, status, inside = self.asked.cells(block)
        middles = np.append(self.middles, np.inf)
        within = np.where(inside, interval, J).astype(np.int64)
        late = (status != EVENT) & (persons.time > middles[within])
        used = used & inside
        codes = np.where(used, (2 * group + status) * (J + 1) + J - interval - late, -1.0)
        if self.columns.start is None:
            return (codes,)
        before = np.searchsorted(self.middles, persons.start, side="right")
        return codes, np.where(used, group * (J + 1) + J - before, -1.0)

    @property
    def middles(self) -> FloatArray:
        """(J,) of the intervals."""
        return np.asarray((np.asarray(self.asked.starts) + np.asarray(self.asked.cuts)) / 2)


def growth(change: FloatArray) -> tuple[FloatArray, FloatArray]:
    """eᵈ − 1 where a predictor grows by d (rows,), d where it falls; and the derivative. That of a
    falling one levels off, but a rare level whose few events are below noise would be taken
    without end by it.
    """
    rise, slope = log_link(change)
    up = change > 0
    return np.asarray(np.where(up, rise, change)), np.asarray(np.where(up, slope, 1.0))
