# SPDX-License-Identifier: Apache-2.0
"""Scores of a linear regression: Huber's, least squares with a public truncation, Tukey's biweight.

q = ψ(z) and h = ψ′(z) of z = (y − η)/s. On the way to a predictor that is off by N(0, v) the mean
derivative of Huber's ψ at a normal residual is 2Φ(cs/√(s² + v − v̄)) − 1 (Stein's lemma): s² holds
the mean v̄ of v already, since s is measured where the predictor stands.
"""

from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.steps import CountSum, FloatArray, Released, VectorSum
from reticent_server.fitting.curvature import CUT, REDESCENDING, ScoreCurvature
from reticent_server.fitting.residual_score import ResidualFamily, ResidualScore
from reticent_server.fitting.score import (
    SHAPE,
    BoolArray,
    Residuals,
    Score,
)
from reticent_server.fitting.whole_scores import PlainScore
from reticent_server.numerics.biweight import Biweight
from reticent_server.numerics.psi import Huber

_MEDIAN = float(ndtri(0.75))  # of |z| under the normal law: MAD's consistency constant
_LEAST_INSIDE, _MOST_INSIDE = (
    0.05,
    0.97,
)  # shares below the median that a step's noise may make of it
_BIWEIGHT_STEPS = 2  # the last ones; one leads there, one is a Newton step proper
_SQUARE_SHRINK = 1 / 4  # of a step of a winsorised scale
_EXPLAINED, _MOST = (
    0.3,
    1.04,
)  # squared residual scale of a settled fit, in units of the response's, and at most
_SHRINK, _GROW = 1 / 64, 1.2  # bounds of a step of the scale: residuals shrink as a fit settles


@dataclass(frozen=True, slots=True)
class PsiScore(ResidualScore):
    """q = ψ(z), at the tuning constant c of `psi` and the scale s; |ψ′| ≤ 1."""

    psi: Huber | Biweight
    scale: float

    @property
    def signed(self) -> bool:
        """Whether ψ′ has both signs, as that of the biweight does."""
        return self.psi.signed

    @property
    def bound(self) -> float:
        return self.psi.bound

    @property
    def curvature_bound(self) -> float:
        """sup |ψ′| = 1."""
        return 1.0

    @property
    def most(self) -> float:
        """1, the expected ψ′ where no residual is cut."""
        return 1.0

    @property
    def curvature(self) -> ScoreCurvature:
        """Linear, where residuals are not cut."""
        return REDESCENDING if self.signed else CUT

    @property
    def mean_square(self) -> float:
        """E ψ²/E ψ′ under the normal law."""
        return self.psi.mean_square / self.psi.mean_derivative

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) ψ((y − η)/s)."""
        return self.psi.psi(self._residual(y, eta))

    def with_curvature(
        self,
        y: FloatArray,
        eta: FloatArray,
        clipped: BoolArray | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        """ψ and ψ′ of (y − η)/s, each (rows,)."""
        z = self._residual(y, eta)
        return self.psi.psi(z), self.psi.derivative(z)

    def _residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        return np.asarray((y - eta) * (1 / self.scale))

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """(rows,) E ψ′ of normal residuals that are spread by `variance` more."""
        return self.psi.mean_derivative_at(self.residual_variance(variance))


@dataclass(frozen=True, slots=True)
class MedianResidual(Residuals):
    """s = median|r|/.6745, by the number of records with |r| ≤ .6745 s: one count a step.

    From the count the next scale is what would make it one half, were the residuals normal; the
    fixed point is the median whatever their law.
    """

    @property
    def words(self) -> str:
        return "median|r|/0.6745"

    def part(self, rho: int, unit_rows: int) -> CountSum:
        return CountSum(1, rho, unit_rows)

    def solve(self, residuals: FloatArray) -> float:
        """The scale of residuals (n,) without noise."""
        return float(np.median(np.abs(residuals))) / _MEDIAN

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        return np.where(np.abs(y - eta) <= _MEDIAN * score.scale, 0.0, -1.0)

    def scale(self, score: Score, released: Released, count: float) -> float:
        share = min(max(float(released.values[0]) / count, _LEAST_INSIDE), _MOST_INSIDE)
        ratio = _MEDIAN / float(ndtri((1 + share) / 2))
        return score.scale * min(max(ratio, _SHRINK), _GROW)

    def expected(self, start: float, left: float) -> float:
        return _typical(start, left)


@dataclass(frozen=True, slots=True)
class WeightedMedianResidual(Residuals):
    """As MedianResidual, by the sum of a(1{|r| ≤ .6745 s} − ½) of records that count as shares a ∈
    [0, 1].

    Contributions lie in ±½. The fixed point is the weighted median.
    """

    @property
    def words(self) -> str:
        return "weighted median|r|/0.6745"

    def part(self, rho: int, unit_rows: int) -> VectorSum:
        return VectorSum(1, 0.5, rho, unit_rows)

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        return np.asarray((np.abs(y - eta) <= _MEDIAN * score.scale) - 0.5)[None, :]

    def scale(self, score: Score, released: Released, count: float) -> float:
        inside = replace(released, values=released.values + 0.5 * count)
        return MedianResidual().scale(score, inside, count)

    def expected(self, start: float, left: float) -> float:
        return _typical(start, left)


@dataclass(frozen=True, slots=True)
class SquareResidual(Residuals):
    """s² = mean min(r², k²s²)/E min(z², k²), by one bounded sum a step: a winsorised standard
    deviation.

    It has a solution where at least 1/k² of the residuals are off 0, and does not jump where many
    are equal. Contributions min(z², k²) − k²/2 lie in ±k²/2.
    """

    k: float = 3.0

    @property
    def words(self) -> str:
        return f"the standard deviation of residuals winsorised at {self.k:g} of it"

    @property
    def consistency(self) -> float:
        """E min(z², k²) under the normal law."""
        return Huber(self.k).mean_square

    def part(self, rho: int, unit_rows: int) -> VectorSum:
        return VectorSum(1, self.k**2 / 2, rho, unit_rows)

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        z = (y - eta) * (1 / score.scale)
        return np.asarray(np.minimum(z * z, self.k**2) - self.k**2 / 2)[None, :]

    def scale(self, score: Score, released: Released, count: float) -> float:
        mean = float(released.values[0]) / count + self.k**2 / 2
        ratio = sqrt(max(mean, 0.0) / self.consistency)
        return score.scale * min(max(ratio, _SQUARE_SHRINK), _GROW)

    def expected(self, start: float, left: float) -> float:
        return _typical(start, left)

    def solve(self, residuals: FloatArray) -> float:
        """The scale of residuals (n,) without noise."""
        s = float(np.sqrt(np.mean(residuals**2))) or 1.0
        for _ in range(500):
            mean = float(np.mean(np.minimum((residuals / s) ** 2, self.k**2)))
            previous, s = s, s * sqrt(mean / self.consistency)
            if abs(s - previous) <= 1e-14 * s:
                break
        return s


def _typical(start: float, left: float) -> float:
    return start * sqrt(min(_EXPLAINED + left, _MOST))


@dataclass(frozen=True, slots=True)
class LinearFamily(ResidualFamily):
    """Huber's loss; with `biweight` the last two steps have its score, and start where Huber's have
    come: at the solution near the private Huber fit, of several. start: s before any release.
    residuals: None where s stays. distances: as of WholeScore.
    """

    psi: Huber
    biweight: Biweight | None = None
    start: float = 1.0
    residuals: Residuals | None = MedianResidual()
    distances: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def shape(self) -> float:
        """As usual: the relative error of an expected curvature."""
        return SHAPE

    def score(self, scale: float, remaining: int) -> PsiScore:
        """Huber's, or the biweight's in the last two steps."""
        if self.biweight is not None and remaining < _BIWEIGHT_STEPS:
            return PsiScore(self.biweight, scale)
        return PsiScore(self.psi, scale)

    def whole(self, scale: float) -> PlainScore:
        """Least squares at this scale."""
        return PlainScore(scale, distances=self.distances)

    def drift(self, remaining: int) -> float:  # noqa: ARG002 - one interface
        """None: the two biweight steps reach their solution from Huber's."""
        return 0.0
