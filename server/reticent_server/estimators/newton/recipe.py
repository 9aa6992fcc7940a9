"""The noisy Newton recipe: a generator of steps that sees released values only.

1. Step t = 1..T: gradient and Jacobian at (θ, s) with u = Wx̃; θ ← θ + sWᵀJ⁻¹g.
2. The Jacobian whitens the next step: W = M^(−1/2), M refreshed while its noise is small.
3. After each step but the last, s ← s·median|r|/(.6745 s) from a noisy histogram.
4. The last step also releases the meat Q; θ = (1 − f)θ_T + fθ_{T−1} by inverse variance.

Where the plan says so, all steps but the last two add a random part of the rows (early_rows).
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step, SumStep
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.covariance import (
    StepRecord,
    privacy_covariance,
    sampling_covariance,
)
from reticent_server.estimators.newton.estimable import Directions, any_present, fit_directions
from reticent_server.estimators.newton.jacobian import (
    Curvature,
    first_curvature,
    later_curvature,
    refreshed,
    whitening,
)
from reticent_server.estimators.newton.maps import Point, ScaleMap, ScoreMap, on_lattice
from reticent_server.estimators.newton.restriction import Restriction, restricted_move
from reticent_server.estimators.newton.settings import Dimensions, Settings
from reticent_server.numerics.mallows import WHITENING_GUARD
from reticent_server.numerics.scale_histogram import median_ratio

_LEAST_SHARE = 0.02
_LARGEST_THETA = 2.0**20


@dataclass(frozen=True, slots=True, eq=False)
class StandardFit:
    """The released fit in standardised units and internal order.

    theta (q,); sampling and privacy covariances (q, q); scale; directions: which the releases can tell
    from none; count: records in use, as released; records: the steps.
    """

    theta: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    scale: float
    directions: Directions
    count: float
    records: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where the fit stands, all released: θ, s, M with its guard and noise sd_M, records in use.

    present: whether their number says that there are any.
    """

    theta: FloatArray
    scale: float
    M: FloatArray
    guard: FloatArray
    count: float
    prior_noise: float = 0.0
    present: bool = True


Fitting = Generator[Step, tuple[Released, ...], StandardFit]


@dataclass(frozen=True, slots=True, eq=False)
class Newton:
    """A planned fit of a public standardised design; restriction: for score tests."""

    coding: Coding
    settings: Settings
    sizes: Dimensions
    restriction: Restriction | None = None

    def fit(self) -> Fitting:
        """Runs the recipe from θ = 0, s = 1."""
        q = self.sizes.size
        state = State(np.zeros(q), 1.0, np.eye(q), np.eye(q), float(self.sizes.n))
        records, path = [], []
        for t in range(self.settings.steps):
            W = whitening(state.M, self.sizes.white_size) if t else np.eye(q)
            released = yield self._score_step(state, W, t)
            state = self._counted(state, released, t)
            record = self._record(state, released, W, t)
            state = self._moved(state, record, t)
            records.append(record)
            path.append(state.theta)
            if t < self.settings.steps - 1:
                (histogram,) = yield self._scale_step(state, t)
                ratio = median_ratio(histogram.values, self._added(state, t))
                state = replace(state, scale=state.scale * ratio)
        return self._finished(records, path, released[2], state)

    def _is_last(self, t: int) -> bool:
        return t == self.settings.steps - 1

    def _score_step(self, state: State, W: FloatArray, t: int) -> SumStep:
        white = W[: self.sizes.white_size, : self.sizes.white_size]
        score = ScoreMap(
            coding=self.coding,
            point=Point(state.theta, state.scale, white),
            family=self.settings.family_at(t),
            reweighted=self.settings.reweighted(t),
            meat=self._is_last(t),
            count=self.settings.count_at(t) > 0,
        )
        parts = self.settings.score_parts(t, self.sizes)
        return SumStep(f"newton step {t + 1}", parts, score, self.settings.subset(t))

    def _scale_step(self, state: State, t: int) -> SumStep:
        point = Point(state.theta, state.scale, np.eye(self.sizes.white_size))
        part = self.settings.scale_part(t, self.sizes)
        scale = ScaleMap(self.coding, point)
        return SumStep(f"residual scale {t + 1}", (part,), scale, self.settings.subset(t))

    def _share(self, t: int) -> float:
        """The share of the rows that a step adds, on average: public."""
        subset = self.settings.subset(t)
        return 1.0 if subset is None else 1 / subset.stride

    def _added(self, state: State, t: int) -> float:
        """The records in use that a step adds."""
        return state.count * self._share(t)

    def _counted(self, state: State, released: Sequence[Released], t: int) -> State:
        """Takes the number of records in use from the steps of a masked design that release it."""
        if not self.settings.count_at(t):
            return state
        n, found, share = self.sizes.n, released[2], self._share(t)
        count = float(np.clip(found.values[0] / share, _LEAST_SHARE * n, n))
        return replace(state, count=count, present=any_present(found))

    def _record(
        self, state: State, released: Sequence[Released], W: FloatArray, t: int
    ) -> StepRecord:
        gradient, jacobian, added = released[0], released[1], self._added(state, t)
        return StepRecord(
            scale=state.scale,
            gradient=gradient.values / added,
            gradient_noise=gradient.sd / added,
            k0=self.settings.curvature_norm(t),
            curvature=self._curvature(state, jacobian, W, t),
            prior_noise=state.prior_noise,
        )

    def _curvature(self, state: State, jacobian: Released, W: FloatArray, t: int) -> Curvature:
        unit = self.settings.relaxation(t) / self._added(state, t)
        J, sd = unit * jacobian.values, unit * jacobian.sd
        k0 = self.settings.curvature_norm(t)
        return later_curvature(J, sd, k0, state.M, W) if t else first_curvature(J, sd, k0)

    def _moved(self, state: State, record: StepRecord, t: int) -> State:
        start = on_lattice(state.theta, len(state.theta))
        theta = start + restricted_move(
            None if self._is_last(t) else self.restriction, record, start
        )
        theta = np.clip(theta, -_LARGEST_THETA, _LARGEST_THETA)
        curvature = record.curvature
        if t == 0:
            noise = curvature.noise / record.k0
            guard = WHITENING_GUARD * curvature.M
            return replace(state, theta=theta, M=curvature.M, guard=guard, prior_noise=noise)
        return replace(state, theta=theta, M=refreshed(curvature, state.M, state.guard))

    def _finished(
        self,
        records: Sequence[StepRecord],
        path: Sequence[FloatArray],
        meat: Released,
        state: State,
    ) -> StandardFit:
        """Averages the last two points by the inverse of their privacy noise, f ≤ ½, for T ≥ 3."""
        last, before = records[-1], records[-2]
        noise = [float(np.trace(privacy_covariance([s], [1.0]))) for s in (before, last)]
        averaged = self.settings.averaged and self.restriction is None
        f = min(0.5, noise[1] / (noise[0] + noise[1])) if averaged else 0.0
        return StandardFit(
            theta=(1 - f) * path[-1] + f * path[-2],
            sampling=sampling_covariance(
                last, meat.values / state.count, state.count, meat.sd / state.count
            ),
            privacy=privacy_covariance([before, last], [f, 1 - f]),
            scale=state.scale,
            directions=fit_directions(records, present=state.present),
            count=state.count,
            records=tuple(records),
        )
