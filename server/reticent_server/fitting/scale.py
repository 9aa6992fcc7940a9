# SPDX-License-Identifier: Apache-2.0
"""How a fit knows the scale of its residuals.

    Scale          it stays what it is
    MeasuredScale  measured after each step but the last
    JointScale     measured, and solved for together with theta in the last step

A plan composes one (scale_of); another way is another class with these methods.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import exp, sqrt

import numpy as np
from scipy.linalg import block_diag

from reticent_server.domain.steps import (
    CountSum,
    FloatArray,
    GramSum,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.covariance import calmed_meat
from reticent_server.fitting.filter import StepCurvature
from reticent_server.fitting.maps import ResidualMap
from reticent_server.fitting.passes import Passes
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.score import Joint, Residuals, Score, ScoreFamily
from reticent_server.fitting.state import State, StepPlace

_GOLDEN = (sqrt(5) - 1) / 2  # its multiples, less whole numbers, are even in [0, 1)
_LARGEST_RESCALE = 0.7  # |change of ln s| of a joint last step: a factor of 2


@dataclass(frozen=True, slots=True, eq=False)
class MeanScore:
    """value: g (q,), the mean score; noise: (q, q), its covariance."""

    value: FloatArray
    noise: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LastScores:
    """What the last step knows of the scores: their mean; meat: Q (q, q); scale: s at the
    solution."""

    mean: MeanScore
    meat: FloatArray
    scale: float


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """How the scale s of the residuals is known: it stays what it is. unit_rows: as of Sizes."""

    budget: FitBudget
    unit_rows: int

    @property
    def equation(self) -> Joint | None:
        """The scale's own equation in the last step; None without one."""
        return None

    def measured(
        self,
        place: StepPlace,
        passes: Passes,  # noqa: ARG002 - one interface
    ) -> Generator[Step, tuple[Released, ...], State]:
        """The state after a step, with its scale."""
        yield from ()
        return place.state

    def forecast(self, scale: float, start: float, left: float) -> float:  # noqa: ARG002
        """The scale to be expected after a step, of a fit that began at `start` and whose predictor
        is off by a mean square of `left`."""
        return scale

    def part(self) -> CountSum | VectorSum | None:
        """The part of the last measurement; None without one."""
        return None

    def unsure(
        self,
        model: PublicModel,  # noqa: ARG002 - one interface
        score: Score,  # noqa: ARG002
        direction: FloatArray,
        sd: float,  # noqa: ARG002
        spread: float = 0.0,  # noqa: ARG002
    ) -> FloatArray:
        """(q,) one standard deviation of the mean score for noise in the scale. direction: theta in
        u (q,); sd: of the mean that the scale was measured by; spread: of the predictor, by half of
        which rows are moved at most either way."""
        return np.zeros(len(direction))

    def meat_part(self, size: int, bound: float, score: Score) -> GramSum:  # noqa: ARG002
        """The part of scores (size,) with a norm of at most `bound`."""
        return GramSum(size, bound, self.budget.meat, self.unit_rows)

    def equation_part(self, score: Score) -> VectorSum | None:  # noqa: ARG002
        """The part of the scale's own equation."""
        return None

    def last(
        self,
        place: StepPlace,
        mean: MeanScore,
        meat: Released,
        equation: Released | None,  # noqa: ARG002
        curvature: StepCurvature,  # noqa: ARG002
    ) -> LastScores:
        """From what the last step has released: the meat is that of the coefficients' scores alone,
        the scale is the state's."""
        count = place.state.count
        Q = calmed_meat(meat.values / count, meat.sd / count, place.meat)
        return LastScores(mean, Q, place.state.scale)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredScale(Scale):
    """s is measured by `residuals` after each step but the last.

    Where the mean score of one scale is not 0 at another, as a cut of skewed residuals is centred
    under the scale's law, noise in s moves the solution, its intercept above all: by `unsure` in
    the mean score, which counts as noise of the last one.
    """

    coding: Coding
    residuals: Residuals
    family: ScoreFamily

    def measured(
        self, place: StepPlace, passes: Passes
    ) -> Generator[Step, tuple[Released, ...], State]:
        (released,) = yield from passes.asked(self.step(place), place.t)
        count = place.state.count
        scale = self.residuals.scale(place.score, released, count)
        return replace(place.state, scale=scale, scale_sd=released.sd / count)

    def part(self) -> CountSum | VectorSum:
        return self.residuals.part(self.budget.scales[-1], self.unit_rows)

    def unsure(
        self,
        model: PublicModel,
        score: Score,
        direction: FloatArray,
        sd: float,
        spread: float = 0.0,
    ) -> FloatArray:
        change = self.residuals.error(score, sd)
        if not change:
            return np.zeros(len(direction))
        rows = model.local(score, direction)
        ends = (self.family.score(score.scale * exp(h), 0) for h in (change, -change))
        eta = rows.eta + spread * (np.arange(len(rows.eta)) * _GOLDEN % 1 - 0.5)
        up, down = (self.residuals.lean(score, end, eta) for end in ends)
        return np.asarray(rows.X.T @ (rows.weights * (up - down)) / (2 * len(rows.X)))

    def last(
        self,
        place: StepPlace,
        mean: MeanScore,
        meat: Released,
        equation: Released | None,
        curvature: StepCurvature,
    ) -> LastScores:
        """With the noise of the scale in that of the mean score."""
        b = self.unsure(place.model, place.score, place.direction, place.state.scale_sd)
        noisy = MeanScore(mean.value, mean.noise + np.outer(b, b))
        return Scale.last(self, place, noisy, meat, equation, curvature)

    def step(self, place: StepPlace) -> SumStep:
        """The pass over the residuals."""
        part = self.residuals.part(self.budget.scales[place.t], self.unit_rows)
        residuals = ResidualMap(self.coding, place.point, self.residuals)
        return SumStep(f"residual scale {place.t + 1}", (part,), residuals)

    def forecast(self, scale: float, start: float, left: float) -> float:  # noqa: ARG002
        return self.residuals.expected(start, left)


@dataclass(frozen=True, slots=True, eq=False)
class JointScale(MeasuredScale):
    """Measured, and in the last step the solution of an equation of its own, mean wχ = 0: the meat
    is that of the scores (wq·v, wχ) (size q + 1), and θ and ln s move together."""

    own: Joint

    unsure = Scale.unsure  # none: the last step's equations have the scale's noise in them

    @property
    def equation(self) -> Joint:
        return self.own

    def meat_part(self, size: int, bound: float, score: Score) -> GramSum:
        longest = float(np.hypot(bound, self.own.bound(score)))
        return GramSum(size + 1, longest, self.budget.meat, self.unit_rows)

    def equation_part(self, score: Score) -> VectorSum:
        return VectorSum(1, self.own.bound(score), self.budget.scales[-1], self.unit_rows)

    def last(
        self,
        place: StepPlace,
        mean: MeanScore,
        meat: Released,
        equation: Released | None,
        curvature: StepCurvature,
    ) -> LastScores:
        """The scale's equation is one of the last step's. Raises ValueError where it was not
        released.
        """
        if equation is None:
            raise ValueError("a joint last step releases the scale's equation")
        count = place.state.count
        step = self.own.step(place.score, curvature.J, place.model.whitening.transform)
        Q, sd, M = meat.values / count, meat.sd / count, step.gradient
        scores = np.append(mean.value, float(equation.values[0]) / count)
        noise = block_diag(mean.noise, (equation.sd / count) ** 2)
        expected = block_diag(place.meat, max(float(Q[-1, -1]), sd))
        change = np.clip(step.log_scale @ scores, -_LARGEST_RESCALE, _LARGEST_RESCALE)
        moved = MeanScore(M @ scores, np.asarray(M @ noise @ M.T))
        calmed = np.asarray(M @ calmed_meat(Q, sd, expected) @ M.T)
        return LastScores(moved, calmed, place.state.scale * float(np.exp(change)))


def scale_of(family: ScoreFamily, budget: FitBudget, sizes: Sizes, coding: Coding) -> Scale:
    """As a family has it, and as far as the budget measures it. Scores that are summed by person
    have no joint step: χ is a row's."""
    if family.residuals is None or not budget.scales:
        return Scale(budget, sizes.unit_rows)
    if family.joint is None or sizes.person_rows > 1:
        return MeasuredScale(budget, sizes.unit_rows, coding, family.residuals, family)
    return JointScale(budget, sizes.unit_rows, coding, family.residuals, family, family.joint)
