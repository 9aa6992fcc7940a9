# SPDX-License-Identifier: Apache-2.0
"""Where a fit stands between two steps: public and released values only."""

from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.beliefs import (
    EXPECTED,
    Beliefs,
    beliefs_of,
    covariance,
    faded,
    likeliest,
    mean_factor,
    widened,
)
from reticent_server.fitting.curvature import LocalRows
from reticent_server.fitting.filter import (
    Correction,
    StepCurvature,
    corrected_curvature,
    measured,
    missed_curvature,
)
from reticent_server.fitting.maps import FitState
from reticent_server.fitting.public.model import PublicModel
from reticent_server.fitting.score import Score
from reticent_server.numerics.matrices import power


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What is known of the solution, all of it released.

    theta: (q,) of x̃. beliefs: of u, of what is left of the way. scale: s. known: of the
    curvature. count: records in use. present: whether that number is above its noise. way: (q,) the
    change that the last step made, in u; None where the solution itself has changed since.
    scale_sd: the noise of the mean that the scale was measured by.
    """

    theta: FloatArray
    beliefs: Beliefs
    scale: float
    known: Correction
    count: float
    present: bool = True
    way: FloatArray | None = None
    scale_sd: float = 0.0

    def widened(self, covariance: FloatArray) -> "State":
        """With (q, q) of u more between here and the solution of the next step, which is
        another."""
        return replace(self, beliefs=widened(self.beliefs, covariance), way=None)

    @property
    def covariance(self) -> FloatArray:
        """C (q, q) of what is left, in u."""
        return covariance(self.beliefs)

    def believed(self, curvature: StepCurvature) -> StepCurvature:
        """By the mean of the beliefs."""
        h = mean_factor(self.beliefs)
        return replace(curvature, J=curvature.J * h, E=curvature.E * h)

    def sure(self, covariance: FloatArray) -> "State":
        """With one belief, that the curvature is what is expected, and C (q, q) in other
        coordinates."""
        return replace(self, beliefs=beliefs_of(EXPECTED, covariance), way=None)


@dataclass(frozen=True, slots=True, eq=False)
class StepPlace:
    """A step about to be taken: the t-th, from a state, with a score. model: the public rows in the
    fit's coordinates. last: whether no step follows."""

    model: PublicModel
    state: State
    score: Score
    t: int
    last: bool

    @property
    def direction(self) -> FloatArray:
        """(q,) θ in u."""
        return self.model.whitening.inside(self.state.theta)

    @property
    def point(self) -> FitState:
        """What a record's contribution is a function of."""
        model, state = self.model, self.state
        return FitState(state.theta, model.whitening.transform, model.radius_squared, self.score)

    @property
    def expected(self) -> FloatArray:
        """J (q, q) that the public rows lead to expect."""
        likely = likeliest(self.state.beliefs).square
        spread = self.score.curvature.spread(likely)
        return self.model.curvature(self.score, self.direction, spread)

    @property
    def curvature(self) -> StepCurvature:
        """The same, with what was measured of it so far."""
        return corrected_curvature(self.expected, self.score.unit, self.state.known)

    @property
    def meat(self) -> FloatArray:
        """Q (q, q) that the public rows lead to expect."""
        return self.model.meat(self.score, self.direction)

    def rows(self) -> LocalRows:
        """The public rows about this place."""
        return self.model.local(self.score, self.direction)

    def measured(self, jacobian: Released, upto: int | None) -> tuple["StepPlace", FloatArray]:
        """After a released Jacobian (q, q), used on the axes `upto`; its noise (q,) in the frame
        B."""
        state, count = self.state, self.state.count
        back = power(self.expected, 0.5)
        likely = likeliest(state.beliefs).square
        missed = missed_curvature(likely, back, self.score.unit)
        J, sd = jacobian.values / count, jacobian.sd / count
        known, noise = measured(state.known, back, J, sd, missed, upto)
        left = float(np.mean(known.error / state.known.error))
        state = replace(state, known=known, beliefs=faded(state.beliefs, left))
        return replace(self, state=state), noise
