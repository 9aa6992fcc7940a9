# SPDX-License-Identifier: Apache-2.0
"""How records add up in a step: the parts that are released of them, and what these say, by name.

    RowScores       each row's score is clipped by its own weight and added
    GroupRowScores  the same of one group among others: about 0, wherever the fit stands
    PersonScores    (fitting.person_contributions) a person's scores are added first, and their sum
                    is clipped at a released length

Another way to add them up is another class with the methods of Contributions: `prepared` releases
what its clip needs before a step, `step` and `last_step` name the parts of one and read them, and
`errors` says what the last step's errors are made of. The loop (fitting.newton) asks these only.
Bounds: fitting.fit_plan.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import (
    GramSum,
    VectorSum,
)
from reticent_server.fitting.budget import FitBudget, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.maps import ScoreMap
from reticent_server.fitting.passes import Passes
from reticent_server.fitting.person_contributions import PersonScores
from reticent_server.fitting.scale import Scale
from reticent_server.fitting.score import Ball, Score, whole_ball
from reticent_server.fitting.state import StepPlace
from reticent_server.fitting.step_parts import (
    Contributions,
    Errors,
    FinalStep,
    Settling,
    StepParts,
)


@dataclass(frozen=True, slots=True, eq=False)
class RowScores(Contributions):
    """Each row adds w v q, clipped at R sup|q| by its own weight w."""

    coding: Coding
    budget: FitBudget
    sizes: Sizes
    scale: Scale

    def prepared(self, place: StepPlace, passes: Passes) -> Settling:  # noqa: ARG002 - one interface
        yield from ()
        return self, place.state

    def step(self, place: StepPlace) -> StepParts:
        ball, t = self.ball(place), place.t
        jacobian = self._jacobian(place.score, t) if self.budget.jacobians[t] else None
        scores = ScoreMap(self.coding, place.point, ball.shift, jacobian is not None)
        gradient = self._gradient(ball, t)
        return StepParts(t, self.sizes.n, ball.shift, scores, self.budget.joint, gradient, jacobian)

    def last_step(self, place: StepPlace) -> StepParts:
        ball, score, t = self.ball(place), place.score, place.t
        return StepParts(
            t=t,
            n=self.sizes.n,
            shift=ball.shift,
            scores=ScoreMap(
                self.coding,
                place.point,
                ball.shift,
                curvature=True,
                meat=True,
                joint=self.scale.equation,
            ),
            joint=self.budget.joint,
            gradient=self._gradient(ball, t),
            jacobian=self._jacobian(score, t),
            meat=self.scale.meat_part(self.sizes.size, self.radius * score.bound, score),
            equation=self.scale.equation_part(score),
        )

    def errors(self, last: FinalStep) -> Errors:
        return Errors(last.sampling, last.left)

    @property
    def radius(self) -> float:
        """R."""
        return float(np.sqrt(self.sizes.radius_squared))

    def ball(self, place: StepPlace) -> Ball:
        """One that all contributions to the gradient lie in."""
        return place.score.ball(place.direction, self.radius)

    def _gradient(self, ball: Ball, t: int) -> VectorSum:
        rho, m = self.budget.gradients[t], self.sizes.unit_rows
        return VectorSum(self.sizes.size, ball.radius, rho, m)

    def _jacobian(self, score: Score, t: int) -> GramSum:
        root = self.radius * float(np.sqrt(score.curvature_bound))
        rho, m = self.budget.jacobians[t], self.sizes.unit_rows
        return GramSum(self.sizes.size, root, rho, m, score.signed)


@dataclass(frozen=True, slots=True, eq=False)
class GroupRowScores(RowScores):
    """The rows of one group among others (mechanisms.disjoint_groups): about 0, as what is added to
    each record's score would be added to a number of records that is private."""

    def ball(self, place: StepPlace) -> Ball:
        return whole_ball(self.sizes.size, self.radius * place.score.bound)


def contributions_of(
    coding: Coding, budget: FitBudget, sizes: Sizes, scale: Scale, *, grouped: bool
) -> Contributions:
    """The contributions of persons where their scores are summed first, of rows elsewhere. grouped:
    of one group among others."""
    if sizes.person_rows > 1:
        return PersonScores(coding, budget, sizes)
    rows = GroupRowScores if grouped else RowScores
    return rows(coding, budget, sizes, scale)
