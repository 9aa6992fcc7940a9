# SPDX-License-Identifier: Apache-2.0
"""A fit of levels by noisy Newton steps: a generator of steps that sees released values only.

As fitting.newton, for D = Pq + S parameters in place of q, with the filter of fitting.filter in D
dimensions:

1. Rounds of Gram matrices of the regressors whiten the coordinates (fitting.rounds); every
   predictor has the same.
2. Steps t = 1..T: the mean score at (Γ, λ); the most likely way to the solution, given what the
   public rows lead to expect of the mean score along it (filter.moved_far), as an information
   changes on the way.
3. The last step but one and the last also release the information, which corrects the expected one;
   the last the meat.
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
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.coding import TermCoding
from reticent_server.fitting.covariance import calmed_meat, sandwich
from reticent_server.fitting.filter import (
    Correction,
    StepCurvature,
    corrected_curvature,
    measured,
    missed_curvature,
    moved_far,
    no_correction,
    prior,
    unfinished,
)
from reticent_server.fitting.identifiability import Directions, fit_directions
from reticent_server.fitting.maps import on_lattice
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.rounds import whitening_rounds
from reticent_server.fitting.whitening import Whitening
from reticent_server.kinds.glm.categories.law import CategoryLaw
from reticent_server.kinds.glm.categories.maps import (
    CategoryMap,
    CategoryPoint,
    as_information,
    entry_count,
)
from reticent_server.kinds.glm.categories.public_model import PublicCategories, stacked_whitening
from reticent_server.numerics.matrices import power

OFFSET, SHAPE = 5.0, 0.25
"""Of a predictor, by which a record may be off at the start; relative error of an expected
information: as of a binomial model's (kinds.glm.families.base)."""
_FARTHER = 4.0  # as in fitting.newton
_LARGEST = 2.0**20  # of a coefficient in standardised units, as in fitting.newton


@dataclass(frozen=True, slots=True, eq=False)
class CategoryFit:
    """The released fit in standardised units. theta: Θ (P, q) of x̃; spacings: λ (S,). sampling,
    privacy (D, D): covariances of (Θ row by row, λ). transform: W (q, q). count: records in use, as
    released."""

    theta: FloatArray
    spacings: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    directions: Directions
    count: float
    transform: FloatArray

    @property
    def length(self) -> float:
        """The largest change of a predictor for one length of a whitened regressor."""
        return float(
            np.linalg.norm(np.linalg.solve(self.transform.T, self.theta.T)[1:], axis=0).max()
        )


Fitting = Generator[Step, tuple[Released, ...], CategoryFit]


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Where the fit stands, all released: parameters (D,) in u, their C (D, D), what is known of
    the information."""

    parameters: FloatArray
    covariance: FloatArray
    known: Correction
    way: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CategoryNewton:
    """A planned fit. column, stored: of the response, as in maps. start: (P,) η of the public
    shares; spacings: (S,) λ there."""

    coding: TermCoding
    coordinates: Coordinates
    law: CategoryLaw
    column: str
    stored: tuple[float, ...]
    budget: FitBudget
    sizes: Sizes
    start: FloatArray
    spacings: FloatArray

    def fit(self) -> Fitting:
        """Runs the recipe."""
        whitening, count, present = yield from whitening_rounds(
            self.coding, self.coordinates, self.budget.rounds, self.budget.count, self.sizes
        )
        model, state, T = self.public(whitening), self.started(whitening), self.budget.steps
        for t in range(T - 1):
            score, *information = yield self._step(whitening, state, t)
            if information:
                state, _ = self._measured(model, state, information[0], count)
            state = self._stepped(model, state, score, count, last=False)
        last = yield self._step(whitening, state, T - 1)
        return self._finished(model, state, last, count, present=present)

    def public(self, whitening: Whitening) -> PublicCategories:
        """The public rows as a model of the records."""
        return PublicCategories(self.law, whitening, self.sizes.radius_squared, self.sizes.unequal)

    def started(self, whitening: Whitening) -> _State:
        """Before any score: the intercepts give the public shares."""
        P, q = self.law.predictors, self.sizes.size
        theta = np.zeros((P, q))
        theta[:, 0] = self.start
        Gamma = np.linalg.solve(whitening.transform.T, theta.T).T
        unsure = np.diag(self.law.unsure(self.spacings) ** 2)
        C = block_diag(*(prior(whitening, OFFSET),) * P, unsure)
        known = no_correction(stacked_whitening(whitening, self.law), SHAPE)
        return _State(np.append(Gamma.ravel(), self.spacings), np.asarray(C), known)

    def point(self, whitening: Whitening, state: _State) -> CategoryPoint:
        """Where a step measures: on the lattice."""
        q = self.sizes.size
        Gamma, spacings = self._parts(state.parameters)
        theta = on_lattice(np.clip(Gamma @ whitening.transform, -_LARGEST, _LARGEST), q)
        return CategoryPoint(
            self.law, theta, spacings, whitening.transform, self.sizes.radius_squared
        )

    def _parts(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Γ (P, q) and λ (S,)."""
        P, q = self.law.predictors, self.sizes.size
        return parameters[: P * q].reshape(P, q), self.law.kept(parameters[P * q :])

    def _step(self, whitening: Whitening, state: _State, t: int) -> SumStep:
        P, S, q, m = self.law.predictors, self.law.spacings, self.sizes.size, self.sizes.unit_rows
        point, last = self.point(whitening, state), t == self.budget.steps - 1
        parts: list[Part] = [VectorSum(P * q + S, point.score_bound, self.budget.gradients[t], m)]
        curvature = self.budget.jacobians[t] > 0
        if curvature:
            size, bound = entry_count(P, S, q), point.information_bound
            parts.append(VectorSum(size, bound, self.budget.jacobians[t], m))
        if last:
            parts.append(GramSum(P * q + S, point.score_bound, self.budget.meat, m))
        scores = CategoryMap(self.coding, self.column, self.stored, point, curvature, last)
        joint = OneVector(vector=0, meat=len(parts) - 1) if last else None
        return SumStep(f"newton step {t + 1}", tuple(parts), scores, joint=joint)

    def _measured(
        self, model: PublicCategories, state: _State, released: Released, count: float
    ) -> tuple[_State, FloatArray]:
        """After a released information; and its noise (D,) in the frame B."""
        back = power(model.information(state.parameters), 0.5)
        J, sd = self.matrix(released) / count, released.sd / count
        known, noise = measured(
            state.known, back, J, sd, missed_curvature(state.covariance, back, 1.0)
        )
        return replace(state, known=known), noise

    def matrix(self, released: Released) -> FloatArray:
        """(D, D) of a released information."""
        P, S, q = self.law.predictors, self.law.spacings, self.sizes.size
        return as_information(released.values, P, S, q)

    def _curvature(self, model: PublicCategories, state: _State) -> StepCurvature:
        return corrected_curvature(model.information(state.parameters), 1.0, state.known)

    def _stepped(
        self,
        model: PublicCategories,
        state: _State,
        released: Released,
        count: float,
        *,
        last: bool,
    ) -> _State:
        g, noise = released.values / count, (released.sd / count) ** 2
        curvature = self._curvature(model, state)
        way = model.way(state.parameters, curvature)
        N, farther = noise * np.eye(len(g)), 1.0 if last else _FARTHER
        step = moved_far(state.covariance, curvature, N, g, way, farther)
        step = unfinished(step, state.way)
        parameters = state.parameters + step.way
        Gamma, spacings = self._parts(parameters)
        kept = np.append(Gamma.ravel(), spacings)
        return replace(state, parameters=kept, covariance=step.covariance, way=step.way)

    def _finished(
        self,
        model: PublicCategories,
        state: _State,
        released: tuple[Released, ...],
        count: float,
        *,
        present: bool,
    ) -> CategoryFit:
        """The last step, with the released information and the sandwich."""
        score, information, meat = released
        back = power(model.information(state.parameters), 0.5)
        state, noise = self._measured(model, state, information, count)
        curvature = self._curvature(model, state)
        Q = calmed_meat(meat.values / count, meat.sd / count, model.meat(state.parameters))
        sampling = sandwich(np.asarray(np.linalg.inv(curvature.H)), Q, count)
        after = self._stepped(model, state, score, count, last=True)
        stacked = stacked_whitening(model.whitening, self.law)
        directions = fit_directions(
            stacked,
            back,
            self.matrix(information) / count,
            noise,
            after.covariance + sampling,
            count / (self.sizes.radius_squared * self.law.most),
            present=present,
        )
        Gamma, spacings = self._parts(after.parameters)
        W = stacked.transform
        return CategoryFit(
            theta=np.asarray(Gamma @ model.whitening.transform),
            spacings=spacings,
            sampling=np.asarray(W.T @ sampling @ W),
            privacy=np.asarray(W.T @ after.covariance @ W),
            directions=directions,
            count=count,
            transform=model.whitening.transform,
        )
