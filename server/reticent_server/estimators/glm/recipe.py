"""Noisy Fisher scoring for a generalised linear model: a generator that sees released values only.

1. Step t = 1..T: gradient and information at (θ, s) with v = m W x̃; θ ← θ + unit·WᵀJ⁻¹g. The
   binomial's gradient is released in a ball of its own (centre).
2. Earlier releases predict the information at θ (prediction), which whitens the step: W = (P/k₀)^(−1/2)
   on the white block, k₀ its size there; the release corrects the prediction.
3. Families with a scale: after each step but the last, s from the mean square of cut residuals.
4. The last step also releases the meat Q; θ = (1 − f)θ_T + fθ_{T−1} by inverse variance. The Gamma's is
   joint in ln s.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step, SumStep
from reticent_server.estimators.glm.centre import Ball, gradient_ball
from reticent_server.estimators.glm.curvature import (
    corrected,
    correction,
    first_information,
    later_information,
)
from reticent_server.estimators.glm.dispersion import bounded_log_scale, chi_score, joint_step
from reticent_server.estimators.glm.maps import GlmPoint, GlmScoreMap, SquareMap
from reticent_server.estimators.glm.prediction import PublicDesign, public_design
from reticent_server.estimators.glm.score import QuasiScore
from reticent_server.estimators.glm.settings import COUNTS, LEVERAGE_CAP, SCALE_CUT, GlmSettings
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.covariance import (
    StepRecord,
    privacy_covariance,
    sampling_covariance,
)
from reticent_server.estimators.newton.estimable import Directions, any_present, fit_directions
from reticent_server.estimators.newton.jacobian import whitening
from reticent_server.estimators.newton.maps import on_lattice
from reticent_server.estimators.newton.restriction import Restriction, restricted_move
from reticent_server.estimators.newton.settings import Dimensions
from reticent_server.numerics.glm_robust import estimated_dispersion
from reticent_server.numerics.matrices import psd_part

_LEAST_SHARE = 0.02
_LARGEST_THETA = 2.0**10
_LONGEST_STEP = 3.0
_SCALE_STEP, _LEAST_SCALE, _LARGEST_SCALE = 4.0, 0.02, 1.5


@dataclass(frozen=True, slots=True, eq=False)
class GlmFitted:
    """The released fit in standardised units and internal order.

    theta (q,); sampling and privacy covariances (q, q); scale s; directions as in
    estimators.newton.estimable; count: records in use, as released; records: the steps.
    """

    theta: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    scale: float
    directions: Directions
    count: float
    records: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GlmState:
    """Where the fit stands, all released: θ, s, records in use (present: whether there are any).

    design: public rows with the released second moments. correction: E, of the prediction. k0: size
    of the information where v has second moment κI. error: τ, of the prediction (curvature).
    """

    theta: FloatArray
    scale: float
    k0: float
    count: float
    correction: FloatArray
    design: PublicDesign | None = None
    error: float = 1.0
    present: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Of one step: P without the correction (base) and with it (in x̃), k₀, and W (q, q)."""

    base: FloatArray
    P: FloatArray
    k0: float
    W: FloatArray


Fitting = Generator[Step, tuple[Released, ...], GlmFitted]


@dataclass(frozen=True, slots=True, eq=False)
class GlmNewton:
    """A planned fit of a public standardised design, from the public start η₀ and scale s₀.

    restriction: for score tests.
    """

    coding: Coding
    settings: GlmSettings
    sizes: Dimensions
    start: float = 0.0
    scale: float = 1.0
    restriction: Restriction | None = None

    def fit(self) -> Fitting:
        """Runs the recipe."""
        state = self._first_state()
        records, path, errors = [], [], []
        for t in range(self.settings.steps):
            score = self._score(state, t)
            expected = self._predicted(state, score)
            ball = gradient_ball(score, state.theta, expected.W, sqrt(self.sizes.radius_squared))
            released = yield self._score_step(state, score, expected.W, ball, t)
            released = self._moved_back(released, ball)
            state = self._counted(state, released, t)
            record, error = self._record(state, score, released, expected, t)
            restriction = None if self._is_last(t) else self.restriction
            state = self._moved(state, record, error, expected, restriction)
            records.append(record)
            errors.append(error)
            path.append(state.theta)
            if t in self._scale_passes:
                (square,) = yield self._scale_step(state, t)
                state = self._rescaled(state, square)
        meat = released[2].values / state.count
        steps = Steps(tuple(records), tuple(path), tuple(errors))
        if self._joint:
            return self._joint_finish(steps, meat, released[3], state)
        return self._finished(steps, meat, released[2].sd / state.count, state)

    @property
    def _joint(self) -> bool:
        """Whether the last step is joint in the scale (dispersion)."""
        return self.settings.family == "gamma" and self.coding.design.intercept

    @property
    def _scale_passes(self) -> range:
        """The steps (from 0) after which the scale is released in a pass of its own."""
        passes = len(self.settings.scales)
        return range(passes - 1 if passes and self._joint else passes)

    def _is_last(self, t: int) -> bool:
        return t == self.settings.steps - 1

    def _first_state(self) -> GlmState:
        information = self.settings.mean_information(self._score_at_start())
        k0 = self.settings.moments.norm * information
        q, n = self.sizes.size, float(self.sizes.n)
        return GlmState(self.first_theta(), self.scale, k0, n, np.eye(q))

    def first_theta(self) -> FloatArray:
        """θ₀ (q,): η₀ at the intercept."""
        theta = np.zeros(self.sizes.size)
        if self.coding.design.intercept:
            theta[0] = self.start
        return theta

    def _score_at_start(self) -> QuasiScore:
        """At θ₀ every record has the same η."""
        score = self.settings.score(self.scale, self.start)
        eta = self.start if self.coding.design.intercept else 0.0
        return replace(score, limits=(eta, eta))

    def _score(self, state: GlmState, t: int) -> QuasiScore:
        if t == 0:
            return self._score_at_start()
        free = self.settings.overdispersed or t < self.settings.steps - 2
        return self.settings.score(state.scale if free else 1.0, self.start)

    def _predicted(self, state: GlmState, score: QuasiScore) -> Prediction:
        """At the first step nothing is known, and W = I."""
        q = self.sizes.size
        if state.design is None:
            return Prediction(np.eye(q), state.k0 * np.eye(q), state.k0, np.eye(q))
        base = state.design.settled(state.theta, score, state.k0)
        P = corrected(base, state.correction)
        k0 = self.size_of(P)
        return Prediction(base, P, k0, whitening(P / k0, self.sizes.white_size))

    def _score_step(
        self, state: GlmState, score: QuasiScore, W: FloatArray, ball: Ball, t: int
    ) -> SumStep:
        last = self._is_last(t)
        count = self.settings.count_at(t) > 0
        point = self._point(state, score, W)
        chi = chi_score(state.scale, SCALE_CUT) if last and self._joint else None
        score_map = GlmScoreMap(self.coding, point, ball.shift, meat=last, chi=chi, count=count)
        parts = self.settings.score_parts(t, self.sizes, score, ball.radius, chi)
        return SumStep(f"scoring step {t + 1}", parts, score_map, self.settings.subset(t))

    def _rows(self, t: int) -> float:
        """How many rows a step adds, on average: public."""
        subset = self.settings.subset(t)
        return self.sizes.n if subset is None else self.sizes.n / subset.stride

    def _moved_back(self, released: Sequence[Released], ball: Ball) -> tuple[Released, ...]:
        """The gradient without the shift of all records that were added."""
        gradient, *others = released
        rows = self.sizes.n if gradient.rows is None else gradient.rows
        values = gradient.values - rows * ball.shift
        return replace(gradient, values=values), *others

    def _scale_step(self, state: GlmState, t: int) -> SumStep:
        score = self.settings.score(state.scale, self.start)
        point = self._point(state, score, np.eye(self.sizes.size))
        part = self.settings.scale_part(t, self.sizes)
        return SumStep(f"scale {t + 1}", (part,), SquareMap(self.coding, point, SCALE_CUT))

    def _point(self, state: GlmState, score: QuasiScore, W: FloatArray) -> GlmPoint:
        white = self.sizes.white_size
        return GlmPoint(state.theta, W[:white, :white], score, self.cap)

    @property
    def cap(self) -> float:
        """The bound of m², where m varies and there are rare dummies."""
        capped = self.settings.family in COUNTS and bool(self.coding.rare)
        return LEVERAGE_CAP if capped else inf

    def _counted(self, state: GlmState, released: Sequence[Released], t: int) -> GlmState:
        if not self.settings.count_at(t):
            return state
        n = self.sizes.n
        found = released[-1].values[0] * n / self._rows(t)
        count = float(np.clip(found, _LEAST_SHARE * n, n))
        return replace(state, count=count, present=any_present(released[-1]))

    def _record(
        self,
        state: GlmState,
        score: QuasiScore,
        released: Sequence[Released],
        expected: Prediction,
        t: int,
    ) -> tuple[StepRecord, float]:
        """What the step released and made of it, and the relative error of its usable matrix."""
        gradient, information = released[0], released[1]
        added = state.count * self._rows(t) / self.sizes.n
        J, sd, k0 = information.values / added, information.sd / added, expected.k0
        made = (
            first_information(J, sd, k0)
            if state.design is None
            else later_information(J, sd, k0, expected.P, expected.W, state.error)
        )
        record = StepRecord(
            scale=score.unit,
            gradient=gradient.values / added,
            gradient_noise=gradient.sd / added,
            k0=k0,
            curvature=made.curvature,
            prior_noise=0.0,
        )
        return record, made.error

    def _moved(
        self,
        state: GlmState,
        record: StepRecord,
        error: float,
        expected: Prediction,
        restriction: Restriction | None,
    ) -> GlmState:
        usable, k0 = record.k0 * record.curvature.M, record.k0
        theta = on_lattice(state.theta, len(state.theta))
        theta = theta + shortened(restricted_move(restriction, record, theta), usable / k0)
        theta = np.clip(theta, -_LARGEST_THETA, _LARGEST_THETA)
        if state.design is None:
            design = public_design(self.coding, usable / k0, self.cap)
            return replace(state, theta=theta, design=design, error=error)
        E = correction(usable, expected.base)
        k0 = self.size_of(usable)
        return replace(state, theta=theta, correction=E, k0=k0, error=error)

    def size_of(self, P: FloatArray) -> float:
        """k₀ of an information matrix P (in x̃): what it is where v has second moment κI.

        The binomial's mean information is read off the intercept's element (E w h); the others' is
        known.
        """
        moments, settings = self.settings.moments, self.settings
        if settings.family != "binomial":
            return moments.norm * settings.mean_information(self._score_at_start())
        top = 0.25 * moments.norm
        if not self.coding.design.intercept:
            return float(np.clip(np.trace(P) / max(len(P), 1), 0.02 * top, top))
        return float(np.clip(P[0, 0] * moments.norm / moments.weight, 0.02 * top, top))

    def _rescaled(self, state: GlmState, square: Released) -> GlmState:
        """s at which the cut residuals have the mean square that was released."""
        score = self.settings.score(state.scale, self.start)
        largest = SCALE_CUT**2
        mean = float(np.clip(square.values[0] / state.count, 1e-4 * largest, 0.98 * largest))
        law = score.law
        s = sqrt(estimated_dispersion(law, mean, SCALE_CUT) / law.dispersion) * state.scale
        s = float(np.clip(s, state.scale / _SCALE_STEP, state.scale * _SCALE_STEP))
        return replace(state, scale=self.bounded_scale(s))

    def bounded_scale(self, s: float) -> float:
        """Within public bounds around the start: a wrong model could send s to infinity."""
        least = 1.0 if self.settings.family == "poisson" else self.scale * _LEAST_SCALE
        return min(max(s, least), max(self.scale * _LARGEST_SCALE, least))

    def _finished(
        self, steps: "Steps", meat: FloatArray, meat_noise: float, state: GlmState
    ) -> GlmFitted:
        """Averages the last two points by the inverse of their privacy noise, f ≤ ½."""
        last, before = steps.usable(-1), steps.usable(-2)
        noise = [float(np.trace(privacy_covariance([s], [1.0]))) for s in (before, last)]
        f = min(0.5, noise[1] / (noise[0] + noise[1])) if self.restriction is None else 0.0
        return GlmFitted(
            theta=(1 - f) * steps.path[-1] + f * steps.path[-2],
            sampling=sampling_covariance(last, meat, state.count, meat_noise),
            privacy=privacy_covariance([before, last], [f, 1 - f]),
            scale=state.scale,
            directions=fit_directions(steps.records, present=state.present),
            count=state.count,
            records=steps.records,
        )

    def _joint_finish(
        self, steps: "Steps", meat: FloatArray, chi: Released, state: GlmState
    ) -> GlmFitted:
        """The last step solved jointly in θ and ln s; no averaging, as θ_{T−1} had another scale."""
        last, s = steps.usable(-1), state.scale
        curvature = last.curvature
        step = joint_step(curvature.J, curvature.transform, s, self.settings.c, SCALE_CUT)
        measured = np.append(last.gradient, chi.values[0] / state.count)
        sds = np.append(np.full(self.sizes.size, last.gradient_noise), chi.sd / state.count)
        noisy = step.gain * sds
        rest = privacy_covariance([replace(last, gradient_noise=0.0)], [1.0])
        start = on_lattice(steps.path[-2], self.sizes.size)
        move = shortened(step.gain @ measured, curvature.M)
        return GlmFitted(
            theta=np.clip(start + move, -_LARGEST_THETA, _LARGEST_THETA),
            sampling=np.asarray(step.gain @ psd_part(meat) @ step.gain.T / state.count),
            privacy=np.asarray(noisy @ noisy.T + rest),
            scale=s * bounded_log_scale(float(step.log_scale @ measured)),
            directions=fit_directions(steps.records, present=state.present),
            count=state.count,
            records=steps.records,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """All steps: what was released, the points after them, relative errors of the information."""

    records: tuple[StepRecord, ...]
    path: tuple[FloatArray, ...]
    errors: tuple[float, ...]

    def usable(self, t: int) -> StepRecord:
        """A step with the error of its usable information in place of the release's noise.

        That error moves θ in proportion to the way that was left, d = J⁻¹g less its own noise: what
        the noise of g does under the wrong J is counted in full by the gain itself.
        """
        record = self.records[t]
        way = record.curvature.solve(record.gradient)
        inverse = np.linalg.inv(record.curvature.J)
        own = record.gradient_noise**2 * float(np.sum(inverse**2))
        left = sqrt(max(0.0, 1 - own / max(float(way @ way), 1e-300)))
        noise = self.errors[t] * record.k0 * left
        return replace(record, curvature=replace(record.curvature, noise=noise))


def shortened(move: FloatArray, M: FloatArray) -> FloatArray:
    """The step, shortened where it would change a typical record's η by more than 3 (√(dᵀMd))."""
    length = sqrt(max(float(move @ M @ move), 0.0))
    return move * min(1.0, _LONGEST_STEP / max(length, 1e-300))
