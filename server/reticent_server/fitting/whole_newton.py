# SPDX-License-Identifier: Apache-2.0
"""A fit whose last scores are cut as a whole, at a released rank from the top: the textbook's
target.

Early steps with weights and bounded residuals bring θ near (fitting.newton). The last three have
the textbook's score, that of least squares or of a likelihood (fitting.score.WholeScore):

1. How long records' scores and rows are (fitting.row_tail), from which come C and L.
2. The score, cut at C, with the second moment of the rows, cut at L: one vector of a record.
3. The score at the new θ, cut at C.
4. The score again, with its meat: one vector of a record.

The score of least squares is linear in θ, so each of the three says the same of the solution, and
the filter pools them by their noise; where H is wrong by a share of it, three steps leave the third
power. A likelihood's bends: H is taken again at each place, and the way to the solution is the one
at which the mean score that the model leads to expect is the released one (fitting.curvature).

What is known of H: the clipped second moment of the records' roots √h v relative to that of the
public rows, whose law then says how long rows that were cut are, up to the length of a rare
level's. The part of it that tails of the records have beyond the public rows' is an error.

*Privacy*: each part is a sum of functions of one record and of released values, bounded by the
primitive that adds it: lengths are one code each (RunningCounts, mechanisms.running_counts), C and
L post-processing of these; scores and rows are scaled down to C and L by the sums themselves
(mechanisms.quantise), and those of a step are along one vector of a record (mechanisms.one_vector).
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    OneVector,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting import trust
from reticent_server.fitting.beliefs import surprise
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import (
    Correction,
    StepCurvature,
    corrected_curvature,
    no_correction,
    prior,
)
from reticent_server.fitting.identifiability import fit_directions
from reticent_server.fitting.longest_score import longest_score
from reticent_server.fitting.maps import ScoreMap, invertible_on_lattice
from reticent_server.fitting.newton import Fitting, NoisyNewton, PlannedStep
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.row_tail import (
    LengthGrid,
    RowCut,
    allowance_covariance,
    chosen_cut,
    chosen_reach,
    most_beyond,
    planned_cut,
)
from reticent_server.fitting.scale import MeanScore
from reticent_server.fitting.score import WholeScore
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.state import StepPlace
from reticent_server.fitting.trust.thresholds import LIKELIHOOD_BEND
from reticent_server.fitting.whitening import informed
from reticent_server.fitting.whole_budget import LEAST_REACH, WHOLE_STEPS, planned_rank
from reticent_server.fitting.whole_scores import (
    UNBOUNDED,
    ScoreWithMeat,
    WholeLengthsMap,
)
from reticent_server.numerics.matrices import eigen, floored, power, rebuild, symmetric

DRIFT = 0.25
"""Residual scales by which a predictor may be off where the plain score begins: between Huber's
solution and least squares' it was .4 on the most skewed of 23 real tables, and a score that asks
for more is believed (beliefs.surprised).
"""
PUBLIC_REACH = 9.0
"""Squared length per coordinate up to which public rows are believed: that of a rare level's, and a
little more. Longer ones are ends of declared ranges that nobody may be at.
"""
LEAST_INFORMATION = 0.1  # of the mean, of a direction: a rarer event's would make all records long
_RARER = 1.645  # standard errors of a predictor: the one-sided end of 95 %
_LEAST_EVENTS = 1e-9  # of a record: what is divided by
_TINY = np.finfo(float).tiny
_LONGEST_BEND = (
    LIKELIHOOD_BEND.value**2 / 2
)  # half of the square of the largest error that intervals allow
_SURE_OF = 1.5  # errors of an eigenvalue of the curvature that it counts at least
_LEAST_CURVATURE, _MOST_CURVATURE = 0.03, 1e6  # of a direction, relative to the expected one

Cutting = Generator[Step, tuple[Released, ...], "Cuts"]
Stepping = Generator[Step, tuple[Released, ...], "Whole"]


@dataclass(frozen=True, slots=True, eq=False)
class Cuts:
    """score: C and what it takes. reach: L; lost: the trace of a mean second moment that tails have
    beyond the public rows' and L takes.
    """

    score: RowCut
    reach: float
    lost: float


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """Between two of the last steps. score: the textbook's. known: of the curvature relative to the
    public rows', each as long as `wide` at most. before: H (q, q) where the last step was taken;
    mean: the score (q,) there, with its noise, and way (q,): where it went; chance: of that score
    (fitting.beliefs.surprise).
    """

    place: StepPlace
    score: WholeScore
    cuts: Cuts
    known: Correction
    wide: float
    jacobian: Released
    mean: MeanScore
    chance: float = 1.0

    @property
    def believed(self) -> StepPlace:
        """The place, its public rows as long as is believed of them: with a link log the ends of
        declared ranges would be most of the mean score.
        """
        model = replace(self.place.model, radius_squared=self.wide)
        return replace(self.place, model=model)

    @property
    def curvature(self) -> StepCurvature:
        """At the place."""
        J = clipped_curvature(self.place, self.wide)
        return corrected_curvature(J, self.score.unit, self.known)


@dataclass(frozen=True, slots=True, eq=False)
class WholeNewton(NoisyNewton):
    """A fit of rows whose last WHOLE_STEPS scores are cut as a whole."""

    def fit(self) -> Fitting:
        t = self.budget.steps - WHOLE_STEPS
        model, state, _ = yield from self.approached(t)
        score = self._score(state.scale)
        plain = replace(model, radius_squared=UNBOUNDED)
        state = state.sure(state.covariance)
        place = informed_place(StepPlace(plain, state, score, t, last=False))
        room = drift_room(place, score)
        place = replace(place, state=place.state.widened(room))
        cuts = yield from self._cuts(place, score)
        whole = yield from self._first(place, score, cuts)
        for _ in range(WHOLE_STEPS - 2):
            whole = yield from self._again(whole)
        return (yield from self._last(whole))

    def _score(self, scale: float) -> WholeScore:
        score = self.family.whole(scale)
        if score is None:
            raise TypeError("the family has no score that is cut as a whole")
        return score

    def planned_step(self, t: int, scale: float, model: PublicModel) -> PlannedStep:
        if t < self.budget.steps - WHOLE_STEPS:
            return NoisyNewton.planned_step(self, t, scale, model)
        q = self.sizes.size
        wide = replace(model, radius_squared=PUBLIC_REACH * q)
        lengths, score = (
            np.linalg.norm(model.whitening.rows @ model.frequency.T, axis=1),
            self._score(scale),
        )
        n = self.sizes.expected_n
        cut = planned_cut(lengths, n, self._rank, score.beyond, score.distances)
        reach = LEAST_REACH * sqrt(q)
        taken = score.leaning(q, cut.beyond / n) * cut.excess
        return PlannedStep(score, wide, cut.length, reach, taken, cut.told)

    def planned_scale_noise(self, last: PlannedStep, direction: FloatArray) -> FloatArray:  # noqa: ARG002
        """None: the last scores have the same solution in units of any scale."""
        return np.zeros(self.sizes.size)

    @property
    def _rank(self) -> float:
        return planned_rank(self.sizes, self.budget)

    def _cuts(self, place: StepPlace, score: WholeScore) -> Cutting:
        q, m, count = self.sizes.size, self.sizes.unit_rows, place.state.count
        scores = rows = LengthGrid(sqrt(q))
        parts = (scores.part(self.budget.tail, m), rows.part(self.budget.rows_tail, m))
        lengths = WholeLengthsMap(self.coding, place.point, scores, rows)
        first, second = yield SumStep("lengths of scores", parts, lengths)
        unit = planned_sd(GramSum(q, 1.0, self.budget.jacobians[place.t], m)) * sqrt(2 * q) / count
        eta = place.model.predictor(score, place.direction)
        public = score.leverage(eta) * np.linalg.norm(
            place.model.whitening.rows @ place.model.frequency.T, axis=1
        )
        reach, lost = chosen_reach(rows, second, count, public, unit, LEAST_REACH * sqrt(q))
        shape = score.shape(public, eta)
        cut = chosen_cut(scores, first, count, self._rank, shape)
        if score.varies:
            return Cuts(cut.of_likelihood, reach, lost)
        end = longest_score(self.coding, place.point.theta, place.point.transform, score.scale)
        return Cuts(cut.ended(most_beyond(scores, first, cut, end)), reach, lost)

    def _first(self, place: StepPlace, score: WholeScore, cuts: Cuts) -> Stepping:
        """With the second moment of the rows."""
        q, t = self.sizes.size, place.t
        reach = GramSum(q, cuts.reach, self.budget.jacobians[t], self.sizes.unit_rows)
        scores = ScoreMap(self.coding, place.point, np.zeros(q), curvature=True)
        g, jacobian = yield SumStep(
            f"newton step {t + 1}",
            (self._gradient(cuts, t), reach),
            scores,
            joint=OneVector(vector=0, curvature=1),
        )
        known = known_curvature(place, score, jacobian, cuts)
        wide = max(cuts.reach**2, PUBLIC_REACH * q)
        start = Whole(
            place,
            score,
            cuts,
            known,
            wide,
            jacobian=jacobian,
            mean=_mean(g, place),
        )
        return self._moved_by(start)

    def _again(self, whole: Whole) -> Stepping:
        place, q = whole.place, self.sizes.size
        scores = ScoreMap(self.coding, place.point, np.zeros(q))
        label = f"newton step {place.t + 1}"
        (g,) = yield SumStep(label, (self._gradient(whole.cuts, place.t),), scores)
        return self._moved_by(replace(whole, mean=_mean(g, place)))

    def _last(self, whole: Whole) -> Fitting:
        """With the meat."""
        place, q, m = whole.place, self.sizes.size, self.sizes.unit_rows
        scores = ScoreWithMeat(ScoreMap(self.coding, place.point, np.zeros(q)))
        g, meat = yield SumStep(
            f"newton step {place.t + 1}",
            (
                self._gradient(whole.cuts, place.t),
                GramSum(q, whole.cuts.score.length, self.budget.meat, m),
            ),
            scores,
            joint=OneVector(vector=0, meat=1),
        )
        whole = self._moved_by(replace(whole, mean=_mean(g, place)))
        fit = fitted(whole, meat)
        return replace(fit, events=self._events(whole, fit))

    def _events(self, whole: Whole, fit: StandardFit) -> FloatArray | None:
        """(q,) how many events decide each coefficient, by the public rows: (Σ i c)²/Σ i c² of
        records with i events, each of which adds c to the coefficient's information; i at a
        predictor that is _RARER standard errors rarer. None where each record counts.
        """
        place, model, score = whole.place, whole.place.model, whole.score
        eta = model.predictor(score, place.direction)
        back = np.linalg.inv(model.whitening.transform)
        left = fit.privacy if fit.left is None else fit.left  # without what a cut takes
        variance = model.variance(back.T @ (fit.sampling + left) @ back)
        error = _RARER * np.sqrt(np.maximum(variance, 0.0))
        each = score.events(eta, error)
        if each is None:
            return None
        A = np.linalg.inv(whole.curvature.H)
        L = back_transform(self.coding).matrix @ model.whitening.transform.T @ A
        rows = model.whitening.rows @ model.frequency.T
        told = (score.leverage(eta)[:, None] * (rows @ L.T)) ** 2
        crowded = np.mean(told**2 / np.maximum(each, _LEAST_EVENTS)[:, None], axis=0)
        return np.asarray(
            place.state.count * np.mean(told, axis=0) ** 2 / np.maximum(crowded, _TINY)
        )

    def _gradient(self, cuts: Cuts, t: int) -> VectorSum:
        rho, m = self.budget.gradients[t], self.sizes.unit_rows
        return VectorSum(self.sizes.size, cuts.score.length, rho, m)

    def _moved_by(self, whole: Whole) -> Whole:
        """After a step with the score that `whole` has."""
        place, curvature = whole.place, whole.curvature
        mean = whole.mean
        chance = surprise(place.state.beliefs, curvature, mean.noise, mean.value)
        step = place.score.curvature.last_step(self._seen(whole.believed, mean, curvature))
        state = self._moved(place, step)
        place = replace(place, state=state, t=place.t + 1)
        return replace(whole, place=place, chance=chance)


def drift_room(place: StepPlace, score: WholeScore) -> FloatArray:
    """(q, q) by how much the solution of the plain score may differ from the weighted one's: alike
    for all directions where records are not all worth the same, as weights take most where rows are
    long.
    """
    if not score.varies:
        return prior(place.model.whitening, DRIFT * score.unit)
    q = len(place.state.theta)
    return np.eye(q) * (DRIFT * score.unit) ** 2 / (q + 2)


def informed_place(place: StepPlace) -> StepPlace:
    """In coordinates in which the expected information is I, where that differs from row to row:
    noise is then alike for all directions in units of their sampling errors. Directions of less
    than LEAST_INFORMATION of the mean are not stretched further.
    """
    if not place.score.varies:
        return place
    whitening, J = place.model.whitening, place.expected
    J = floored(J, LEAST_INFORMATION * float(np.trace(J)) / len(J))
    W = invertible_on_lattice(power(J, -0.5) @ whitening.transform)
    turn = np.asarray(np.linalg.solve(whitening.transform.T, W.T).T, dtype=np.float64)
    back = np.linalg.inv(turn)
    model = replace(place.model, whitening=informed(whitening, W, turn))
    state = place.state.sure(back.T @ place.state.covariance @ back)
    return replace(place, model=model, state=state)


def _mean(released: Released, place: StepPlace) -> MeanScore:
    """g (q,) with its noise."""
    count = place.state.count
    g, sd = released.values / count, released.sd / count
    return MeanScore(g, sd**2 * np.eye(len(g)))


def known_curvature(
    place: StepPlace, score: WholeScore, released: Released, cuts: Cuts
) -> Correction:
    """What the roots' second moment that was cut at L says of H, entry by entry by the precision of
    what is known and of what was released.
    """
    count, model = place.state.count, place.model
    back = clipped_curvature(place, cuts.reach**2)
    B = np.linalg.inv(power(back, 0.5))
    noise = released.sd / count * np.sum(B**2, axis=1)
    lost = np.minimum(cuts.lost * np.sum(B**2, axis=1) / 2, 1.0)
    unlike = score.unlike
    known = no_correction(model.whitening, unlike)
    variance = known.error + unlike**2 + lost**2
    gain = variance / (variance + noise**2)
    one = np.eye(len(B))
    E = one + np.minimum.outer(gain, gain) * (B @ (released.values / count) @ B - one)
    shape = np.hypot(np.hypot(unlike, lost) * np.sqrt(1 - gain), lost)
    unsure = (1 - gain) * variance if score.varies else np.zeros_like(variance)
    return Correction(
        _sure_curvature(E, np.sqrt(unsure)),
        (1 - gain) * known.error,
        np.minimum(shape, 1.0),
    )


def _sure_curvature(E: FloatArray, error: FloatArray) -> FloatArray:
    """E (q, q) with eigenvalues that count _SURE_OF of their error (q,: of entries) at least: one
    that noise has made small would make steps too long, and allowances. Not of least squares, whose
    longer allowances are right where few records decide (houses of Ames: .96 covered, with it .86).
    """
    values, vectors = eigen(E)
    least = np.maximum(_SURE_OF * (vectors**2).T @ error, _LEAST_CURVATURE)
    return rebuild(np.clip(values, least, _MOST_CURVATURE), vectors)


def clipped_curvature(place: StepPlace, radius_squared: float) -> FloatArray:
    """The public rows' J (q, q), each row counting as long as the radius at most."""
    model = replace(place.model, radius_squared=radius_squared)
    return replace(place, model=model).expected


def fitted(whole: Whole, meat: Released) -> StandardFit:
    """The fit after its last step. What the cut takes counts as noise: of the length `allowance` in
    every direction of the sum (fitting.row_tail).
    """
    place, curvature, cut = whole.place, whole.curvature, whole.cuts.score
    state, model = place.state, place.model
    count, W = state.count, model.whitening.transform
    A = np.asarray(np.linalg.inv(curvature.H))
    inside = cut_scale(cut, curvature)
    Q = calmed_meat(meat.values / count, meat.sd / count, inside * curvature.J)
    sampling = sandwich(A, Q, count)
    leant = whole.score.leaning(len(W), cut.beyond / count) * cut.excess
    taken = allowance_covariance(leant / count, curvature.H)
    back = power(clipped_curvature(place, whole.cuts.reach**2), 0.5)
    bend = bend_of(whole, curvature)
    directions = fit_directions(
        model.whitening,
        back,
        whole.jacobian.values / count,
        whole.jacobian.sd / count * np.sum(np.linalg.inv(back) ** 2, axis=1),
        state.covariance + sampling,
        count / whole.cuts.reach**2,
        present=state.present,
    )
    linear = trust.linear_step(directions.off(W), whole.score.curvature.most_off)
    verdict = trust.arrived(whole.chance).then(linear)
    if whole.score.varies and not cut.shaped:
        noise = whole.jacobian.sd / count * sqrt(2 * len(W))  # the operator norm of q by q entries
        verdict = verdict.then(trust.information(noise))
    return StandardFit(
        theta=state.theta + W.T @ bend,
        sampling=np.asarray(W.T @ sampling @ W),
        privacy=np.asarray(W.T @ (state.covariance + taken) @ W),
        bend=np.asarray(W.T @ bend),
        left=np.asarray(W.T @ state.covariance @ W),
        scale=sqrt(inside) * whole.score.scale,
        directions=directions if cut.told and verdict.intervals else directions.none,
        verdict=verdict,
        count=count,
        information=symmetric(np.linalg.solve(W, np.linalg.solve(W, curvature.J).T)),
        inverse=np.asarray(W.T @ np.linalg.inv(curvature.J) @ W),
        transform=W,
        cut=cut,
        taken=np.asarray(W.T @ taken @ W),
    )


def bend_of(whole: Whole, curvature: StepCurvature) -> FloatArray:
    """(q,) by how much noise of the covariance C moves the place at which the mean score is the
    released one, on average: of a mean score m(d) with m'' along each row,

        E d̂ − d* = −½ H⁻¹ mean(u m'' uᵀCu)        (Cox & Snell 1968)

    with its sign turned, so that it is to be added. With a log link it is the intercept's mostly:
    noise of the slopes raises the mean response by half of its square.
    """
    place, score = whole.place, whole.score
    rows = whole.believed.rows()
    turned = score.turned(rows.eta)
    if turned is None:
        return np.zeros(rows.X.shape[1])
    back = curvature.back
    squares = np.sum(rows.X @ place.state.covariance * rows.X, axis=1)
    mean = rows.X.T @ (rows.weights * turned * squares) / len(rows.X)
    corrected = back @ curvature.E @ np.linalg.solve(back, mean)
    bend = np.linalg.solve(curvature.H, corrected) / 2
    return np.asarray(bend * min(1.0, _LONGEST_BEND / max(float(np.linalg.norm(bend)), _TINY)))


def cut_scale(cut: RowCut, curvature: StepCurvature) -> float:
    """The mean square of the residuals of cut scores, in squared scales: their mean squared length
    over that of the rows.
    """
    return cut.squares / max(float(np.trace(curvature.J)), _TINY)
