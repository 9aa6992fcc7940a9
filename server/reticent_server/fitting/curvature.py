# SPDX-License-Identifier: Apache-2.0
"""How a score's mean changes with the distance to the solution, and the filter's step that follows.

    ScoreCurvature  linear in the distance: the step of a bank of filters (fitting.beliefs)
    ResidualsCut    the same, where residuals are cut: a last step that is long and unlikely has not
                    arrived
    Bent            levels off: the most likely distance under N(0, C), found by Gauss-Newton steps
    Growing         grows with the exponential of the distance, as with a log link: steps of length
                    1 at most, turned into the distance at which the exponential has that mean

A score names its own (Score.curvature); another law of the mean is another class with these
methods.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.beliefs import (
    EXPECTED,
    SEEN,
    Beliefs,
    Factors,
    Stepped,
    covariance,
    stepped,
    surprised,
)
from reticent_server.fitting.budget import BENT_JACOBIAN, NO_EARLY_JACOBIAN, EarlyJacobian
from reticent_server.fitting.filter import (
    Moved,
    StepCurvature,
    limited,
    moved,
    moved_far,
    unfinished,
    within,
)
from reticent_server.fitting.trust.thresholds import (
    BEND,
    MOVED,
    MOVED_CHANCE,
    REDESCENDING_MOVED,
    SURPRISE,
)

_FARTHER = 4.0  # times C, for which the gain of a bent score's steps is made in all but the last
_GROWN_STEPS = 12  # Newton steps to the distance of a log link
_RIDGE = 0.05  # share of J that keeps each of these steps in bounds
_SMALLEST = 1e-9  # relative singular value at which their system is solved: smaller is rounding
_GROWTH = (
    -3.0,
    2.0,
)  # changes of η of which the mean score is told: beyond them residuals are cut, or all alike
MeanChange = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""From η and a change of it, each (rows,): E q where the solution's predictor is η + change, and
its derivative by the change."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalRows:
    """The public rows about a place: X (rows, q) in u, predictors eta (rows,), weights (rows,) of a
    score w m, and expected curvatures (rows,) w m² E h."""

    X: FloatArray
    eta: FloatArray
    weights: FloatArray
    curvatures: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class StepView:
    """What a step has. beliefs: before it. curvature: H. score: g (q,), the released mean, and
    noise: (q, q), its covariance. before: (q,) the change of the step before. rows: the public
    ones."""

    beliefs: Beliefs
    curvature: StepCurvature
    score: FloatArray
    noise: FloatArray
    before: FloatArray | None
    rows: Callable[[], LocalRows]

    @property
    def covariance(self) -> FloatArray:
        """C (q, q) before it."""
        return covariance(self.beliefs)

    def surprised(self) -> "StepView":
        """With more of a way where the score asks for it (fitting.beliefs.surprised)."""
        beliefs = surprised(self.beliefs, self.curvature, self.noise, self.score)
        return replace(self, beliefs=beliefs)

    def stepped(self, *, checked: bool = False) -> Stepped:
        """The bank's step (fitting.beliefs.stepped)."""
        return stepped(self.beliefs, self.curvature, self.noise, self.score, checked=checked)

    def moved(self, reach: FloatArray | None = None) -> Moved:
        """One filter's step (fitting.filter.moved)."""
        return moved(self.covariance, self.curvature, self.noise, self.score, reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreCurvature:
    """The law of a mean score: linear in the distance. most_off: the error of a typical predictor
    up to which a linear step's standard errors hold; most_moved: how far, in units of the score's,
    a last step may move it whose score has a chance below `unlikely`; early_jacobian: what a
    Jacobian before the last step is worth; factors: what the curvature may be, of what is expected
    of it."""

    most_off: float = inf
    most_moved: float = inf
    unlikely: float = SURPRISE.value
    early_jacobian: EarlyJacobian = NO_EARLY_JACOBIAN
    factors: Factors = SEEN

    def spread(self, C: FloatArray) -> FloatArray:
        """(q, q) the distances over which an expected curvature is a mean."""
        return C

    def step(self, seen: StepView) -> Stepped:
        """A step of the whole space."""
        return seen.stepped(checked=True)

    def step_within(self, seen: StepView) -> Stepped:
        """A step that keeps to the subspace of C."""
        return seen.stepped()

    def last_step(self, seen: StepView) -> Stepped:
        """The last step of the whole space."""
        return self.step(seen)


STEADY = ScoreCurvature()


@dataclass(frozen=True, slots=True)
class ResidualsCut(ScoreCurvature):
    """Linear in the distance, but for residuals that are cut: where many records lie off the fit on
    one side, the curvature towards them may be a tenth of what is expected, and steps are too
    short.
    """

    most_moved: float = field(default=MOVED.value, kw_only=True)
    unlikely: float = field(default=MOVED_CHANCE.value, kw_only=True)


CUT = ResidualsCut()
REDESCENDING = ResidualsCut(most_moved=REDESCENDING_MOVED.value)
"""Scores that fall to 0 far out: their last step leads from Huber's solution."""


@dataclass(frozen=True, slots=True)
class Bent(ScoreCurvature):
    """The mean score levels off. away: its law."""

    away: MeanChange
    early_jacobian: EarlyJacobian = field(default=BENT_JACOBIAN, kw_only=True)
    factors: Factors = field(default=EXPECTED, kw_only=True)

    def spread(self, C: FloatArray) -> FloatArray:
        """At θ itself: the steps know how the curvature changes."""
        return np.zeros_like(C)

    def step(self, seen: StepView) -> Stepped:
        return self._far(seen, _FARTHER)

    def step_within(self, seen: StepView) -> Stepped:
        return self.step(seen)

    def last_step(self, seen: StepView) -> Stepped:
        return self._far(seen, 1.0)

    def _far(self, seen: StepView, farther: float) -> Stepped:
        C, curvature = seen.covariance, seen.curvature
        expected = self._expected(seen.rows(), curvature)
        step = moved_far(C, curvature, seen.noise, seen.score, expected, farther)
        return Stepped.sure(unfinished(step, seen.before))

    def _expected(
        self, rows: LocalRows, curvature: StepCurvature
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """From a distance d (q,): the mean score (q,) to be expected, and its derivative (q, q)."""
        X, back = rows.X, curvature.back
        corrected = back @ curvature.E @ np.linalg.inv(back)

        def expected(d: FloatArray) -> tuple[FloatArray, FloatArray]:
            q, slope = self.away(rows.eta, X @ d)
            g = X.T @ (rows.weights * q) / len(X)
            H = (X * (rows.weights * slope)[:, None]).T @ X / len(X)
            return corrected @ g, corrected @ H

        return expected


@dataclass(frozen=True, slots=True)
class Growing(ScoreCurvature):
    """The mean score grows as that of a log link. growth: from changes (rows,) of the predictor to
    E q in units of its slope, and the derivative."""

    growth: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    most_off: float = field(default=BEND.value, kw_only=True)
    most_moved: float = field(default=0.0, kw_only=True)
    factors: Factors = field(default=EXPECTED, kw_only=True)

    def step(self, seen: StepView) -> Stepped:
        step = limited(seen.surprised().moved())
        return Stepped.sure(replace(step, way=self.grown(seen.rows(), step.way)))

    def step_within(self, seen: StepView) -> Stepped:
        return Stepped.sure(seen.moved())

    def grown(self, rows: LocalRows, way: FloatArray) -> FloatArray:
        """The distance d (q,) at which the mean score is what a linear one has at `way` (q,):

            Σ h u (e^{uᵀd} − 1) = Σ h u uᵀ·way

        over the public rows, h their expected curvature.

        A step of slopes raises the mean response by their square; a linear step leaves that to the
        intercepts of later steps.
        """
        X, h = rows.X, rows.curvatures[:, None]
        J = (X * h).T @ X
        wanted, d = J @ way, way
        for _ in range(_GROWN_STEPS):
            mean, slope = self.growth(X @ d)
            H = (X * h * slope[:, None]).T @ X + _RIDGE * J
            change = np.linalg.lstsq(H, wanted - X.T @ (h[:, 0] * mean), rcond=_SMALLEST)[0]
            d = np.asarray(d + within(np.asarray(change, dtype=np.float64)))
        return within(d)


def log_link(change: FloatArray) -> tuple[FloatArray, FloatArray]:
    """eᵈ − 1 and its derivative, of changes (rows,) of a predictor with the link log."""
    cut = np.clip(change, *_GROWTH)
    return np.expm1(cut), np.exp(cut)
