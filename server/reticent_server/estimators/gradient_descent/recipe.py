"""The recipe of noisy gradient descent: a generator of steps that sees released values only.

1. The Jacobian J₀ at θ = 0, s = 1 fixes the step: γ = 1/(1.2 λ_max(J₀)).
2. T times: the mean clipped score g at (θ, s); θ ← θ + s γ g. After a few of the steps s is estimated
   again from a noisy histogram.
3. θ̄ is the mean of the last third of the path. At θ̄ the Jacobian J and the meat Q are released.

Each step is e ← (I − γJ)e + s_tγ ξ_t near the solution, ξ_t the gradient's noise, so with m points from
t₀ on the mean has the noise (γ/m) Σ_t s_t A_t ξ_t, A_t = Σ_{k ≥ max(t₀, t)} (I − γJ)^(k−t).
Sampling: s² J⁻¹(Q/n)J⁻¹. Bias: the start, θ = 0, still weighs A = (1/m) Σ_{t > t₀} (I − γJ)^t, so θ̄ ≈ (I − A)θ* and
b = A(I − A)⁻¹θ̄ ≈ θ* − θ̄; the covariance counts b bᵀ. A direction in which less than e⁻¹ of the start is forgotten, or which J cannot
tell from noise, is not resolved (eigenvalues of J count less half of its noise's operator norm, so that
standard errors err on the large side); a coefficient that lies mostly in such is not estimable.

Source: Bassily, Smith & Thakurta (2014); Avella-Medina, Bradshaw & Loh (2023), noisy gradient descent.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step, SumStep
from reticent_server.estimators.gradient_descent.maps import CurvatureMap, GradientMap
from reticent_server.estimators.gradient_descent.settings import Settings
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.estimable import Directions
from reticent_server.estimators.newton.maps import Point, ScaleMap
from reticent_server.estimators.newton.recipe import StandardFit
from reticent_server.estimators.newton.settings import Dimensions
from reticent_server.numerics.matrices import eigen, psd_part
from reticent_server.numerics.scale_histogram import median_ratio

_CAUTION = 1.2
_LEAST_SHARE = 0.02
_FORGOTTEN = np.exp(-1.0)
_LEAST_CURVATURE = 1e-6
_LARGEST_THETA = 2.0**20
_LARGEST_BIAS = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Descended:
    """The fit, whose sampling covariance holds b bᵀ, and converged: whether b hardly matters in it."""

    fit: StandardFit
    converged: bool


Fitting = Generator[Step, tuple[Released, ...], Descended]


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where the descent stands, all released: θ, s, γ, and the records in use."""

    theta: FloatArray
    scale: float
    rate: float
    count: float


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """A planned descent on a public standardised design."""

    coding: Coding
    settings: Settings
    sizes: Dimensions

    def fit(self) -> Fitting:
        """Runs the recipe from θ = 0, s = 1."""
        state = self._started((yield self._first_step()))
        path, scales = [], []
        for t in range(self.settings.steps):
            scales.append(state.scale)
            (gradient,) = yield self._gradient_step(state, t)
            move = state.scale * state.rate * gradient.values / state.count
            theta = np.clip(state.theta + move, -_LARGEST_THETA, _LARGEST_THETA)
            state = replace(state, theta=theta)
            path.append(theta)
            if t + 1 in self.settings.scales_after:
                (histogram,) = yield self._scale_step(state, t)
                ratio = median_ratio(histogram.values, state.count)
                state = replace(state, scale=state.scale * ratio)
        mean = np.mean(path[self.settings.averaged_from :], axis=0)
        state = replace(state, theta=np.asarray(mean))
        jacobian, meat = yield self._last_step(state)
        return self._finished(state, jacobian, meat, gradient.sd * np.array(scales))

    def _point(self, state: State) -> Point:
        return Point(state.theta, state.scale, np.eye(self.sizes.white_size))

    def _first_step(self) -> SumStep:
        start = State(np.zeros(self.sizes.size), 1.0, 0.0, float(self.sizes.n))
        curvature = CurvatureMap(
            self.coding,
            self._point(start),
            self.settings.c,
            reweighted=True,
            count=self.settings.count > 0,
        )
        return SumStep("first curvature", self.settings.first_parts(self.sizes), curvature)

    def _started(self, released: tuple[Released, ...]) -> State:
        n = float(self.sizes.n)
        noisy = float(released[1].values[0]) if len(released) > 1 else n
        count = float(np.clip(noisy, _LEAST_SHARE * n, n))
        largest = float(eigen(released[0].values)[0][-1]) / count
        rate = 1 / (_CAUTION * max(largest, _LEAST_SHARE))
        return State(np.zeros(self.sizes.size), 1.0, rate, count)

    def _gradient_step(self, state: State, t: int) -> SumStep:
        gradient = GradientMap(self.coding, self._point(state), self.settings.c)
        return SumStep(f"gradient {t + 1}", (self.settings.gradient_part(self.sizes),), gradient)

    def _scale_step(self, state: State, t: int) -> SumStep:
        part = self.settings.scale_part(self.sizes)
        return SumStep(
            f"residual scale {t + 1}", (part,), ScaleMap(self.coding, self._point(state))
        )

    def _last_step(self, state: State) -> SumStep:
        curvature = CurvatureMap(
            self.coding, self._point(state), self.settings.c, reweighted=False, meat=True
        )
        return SumStep("last curvature", self.settings.last_parts(self.sizes), curvature)

    def _finished(
        self, state: State, jacobian: Released, meat: Released, noises: FloatArray
    ) -> Descended:
        """noises: (T,) the standard deviations of s_t times the sums of scores."""
        values, vectors = eigen(jacobian.values / state.count)
        noise = jacobian.sd * np.sqrt(2 * self.sizes.size) / state.count
        kept = np.maximum(values - noise / 2, max(noise / 2, _LEAST_CURVATURE))
        left = np.abs(1 - state.rate * kept) ** self.settings.averaged_from
        unresolved = (values < noise) | (left > _FORGOTTEN)
        inverse = (vectors / kept) @ vectors.T
        sandwich = inverse @ psd_part(meat.values / state.count) @ inverse / state.count
        gains = self._gains(state.rate * kept, state.rate * noises / state.count)
        bias = vectors @ (self._remaining(state.rate * kept) * (vectors.T @ state.theta))
        fit = StandardFit(
            theta=state.theta,
            sampling=state.scale**2 * sandwich + np.outer(bias, bias),
            privacy=(vectors * gains) @ vectors.T,
            scale=state.scale,
            directions=Directions(vectors / np.sqrt(kept), ~unresolved),
            count=state.count,
            records=(),
        )
        largest = _LARGEST_BIAS * np.sqrt(np.diag(fit.sampling + fit.privacy))
        return Descended(fit, converged=bool(np.all(np.abs(bias) <= largest)))

    def _remaining(self, steps: FloatArray) -> FloatArray:
        """(q,) A/(1 − A), A = (1/m) Σ_{t > t₀} (1 − γλ)^t: what the start still weighs, per part of θ̄."""
        T, start = self.settings.steps, self.settings.averaged_from
        left = (np.abs(1 - steps)[:, None] ** np.arange(start + 1, T + 1)).mean(axis=1)
        return np.asarray(left / np.maximum(1 - left, _LEAST_CURVATURE))

    def _gains(self, steps: FloatArray, noises: FloatArray) -> FloatArray:
        """(q,) Σ_t (s_tγ sd/m)² (Σ_{k ≥ max(t₀, t)} (1 − γλ)^(k−t))² for eigenvalues γλ."""
        T, start = self.settings.steps, self.settings.averaged_from
        keep, total = 1 - steps, np.zeros(len(steps))
        for t, noise in enumerate(noises):
            powers = np.arange(max(start, t) - t, T - t)
            total += (noise * (keep[:, None] ** powers).sum(axis=1)) ** 2
        return np.asarray(total / (T - start) ** 2)
