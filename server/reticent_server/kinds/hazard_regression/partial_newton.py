# SPDX-License-Identifier: Apache-2.0
"""Cox's partial likelihood by noisy Newton steps: a generator of steps that sees released values
only.

1. Rounds of Gram matrices of the regressors and a constant: their mean and covariance
   (fitting.rounds).
2. The table of follow-up: events and numbers at risk on a fine public grid
   (kinds.shared.follow_up).
3. Early steps from β = 0, scores cut at a planned length. At each place the baseline and the means
   of those at risk are what the table and the public rows lead to expect there (public_persons).
4. How long scores and roots are, and by how much each reported interval has more events than
   expected: the baseline is corrected by it.
5. The last steps, with scores cut as a whole at a rank from the top, as of any textbook's target
   (fitting.whole_newton): the second moment of the roots, the score, the score with its meat.

*Privacy* (unconditional; neighbours replace one unit of m rows): each part is a sum of functions of
one record and of released values, bounded by the primitive that adds it, as fitting.whole_newton's
are; the table is RunningCounts, of one cell a record (two with a start: one in each part), and

    rest    events less cumulative hazards by interval    VectorSum  Δ = 2·REST m,  cut at REST by the sum
    bins    scores by bins of time, where they are asked  VectorSum  Δ = 2C m       (proportionality)
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import log, sqrt

import numpy as np

from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    OneVector,
    Part,
    Released,
    RunningCounts,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.beliefs import EXPECTED, Stepped, beliefs_of, covariance, surprise
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.coding import Coding, TermCoding
from reticent_server.fitting.curvature import StepView
from reticent_server.fitting.filter import Moved, no_correction, prior
from reticent_server.fitting.maps import invertible_on_lattice, on_lattice
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.public.coordinates import Coordinates, second_moment
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.rounds import whitening_rounds
from reticent_server.fitting.row_tail import (
    LEANING,
    LengthGrid,
    RowCut,
    allowance_covariance,
    chosen_cut,
    chosen_reach,
)
from reticent_server.fitting.scale import MeanScore
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.state import State, StepPlace
from reticent_server.fitting.whitening import Whitening
from reticent_server.fitting.whole_budget import LEAST_REACH, RANK, WHOLE_STEPS, planned_rank
from reticent_server.fitting.whole_newton import (
    LEAST_INFORMATION,
    Cuts,
    Whole,
    by_secant,
    fitted,
    informed_place,
    known_curvature,
)
from reticent_server.fitting.whole_scores import UNLIKE
from reticent_server.kinds.hazard_regression.long_tails import long_tails
from reticent_server.kinds.hazard_regression.partial_budget import TURN, PartialBudget
from reticent_server.kinds.hazard_regression.partial_score import (
    FarWeights,
    FollowUpColumns,
    PartialLengthsMap,
    PartialScore,
    PartialScoreMap,
    PersonCellsMap,
)
from reticent_server.kinds.hazard_regression.proportionality import (
    BinnedScoresMap,
    BinnedSlopes,
    bin_events,
    binned_slopes,
    time_bins,
)
from reticent_server.kinds.hazard_regression.public_persons import (
    PersonsModel,
    RiskTable,
)
from reticent_server.kinds.hazard_regression.strata import (
    NO_STRATA,
    StrataMeans,
    one_after_the_other,
    strata_of_rows,
)
from reticent_server.kinds.shared.follow_up.question import FollowUp
from reticent_server.kinds.shared.follow_up.table import LifeTable, life_table
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.matrices import floored, power
from reticent_server.numerics.running_factor import FACTOR_BITS, running_factor

REST = 1.5
"""The longest vector of events less cumulative hazards: an event's is 1 and a little, and a
cumulative hazard above 1.5 is rare."""
EARLY_STOP = 2.0
"""The cumulative hazard at which follow-up stops in early steps, and in all of a robust fit: where
it does not, scores of a few long survivors grow with the exponential of a step that went too far.
"""
_OUTLIVE = (
    7.4  # e²: ranks of the cut, of persons who outlive where follow-up stops in the last ones
)
_START = 1.5  # of a predictor that is off before any step: a hazard ratio of 20 between extremes
_DRIFT, _ROBUST_DRIFT = 0.25, 0.1
"""Of a predictor, by which it may be off after the early steps: with scores cut at 2 % of the persons
and follow-up that stops early the solution is another, by up to 7 standard errors (rotterdam)."""
_LEAST_MOMENT = 1e-3  # eigenvalue of the whitened regressors' covariance, beside 1
_EARLY_CUT, _LEAST_CUT = 0.05, 1e-3  # of public persons' scores, beyond the cut of an early step
_UNLIKE_RISK = 0.15  # relative error of the hazard that public persons lead to expect
# of whitened scores: where all public ones are 0, a sum still has a scale
_SMALLEST_CLIP = 2.0**-20
_LARGEST_THETA = 2.0**20  # in standardised units: keeps a fit within the floats
_MOST_CORRECTED = 4.0  # times: what a hazard is corrected by
_ALIGNED = 0.5
"""Of what a cut takes by public persons, in the directions that it is in: half of a tail of long
survivors, which all lean one way, so that a coefficient of few of them is declined and not wrong.
"""
_REACH = 1.0  # change of the predictor of a person as far off as the cut, in a step
_NO_CUT = RowCut(0.0, 0.0, 0.0, 0.0)  # of early scores, which nothing is told of
_SHORT, _LONG = 0.9, 0.99  # of public persons, by the lengths of whose scores cuts are compared
_TINY = 1e-12  # of what is divided by

Fitting = Generator[Step, tuple[Released, ...], "PartialFit"]


@dataclass(frozen=True, slots=True, eq=False)
class PartialFit:
    """A released fit, in standardised units of the slopes. hazards: (J,) between the cuts at x̃ = 0,
    errors: (J,) relative, of persons and noise at the fit's coefficients; means: (J, k) ū in x̃, by
    which they move with these. far: what persons weigh, stop: where their follow-up ends.
    """

    fit: StandardFit
    coding: Coding
    hazards: FloatArray
    errors: FloatArray
    means: FloatArray
    far: FarWeights | None
    stop: float
    binned: BinnedSlopes | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Baseline:
    """The table, with the relative error (J,) of a hazard between two reported cuts."""

    table: RiskTable
    errors: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PartialNewton:
    """A planned fit. whole: the coding with a constant first; coding: of the slopes alone. fine:
    the follow-up on the whole grid, columns: the same with its start; cuts: (J,) those that are
    reported, of each stratum. offset: (rows,) of the public rows, less its middle.
    """

    whole: TermCoding
    coding: Coding
    coordinates: Coordinates
    offset: FloatArray | float
    budget: PartialBudget
    sizes: Sizes
    fine: FollowUp
    columns: FollowUpColumns
    cuts: tuple[float, ...]
    radius: float | None = None
    far: FarWeights | None = None
    strata: StrataMeans = NO_STRATA
    bins: int = 0

    def fit(self) -> Fitting:
        rounds, count_rho = self.budget.fit.rounds, self.budget.fit.count
        sizes = replace(self.sizes, size=self.whole.size)
        found, count, present = yield from whitening_rounds(
            self.whole, self.coordinates, rounds, count_rho, sizes
        )
        base = self._risk_table((yield self._table_step()), count)
        whitening = slopes_whitening(found, self.sizes.size, self.strata, base.table.shares)
        weighed, weights = self._weighing(whitening)
        model = PersonsModel(
            whitening, self._reach**2, self.offset, 1.0, base.table, count, EARLY_STOP, weights
        )
        return (yield from weighed.steps(model, base, count, present=present))

    @property
    def stop(self) -> float:
        """Where follow-up stops in the last steps: where, were the model right, as many persons as
        _OUTLIVE ranks of the cut would outlive it.
        """
        if self.radius is not None:
            return EARLY_STOP
        rank = planned_rank(self.sizes, self.budget.fit)
        return max(EARLY_STOP, log(self.sizes.expected_n / (_OUTLIVE * rank)))

    def steps(
        self, model: PersonsModel, base: _Baseline, count: float, *, present: bool
    ) -> Fitting:
        """After the whitening and the table."""
        place = self._started(model, count, present=present)
        for _ in range(self.budget.fit.steps - WHOLE_STEPS):
            place = yield from self._early(place)
        model = replace(self._model(place), stop=self.stop)
        room = prior(model.whitening, _DRIFT if self.radius is None else _ROBUST_DRIFT)
        place = self._at(replace(place, model=model, state=place.state.widened(room)))
        place, cuts, base = yield from self._measured(place, base)
        whole = yield from self._first(place, cuts)
        for _ in range(WHOLE_STEPS - 2):
            whole = yield from self._again(whole)
        return (yield from self._last(whole, base))

    def _weighing(self, whitening: Whitening) -> tuple["PartialNewton", FloatArray | float]:
        """With the weights of persons far from the middle, and those of the public rows."""
        if self.radius is None:
            return self, 1.0
        centre, R2 = whitening.rows.mean(axis=0), self.radius * self.sizes.size
        far = FarWeights(whitening.transform, centre, R2)
        squared = np.sum((whitening.rows - centre) ** 2, axis=1)
        return replace(self, far=far), mallows_weights(squared, R2)

    # The table of follow-up.

    @property
    def axis_cuts(self) -> tuple[float, ...]:
        """(GJ,) the reported cuts on the axis of all strata."""
        return tuple(one_after_the_other(np.asarray(self.cuts), self.fine.size).tolist())

    def _table_step(self) -> SumStep:
        m, J = self.sizes.unit_rows, self.fine.intervals
        parts: tuple[Part, ...] = (self.fine.part(self.budget.table, m),)
        if self.columns.start is not None:
            parts = (*parts, RunningCounts(self.fine.size, J + 1, self.budget.entries, m))
        return SumStep("follow-up", parts, PersonCellsMap(self.fine, self.columns))

    def _risk_table(self, released: tuple[Released, ...], count: float) -> _Baseline:
        table = life_table(self.fine, released[0], round(count))
        if self.columns.start is None:
            return risk_table(self.fine, self.cuts, table, table.at_risk)
        not_yet = _not_yet(released[1], self.fine)
        found = risk_table(self.fine, self.cuts, table, table.at_risk - not_yet)
        coming = _coming(table.at_risk, not_yet)
        return replace(found, table=replace(found.table, entering=coming))

    # Early steps.

    def _started(self, model: PersonsModel, count: float, *, present: bool) -> StepPlace:
        k = self.sizes.size
        C = prior(model.whitening, _START)
        known = no_correction(model.whitening, UNLIKE)
        state = State(np.zeros(k), beliefs_of(EXPECTED, C), 1.0, known, count, present)
        place = StepPlace(model, state, model.score_at(np.zeros(k)), 0, last=False)
        return self._at(informed_place(place))

    def _at(self, place: StepPlace) -> StepPlace:
        """The same with the score that is expected there."""
        return replace(place, score=self._score(place))

    def _score(self, place: StepPlace) -> PartialScore:
        return self._model(place).score_at(place.direction)

    def _model(self, place: StepPlace) -> PersonsModel:
        if not isinstance(place.model, PersonsModel):
            raise TypeError("a place of persons has a model of persons")
        return place.model

    def _early(self, place: StepPlace) -> Generator[Step, tuple[Released, ...], StepPlace]:
        """The last of them with the roots' second moment, by which coordinates are turned."""
        score, budget, k = self._score(place), self.budget, self.sizes.size
        longest = np.quantile(score.lengths, 1 - self._early_share(place.state.count))
        clip = max(float(longest), _SMALLEST_CLIP)
        parts: tuple[Part, ...] = (VectorSum(k, clip, budget.fit.gradients[place.t], self._rows),)
        last = place.t == TURN
        reach = self._reach
        if last:
            parts = (*parts, GramSum(k, reach, budget.moment, self._rows))
        g, *more = yield SumStep(
            f"newton step {place.t + 1}", parts, self._map(place, curvature=last)
        )
        place = replace(place, score=score)
        if last:
            known = known_curvature(place, score, more[0], Cuts(_NO_CUT, reach, 0.0))
            place = replace(place, state=replace(place.state, known=known))
        place, _ = self._stepped(place, _mean(g, place))
        return self._at(turned(place) if last else place)

    def _stepped(self, place: StepPlace, mean: MeanScore) -> tuple[StepPlace, Stepped]:
        state, curvature = place.state, place.curvature
        seen = StepView(state.beliefs, curvature, mean.value, mean.noise, state.way, place.rows)
        step = place.score.curvature.step(seen)
        return replace(place, state=_moved(place, step), t=place.t + 1), step

    def _early_share(self, count: float) -> float:
        """Of public persons' scores, beyond the cut of an early step: as many as those of all early
        steps together would be cut at, by the rule of the last ones.
        """
        early = sum(self.budget.fit.gradients[:-WHOLE_STEPS])
        sd = planned_sd(VectorSum(self.sizes.size, 1.0, early, self._rows))
        return float(np.clip(RANK * sd / count, _LEAST_CUT, _EARLY_CUT))

    @property
    def _reach(self) -> float:
        """L of the roots before their lengths are known."""
        return LEAST_REACH * sqrt(self.sizes.size)

    @property
    def _rows(self) -> int:
        """m."""
        return self.sizes.unit_rows

    def _map(
        self, place: StepPlace, *, curvature: bool = False, meat: bool = False
    ) -> PartialScoreMap:
        known = self._score(place).known
        return PartialScoreMap(
            self.coding, self.columns, place.point, known, self.far, curvature=curvature, meat=meat
        )

    # Lengths, and the baseline's correction.

    def _measured(
        self, place: StepPlace, base: _Baseline
    ) -> Generator[Step, tuple[Released, ...], tuple[StepPlace, Cuts, _Baseline]]:
        k, count, score = self.sizes.size, place.state.count, self._score(place)
        budget = self.budget.fit
        grid = LengthGrid(sqrt(k))
        rest = VectorSum(len(self.axis_cuts), REST, self.budget.rest, self._rows)
        parts = (grid.part(budget.tail, self._rows), grid.part(budget.rows_tail, self._rows), rest)
        lengths = PartialLengthsMap(
            self.coding,
            self.columns,
            place.point,
            score.known,
            self.far,
            grid,
            grid,
            self.axis_cuts,
        )
        first, second, third = yield SumStep("lengths of scores", parts, lengths)
        unit = planned_sd(GramSum(k, 1.0, budget.jacobians[place.t], self._rows))
        persons = self._model(place).persons(place.direction, score)
        public = np.linalg.norm(persons.roots, axis=1)
        least = LEAST_REACH * sqrt(k)
        reach, lost = chosen_reach(grid, second, count, public, unit * sqrt(2 * k) / count, least)
        cut = self._cut(grid, first, count, score)
        cuts = Cuts(cut, reach, lost)
        base = corrected(base, self.axis_cuts, third)
        model = replace(self._model(place), table=base.table)
        return self._at(replace(place, model=model)), cuts, base

    def _cut(
        self, grid: LengthGrid, released: Released, count: float, score: PartialScore
    ) -> RowCut:
        """At a rank from the top, by the lengths that public persons' scores have; with terms of
        long tails, where persons come late, and with weights, by a curve through the released
        numbers alone, of whose excess as much leans one way as of a likelihood's. A curve put the
        cut at 3 to 100 records in place of 70 (nwtco at epsilon = 1); a shape put it at 180 where a
        few long survivors are far out (rotterdam), and intervals held .75.
        """
        rank = planned_rank(self.sizes, self.budget.fit)
        other = self.columns.start is not None or self.radius is not None
        if not other and not long_tails(self.coordinates, self.coding.design.terms):
            return chosen_cut(grid, released, count, rank, score.expected_shape())
        curve = chosen_cut(grid, released, count, rank).of_likelihood
        return replace(curve, excess=curve.excess * LEANING / score.leaning(self.sizes.size))

    # The last steps.

    def _gradient(self, cuts: Cuts, t: int) -> VectorSum:
        rho = self.budget.fit.gradients[t]
        return VectorSum(self.sizes.size, cuts.score.length, rho, self._rows)

    def _first(self, place: StepPlace, cuts: Cuts) -> Generator[Step, tuple[Released, ...], Whole]:
        k, t, score = self.sizes.size, place.t, self._score(place)
        roots = GramSum(k, cuts.reach, self.budget.fit.jacobians[t], self._rows)
        g, moment = yield SumStep(
            f"newton step {t + 1}",
            (self._gradient(cuts, t), roots),
            self._map(place, curvature=True),
        )
        known = known_curvature(place, score, moment, cuts)
        wide = max(cuts.reach, cuts.score.length) ** 2
        none = np.zeros(k)
        start = Whole(
            place, score, cuts, known, wide, np.zeros((k, k)), moment, _mean(g, place), none
        )
        return self._after(start)

    def _again(self, whole: Whole) -> Generator[Step, tuple[Released, ...], Whole]:
        place = whole.place
        part = self._gradient(whole.cuts, place.t)
        (g,) = yield SumStep(f"newton step {place.t + 1}", (part,), self._map(place))
        return self._after(_told(whole, _mean(g, place)))

    def _last(self, whole: Whole, base: _Baseline) -> Fitting:
        place, k = whole.place, self.sizes.size
        meat_part = GramSum(k, whole.cuts.score.length, self.budget.fit.meat, self._rows)
        g, meat = yield SumStep(
            f"newton step {place.t + 1}",
            (self._gradient(whole.cuts, place.t), meat_part),
            self._map(place, meat=True),
            joint=OneVector(vector=0, meat=1),
        )
        whole = self._after(_told(whole, _mean(g, place)))
        fit = replace(fitted(whole, meat), events=self._events(whole))
        fit = allowed(fit, whole, self._model(place).persons(place.direction, place.score).scores)
        binned = (yield from self._binned(whole, fit)) if self.bins else None
        return replace(self._finished(fit, whole, base), binned=binned)

    def _binned(
        self, whole: Whole, fit: StandardFit
    ) -> Generator[Step, tuple[Released, ...], BinnedSlopes]:
        """The scores by bins of time after the last step, cut as the whole ones are: a cut that as
        many public persons' are beyond.
        """
        place, k, count = whole.place, self.sizes.size, whole.place.state.count
        model = self._model(place)
        ends = time_bins(model.risk, self.bins)
        pieces = model.binned(place.direction, place.score, ends)
        longer = self._longer(pieces, whole.cuts.score)
        clip, B = whole.cuts.score.length * longer, len(ends)
        part = VectorSum(B * k, clip, self.budget.bins, self._rows)
        here = self._map(place)
        binned = BinnedScoresMap(
            here.coding, here.columns, here.point, here.known, here.far, tuple(ends.tolist())
        )
        (released,) = yield SumStep("proportional hazards", (part,), binned)
        H, back = whole.curvature.H, np.linalg.inv(whole.place.model.whitening.transform)
        Q = count**2 * H @ back.T @ fit.sampling @ back @ H
        taken = whole.score.leaning(k) * whole.cuts.score.excess * longer
        shares = model.shares(place.direction, ends)
        events = bin_events(model.risk, ends)
        return binned_slopes(released, (ends, events), shares, (count * H, Q), taken)

    @staticmethod
    def _longer(pieces: FloatArray, cut: RowCut) -> float:
        """By how much the vectors of all pieces (B, k, rows) are longer than their sums, where
        public persons' are as long as the cut, or their longest hundredth.
        """
        sums = np.linalg.norm(pieces.sum(axis=0), axis=0)
        whole = np.linalg.norm(pieces, axis=(0, 1))
        share = float(np.clip(np.mean(sums < cut.length), _SHORT, _LONG))
        both = (np.quantile(x, share) for x in (whole, sums))
        longer, length = both
        return max(1.0, float(longer / max(length, _TINY)))

    def _after(self, whole: Whole) -> Whole:
        """After a step with the score that `whole` has: the same coordinates, a new baseline."""
        place, curvature, mean = whole.place, whole.curvature, whole.mean
        chance = surprise(place.state.beliefs, curvature, mean.noise, mean.value)
        state = place.state
        seen = StepView(state.beliefs, curvature, mean.value, mean.noise, state.way, place.rows)
        step = shortened(place.score.curvature.last_step(seen), _REACH / whole.cuts.score.length)
        place = replace(place, state=_moved(place, step), t=place.t + 1)
        place = replace(place, score=self._score(place))
        return replace(whole, place=place, before=curvature.H, way=step.way, chance=chance)

    def _events(self, whole: Whole) -> FloatArray:
        """(k,) about how many events decide each coefficient: (Σ c)²/Σ c² of events, each of which
        adds c to the coefficient's information, by the public rows at risk.
        """
        place = whole.place
        model = self._model(place)
        A = np.linalg.inv(whole.curvature.H)
        L = back_transform(self.coding).matrix @ model.whitening.transform.T @ A
        told, squared = model.weight_of_events(place.direction, L)
        return np.asarray(told**2 / np.maximum(squared, _TINY))

    def _finished(self, fit: StandardFit, whole: Whole, base: _Baseline) -> PartialFit:
        known = self._score(whole.place).known
        cuts = self.axis_cuts
        upto = np.interp(cuts, known.nodes, known.cumulative)
        areas = np.stack([np.interp(cuts, known.nodes, a) for a in known.areas.T], axis=1)
        spent, area = np.diff(upto, prepend=0.0), np.diff(areas, axis=0, prepend=0.0)
        lengths = np.diff(cuts, prepend=0.0)
        means = area / np.maximum(spent, _TINY)[:, None]
        return PartialFit(
            fit, self.coding, spent / lengths, base.errors, means, self.far, self.stop
        )


def shortened(step: Stepped, most: float) -> Stepped:
    """A step whose way (k,) is no longer than `most`; what is cut off is added to C. Beyond it the
    cumulative hazards of persons as far off as the cut grow by more than e, and what the curvature
    at the place says of the way no longer holds.
    """
    way = step.way * min(1.0, most / max(float(np.linalg.norm(step.way)), _TINY))
    rest = step.way - way
    return Stepped.sure(Moved(way, covariance(step.beliefs) + np.outer(rest, rest)))


def turned(place: StepPlace) -> StepPlace:
    """In coordinates in which the records' information, as measured, is what that of the public
    rows is in theirs: the rows stay, so that the records look like them from here on.
    """
    whitening, known = place.model.whitening, place.state.known
    back = power(place.expected, 0.5)
    E = floored(known.E, LEAST_INFORMATION, 1 / LEAST_INFORMATION)
    turn = back @ power(E, -0.5) @ np.linalg.inv(back)
    W = invertible_on_lattice(turn @ whitening.transform)
    turn = np.asarray(np.linalg.solve(whitening.transform.T, W.T).T, dtype=np.float64)
    out = np.linalg.inv(turn)
    model = replace(place.model, whitening=replace(whitening, transform=W))
    flat = replace(known, E=np.eye(len(W)))
    C = out.T @ place.state.covariance @ out
    state = replace(place.state.sure(C), known=flat)
    return replace(place, model=model, state=state)


def allowed(fit: StandardFit, whole: Whole, scores: FloatArray) -> StandardFit:
    """With an allowance in the directions of what the cut takes of public persons' scores (rows,
    k), each scaled down to the cut: one that they are all in is not told by the lengths alone.
    """
    lengths = np.linalg.norm(scores, axis=1)
    length = whole.cuts.score.length
    taken = scores * (1 - np.minimum(length, lengths) / np.maximum(lengths, _TINY))[:, None]
    excess = float(np.mean(np.linalg.norm(taken, axis=1)))
    if not excess or fit.taken is None:
        return fit
    directions = taken.T @ taken / max(float(np.sum(taken**2)), _TINY)
    A = power(allowance_covariance(1.0, whole.curvature.H), 0.5)
    W = fit.transform
    more = (_ALIGNED * excess) ** 2 * W.T @ A @ directions @ A.T @ W
    return replace(fit, taken=fit.taken + more, privacy=fit.privacy + more)


def _mean(released: Released, place: StepPlace) -> MeanScore:
    """g (k,) with its noise."""
    count = place.state.count
    g, sd = released.values / count, released.sd / count
    return MeanScore(g, sd**2 * np.eye(len(g)))


def _told(whole: Whole, mean: MeanScore) -> Whole:
    """With the next score, and what it says of the curvature."""
    return replace(whole, mean=mean, known=by_secant(whole, mean))


def _moved(place: StepPlace, step: Stepped) -> State:
    W, state = place.model.whitening.transform, place.state
    theta = np.clip(state.theta + W.T @ step.way, -_LARGEST_THETA, _LARGEST_THETA)
    theta = on_lattice(theta, len(theta))
    return replace(state, theta=theta, beliefs=step.beliefs, way=step.way)


def slopes_whitening(
    found: Whitening, k: int, strata: StrataMeans, shares: FloatArray
) -> Whitening:
    """Of k regressors with a constant first and the strata's indicators last: coordinates (k,) in which the slopes'
    regressors have the covariance I, and public rows with the mean and covariance that were
    released, within and between strata. shares: (G,) of the strata.
    """
    X = found.rows @ found.frequency.T @ np.linalg.inv(found.transform).T
    S = second_moment(X)
    S = S / max(float(S[0, 0]), _TINY)
    slopes, beside = slice(1, k + 1), strata.others(k)
    B = strata.regressed(S, k)
    R = np.zeros((k, len(S)))
    R[:, slopes], R[:, beside] = np.eye(k), -B
    C = R @ S @ R.T
    least = _LEAST_MOMENT * np.maximum(np.diag(S)[slopes], _TINY)
    size = np.sqrt(np.maximum(np.diag(C), least))
    W = power(C / np.outer(size, size), -0.5, _LEAST_MOMENT) / size
    W = invertible_on_lattice(W)
    x = X @ R.T
    x = x - x.mean(axis=0)
    shape = power(second_moment(x / size), -0.5, _LEAST_MOMENT) / size
    centres = strata.standing @ (W @ B).T
    rows = x @ shape.T + centres[strata_of_rows(len(x), shares)]
    share = (W @ np.linalg.inv(found.transform)[slopes]) ** 2
    share = share / share.sum(axis=1, keepdims=True)
    error, noise = (np.sqrt(share @ v**2) for v in (found.error, found.noise))
    return Whitening(W, rows, k, np.eye(k), error, noise, np.eye(k), np.ones(k))


def _not_yet(released: Released, fine: FollowUp) -> FloatArray:
    """(G, J) persons whose follow-up has not begun by the middle of each interval. released: the
    lines of entries, the latest first."""
    J = fine.intervals
    exact = running_factor(J + 1) / (1 << FACTOR_BITS)
    root = np.tri(J + 1) @ np.linalg.inv(exact)
    lines = released.values.reshape(fine.size, J + 1)
    return np.asarray((lines @ root.T)[:, :-1][:, ::-1])


def _coming(persons: FloatArray, not_yet: FloatArray) -> FloatArray:
    """(GJ,) persons whose follow-up begins in each interval, up to its middle: what noise makes
    negative is 0. persons, not_yet: (G, J) who have not left, or not come, by then."""
    before = np.column_stack([np.maximum(persons.max(axis=1), not_yet.max(axis=1)), not_yet])
    coming = np.maximum(-np.diff(before, axis=1), 0.0)
    coming[:, 0] = np.maximum(coming[:, 0], 1.0)
    return np.asarray(coming.ravel())


def risk_table(
    fine: FollowUp, cuts: tuple[float, ...], table: LifeTable, at_risk: FloatArray
) -> _Baseline:
    """Numbers that are not below 0, and the relative error of hazards between the cuts: of events,
    persons and noise. at_risk: (G, K).
    """
    found = [_stratum_table(fine, cuts, table, g) for g in range(fine.size)]
    smooth, errors = (np.concatenate(x) for x in zip(*found, strict=True))
    ends = one_after_the_other(np.asarray(fine.cuts), fine.size)
    known = np.maximum(at_risk.ravel(), 1.0)
    return _Baseline(RiskTable(ends, smooth, known, np.ones(len(ends)), fine.size), errors)


def _stratum_table(
    fine: FollowUp, cuts: tuple[float, ...], table: LifeTable, g: int
) -> tuple[FloatArray, FloatArray]:
    """Events (K,) and the errors (J,) of hazards of stratum g. No more events together than were
    released: what intervals are raised by would be information that nobody has (twice as many
    events of nafld by sex at epsilon = 1, four times as many of nwtco by stage).
    """
    J, K = len(cuts), fine.intervals
    position = np.searchsorted(np.asarray(cuts), np.asarray(fine.cuts), side="left")
    position = np.minimum(position, J - 1)
    gradient = np.zeros((J, 2, K + 1))
    gradient[position, 0, np.arange(K)] = 1.0
    events = np.zeros(J)
    np.add.at(events, position, table.events[g])
    noise = np.maximum(np.diag(table.noise(gradient)), 0.0)
    least = np.maximum(events, np.sqrt(noise) + 1.0)
    errors = np.sqrt(least + noise) / least
    calmed = _calmed(table.events[g], position, least)
    every = np.zeros((1, 2, K + 1))
    every[0, 0, :K] = 1.0
    whole = max(
        float(np.sum(table.events[g])), sqrt(max(float(table.noise(every)[0, 0]), 0.0)), 1.0
    )
    return calmed * min(1.0, whole / float(np.sum(calmed))), errors


def _calmed(events: FloatArray, position: np.ndarray, least: FloatArray) -> FloatArray:
    """(K,) not below 0, with the sums `least` (J,) of the reported intervals."""
    raised = np.maximum(events, 0.0)
    sums = np.zeros(len(least))
    np.add.at(sums, position, raised)
    known = sums > _TINY
    scale = least / np.where(known, sums, 1.0)
    even = least[position] / len(events)
    return np.asarray(np.where(known[position], raised * scale[position], even))


def corrected(base: _Baseline, cuts: tuple[float, ...], rest: Released) -> _Baseline:
    """The table with hazards that are moved towards what was seen in each interval, by precision:
    the hazards that public persons lead to expect are known to _UNLIKE_RISK and the table's noise.
    """
    table = base.table
    position = np.minimum(np.searchsorted(np.asarray(cuts), table.ends), len(cuts) - 1)
    events = np.zeros(len(cuts))
    np.add.at(events, position, table.events)
    persons = 1 / np.maximum(events, 1.0)
    before = _UNLIKE_RISK**2 + np.maximum(base.errors**2 - persons, 0.0)
    noise = (rest.sd / np.maximum(events, 1.0)) ** 2
    gain = before / (before + noise)
    ratio = np.clip(1 + rest.values / np.maximum(events, 1.0), 1 / _MOST_CORRECTED, _MOST_CORRECTED)
    errors = np.sqrt(persons + (1 - gain) * before)
    moved = replace(table, correction=table.correction * (ratio**gain)[position])
    return _Baseline(moved, errors)
