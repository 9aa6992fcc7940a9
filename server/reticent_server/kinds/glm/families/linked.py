# SPDX-License-Identifier: Apache-2.0
"""Binomial responses with other links than the logit: probit, complementary log-log, and log
(relative risks).

The estimating function is that of the canonical link, whatever the link: with μ = F(η)

    q = y − F(η),   |q| ≤ max(F(η_max), 1 − F(η_min)) ≤ 1,       h = F′(η) ≥ 0,   h ≤ sup F′

E q = 0 where the model holds, so it is consistent for the link's coefficients, and h is the exact
derivative of −q. The score of maximum likelihood, q F′/(μ(1 − μ)), has no useful bound: for the
probit it grows as |η|, for the log link it is infinite at μ = 1; it is that of target="likelihood",
where scores are cut as a whole (kinds.glm.families.likelihood). What is lost is efficiency: none
for a response whose F′/(μ(1 − μ)) is constant, 1 to 3 % for a probit of predictors within ±2. For
the log link q is the score of the modified Poisson regression (Zou 2004); predicted risks end at 1.

    probit     F = Φ(η)                F′ ≤ 1/√(2π)
    cloglog    F = 1 − exp(−e^η)       F′ ≤ 1/e
    log        F = e^η, η ≤ 0          F′ ≤ 1, and 0 where F is cut at 1

Source: McCullagh & Nelder (1989), Generalized linear models, 4.3; Godambe (1960) for estimating
functions; Zou (2004), American Journal of Epidemiology 159.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import exp, inf, log, log1p, pi, sqrt
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.curvature import Bent, ScoreCurvature
from reticent_server.fitting.score import Ball, BoolArray, whole_ball
from reticent_server.kinds.glm.families.base import GlmFamily, Start
from reticent_server.kinds.glm.families.likelihood import BinaryLikelihoodScore
from reticent_server.kinds.glm.gradient_ball import logistic_ball
from reticent_server.kinds.glm.quasi import QuasiScore
from reticent_server.numerics.families import ResidualMoments

_LEAST_SHARE = 0.002  # of ones or zeros that a start assumes, as for the logit
# of the mean curvature: what is left once a model explains some of the responses, as for the logit
_EXPLAINED = 0.7
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
"""Of means over normal laws: exact for polynomials of degree 17."""
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_SMALLEST = 1e-40  # of μ(1 − μ): less than at any limit of η
_LEAST_VARIANCE = 1e-12  # of a predictor: below, its mean slope is that at η


@dataclass(frozen=True, slots=True)
class ResponseCurve(ABC):
    """μ = F(η) on public limits of η. steepest: sup F′. symmetric: whether F(−η) = 1 − F(η)."""

    dispersion: float = 1.0
    name: str = "binomial"
    limits: ClassVar[tuple[float, float]]
    steepest: ClassVar[float]
    symmetric: ClassVar[bool] = False

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        """F, in the shape of η."""

    @abstractmethod
    def complement(self, eta: FloatArray) -> FloatArray:
        """1 − F, to relative precision."""

    @abstractmethod
    def slope(self, eta: FloatArray) -> FloatArray:
        """F′, in the shape of η."""

    @abstractmethod
    def inverse(self, share: float) -> float:
        """η of a share."""

    def mean_slope(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """(rows,) E F′(η + δ), δ ~ N(0, v): by a rule that needs a smooth F′."""
        moved = eta[:, None] + np.sqrt(np.maximum(variance, 0.0))[:, None] * _NODES
        return np.asarray(self.slope(moved) @ _WEIGHTS)

    def predictor_limits(self, upper: float) -> tuple[float, float]:  # noqa: ARG002 - one interface
        """The link's limits, whatever the bound."""
        return self.limits

    def gain(self, eta: FloatArray) -> FloatArray:
        """F′/√(F(1 − F))."""
        return np.asarray(self.slope(eta) / self._deviation(eta))

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """y(1 − F) − (1 − y)F is y − F, without the cancellation at F = 1."""
        F, rest = self.mean(eta), self.complement(eta)
        return np.asarray((y * rest - (1 - y) * F) / self._deviation(eta))

    def _deviation(self, eta: FloatArray) -> FloatArray:
        return np.sqrt(np.maximum(self.mean(eta) * self.complement(eta), _SMALLEST))

    def observed(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Of the ends y = 1 and y = 0, whose scores are f = F′/F and −F′/(1 − F): a share is a mean
        of both.
        """
        one, none = self._observed(eta)
        return np.asarray((y * one + (1 - y) * none) / self.gain(eta) ** 2)

    @abstractmethod
    def _observed(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """−∂²ln F/∂η² and −∂²ln(1 − F)/∂η²."""

    def moments(self, eta: FloatArray, c: float) -> ResidualMoments:  # noqa: ARG002 - there is no cut
        """The moments of residuals that are not cut: mean 0, slope and square 1."""
        ones = np.ones(np.shape(eta))
        return ResidualMoments(np.zeros(np.shape(eta)), ones, ones)


@dataclass(frozen=True, slots=True)
class Probit(ResponseCurve):
    """The normal law."""

    limits = -8.0, 8.0  # F is 6e-16 and 1 less that there
    steepest = 1 / sqrt(2 * pi)
    symmetric = True

    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(ndtr(eta))

    def complement(self, eta: FloatArray) -> FloatArray:
        return np.asarray(ndtr(-eta))

    def _observed(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        one, none = (self.slope(eta) / ndtr(side * eta) for side in (1, -1))
        return one * (one + eta), none * (none - eta)

    def slope(self, eta: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.5 * np.square(np.clip(eta, -30, 30))) / sqrt(2 * pi))

    def inverse(self, share: float) -> float:
        return float(ndtri(share))


@dataclass(frozen=True, slots=True)
class Cloglog(ResponseCurve):
    """The complementary log-log: proportional hazards of grouped times."""

    limits = -30.0, 4.0  # F is 1e-13, and 1 to the floats
    steepest = exp(-1)

    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(-np.exp(np.clip(eta, -700, 6))))

    def complement(self, eta: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-np.exp(np.clip(eta, -700, 6))))

    def _observed(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """With t = e^η: f = t/(eᵗ − 1), −t f′(t) = f(t eᵗ/(eᵗ − 1) − 1)."""
        t = np.exp(np.clip(eta, -700, 6))
        return t / np.expm1(t) * (-t / np.expm1(-t) - 1), t

    def slope(self, eta: FloatArray) -> FloatArray:
        inside = np.clip(eta, -700, 6)
        return np.asarray(np.exp(inside - np.exp(inside)))

    def inverse(self, share: float) -> float:
        return log(-log1p(-share))


@dataclass(frozen=True, slots=True)
class Risk(ResponseCurve):
    """The log link: relative risks."""

    limits = -12.0, 0.0  # a risk of 6e-6, as the least mean of counts
    steepest = 1.0

    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(np.exp(np.minimum(eta, 0.0)))

    def complement(self, eta: FloatArray) -> FloatArray:
        return np.asarray(-np.expm1(np.minimum(eta, 0.0)))

    def _observed(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of ln F = η, and of ln(1 − e^η)."""
        mu, rest = self.mean(eta), self.complement(eta)
        return np.zeros_like(eta), mu / np.maximum(rest * rest, _SMALLEST)

    def slope(self, eta: FloatArray) -> FloatArray:
        return np.asarray(np.where(eta < 0, np.exp(np.minimum(eta, 0.0)), 0.0))

    def mean_slope(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """E[e^(η + δ); η + δ < 0] = e^(η + v/2) Φ(−(η + v)/√v)."""
        v = np.maximum(variance, _LEAST_VARIANCE)
        return np.asarray(np.exp(eta + np.minimum(v, 60.0) / 2) * ndtr(-(eta + v) / np.sqrt(v)))

    def inverse(self, share: float) -> float:
        return log(share)


@dataclass(frozen=True, slots=True)
class LinkedScore(QuasiScore):
    """q = y − F(η). curve: F, the law."""

    curve: ResponseCurve = Probit()

    @property
    def mean_square(self) -> float:
        """E q²/E h at the start."""
        at = np.array([self.start])
        mu, slope = float(self.curve.mean(at)[0]), float(self.curve.slope(at)[0])
        return mu * (1 - mu) / slope

    @property
    def bound(self) -> float:
        low, high = self.curve.mean(np.array(self.limits))
        return float(max(high, 1 - low))

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) y − F(η)."""
        return np.asarray(y - self.curve.mean(eta))

    def with_curvature(
        self,
        y: FloatArray,
        eta: FloatArray,
        clipped: BoolArray | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        return self.evaluate(y, eta), self.curve.slope(eta)

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """E F′(η + δ), δ ~ N(0, v)."""
        return self.curve.mean_slope(eta, variance)

    @property
    def curvature(self) -> ScoreCurvature:
        """Bent: the link's mean is known away from the solution."""
        return Bent(self.away)

    def away(self, eta: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(rows,) E q where the solution's predictor is η + change, and its derivative."""
        there = eta + change
        return np.asarray(self.curve.mean(there) - self.curve.mean(eta)), self.curve.slope(there)

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        """The logistic score's smaller ball where the link is symmetric, else the one about 0."""
        found = logistic_ball(self, direction, radius) if self.curve.symmetric else None
        return found or whole_ball(len(direction), radius * self.bound)


class LinkedBinomial(GlmFamily):
    """A binomial regression with the link of a curve."""

    name, tuning, radius = "binomial", inf, 2.0
    menu, nanoseconds = (inf,), 100
    uncut = True

    def __init__(self, link: str, curve: ResponseCurve) -> None:
        self.link, self._curve = link, curve  # type: ignore[misc] # a class's where there is one link

    def problem(self, response: Term) -> str | None:
        if response.lower >= 0 and response.upper <= 1:
            return None
        return "A binomial response must be boolean, or have bounds within [0, 1]."

    def start(self, term: Term, values: FloatArray, dispersion: float | None) -> Start:  # noqa: ARG002
        share = float(np.clip(np.mean(values), _LEAST_SHARE, 1 - _LEAST_SHARE))
        return Start(self._curve.inverse(share), 1.0, term.upper)

    def score(self, c: float, scale: float, start: Start) -> LinkedScore:  # noqa: ARG002
        curve = self._curve
        return LinkedScore(
            curve,
            inf,
            1.0,
            1.0,
            curve.limits,
            start.eta,
            signed=False,
            centred=not curve.symmetric,
            curvature_bound=curve.steepest,
            most=curve.steepest,
            curve=curve,
        )

    def likelihood(self, scale: float, start: Start) -> BinaryLikelihoodScore | None:
        """None for a risk: where it ends at 1, a record's score is infinite."""
        curve = self._curve
        if isinstance(curve, Risk):
            return None
        return BinaryLikelihoodScore(curve, scale, curve.limits, start.eta)

    def curvature(self, c: float, start: Start) -> float:
        return _EXPLAINED * super().curvature(c, start)

    def cut(self, c: float) -> str:  # noqa: ARG002 - one interface
        return ", estimating function y - mean, no cut of residuals"


PROBIT = LinkedBinomial("probit", Probit())
CLOGLOG = LinkedBinomial("cloglog", Cloglog())
LOG_BINOMIAL = LinkedBinomial("log", Risk())
