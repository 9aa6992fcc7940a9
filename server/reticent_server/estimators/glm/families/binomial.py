"""Binomial responses with the logit link: y ∈ {0, 1}, or a share in between.

With c = ∞ the score is that of maximum likelihood, q = y − μ, |q| ≤ 1; its curvature h = μ(1 − μ) ≤ ¼.
"""

from dataclasses import dataclass, replace
from math import inf, log

import numpy as np
from scipy.special import expit

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.glm.families.base import GlmFamily, QuasiScore, Start
from reticent_server.estimators.glm.gradient_ball import logistic_ball
from reticent_server.fitting.score import Ball, Score, whole_ball
from reticent_server.numerics.families import Binomial

_LEAST_SHARE = 0.02  # of ones or zeros that a start assumes
_EXPLAINED = 0.7  # of p(1 − p): mean information once a model explains some of the responses


@dataclass(frozen=True, slots=True)
class BinomialScore(QuasiScore):
    """The logit's score."""

    @property
    def mean_square(self) -> float:
        return 1.0

    @property
    def bound(self) -> float:
        low, high = self.limits
        if self.c == inf:
            return float(max(expit(high), expit(-low)))
        eta = np.linspace(low, high, 2001)
        ends = (self.evaluate(np.full_like(eta, y), eta) for y in (0.0, 1.0))
        return float(max(np.max(np.abs(q)) for q in ends))

    def with_curvature(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        mu = self.law.mean(eta)
        if self.c == inf:
            return np.asarray(y - mu), np.asarray(mu * (1 - mu))
        gain, moments = self.law.gain(eta), self.law.moments(eta, self.c)
        psi = np.clip(self.law.residual(y, eta), -self.c, self.c) - moments.mean
        return np.asarray(psi * gain), np.asarray(moments.slope * gain * gain)

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        return np.asarray(y - self.law.mean(eta)) if self.c == inf else self.with_curvature(y, eta)[0]

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """E μ′(η + δ), δ ~ N(0, v), as κμ′(κη), κ² = 1/(1 + πv/8) (MacKay 1992)."""
        kappa = 1 / np.sqrt(1 + np.pi * variance / 8)
        mu = expit(kappa * eta)
        return np.asarray(kappa * mu * (1 - mu) * self._slope(eta))

    def _slope(self, eta: FloatArray) -> FloatArray:
        return self.law.moments(eta, self.c).slope if self.c < inf else np.ones_like(eta)

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        found = logistic_ball(self, direction, radius)
        return found or whole_ball(len(direction), radius * self.bound)


class BinomialFamily(GlmFamily):
    name, link, tuning, radius = "binomial", "logit", inf, 2.0

    def problem(self, response: Term) -> str | None:
        if response.lower >= 0 and response.upper <= 1:
            return None
        return "A binomial response must be boolean, or have bounds within [0, 1]."

    def start(self, y: FloatArray, response: Term, dispersion: float | None) -> Start:
        share = float(np.clip(np.mean(y), _LEAST_SHARE, 1 - _LEAST_SHARE))
        return Start(log(share / (1 - share)), 1.0, _EXPLAINED * share * (1 - share))

    def score(self, c: float, scale: float, start: Start, upper: float) -> Score:
        law = Binomial()
        base = BinomialScore(law, c, 1.0, 1.0, law.predictor_limits(upper), start.eta)
        return replace(base, curvature_bound=0.25 if c == inf else 1.0)


BINOMIAL = BinomialFamily()
