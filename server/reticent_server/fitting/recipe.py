# SPDX-License-Identifier: Apache-2.0
"""A fit by noisy Newton steps: a generator of steps that sees released values only.

1. Rounds of Gram matrices of the regressors whiten the coordinates (whitening).
2. Steps t = 1..T: the mean score at (θ, s); θ ← θ + WᵀGg by the filter, with the curvature that the public rows
   lead to expect there (filter).
3. After each step but the last the family measures its scale.
4. The last step also releases the Jacobian, which corrects the expected curvature, and the meat Q; where there is
   little noise, or the curvature changes on the way, the last step but one releases a Jacobian as well.

What is left of the way to the solution, whether from noise, from a step that is too short or from a curvature
that is not what was expected, is the filter's covariance.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from reticent_server.domain.steps import (
    FloatArray,
    GramSum,
    OneVector,
    Part,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import PART_OFF, FitBudget, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.coordinates import Coordinates
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import (
    Correction,
    PublicModel,
    StepCurvature,
    being_far,
    corrected_curvature,
    limited,
    measured,
    moved,
    moved_far,
    no_correction,
    prior,
    surprised,
    unfinished,
)
from reticent_server.fitting.identifiability import Directions, fit_directions
from reticent_server.fitting.maps import FitState, ResidualMap, ScoreMap, on_lattice
from reticent_server.fitting.person_scores import (
    EARLY,
    RECLIPPED,
    Clusters,
    Lengths,
    PersonLengthsMap,
    PersonScoreMap,
    as_matrix,
    chosen,
    chosen_reach,
    triangle,
)
from reticent_server.fitting.restriction import Restriction
from reticent_server.fitting.row_tail import RowCut
from reticent_server.fitting.rounds import part_of, whitening_rounds, whole_of
from reticent_server.fitting.score import (
    Ball,
    BentScore,
    DriftingFamily,
    GrowingScore,
    Score,
    ScoreFamily,
    whole_ball,
)
from reticent_server.fitting.whitening import Whitening
from reticent_server.mechanisms.noisy_sum import noise_sd
from reticent_server.numerics.matrices import power

_FARTHER = 4.0  # by which the gain of a bent score's steps trusts C less than the scores, in all but the last
LEAST_CLUSTERS = (
    50  # effective persons; with 30, intervals of 95 % cover .94, of unbalanced ones .91
)
MOST_CLIPPED = 0.12  # of persons; with 1,000 to 1,500 of 8 rows at ε = 1, where more are cut, intervals of 95 % cover .82 to .87 within persons
MOST_UNSURE = 0.5  # of the Jacobian: up to there intervals of 95 % cover .94 to .98 in simulations, beyond it .6 to .96
_BEND = 0.12  # of a predictor with a log link: up to there intervals of 95 % cover .92 to .96 in simulations, from .15 on .78 to .95
_LARGEST_RESCALE = 0.7  # |change of ln s| of a joint last step
_LARGEST_THETA = (
    2.0**20
)  # in standardised units: keeps a fit that noise has thrown off within the floats


@dataclass(frozen=True, slots=True, eq=False)
class StandardFit:
    """The released fit in standardised units and internal order.

    theta (q,); sampling and privacy covariances (q, q); scale; directions: which the releases can tell from none;
    count: records in use, as released; freedom: where scores are those of persons; information: (q, q) mean weighted curvature, per unit of the
    response; inverse: (q, q) its inverse, as the fit used it; transform: W. settled: whether errors are small enough for a linear step's.
    """

    theta: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    scale: float
    directions: Directions
    count: float
    information: FloatArray
    inverse: FloatArray
    transform: FloatArray
    freedom: "Freedom | None" = None
    settled: bool = True
    cut: "RowCut | None" = None
    taken: FloatArray | None = None

    @property
    def curvature(self) -> FloatArray:
        """J (q, q) in u."""
        W = self.transform
        return _symmetric(W @ self.information @ W.T)


@dataclass(frozen=True, slots=True, eq=False)
class Freedom:
    """What a cluster-robust variance V_s of cᵀθ is known to: released with noise of sd `noise` ‖Aᵀc‖², from
    `clusters` persons. A (q, q): from mean scores to θ. unsure: the operator norm of the Jacobian's noise relative to
    its smallest eigenvalue, at most 1."""

    clusters: Clusters
    noise: float
    A: FloatArray
    unsure: float

    @property
    def known(self) -> bool:
        """Whether intervals are right: persons enough, few of them cut, and a Jacobian that is above its noise."""
        enough = self.clusters.effective >= LEAST_CLUSTERS
        return enough and self.clusters.clipped <= MOST_CLIPPED and self.unsure <= MOST_UNSURE

    def degrees(
        self, combinations: FloatArray, sampling: FloatArray, total: FloatArray
    ) -> FloatArray:
        """(k,) Satterthwaite's degrees of freedom of the variances `total` (k,) of combinations (k, q), of which
        `sampling` (k,) is the persons': 2V²/(noise's variance + 2V_s²/(N_eff − 1))."""
        squared = np.sum((combinations @ self.A) ** 2, axis=1)
        unsure = (self.noise * squared) ** 2
        unsure += 2 * sampling**2 / max(self.clusters.effective - 1, 1.0)
        return np.asarray(2 * total**2 / np.maximum(unsure, np.finfo(float).tiny))


Fitting = Generator[Step, tuple[Released, ...], StandardFit]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where the fit stands, all released: θ (of x̃), C (of u), s, what is known of the curvature, records in use.

    present: whether their number says that there are any. way: (q,) of the last step, in u.
    """

    theta: FloatArray
    covariance: FloatArray
    scale: float
    known: Correction
    count: float
    present: bool = True
    way: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LastScores:
    """What the last step has of the scores: their mean (q,), its noise's covariance and the meat (q, q); the scale."""

    gradient: FloatArray
    noise: FloatArray
    meat: FloatArray
    scale: float


@dataclass(frozen=True, slots=True, eq=False)
class NoisyNewton:
    """A planned fit of a public standardised design.

    start: θ before any release (q,). restriction: for score tests. offset: (rows,) of the public rows; None: 0. apart: whether
    its steps see the records of one group only (mechanisms.disjoint_groups): a gradient is then about 0, as what is added to
    every record's is added to a number of records that is private.
    """

    coding: Coding
    coordinates: Coordinates
    family: ScoreFamily
    budget: FitBudget
    sizes: Sizes
    start: FloatArray
    restriction: Restriction | None = None
    offset: FloatArray | None = None
    apart: bool = False

    def public_model(self, whitening: Whitening) -> PublicModel:
        """The public rows in a whitening's coordinates; fewer of them in a forecast."""
        offset = 0.0 if self.offset is None else self.offset[: len(whitening.rows)]
        return PublicModel(whitening, self.sizes.radius_squared, offset, self.sizes.unequal)

    def fit(self) -> Fitting:
        """Runs the recipe."""
        whitening, count, present = yield from self._whitening()
        state = self._started(whitening, count, present=present)
        model = self.public_model(whitening)
        T = self.budget.steps
        for t in range(T - 1):
            state = self._drifted(state, whitening, T - 1 - t)
            score = self.family.score(state.scale, T - 1 - t)
            state = self._on_all(model, state, score, t)
            step = self._score_step(state, whitening, score, t)
            released = yield from self._asked(step, self.budget.on_part(t))
            if self.budget.jacobians[t]:
                state, _ = self._measured(model, state, score, released[1], whitening.free)
            curvature = self._expected(model, state, score)
            g, noise = self._gradient(state, whitening, score, released[0])
            state = self._stepped(model, state, score, (g, noise), curvature)
            if self.budget.scales and self.family.residuals is not None:
                step = self._scale_step(state, whitening, t)
                (residuals,) = yield from self._asked(step, self.budget.scale_on_part(t))
                state = self._rescaled(state, residuals, t)
        state = self._drifted(state, whitening, 0)
        score = self.family.score(state.scale, 0)
        state = self._on_all(model, state, score, T - 1)
        clusters = None
        if self.sizes.person_rows > 1:
            step = self._lengths_step(state, whitening, score)
            counts, *reaches = yield from self._asked(step, self.budget.stride > 1)
            clusters = chosen(self._lengths, counts, self._clip_noise)
            if reaches:
                clusters = replace(clusters, reach=chosen_reach(self._reaches(score), reaches[0]))
            state = self._reclipped(state, whitening, score)
        last = yield self._score_step(state, whitening, score, T - 1, clusters)
        if self.budget.reaches:
            last = (last[0], as_matrix(last[1]), *last[2:])
        return self._finished(state, whitening, score, last, clusters)

    def _whitening(
        self,
    ) -> Generator[Step, tuple[Released, ...], tuple[Whitening, float, bool]]:
        budget = self.budget
        strides = [
            budget.stride if budget.round_on_part(k) else 1 for k in range(len(budget.rounds))
        ]
        return whitening_rounds(
            self.coding, self.coordinates, budget.rounds, budget.count, self.sizes, strides
        )

    def _asked(
        self, step: SumStep, on_part: bool
    ) -> Generator[Step, tuple[Released, ...], tuple[Released, ...]]:
        """What a step releases of all rows; of a part of them, as it would be of all."""
        subset = part_of(self.sizes, self.budget.stride if on_part else 1)
        return whole_of((yield replace(step, subset=subset)), self.sizes.n)

    def _on_all(self, model: PublicModel, state: State, score: Score, t: int) -> State:
        """C with what the solution on all rows may differ by from that on the part, in each step over all rows: the first of
        them may leave a part of it, where the curvature is not what it was taken for."""
        if not self.budget.after_part(t):
            return state
        H = self._expected(model, state, score).H
        Q = model.meat(score, model.whitening.inside(state.theta))
        C = state.covariance + self.part_off(H, Q, state.count)
        return replace(state, covariance=C, way=None)

    def part_off(self, H: FloatArray, Q: FloatArray, count: float) -> FloatArray:
        """(q, q) covariance in u: the part is one unit of `stride`, so it is (stride − 1)/n of that of a record's score Q, times the
        rows of a unit, which may be alike. H: as of a step."""
        A = np.linalg.inv(H)
        share = PART_OFF * self.sizes.unit_rows * (self.budget.stride - 1) / count
        return np.asarray(share * A @ Q @ A.T)

    def _reclipped(self, state: State, whitening: Whitening, score: Score) -> State:
        """C with what the solution of the last clip may differ by from that of the early one."""
        if not self.sizes.skewed:
            return state
        reach = self.sizes.rms / score.most * score.unit
        moved_by = prior(whitening, RECLIPPED * reach)
        return replace(state, covariance=state.covariance + moved_by, way=None)

    @property
    def _clip_noise(self) -> float | None:
        """Of the last sum of scores that are skewed, in clips."""
        if not self.sizes.skewed:
            return None
        part = VectorSum(self.sizes.size, 1.0, self.budget.gradients[-1], 1, self.sizes.person_rows)
        return noise_sd(part)

    @property
    def _lengths(self) -> Lengths:
        return Lengths(self.sizes.person_length)

    def _lengths_step(self, state: State, whitening: Whitening, score: Score) -> SumStep:
        m, lengths = self.sizes.person_rows, self._lengths
        point, reaches = self._point(state, whitening, score), self._reaches(score)
        whole = self.budget.reaches > 0
        rows = ScoreMap(self.coding, point, np.zeros(self.sizes.size), curvature=whole)
        parts = [lengths.part(self.budget.lengths, m)]
        parts += [reaches.part(self.budget.reaches, m)] if whole else []
        measured = PersonLengthsMap(rows, m, lengths, reaches if whole else None)
        return SumStep("lengths", tuple(parts), measured)

    def _reaches(self, score: Score) -> Lengths:
        size = float(np.sqrt(self.sizes.size))
        return Lengths(self.sizes.person_rows * size * self.sizes.mean_norm * score.most)

    def _started(self, whitening: Whitening, count: float, *, present: bool) -> State:
        W, C = whitening.transform, prior(whitening, self.family.offset)
        theta = self.start
        if self.restriction is not None:
            theta, C = self.restriction.started(theta, C, W)
        theta = on_lattice(theta, self.sizes.size)
        return State(
            theta, C, self.family.start, no_correction(whitening, self.family.shape), count, present
        )

    def _drifted(self, state: State, whitening: Whitening, remaining: int) -> State:
        """C with what the solution of the next step may differ by, where the family says that it does."""
        if not isinstance(self.family, DriftingFamily):
            return state
        offset = self.family.drift(remaining) * state.scale
        return replace(state, covariance=state.covariance + prior(whitening, offset))

    def _public(self, model: PublicModel, state: State, score: Score) -> FloatArray:
        """J (q, q) that the public rows lead to expect: at θ for a bent score, on the way otherwise."""
        theta, C = model.whitening.inside(state.theta), state.covariance
        return model.curvature(
            score, theta, np.zeros_like(C) if isinstance(score, BentScore) else C
        )

    def _expected(self, model: PublicModel, state: State, score: Score) -> StepCurvature:
        return corrected_curvature(self._public(model, state, score), score.unit, state.known)

    def _measured(
        self,
        model: PublicModel,
        state: State,
        score: Score,
        released: Released,
        upto: int | None = None,
    ) -> tuple[State, FloatArray]:
        """After a released Jacobian, of the axes `upto`; and its noise (q,) in the frame B."""
        back = power(self._public(model, state, score), 0.5)
        J, sd = released.values / state.count, released.sd / state.count
        far = being_far(state.covariance, back, score.unit)
        known, noise = measured(state.known, back, J, sd, far, upto)
        return replace(state, known=known), noise

    def _ball(
        self, state: State, whitening: Whitening, score: Score, clusters: Clusters | None = None
    ) -> Ball:
        if self.sizes.person_rows > 1:
            C = self._lengths.unit * EARLY if clusters is None else clusters.clip
            return whole_ball(self.sizes.size, C)
        if self.apart:
            return whole_ball(
                self.sizes.size, float(np.sqrt(self.sizes.radius_squared)) * score.bound
            )
        direction = whitening.inside(state.theta)
        return score.ball(direction, float(np.sqrt(self.sizes.radius_squared)))

    def _score_step(
        self,
        state: State,
        whitening: Whitening,
        score: Score,
        t: int,
        clusters: Clusters | None = None,
    ) -> SumStep:
        if self.sizes.person_rows > 1:
            return self._person_step(state, whitening, score, t, clusters)
        q, m, R = self.sizes.size, self.sizes.unit_rows, float(np.sqrt(self.sizes.radius_squared))
        ball = self._ball(state, whitening, score)
        parts: list[Part] = [VectorSum(q, ball.radius, self.budget.gradients[t], m)]
        last, joint = t == self.budget.steps - 1, None
        if self.budget.jacobians[t]:
            root = R * float(np.sqrt(score.curvature_bound))
            parts.append(GramSum(q, root, self.budget.jacobians[t], m, score.signed))
        if last:
            joint = self.family.joint
            chi = 0.0 if joint is None else joint.bound(score)
            size, bound = q + (joint is not None), float(np.hypot(R * score.bound, chi))
            parts.append(GramSum(size, bound, self.budget.meat, m))
            parts += [VectorSum(1, chi, self.budget.scales[-1], m)] if joint else []
        point = self._point(state, whitening, score)
        scores = ScoreMap(self.coding, point, ball.shift, self.budget.jacobians[t] > 0, last, joint)
        return SumStep(f"newton step {t + 1}", tuple(parts), scores, joint=self._together(t))

    def _person_step(
        self,
        state: State,
        whitening: Whitening,
        score: Score,
        t: int,
        clusters: Clusters | None,
    ) -> SumStep:
        """The same with gradient and meat of persons' sums (fitting.person_scores), and the last Jacobian."""
        q, m, R = self.sizes.size, self.sizes.person_rows, float(np.sqrt(self.sizes.radius_squared))
        last, jacobian = t == self.budget.steps - 1, self.budget.jacobians[t]
        ball = self._ball(state, whitening, score, clusters)
        parts: list[Part] = [VectorSum(q, ball.radius, self.budget.gradients[t], 1, m)]
        whole = clusters is not None and clusters.reach > 0
        if clusters is not None and whole:
            parts.append(VectorSum(triangle(q), clusters.reach, jacobian, 1, m))
        elif jacobian:
            root = R * float(np.sqrt(score.curvature_bound))
            parts.append(GramSum(q, root, jacobian, m, score.signed))
        if last:
            parts.append(GramSum(q, ball.radius, self.budget.meat, 1, person_rows=m))
        point = self._point(state, whitening, score)
        rows = ScoreMap(self.coding, point, ball.shift, jacobian > 0, last)
        return SumStep(
            f"newton step {t + 1}", tuple(parts), PersonScoreMap(rows, m, ball.radius, whole)
        )

    def _together(self, t: int) -> OneVector | None:
        """The parts of a step that are made of u, by their places."""
        joint, last = self.budget.joint, t == self.budget.steps - 1
        if not joint.step or not self.budget.jacobians[t]:
            return None
        return OneVector(vector=0, curvature=1, meat=2 if last and joint.meat else None)

    def _point(self, state: State, whitening: Whitening, score: Score) -> FitState:
        return FitState(state.theta, whitening.transform, self.sizes.radius_squared, score)

    def _gradient(
        self, state: State, whitening: Whitening, score: Score, released: Released
    ) -> tuple[FloatArray, FloatArray]:
        """The mean score g (q,) and its noise's covariance (q, q)."""
        shift = self._ball(state, whitening, score).shift
        g = (released.values - self.sizes.n * shift) / state.count
        return g, (released.sd / state.count) ** 2 * np.eye(len(g))

    def _stepped(
        self,
        model: PublicModel,
        state: State,
        score: Score,
        seen: tuple[FloatArray, FloatArray],
        curvature: StepCurvature,
        reach: FloatArray | None = None,
        *,
        last: bool = False,
    ) -> State:
        """After a step that has seen the mean score g (q,), with its noise's covariance (q, q)."""
        C, (g, noise), W = state.covariance, seen, model.whitening.transform
        if self.restriction is None and not isinstance(score, BentScore):
            C = surprised(C, curvature, noise, g)
        if isinstance(score, BentScore) and reach is None:
            theta = model.whitening.inside(state.theta)
            reached = 1.0 if last else _FARTHER
            step = moved_far(C, curvature, noise, g, model.way(score, theta, curvature), reached)
            step = unfinished(step, state.way)
        else:
            step = moved(C, curvature, noise, g, reach)
        if self.restriction is None and isinstance(score, GrowingScore):
            step = limited(step)
            way = model.grown(score, model.whitening.inside(state.theta), step.way)
            step = replace(step, way=way)
        theta = self._kept(state.theta + W.T @ step.way)
        return replace(state, theta=theta, covariance=step.covariance, way=step.way)

    def _kept(self, theta: FloatArray) -> FloatArray:
        return on_lattice(np.clip(theta, -_LARGEST_THETA, _LARGEST_THETA), self.sizes.size)

    def _scale_step(self, state: State, whitening: Whitening, t: int) -> SumStep:
        residuals = self.family.residuals
        if residuals is None:
            raise ValueError("a family without a scale has no budget for it")
        part = residuals.part(self.budget.scales[t], self.sizes.unit_rows)
        score = self.family.score(state.scale, self.budget.steps - 1 - t)
        measured = ResidualMap(self.coding, self._point(state, whitening, score), residuals)
        return SumStep(f"residual scale {t + 1}", (part,), measured)

    def _rescaled(self, state: State, released: Released, t: int) -> State:
        residuals = self.family.residuals
        score = self.family.score(state.scale, self.budget.steps - 1 - t)
        scale = score.scale if residuals is None else residuals.scale(score, released, state.count)
        return replace(state, scale=scale)

    def _finished(
        self,
        state: State,
        whitening: Whitening,
        score: Score,
        released: tuple[Released, ...],
        clusters: Clusters | None = None,
    ) -> StandardFit:
        """The last step, with the released Jacobian and the sandwich."""
        model = self.public_model(whitening)
        back = power(self._public(model, state, score), 0.5)
        jacobian = released[1].values / state.count
        state, jacobian_noise = self._measured(model, state, score, released[1])
        curvature = self._expected(model, state, score)
        last = self._last_scores(model, state, score, released, curvature)
        reach = (
            None
            if self.restriction is None
            else prior(whitening, self.family.offset) + state.covariance
        )
        after = self._stepped(
            model, state, score, (last.gradient, last.noise), curvature, reach, last=True
        )
        W, A = whitening.transform, np.asarray(np.linalg.inv(curvature.H))
        sampling = sandwich(A, last.meat, state.count)
        directions = fit_directions(
            whitening,
            back,
            jacobian,
            jacobian_noise,
            after.covariance + sampling,
            state.count / (self.sizes.radius_squared * score.most),
            present=state.present,
        )
        freedom, left = None, after.covariance
        if clusters is not None:
            if self.sizes.skewed:
                left = left + (clusters.lost / state.count) ** 2 * A @ A.T
            sampling *= clusters.persons / max(clusters.persons - 1, 1.0)
            noise = released[2].sd / state.count**2
            unsure = _unsure(curvature.J, directions, W, released[1].sd / state.count)
            freedom = Freedom(clusters, noise, np.asarray(W.T @ A), unsure)
            if not freedom.known:
                directions = directions.none
        settled = is_settled(score, directions, W)
        if not settled:
            directions = directions.none
        return StandardFit(
            theta=after.theta,
            sampling=np.asarray(W.T @ sampling @ W),
            privacy=np.asarray(W.T @ left @ W),
            scale=last.scale,
            directions=directions,
            count=state.count,
            information=_symmetric(np.linalg.solve(W, np.linalg.solve(W, curvature.J).T)),
            inverse=np.asarray(W.T @ np.linalg.inv(curvature.J) @ W),
            transform=W,
            freedom=freedom,
            settled=settled,
        )

    def _last_scores(
        self,
        model: PublicModel,
        state: State,
        score: Score,
        released: tuple[Released, ...],
        curvature: StepCurvature,
    ) -> LastScores:
        """Jointly with the scale, where the family asks for that (fitting.score.JointStep)."""
        whitening = model.whitening
        joint = None if self.sizes.person_rows > 1 else self.family.joint
        g, noise = self._gradient(state, whitening, score, released[0])
        expected = model.meat(score, whitening.inside(state.theta))
        released_meat, sd = released[2].values / state.count, released[2].sd / state.count
        if joint is None:
            return LastScores(g, noise, calmed_meat(released_meat, sd, expected), state.scale)
        step = joint.step(score, curvature.J, whitening.transform)
        chi, chi_sd = float(released[3].values[0]) / state.count, released[3].sd / state.count
        scores, M = np.append(g, chi), step.gradient
        expected = block_diag(expected, max(float(released_meat[-1, -1]), sd))
        meat = calmed_meat(released_meat, sd, expected)
        ratio = np.exp(np.clip(step.log_scale @ scores, -_LARGEST_RESCALE, _LARGEST_RESCALE))
        return LastScores(
            M @ scores,
            np.asarray(M @ block_diag(noise, chi_sd**2) @ M.T),
            np.asarray(M @ meat @ M.T),
            state.scale * float(ratio),
        )


def is_settled(score: Score, directions: Directions, W: FloatArray) -> bool:
    """Whether a typical record's predictor is off by little enough, along the directions that are resolved, for the standard
    errors of a linear step: with a log link the mean score bends."""
    off = np.linalg.norm(np.linalg.solve(W.T, directions.vectors[:, directions.resolved]))
    return not isinstance(score, GrowingScore) or bool(off <= _BEND)


def _unsure(J: FloatArray, directions: Directions, W: FloatArray, sd: float) -> float:
    """The operator norm of the Jacobian's noise relative to its smallest eigenvalue, at most 1: of J (q, q) in u, outside
    the directions that are not resolved, about which no interval is given anyway. sd: of an entry's noise."""
    lost = np.linalg.solve(W.T, directions.vectors[:, ~directions.resolved])
    kept = np.linalg.qr(lost, mode="complete")[0][:, lost.shape[1] :]
    if not kept.size:
        return 1.0
    blur = sd * float(np.sqrt(2 * kept.shape[1]))
    return blur / max(float(np.linalg.eigvalsh(kept.T @ J @ kept)[0]), blur)


def _symmetric(M: FloatArray) -> FloatArray:
    return np.asarray((M + M.T) / 2)
