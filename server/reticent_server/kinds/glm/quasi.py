# SPDX-License-Identifier: Apache-2.0
"""The quasi-likelihood score that families of generalised linear models share.

    score       w v q(y, η),   v = m(η) u,   q = [ψ_c(z) − a]·g(η)/m(η),   z = (y − μ)/(s√V)
    curvature   w h(η) v vᵀ,   h = d·(g/m)²           (Fisher scoring: h ≥ 0 whatever y)

so that a step is θ ← θ + unit·J⁻¹g. The leverage m keeps q and h bounded by public constants. On
the way to a predictor that is off by N(0, v) the residuals z are spread by m√v/unit more, and fewer
of them are within the cut (Stein's lemma, as for Huber's score). Source: Cantoni & Ronchetti
(2001).
"""

from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, sqrt

import numpy as np
from scipy.special import ndtr

from reticent_server.domain.steps import FloatArray, Released, VectorSum
from reticent_server.fitting.curvature import STEADY, Growing, ScoreCurvature, log_link
from reticent_server.fitting.score import Ball, BoolArray, Residuals, Score, whole_ball
from reticent_server.numerics import families as laws
from reticent_server.numerics.dispersion import estimated_dispersion, reference_square

SCALE_CUT = 1.5  # cut of the residuals whose mean square gives the scale, in scales
_SLOPE_STEP = 1e-3  # of η, of a difference
_GRID = 2001  # points of η at which the score's bound is taken
# stands for an unbounded one: every bounded score is at its end there, within the floats
_LARGEST_RESPONSE = 1e30
_SCALE_STEP = 4.0  # largest factor of a step of the scale
_LEAST_SCALE, _LARGEST_SCALE = 0.02, 1.5  # bounds of the scale relative to its public start
_EXPLAINED = 0.7  # of the squared scale of the responses about their mean, left by a typical model
# squared spread of residuals, in scales, that a cut is expected to see at least
_LEAST_SPREAD = 0.4
_ENDS = 1e-4, 0.98  # of k²: mean squares of cut residuals that have a scale


@dataclass(frozen=True, slots=True)
class QuasiScore:
    """A law at the tuning constant c (∞: no cut) and the scale s; η in `limits`.

    unit, limits, signed, varies: as in fitting.score. start: η₀, the unit of leverages. measured:
    whether s is, so that it holds the mean of what predictors are off by. centred: whether `ball`
    is about 0 at any θ.
    """

    law: laws.Family
    c: float
    scale: float
    unit: float
    limits: tuple[float, float]
    start: float
    residual_unit: float = 1.0
    shift: float = 0.0
    varies: bool = False
    measured: bool = True
    signed: bool = True
    centred: bool = True
    curvature_bound: float = 2.0
    most: float = 1.0

    @property
    def curvature(self) -> ScoreCurvature:
        """Steady: a cut residual's mean score is taken as linear."""
        return STEADY

    @property
    def mean_square(self) -> float:
        """Var ψ_c/d at the start."""
        moments = self.law.moments(np.array([self.start + self.shift]), self.c)
        return float((moments.square[0] - moments.mean[0] ** 2) / moments.slope[0])

    @property
    def bound(self) -> float:
        """sup |q| over η in `limits` and responses y ≥ 0."""
        return _bound(self)

    def leverage(self, eta: FloatArray) -> FloatArray:
        """m(η) = g(η)/g(η₀)."""
        if not self.varies:
            return np.ones_like(eta)
        return np.asarray(self.law.gain(eta) / float(self.law.gain(np.array([self.start]))[0]))

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) ψ_c(z) less its mean under the law."""
        z = np.clip(self.residual(y, eta), -self.c, self.c)
        return np.asarray(z - self._centre(eta))

    def with_curvature(
        self, y: FloatArray, eta: FloatArray, clipped: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """h as observed, cut to ±curvature_bound: what the sandwich needs where the law is not the
        data's.
        """
        z, centre = self.residual(y, eta), self._centre(eta)
        q = np.clip(z, -self.c, self.c) - centre
        length, growth = self._growth(eta)
        tilt = (self._centre(eta + _SLOPE_STEP) - self._centre(eta - _SLOPE_STEP)) / (
            2 * _SLOPE_STEP
        )
        inside = np.where(np.abs(z) < self.c, 1 + z * (1 - growth) * length, 0.0)
        turn = np.where(clipped, -growth, growth) if self.varies else 0.0
        h = inside + length * (tilt - turn * q)
        return np.asarray(q), np.clip(h, -self.curvature_bound, self.curvature_bound)

    def _centre(self, eta: FloatArray) -> FloatArray:
        """(rows,) a."""
        return self.law.moments(eta + self.shift, self.c).mean

    def _growth(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(rows,) unit/m, and d ln m/dη of the law's own gain: ln √V grows by 1 less that, for a
        log link.
        """
        up, down = (np.log(self.law.gain(eta + h)) for h in (_SLOPE_STEP, -_SLOPE_STEP))
        return np.asarray(self.unit / self.leverage(eta)), np.asarray(
            (up - down) / (2 * _SLOPE_STEP)
        )

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """z, in units of s."""
        return np.asarray(self.law.residual(y, eta) / self.residual_unit)

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """(rows,) d, with the share of residuals within the cut that the spread leaves."""
        slope = self.law.moments(eta + self.shift, self.c).slope
        if self.c == inf:
            return np.asarray(slope)
        excess = variance * (self.leverage(eta) / self.unit) ** 2
        spread = 1 + excess - (np.mean(excess) if self.measured else 0.0)
        within = 2 * ndtr(self.c / np.sqrt(np.maximum(spread, _LEAST_SPREAD))) - 1
        return np.asarray(slope * within / (2 * ndtr(self.c) - 1))

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        """The ball about 0."""
        return whole_ball(len(direction), radius * self.bound)


@dataclass(frozen=True, slots=True)
class LogScore(QuasiScore):
    """That of a log link, V any function of μ: where the solution is at η + d, E(y − μ) = μ(eᵈ −
    1).
    """

    @property
    def curvature(self) -> ScoreCurvature:
        """Growing with the exponential of the distance."""
        return Growing(log_link)


@lru_cache(maxsize=1024)  # scores: a plan asks for that of each of its steps hundreds of times
def _bound(score: QuasiScore) -> float:
    eta = np.linspace(*score.limits, _GRID)
    with np.errstate(over="ignore"):
        ends = (score.evaluate(np.full_like(eta, y), eta) for y in (0.0, _LARGEST_RESPONSE))
        return float(max(np.max(np.abs(q)) for q in ends))


@dataclass(frozen=True, slots=True)
class CutSquares(Residuals):
    """The scale at which the mean of ψ_k²(z) is what the law says, by one bounded sum a step.

    Contributions ψ_k²(z) − k²/2 lie in ±k²/2. start: s₀; least: the smallest scale.
    """

    start: float
    least: float
    k: float = SCALE_CUT

    @property
    def words(self) -> str:
        """Which mean square, and its cut."""
        return f"mean squares of residuals cut at {self.k:g} of it"

    def part(self, rho: int, unit_rows: int) -> VectorSum:
        """A sum of one number within ±k²/2."""
        return VectorSum(1, self.k**2 / 2, rho, unit_rows)

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(1, rows) cut squares of residuals less k²/2."""
        return np.asarray(self.squares(quasi(score), y, eta) - self.k**2 / 2)[None, :]

    def squares(self, score: QuasiScore, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) ψ_k²(z)."""
        return np.asarray(np.clip(score.residual(y, eta), -self.k, self.k) ** 2)

    def scale(self, score: Score, released: Released, count: float) -> float:
        """The scale at which the released mean square is the law's."""
        return self.next(quasi(score), float(released.values[0]) / count + self.k**2 / 2)

    def expected(self, start: float, left: float) -> float:  # noqa: ARG002 - one interface
        """√.7 of the start, at least `least`: a typical model explains a third."""
        return max(start * sqrt(_EXPLAINED), self.least)

    def lean(self, score: Score, other: Score, eta: FloatArray) -> FloatArray:
        """With z/ρ the residuals of the other scale, ρ times the score's:
        E ψ_c(z/ρ) = E ψ_{cρ}(z)/ρ.
        """
        own, apart = quasi(score), quasi(other)
        ratio = apart.scale / own.scale
        mean = own.law.moments(eta + own.shift, apart.c * ratio).mean / ratio
        return np.asarray(mean - apart.law.moments(eta + apart.shift, apart.c).mean)

    def error(self, score: Score, sd: float) -> float:
        """Half of the way between the scales of mean squares one sd above the law's and below."""
        own = quasi(score)
        square = reference_square(own.law, own.law.dispersion, self.k)
        up, down = (self.next(own, square + sign * sd) for sign in (1, -1))
        return log(up / down) / 2

    def next(self, score: QuasiScore, mean: float) -> float:
        """The scale at which the cut residuals have this mean square."""
        least, most = (end * self.k**2 for end in _ENDS)
        square = min(max(mean, least), most)
        ratio = sqrt(estimated_dispersion(score.law, square, self.k) / score.law.dispersion)
        s = score.scale * min(max(ratio, 1 / _SCALE_STEP), _SCALE_STEP)
        least = max(self.least, self.start * _LEAST_SCALE)
        return min(max(s, least), max(self.start * _LARGEST_SCALE, least))


def quasi(score: Score) -> QuasiScore:
    """The score as one of this module."""
    if not isinstance(score, QuasiScore):
        raise TypeError("a quasi-likelihood score is needed")
    return score
