# SPDX-License-Identifier: Apache-2.0
"""The recipe of noisy gradient descent: a generator of steps that sees released values only.

1. Rounds of Gram matrices whiten the coordinates, as for noisy Newton (fitting.rounds).
2. T times: the mean score g at (θ, s); θ ← θ + sγWᵀg, γ = 1/(1.2 λ_max) of the curvature that the
   public rows lead to expect of a settled fit. After a few of the steps s is measured again.
3. θ̄ is the mean of the last points of the path. There the Jacobian J and the meat Q are released.

Each step is e ← (I − γJ)e + s_tγ ξ_t near the solution, ξ_t the gradient's noise, so with m points
from t₀ on the mean has the noise (γ/m) Σ_t s_t A_t ξ_t, A_t = Σ_{k ≥ max(t₀, t)} (I − γJ)^(k−t).
Sampling: s²J⁻¹(Q/n)J⁻¹. The start still weighs A = (1/m) Σ_{t > t₀} (I − γJ)^t, so its covariance
C₀ (fitting.filter.prior) adds AC₀A: a direction that has not converged has a standard error that
says so.

Source: Bassily, Smith & Thakurta (2014); Avella-Medina, Bradshaw & Loh (2023), noisy gradient
descent.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import (
    CountSum,
    FloatArray,
    GramSum,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import (
    corrected_curvature,
    measured,
    no_correction,
    prior,
)
from reticent_server.fitting.huber import LinearFamily
from reticent_server.fitting.identifiability import fit_directions
from reticent_server.fitting.maps import FitState, ResidualMap, ScoreMap, on_lattice
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.rounds import whitening_rounds
from reticent_server.fitting.score import Score
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.whitening import Whitening
from reticent_server.kinds.linear_regression.gradient_descent.maps import CurvatureMap
from reticent_server.numerics.matrices import eigen, power

# T, and the first point of the mean: more steps converge further and divide ρ; a longer mean has
# less noise
STEPS, AVERAGED_FROM = 20, 8
# steps after which s is measured: often while it shrinks, not once it has settled
SCALES_AFTER = (2, 4, 7, 10)
# on λ_max of an expected curvature: a step above 2/λ_max diverges, and smaller ones converge more
# slowly
_CAUTION = 1.2
# in standardised units: keeps a path that noise has thrown off within the floats
_LARGEST_THETA = 2.0**20

Fitting = Generator[Step, tuple[Released, ...], StandardFit]


@dataclass(frozen=True, slots=True)
class DescentBudget:
    """ρ (RHO_UNITS) of each release: rounds (ρ, squared radius), one of the T gradients, one of the
    scales, the Jacobian and the meat at the end, the count of a masked design."""

    rounds: tuple[tuple[int, float], ...]
    gradient: int
    scale: int
    jacobian: int
    meat: int
    count: int

    @property
    def rho(self) -> int:
        """The ρ of all rounds and steps together, in RHO_UNITS."""
        once = sum(rho for rho, _ in self.rounds) + self.jacobian + self.meat + self.count
        return once + STEPS * self.gradient + len(SCALES_AFTER) * self.scale

    def counts(self, unit_rows: int) -> tuple[CountSum, ...]:
        """The parts that are counts: of the records in use, and of residuals."""
        amounts = (self.count, *(self.scale for _ in SCALES_AFTER))
        return tuple(CountSum(1, rho, unit_rows) for rho in amounts if rho)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """θ of x̃ (q,), s, γ: released or public."""

    theta: FloatArray
    scale: float
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """A planned descent of a public standardised design. start: θ before any release (q,)."""

    coding: Coding
    coordinates: Coordinates
    family: LinearFamily
    budget: DescentBudget
    sizes: Sizes
    start: FloatArray

    def fit(self) -> Fitting:
        """Runs the recipe."""
        whitening, count, present = yield from whitening_rounds(
            self.coding, self.coordinates, self.budget.rounds, self.budget.count, self.sizes
        )
        model = PublicModel(whitening, self.sizes.radius_squared)
        state = self._started(model)
        path, noises = [], []
        for t in range(STEPS):
            (gradient,) = yield self._gradient_step(state, whitening, t)
            noises.append(state.scale * gradient.sd / count)
            state = self._moved(state, whitening, gradient.values / count)
            path.append(state.theta)
            if t + 1 in SCALES_AFTER and self.family.residuals is not None:
                (residuals,) = yield self._scale_step(state, whitening, t)
                s = self.family.residuals.scale(self._score(state), residuals, count)
                state = replace(state, scale=s)
        theta = on_lattice(np.mean(path[AVERAGED_FROM:], axis=0), self.sizes.size)
        state = replace(state, theta=theta)
        released = yield self._last_step(state, whitening)
        return self._finished(model, state, released, np.array(noises), count, present=present)

    def _score(self, state: _State) -> Score:
        return self.family.score(state.scale, STEPS)

    def _started(self, model: PublicModel) -> _State:
        """γ from the curvature of a settled fit."""
        state = _State(on_lattice(self.start, self.sizes.size), self.family.start, 0.0)
        nowhere = np.zeros((self.sizes.size, self.sizes.size))
        J = model.curvature(self._score(state), self._direction(model, state), nowhere)
        return replace(state, rate=1 / (_CAUTION * float(eigen(J)[0][-1])))

    def _direction(self, model: PublicModel, state: _State) -> FloatArray:
        return model.whitening.inside(state.theta)

    def _moved(self, state: _State, whitening: Whitening, g: FloatArray) -> _State:
        theta = state.theta + state.scale * state.rate * whitening.transform.T @ g
        kept = on_lattice(np.clip(theta, -_LARGEST_THETA, _LARGEST_THETA), self.sizes.size)
        return replace(state, theta=kept)

    def _point(self, state: _State, whitening: Whitening) -> FitState:
        radius_squared, score = self.sizes.radius_squared, self._score(state)
        return FitState(state.theta, whitening.transform, radius_squared, score)

    def _gradient_step(self, state: _State, whitening: Whitening, t: int) -> SumStep:
        q, m, R = self.sizes.size, self.sizes.unit_rows, sqrt(self.sizes.radius_squared)
        part = VectorSum(q, R * self._score(state).bound, self.budget.gradient, m)
        scores = ScoreMap(self.coding, self._point(state, whitening), np.zeros(q))
        return SumStep(f"gradient {t + 1}", (part,), scores)

    def _scale_step(self, state: _State, whitening: Whitening, t: int) -> SumStep:
        residuals = self.family.residuals
        if residuals is None:
            raise ValueError("a family without a scale has no budget for it")
        part = residuals.part(self.budget.scale, self.sizes.unit_rows)
        measure = ResidualMap(self.coding, self._point(state, whitening), residuals)
        return SumStep(f"residual scale {t + 1}", (part,), measure)

    def _last_step(self, state: _State, whitening: Whitening) -> SumStep:
        q, m, R = self.sizes.size, self.sizes.unit_rows, sqrt(self.sizes.radius_squared)
        parts = (
            GramSum(q, R, self.budget.jacobian, m),
            GramSum(q, R * self._score(state).bound, self.budget.meat, m),
        )
        point = self._point(state, whitening)
        scores = ScoreMap(self.coding, point, np.zeros(q), curvature=True, meat=True)
        return SumStep("last curvature", parts, CurvatureMap(scores))

    def _finished(
        self,
        model: PublicModel,
        state: _State,
        released: tuple[Released, ...],
        noises: FloatArray,
        count: float,
        *,
        present: bool,
    ) -> StandardFit:
        """noises: (T,) standard deviations of s_t times the mean scores."""
        whitening, score, theta = model.whitening, self._score(state), self._direction(model, state)
        J = model.curvature(score, theta, np.zeros((self.sizes.size, self.sizes.size)))
        back, (jacobian, meat) = power(J, 0.5), released
        released_J, sd = jacobian.values / count, jacobian.sd / count
        known, noise = measured(no_correction(whitening, self.family.shape), back, released_J, sd)
        curvature = corrected_curvature(J, score.unit, known)
        Q = calmed_meat(meat.values / count, meat.sd / count, model.meat(score, theta))
        sampling = sandwich(np.asarray(np.linalg.inv(curvature.H)), Q, count)
        privacy = self._noise(curvature.J, state.rate, noises)
        left = self._left(curvature.J, state.rate)
        privacy = privacy + left @ prior(whitening, self.family.offset) @ left
        W, records = (
            whitening.transform,
            count / (self.sizes.radius_squared * score.most),
        )
        directions = fit_directions(
            whitening, back, released_J, noise, privacy + sampling, records, present=present
        )
        return StandardFit(
            theta=state.theta,
            sampling=np.asarray(W.T @ sampling @ W),
            privacy=np.asarray(W.T @ privacy @ W),
            scale=state.scale,
            directions=directions,
            count=count,
            information=np.asarray(np.linalg.solve(W, np.linalg.solve(W, curvature.J).T)),
            inverse=np.asarray(W.T @ np.linalg.inv(curvature.J) @ W),
            transform=W,
        )

    def _left(self, J: FloatArray, rate: float) -> FloatArray:
        """A (q, q): what the start still weighs in θ̄."""
        values, vectors = eigen(J)
        powers = np.arange(AVERAGED_FROM + 1, STEPS + 1)
        left = (np.abs(1 - rate * values)[:, None] ** powers).mean(axis=1)
        return np.asarray((vectors * left) @ vectors.T)

    def _noise(self, J: FloatArray, rate: float, noises: FloatArray) -> FloatArray:
        """(q, q) covariance of the gradients' noise in θ̄."""
        values, vectors = eigen(J)
        keep, total = 1 - rate * values, np.zeros(len(values))
        for t, noise in enumerate(noises):
            powers = np.arange(max(AVERAGED_FROM, t) - t, STEPS - t)
            total += (rate * noise * (keep[:, None] ** powers).sum(axis=1)) ** 2
        return np.asarray((vectors * total) @ vectors.T / (STEPS - AVERAGED_FROM) ** 2)
