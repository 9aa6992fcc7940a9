# SPDX-License-Identifier: Apache-2.0
"""A fit by noisy Newton steps: a generator of steps that sees released values only.

1. Rounds of Gram matrices of the regressors whiten the coordinates (fitting.rounds).
2. Steps t = 1..T: the mean score at (θ, s); θ ← θ + WᵀGg by the filter, with the curvature that the
   public rows lead to expect there (fitting.filter).
3. After each step but the last the scale is measured (fitting.scale).
4. The last step also releases the Jacobian, which corrects the expected curvature, and the meat Q;
   where there is little noise, or the curvature changes on the way, an earlier step releases a
   Jacobian as well.

What is left of the way to the solution, whether from noise, from a step that is too short or from a
curvature that is not what was expected, is the filter's covariance.

What differs from fit to fit are objects that the plan composes: how records add up
(fitting.contributions), how the scale is known (fitting.scale), which rows a pass goes over
(fitting.passes), a subspace that the path keeps to (fitting.restriction), and, of a score, how its
mean bends (fitting.curvature).
"""

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray, Released, Step
from reticent_server.fitting import trust
from reticent_server.fitting.beliefs import Stepped, beliefs_of, doubt, surprise, widened
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.covariance import sandwich
from reticent_server.fitting.curvature import StepView
from reticent_server.fitting.filter import StepCurvature, no_correction, prior
from reticent_server.fitting.identifiability import fit_directions
from reticent_server.fitting.maps import on_lattice
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.passes import Passes
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.restriction import Restriction
from reticent_server.fitting.rounds import whitening_rounds
from reticent_server.fitting.scale import LastScores, MeanScore, Scale
from reticent_server.fitting.score import Score, ScoreFamily
from reticent_server.fitting.sparse_levels import sparse_coefficients
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.state import State, StepPlace
from reticent_server.fitting.step_parts import Contributions, Errors, FinalStep, StepReleases
from reticent_server.fitting.whitening import Whitening
from reticent_server.numerics.matrices import power, symmetric

LARGEST_THETA = 2.0**20
"""In standardised units: keeps a fit that noise has thrown off within the floats."""
PREDICTOR_SPREAD = 1.0
"""Of a link: a plan's rows all have the predictor of the start, where the law of a count may jump;
over one unit jumps are averaged."""

Fitting = Generator[Step, tuple[Released, ...], StandardFit]
Approaching = Generator[Step, tuple[Released, ...], tuple[PublicModel, State, Contributions]]
Placing = Generator[Step, tuple[Released, ...], tuple[StepPlace, Contributions]]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyNewton:
    """A planned fit of a public standardised design.

    start: θ before any release (q,). offset: (rows,) of the public rows; None: 0.
    """

    coding: Coding
    coordinates: Coordinates
    family: ScoreFamily
    budget: FitBudget
    sizes: Sizes
    start: FloatArray
    offset: FloatArray | None
    contributions: Contributions
    scale: Scale
    passes: Passes
    restriction: Restriction | None = None

    def public_model(self, whitening: Whitening) -> PublicModel:
        """The public rows in a whitening's coordinates; fewer of them in a forecast."""
        offset = 0.0 if self.offset is None else self.offset[: len(whitening.rows)]
        return PublicModel(whitening, self.sizes.radius_squared, offset, self.sizes.unequal)

    def fit(self) -> Fitting:
        """Runs the steps."""
        t = self.budget.steps - 1
        model, state, contributions = yield from self.approached(t)
        place, contributions = yield from self._placed(model, state, contributions, t)
        last = contributions.last_step(place)
        released = last.read((yield from self.passes.asked(last.step, t)))
        return self._finished(place, contributions, released)

    def planned_step(self, t: int, scale: float, model: PublicModel) -> "PlannedStep":
        """What is expected of step t at a residual scale. model: the public rows."""
        score, sizes = self.family.score(scale, self.budget.steps - 1 - t), self.sizes
        clip = sizes.gradient_clip(score.bound) / sizes.unit_rows
        reach = float(np.sqrt(sizes.radius_squared * score.curvature_bound))
        return PlannedStep(score, model, clip, reach)

    def planned_scale_noise(self, last: "PlannedStep", direction: FloatArray) -> FloatArray:
        """Returns one standard deviation (q,) of the last step's mean score for the noise that the
        scale's last measurement is planned with (fitting.scale). direction: θ in u (q,)."""
        part, before = self.scale.part(), self.budget.steps - 2
        if part is None:
            return np.zeros(self.sizes.size)
        sd = self.passes.stride(max(before, 0)) * planned_sd(part) / self.sizes.expected_n
        return self.scale.unsure(last.model, last.score, direction, sd, PREDICTOR_SPREAD)

    def approached(self, steps: int) -> Approaching:
        """After the whitening and the first `steps` steps, with the scale after each."""
        budget, passes = self.budget, self.passes
        whitening, count, present = yield from whitening_rounds(
            self.coding, self.coordinates, budget.rounds, budget.count, self.sizes, passes.strides
        )
        model, contributions = self.public_model(whitening), self.contributions
        state = self.started(whitening, count, present=present)
        for t in range(steps):
            place, contributions = yield from self._placed(model, state, contributions, t)
            parts = contributions.step(place)
            seen = parts.read((yield from passes.asked(parts.step, t)))
            if seen.jacobian is not None:
                place, _ = place.measured(seen.jacobian, whitening.free)
            state = self.stepped(place, seen.mean_score(state.count), place.curvature)
            state = yield from self.scale.measured(replace(place, state=state), passes)
        return model, state, contributions

    def started(self, whitening: Whitening, count: float, *, present: bool) -> State:
        """Before any step. count: records in use, as released; present: whether there are any."""
        W, C = whitening.transform, prior(whitening, self.family.offset)
        theta = self.start
        if self.restriction is not None:
            theta, C = self.restriction.started(theta, C, W)
        known = no_correction(whitening, self.family.shape)
        theta = on_lattice(theta, self.sizes.size)
        first = self.family.score(self.family.start, self.budget.steps - 1)
        beliefs = beliefs_of(first.curvature.factors, C)
        return State(theta, beliefs, self.family.start, known, count, present)

    def place(self, model: PublicModel, state: State, t: int) -> StepPlace:
        """That of step t, with what its solution may differ by from that of the step before; where
        the score is another, so may be what its curvature is of what is expected."""
        remaining = self.budget.steps - 1 - t
        score = self.family.score(state.scale, remaining)
        if score != self.family.score(state.scale, remaining + 1):
            factors = score.curvature.factors
            state = replace(state, beliefs=beliefs_of(factors, state.covariance))
        drift = self.family.drift(remaining)
        if drift:
            room = prior(model.whitening, drift * state.scale)
            state = replace(state, beliefs=widened(state.beliefs, room))
        return StepPlace(model, state, score, t, remaining == 0)

    def _placed(
        self, model: PublicModel, state: State, contributions: Contributions, t: int
    ) -> Placing:
        place = self.place(model, state, t)
        place = replace(place, state=self.passes.arrived(place))
        contributions, state = yield from contributions.prepared(place, self.passes)
        return replace(place, state=state), contributions

    def stepped(self, place: StepPlace, mean: MeanScore, curvature: StepCurvature) -> State:
        """After a step that has seen a mean score."""
        seen, law = self._seen(place, mean, curvature), place.score.curvature
        step = law.step if self.restriction is None else law.step_within
        return self._moved(place, step(seen))

    def _seen(self, place: StepPlace, mean: MeanScore, curvature: StepCurvature) -> StepView:
        state = place.state
        return StepView(state.beliefs, curvature, mean.value, mean.noise, state.way, place.rows)

    def _moved(self, place: StepPlace, step: Stepped) -> State:
        W, state = place.model.whitening.transform, place.state
        theta = np.clip(state.theta + W.T @ step.way, -LARGEST_THETA, LARGEST_THETA)
        theta = on_lattice(theta, self.sizes.size)
        return replace(state, theta=theta, beliefs=step.beliefs, way=step.way)

    def _finished(
        self, place: StepPlace, contributions: Contributions, released: StepReleases
    ) -> StandardFit:
        """The last step, with the released Jacobian and the sandwich."""
        back, count = power(place.expected, 0.5), place.state.count
        mean, (jacobian, meat) = released.mean_score(count), released.matrices
        place, jacobian_noise = place.measured(jacobian, None)
        curvature = place.curvature
        scores = self.scale.last(place, mean, meat, released.equation, curvature)
        seen = self._seen(place, scores.mean, curvature)
        after = self._last_moved(place, seen)
        curvature = after.believed(curvature)
        A = np.asarray(np.linalg.inv(curvature.H))
        sampling = sandwich(A, scores.meat, count)
        directions = fit_directions(
            place.model.whitening,
            back,
            jacobian.values / count,
            jacobian_noise,
            after.covariance + sampling,
            count / (self.sizes.radius_squared * place.score.most),
            present=place.state.present,
        )
        chance, left = self._chance(place, seen, after), after.covariance
        last = FinalStep(place, curvature, jacobian, meat, directions, sampling, left, chance)
        return fitted(self, last, contributions.errors(last), scores, after)

    def _chance(self, place: StepPlace, seen: StepView, after: State) -> float:
        """Of the last score, where an error of its step matters: 1 where the step is short. Under a
        restriction, which may be wrong, a large score is what is tested.
        """
        moved = 0.0 if after.way is None else float(np.linalg.norm(after.way)) / place.score.unit
        if self.restriction is not None or moved <= place.score.curvature.most_moved:
            return 1.0
        return surprise(seen.beliefs, seen.curvature, seen.noise, seen.score)

    def _last_moved(self, place: StepPlace, seen: StepView) -> State:
        if self.restriction is None:
            return self._moved(place, place.score.curvature.last_step(seen))
        first = prior(place.model.whitening, self.family.offset)
        return self._moved(place, self.restriction.last_step(seen, first))


def fitted(
    fit: NoisyNewton, last: FinalStep, errors: Errors, scores: LastScores, after: State
) -> StandardFit:
    """What the steps of `fit` come to. after: the state that the last one leaves."""
    W, J = last.place.model.whitening.transform, last.curvature.J
    directions, place = last.directions, last.place
    law = place.score.curvature
    linear = trust.linear_step(directions.off(W), law.most_off)
    verdict = errors.verdict.then(trust.believed(doubt(after.beliefs))).then(linear)
    verdict = verdict.then(trust.arrived(last.chance, law.unlikely))
    return StandardFit(
        theta=after.theta,
        sampling=np.asarray(W.T @ errors.sampling @ W),
        privacy=np.asarray(W.T @ errors.privacy @ W),
        scale=scores.scale,
        directions=directions if verdict.intervals else directions.none,
        count=after.count,
        information=symmetric(np.linalg.solve(W, np.linalg.solve(W, J).T)),
        inverse=np.asarray(W.T @ np.linalg.inv(J) @ W),
        transform=W,
        freedom=errors.freedom,
        verdict=verdict,
        sparse=sparse_coefficients(
            fit.coding,
            fit.coordinates,
            place.model,
            place.score,
            place.model.whitening.inside(after.theta),
            after.covariance + last.sampling,
            after.count,
        ),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlannedStep:
    """A step in a forecast. model: the public rows with the radius of its weights. clip: of a
    record's score; reach: of a Jacobian's root. allowance: of the sum of scores, in one direction,
    for what the clip takes."""

    score: Score
    model: PublicModel
    clip: float
    reach: float
    allowance: float = 0.0
    told: bool = True
