# SPDX-License-Identifier: Apache-2.0
"""The score of a quantile regression: the check loss, smoothed by convolution.

With z = (y − η)/s and the bandwidth b, in residual scales,

    q = τ − 1 + K(z/b),   K(v) = Φ(v) + vφ(v)/2,        |q| ≤ max(τ, 1 − τ) + .036
    h = φ(z/b)/b,                                        0 ≤ h ≤ .399/b

K belongs to a kernel of the fourth order, which makes the smoothing's bias O(b⁴); its derivative
has both signs, so the Jacobian is measured with the normal kernel, whose mean is the density of the
residuals at 0 as well. Early steps have a wide normal kernel, K = Φ, whose slope is seen from afar:
with normal residuals it has its solution at the τ-quantile where its own level is Φ(z_τ/√(1 + b²)),
z_τ = Φ⁻¹(τ), and so the steps lead near to it.

Source: Fernandes, Guerre & Horta (2021), Smoothing quantile regressions; Koenker (2005), Quantile
regression.
"""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.huber import MedianResidual, WeightedMedianResidual
from reticent_server.fitting.residual_score import ResidualFamily, ResidualScore
from reticent_server.fitting.score import (
    BoolArray,
    Residuals,
    Score,
)

_FAR = 40.0  # bandwidths beyond which Φ is 0 or 1 and φ is 0 in floats
_PEAK = 1 / sqrt(2 * pi)  # φ(0)
_OVERSHOOT = 0.036
"""How far K leaves [0, 1]: its largest value is 1.0351, at v = √3."""
# relative error of a density that is expected of normal residuals; skewed ones have .6 to 1.6 of it
_DENSITY = 0.3
_MEDIAN = float(ndtri(0.75))  # of |z| under the normal law
_WIDE, _MIDDLE = 1.0, 0.6
"""Bandwidths of early steps and of the last but one: a slope that reaches one residual scale, then
a narrower one.
"""


_DRIFTS = {1: 0.15, 0: 0.15}
"""In residual scales, by the number of steps that follow: what the solutions of two kernels differ
by where errors are not normal. 0 left intercepts of skewed errors wrong by two errors at n =
20,000; .3 made all errors a tenth larger.
"""


def _phi(v: FloatArray) -> FloatArray:
    """The normal density at |v| ≤ _FAR."""
    return np.asarray(_PEAK * np.exp(-v * v / 2))


@dataclass(frozen=True, slots=True)
class QuantileScore(ResidualScore):
    """At the level τ, the bandwidth b (in scales) and the scale s. fine: whether K is of the fourth
    order.
    """

    tau: float
    bandwidth: float
    scale: float
    fine: bool
    signed: bool = False

    @property
    def level(self) -> float:
        """What q's mean of Φ is compared with."""
        if self.fine:
            return self.tau
        return float(ndtr(ndtri(self.tau) / sqrt(1 + self.bandwidth**2)))

    @property
    def bound(self) -> float:
        return max(self.level, 1 - self.level) + (_OVERSHOOT if self.fine else 0.0)

    @property
    def curvature_bound(self) -> float:
        """φ(0)/b."""
        return _PEAK / self.bandwidth

    @property
    def most(self) -> float:
        """φ(0), the largest density of a normal residual in scales."""
        return _PEAK

    @property
    def density(self) -> float:
        """E h of normal residuals with the scale s, at the solution."""
        return float(self._density(np.ones(1))[0])

    @property
    def mean_square(self) -> float:
        """τ(1 − τ) over the expected density."""
        return self.tau * (1 - self.tau) / self.density

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) K((y − η)/(sb)) less 1 − level."""
        return self._score(self._standardised(y, eta))

    def with_curvature(
        self,
        y: FloatArray,
        eta: FloatArray,
        clipped: BoolArray | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        """q, and h = φ((y − η)/(sb))/b."""
        v = self._standardised(y, eta)
        return self._score(v), _phi(v) * (1 / self.bandwidth)

    def _standardised(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        return np.clip((y - eta) * (1 / (self.scale * self.bandwidth)), -_FAR, _FAR)

    def _score(self, v: FloatArray) -> FloatArray:
        K = ndtr(v)
        if self.fine:
            K = K + v * _phi(v) / 2
        return np.asarray(K + (self.level - 1))

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """(rows,) the density of normal residuals that are spread by `variance` more."""
        return self._density(self.residual_variance(variance))

    def _density(self, spread: FloatArray) -> FloatArray:
        """E h of a normal residual of so many squared scales, whose τ-quantile is 0."""
        total = np.sqrt(spread + self.bandwidth**2)
        return np.asarray(_phi(float(ndtri(self.tau)) / total) / total)


@dataclass(frozen=True, slots=True)
class QuantileResidual(MedianResidual):
    """s = median|r + z_τ s|/.6745, by the number of records with |r + z_τ s| ≤ .6745 s: one count a
    step.

    r + z_τ s are residuals about the middle, were they normal; s sets bandwidths only.
    """

    tau: float

    @property
    def words(self) -> str:
        """The statistic, as a formula."""
        return "median|r - median(r)|/0.6745"

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) codes: 0 where |z| is below the normal law's median of it, else −1."""
        return np.where(_inside(self.tau, score, y, eta), 0.0, -1.0)


@dataclass(frozen=True, slots=True)
class WeightedQuantileResidual(WeightedMedianResidual):
    """As QuantileResidual, by the sum of a(1{|r + z_τ s| ≤ .6745 s} − ½) of records that count as
    shares a ∈ [0, 1].

    Contributions lie in ±½. The fixed point is the weighted median.
    """

    tau: float

    @property
    def words(self) -> str:
        return "weighted median|r - median(r)|/0.6745"

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        return np.asarray(_inside(self.tau, score, y, eta) - 0.5)[None, :]


def _inside(tau: float, score: Score, y: FloatArray, eta: FloatArray) -> BoolArray:
    """(rows,) |r + z_τ s| ≤ .6745 s."""
    z = (y - eta) * (1 / score.scale) + float(ndtri(tau))
    return np.asarray(np.abs(z) <= _MEDIAN)


@dataclass(frozen=True, slots=True)
class QuantileFamily(ResidualFamily):
    """Steps with wide kernels, the last with b = `bandwidth`. start: s before any release.
    weighted: whether records count by their weights.
    """

    tau: float
    bandwidth: float
    start: float = 1.0
    weighted: bool = False

    @property
    def shape(self) -> float:
        """The relative error of a density that is expected of normal residuals."""
        return _DENSITY

    @property
    def residuals(self) -> Residuals:
        """The scale's measure, about the τ-quantile."""
        return (WeightedQuantileResidual if self.weighted else QuantileResidual)(self.tau)

    def score(self, scale: float, remaining: int) -> QuantileScore:
        """The score of a step: wider kernels before the last step, the planned bandwidth in it."""
        if remaining > 1:
            return QuantileScore(self.tau, _WIDE, scale, fine=False)
        if remaining == 1:
            return QuantileScore(self.tau, max(_MIDDLE, self.bandwidth), scale, fine=True)
        return QuantileScore(self.tau, self.bandwidth, scale, fine=True)

    def whole(self, scale: float) -> None:
        """None: a quantile's score is bounded."""

    def drift(self, remaining: int) -> float:
        """From the wide kernel to the middle one, and to the last."""
        return _DRIFTS.get(remaining, 0.0)
