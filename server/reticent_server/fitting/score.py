# SPDX-License-Identifier: Apache-2.0
"""What a fit needs to know of a model: the score of one record, and what to expect of it.

    score      w v q(y, η),    v = m(η) u,    w = min(1, R²/‖v‖²)      ‖·‖ ≤ R sup|q|
    curvature  w h(y, η) v vᵀ,    |h| ≤ sup |h|, h ≥ 0 unless `signed`

u are the whitened regressors, η = x̃ᵀθ the predictor, and θ ← θ + unit·J⁻¹g a Newton step. A family
gives a Score for each step of a fit; the fit asks it, never for its name.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import CountSum, FloatArray, Released, VectorSum
from reticent_server.fitting.curvature import ScoreCurvature
from reticent_server.fitting.row_tail import TailShape

BoolArray = NDArray[np.bool_]

SHAPE = 0.12  # relative error of an expected curvature
OFFSET = 2.0  # scales of the response by which a row's predictor may be off at the start


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """shift (q,), added to every record's contribution to the gradient; radius of what results."""

    shift: FloatArray
    radius: float


class Score(Protocol):
    """The score at a known scale."""

    @property
    def unit(self) -> float:
        """The change of η for one unit of J⁻¹g."""
        ...

    @property
    def scale(self) -> float:
        """That of the residuals, in units of the response's."""
        ...

    @property
    def bound(self) -> float:
        """sup |q|."""
        ...

    @property
    def curvature_bound(self) -> float:
        """sup |h|."""
        ...

    @property
    def most(self) -> float:
        """sup of `expected`."""
        ...

    @property
    def signed(self) -> bool:
        """Whether h has both signs."""
        ...

    @property
    def limits(self) -> tuple[float, float]:
        """The public range of η."""
        ...

    @property
    def varies(self) -> bool:
        """Whether m(η) is other than 1."""
        ...

    @property
    def curvature(self) -> ScoreCurvature:
        """How the mean score changes with the distance to the solution (fitting.curvature)."""
        ...

    @property
    def mean_square(self) -> float:
        """E q² where the model holds, relative to the expected curvature of a settled fit."""
        ...

    def leverage(self, eta: FloatArray) -> FloatArray:
        """(rows,) m(η)."""
        ...

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) q of responses y and clipped predictors η, both standardised."""
        ...

    def with_curvature(
        self, y: FloatArray, eta: FloatArray, clipped: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """(q, h), each (rows,). clipped: (rows,) whether w < 1."""
        ...

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """(rows,) the mean curvature along the way to a predictor that is off by N(0, variance)."""
        ...

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        """A ball that all contributions to the gradient lie in. direction: θ in u (q,); radius:
        R.
        """
        ...


class WholeScore(Score, Protocol):
    """The textbook's score, whose sum is cut as a whole (fitting.whole_newton)."""

    @property
    def unlike(self) -> float:
        """Relative error of the second moment of √h v that public rows lead to expect."""
        ...

    @property
    def distances(self) -> FloatArray | None:
        """(rows,) of the responses of public rows from their median; None where no profile
        has the tails.
        """
        ...

    def events(self, eta: FloatArray, error: FloatArray) -> FloatArray | None:
        """(rows,) a record's information in natural units, 1 at most and the least within `error`
        (rows,) of η: p(1 − p) of a yes or no. None where each counts as one.
        """
        ...

    def leaning(self, size: int, share: float) -> float:
        """By how much of what a cut takes, beyond which this share of the records is, one direction
        of q coordinates may be off.
        """
        ...

    def turned(self, eta: FloatArray) -> FloatArray | None:
        """(rows,) the second derivative by η of the mean score to be expected; None where that is
        linear.
        """
        ...

    def beyond(self, length: FloatArray) -> FloatArray:
        """The share of records with |q| above `length` (any shape) that is planned for."""
        ...

    def shape(self, lengths: FloatArray, eta: FloatArray) -> TailShape | None:
        """The tail of the lengths of scores, from those of v (rows,) and predictors (rows,) of
        public rows; None where the law of responses is not known."""
        ...


class Residuals(Protocol):
    """How a family measures the scale of its residuals between steps."""

    @property
    def words(self) -> str:
        """The statistic that is measured, as a reply names it."""
        ...

    def part(self, rho: int, unit_rows: int) -> CountSum | VectorSum:
        """What is released."""
        ...

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        """What each record adds: codes (rows,) of a CountSum, or a row (1, rows) of a VectorSum."""
        ...

    def scale(self, score: Score, released: Released, count: float) -> float:
        """The next scale."""
        ...

    def expected(self, start: float, left: float) -> float:
        """A typical scale, of a fit from `start` whose predictor is off by a mean square of
        `left`.
        """
        ...

    def lean(self, score: Score, other: Score, eta: FloatArray) -> FloatArray:  # noqa: ARG002
        """(rows,) the mean of the other scale's q where the law holds at the score's: 0 of
        symmetric laws.
        """
        return np.zeros_like(eta)

    def error(self, score: Score, sd: float) -> float:  # noqa: ARG002 - one interface
        """The error of ln s, where the law holds, that noise of this sd in a mean contribution
        makes; 0 also where scores do not lean."""
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class JointStep:
    """A last step in θ and ln s. gradient: (q, q + 1), from the mean scores (g, χ) to the mean
    score that θ alone would have at the solution's scale; log_scale: (q + 1,), from the same to the
    change of ln s.
    """

    gradient: FloatArray
    log_scale: FloatArray


class Joint(Protocol):
    """The scale's own estimating equation, mean wχ = 0, where θ moves with the scale."""

    def bound(self, score: Score) -> float:
        """sup |χ|."""
        ...

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) χ."""
        ...

    def step(self, score: Score, J: FloatArray, transform: FloatArray) -> JointStep:
        """From the expected curvature J (q, q) in u = Wx̃."""
        ...


class ScoreFamily(Protocol):
    """A model: its scores and its scale."""

    @property
    def offset(self) -> float:
        """By how much a row's predictor may be off before any release, in units of the
        standardised response or of η.
        """
        ...

    @property
    def shape(self) -> float:
        """Relative error of an expected curvature, as real rows are not quite the public ones."""
        ...

    @property
    def residuals(self) -> Residuals | None:
        """How the scale is measured; None where it is known."""
        ...

    @property
    def joint(self) -> Joint | None:
        """The scale's own equation in the last step; None without one."""
        ...

    @property
    def start(self) -> float:
        """The scale before any release."""
        ...

    def score(self, scale: float, remaining: int) -> Score:
        """The score of a step, with so many steps after it."""
        ...

    def whole(self, scale: float) -> WholeScore | None:
        """The score of the steps that are cut as a whole; None where there is none."""
        ...

    def drift(self, remaining: int) -> float:
        """By how much a row's predictor may change, in residual scales, from the solution of the
        step before to that of the step with so many after it; 0 where all steps have one
        solution.
        """
        ...


def whole_ball(size: int, bound: float) -> Ball:
    """The ball about 0."""
    return Ball(np.zeros(size), bound)
