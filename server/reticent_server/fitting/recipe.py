"""A fit by noisy Newton steps: a generator of steps that sees released values only.

1. Rounds of Gram matrices of the regressors whiten the coordinates (whitening).
2. Steps t = 1..T: the mean score at (θ, s); θ ← θ + WᵀGg by the filter, with the curvature that the public rows
   lead to expect there (filter).
3. After each step but the last the family measures its scale.
4. The last step (where there is little noise the second as well) also releases the Jacobian, which corrects
   the expected curvature from there on; the last one releases the meat Q, too.

What is left of the way to the solution, whether from noise, from a step that is too short or from a curvature
that is not what was expected, is the filter's covariance. Where the plan says so, the rounds and all steps but the
last two add a random part of the rows (early_rows).
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.steps import (
    CountSum,
    FloatArray,
    GramSum,
    Part,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import Budget, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.coordinates import Coordinates
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import (
    Correction,
    Curvature,
    PublicModel,
    corrected_curvature,
    measured,
    moved,
    no_correction,
    prior,
    surprised,
)
from reticent_server.fitting.identifiability import Directions, any_present, fit_directions
from reticent_server.fitting.maps import Point, ResidualMap, RowsMap, ScoreMap, on_lattice
from reticent_server.fitting.restriction import Restriction
from reticent_server.fitting.score import Ball, Family, Score
from reticent_server.fitting.whitening import Whitening, unwhitened, whitened
from reticent_server.numerics.matrices import power

_LEAST_SHARE = 0.001  # of the records, in use: a released number of them is not taken to be less
_LARGEST_THETA = 2.0**20  # in standardised units: keeps a fit that noise has thrown off within the floats


@dataclass(frozen=True, slots=True, eq=False)
class StandardFit:
    """The released fit in standardised units and internal order.

    theta (q,); sampling and privacy covariances (q, q); scale; directions: which the releases can tell from none;
    count: records in use, as released; information: (q, q) mean weighted curvature, per unit of the
    response; inverse: (q, q) its inverse, as the fit used it; transform: W.
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


Fitting = Generator[Step, tuple[Released, ...], StandardFit]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where the fit stands, all released: θ (of x̃), C (of u), s, what is known of the curvature, records in use.

    present: whether their number says that there are any.
    """

    theta: FloatArray
    covariance: FloatArray
    scale: float
    known: Correction
    count: float
    present: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class NoisyNewton:
    """A planned fit of a public standardised design.

    start: θ before any release (q,). restriction: for score tests.
    """

    coding: Coding
    coordinates: Coordinates
    family: Family
    budget: Budget
    sizes: Sizes
    start: FloatArray
    restriction: Restriction | None = None

    def fit(self) -> Fitting:
        """Runs the recipe."""
        whitening, count, present = yield from self._whitened()
        state = self._started(whitening, count, present=present)
        model = PublicModel(whitening, self.sizes.radius_squared)
        T = self.budget.steps
        for t in range(T - 1):
            score = self.family.score(state.scale, T - 1 - t)
            released = yield self._score_step(state, whitening, score, t)
            if self.budget.jacobians[t]:
                state, _ = self._measured(model, state, score, released[1], whitening.free)
            curvature = self._expected(model, state, score)
            state = self._stepped(state, whitening, score, released, curvature)
            if self.budget.scales:
                (residuals,) = yield self._scale_step(state, whitening, t)
                state = self._rescaled(state, residuals, t)
        score = self.family.score(state.scale, 0)
        last = yield self._score_step(state, whitening, score, T - 1)
        return self._finished(state, whitening, score, last)

    def _whitened(self) -> Generator[Step, tuple[Released, ...], tuple[Whitening, float, bool]]:
        """The rounds; the number of records in use comes with the first."""
        q, m = self.sizes.size, self.sizes.unit_rows
        count, present = float(self.sizes.n), True
        state = unwhitened(self.coordinates, self.budget.rounds[0][1] * q)
        for k, (rho, factor) in enumerate(self.budget.rounds):
            counted = k == 0 and self.budget.count > 0
            W = on_lattice(state.transform, q)
            state = replace(state, transform=W)
            parts: list[Part] = [GramSum(q, float(np.sqrt(factor * q)), rho, m)]
            if counted:
                parts.append(CountSum(1, self.budget.count, m))
            rows = RowsMap(self.coding, W, factor * q, counted)
            released = yield SumStep(f"whitening {k + 1}", tuple(parts), rows)
            if counted:
                noisy = float(released[1].values[0])
                count = float(np.clip(noisy, _LEAST_SHARE * self.sizes.n, self.sizes.n))
                present = any_present(released[1])
            last = k == len(self.budget.rounds) - 1
            state = whitened(state, released[0], count, factor * q, last=last)
        return replace(state, transform=on_lattice(state.transform, q)), count, present

    def _started(self, whitening: Whitening, count: float, *, present: bool) -> State:
        W, C = whitening.transform, prior(whitening, self.family.offset)
        theta = self.start
        if self.restriction is not None:
            theta, C = self.restriction.started(theta, C, W)
        theta = on_lattice(theta, self.sizes.size)
        return State(theta, C, self.family.start, no_correction(whitening), count, present)

    def _public(self, model: PublicModel, state: State, score: Score) -> FloatArray:
        """J (q, q) that the public rows lead to expect."""
        theta = np.linalg.solve(model.whitening.transform.T, state.theta)
        return model.curvature(score, theta, state.covariance)

    def _expected(self, model: PublicModel, state: State, score: Score) -> Curvature:
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
        known, noise = measured(state.known, back, J, sd, upto)
        return replace(state, known=known), noise

    def _ball(self, state: State, whitening: Whitening, score: Score) -> Ball:
        direction = np.linalg.solve(whitening.transform.T, state.theta)
        return score.ball(direction, float(np.sqrt(self.sizes.radius_squared)))

    def _score_step(self, state: State, whitening: Whitening, score: Score, t: int) -> SumStep:
        q, m, R = self.sizes.size, self.sizes.unit_rows, float(np.sqrt(self.sizes.radius_squared))
        ball = self._ball(state, whitening, score)
        parts: list[Part] = [VectorSum(q, ball.radius, self.budget.gradients[t], m)]
        last = t == self.budget.steps - 1
        if self.budget.jacobians[t]:
            root = R * float(np.sqrt(score.curvature_bound))
            parts.append(GramSum(q, root, self.budget.jacobians[t], m, score.signed))
        if last:
            parts.append(GramSum(q, R * score.bound, self.budget.meat, m))
        point = self._point(state, whitening, score)
        scores = ScoreMap(self.coding, point, ball.shift, self.budget.jacobians[t] > 0, last)
        return SumStep(f"newton step {t + 1}", tuple(parts), scores, self._subset(t))

    def _subset(self, t: int) -> RowSubset | None:
        """The rows that a step (from 0) adds; None for all."""
        return None

    def _point(self, state: State, whitening: Whitening, score: Score) -> Point:
        return Point(state.theta, whitening.transform, self.sizes.radius_squared, score)

    def _gradient(
        self, state: State, whitening: Whitening, score: Score, released: Released
    ) -> tuple[FloatArray, FloatArray]:
        """The mean score g (q,) and its noise's covariance (q, q)."""
        shift = self._ball(state, whitening, score).shift
        g = (released.values - self.sizes.n * shift) / state.count
        return g, (released.sd / state.count) ** 2 * np.eye(len(g))

    def _stepped(
        self,
        state: State,
        whitening: Whitening,
        score: Score,
        released: tuple[Released, ...],
        curvature: Curvature,
        reach: FloatArray | None = None,
    ) -> State:
        g, noise = self._gradient(state, whitening, score, released[0])
        C = state.covariance
        if self.restriction is None:
            C = surprised(C, curvature, noise, g)
        step = moved(C, curvature, noise, reach)
        return replace(
            state,
            theta=self._kept(state.theta + whitening.transform.T @ step.gain @ g),
            covariance=step.covariance,
        )

    def _kept(self, theta: FloatArray) -> FloatArray:
        return on_lattice(np.clip(theta, -_LARGEST_THETA, _LARGEST_THETA), self.sizes.size)

    def _scale_step(self, state: State, whitening: Whitening, t: int) -> SumStep:
        residuals = self.family.residuals
        if residuals is None:
            raise ValueError("a family without a scale has no budget for it")
        part = residuals.part(self.budget.scales[t], self.sizes.unit_rows)
        score = self.family.score(state.scale, self.budget.steps - 1 - t)
        measured = ResidualMap(self.coding, self._point(state, whitening, score), residuals)
        return SumStep(f"residual scale {t + 1}", (part,), measured, self._subset(t))

    def _rescaled(self, state: State, released: Released, t: int) -> State:
        residuals = self.family.residuals
        score = self.family.score(state.scale, self.budget.steps - 1 - t)
        scale = score.scale if residuals is None else residuals.scale(score, released, state.count)
        return replace(state, scale=scale)

    def _finished(
        self, state: State, whitening: Whitening, score: Score, released: tuple[Released, ...]
    ) -> StandardFit:
        """The last step, with the released Jacobian and the sandwich."""
        model = PublicModel(whitening, self.sizes.radius_squared)
        back = power(self._public(model, state, score), 0.5)
        jacobian, meat = (r.values / state.count for r in released[1:])
        state, noise = self._measured(model, state, score, released[1])
        curvature = self._expected(model, state, score)
        reach = None if self.restriction is None else prior(whitening, self.family.offset) + state.covariance
        after = self._stepped(state, whitening, score, released, curvature, reach)
        W, A = whitening.transform, np.linalg.inv(curvature.H)
        theta = np.linalg.solve(W.T, state.theta)
        Q = calmed_meat(meat, released[2].sd / state.count, model.meat(score, theta))
        sampling = sandwich(A, Q, state.count)
        return StandardFit(
            theta=after.theta,
            sampling=np.asarray(W.T @ sampling @ W),
            privacy=np.asarray(W.T @ after.covariance @ W),
            scale=state.scale,
            directions=fit_directions(
                whitening,
                back,
                jacobian,
                noise,
                after.covariance + sampling,
                state.count / self.sizes.radius_squared,
                present=state.present,
            ),
            count=state.count,
            information=_symmetric(np.linalg.solve(W, np.linalg.solve(W, curvature.J).T)),
            inverse=np.asarray(W.T @ np.linalg.inv(curvature.J) @ W),
            transform=W,
        )


def _symmetric(M: FloatArray) -> FloatArray:
    return np.asarray((M + M.T) / 2)
