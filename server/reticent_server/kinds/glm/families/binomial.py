# SPDX-License-Identifier: Apache-2.0
"""Binomial responses with the logit link: y ∈ {0, 1}, or a share in between.

With c = ∞ the score is that of maximum likelihood, q = y − μ, |q| ≤ 1; its curvature h = μ(1 − μ) ≤
¼.
"""

from dataclasses import dataclass
from math import inf, log

import numpy as np
from scipy.special import expit

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.curvature import Bent, ScoreCurvature
from reticent_server.fitting.score import Ball, BoolArray, whole_ball
from reticent_server.kinds.glm.families.base import GlmFamily, Start
from reticent_server.kinds.glm.families.likelihood import BinaryLikelihoodScore
from reticent_server.kinds.glm.gradient_ball import logistic_ball
from reticent_server.kinds.glm.quasi import QuasiScore
from reticent_server.numerics.families import Binomial

_LEAST_SHARE = 0.002  # of ones or zeros that a start assumes
_EXPLAINED = 0.7  # of p(1 − p): mean information once a model explains some of the responses
# points of η where a bounded smooth function's largest value is looked for; contributions are
# clipped besides
_GRID = 2001


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
        eta = np.linspace(low, high, _GRID)
        ends = (self.evaluate(np.full_like(eta, y), eta) for y in (0.0, 1.0))
        return float(max(np.max(np.abs(q)) for q in ends))

    def with_curvature(
        self,
        y: FloatArray,
        eta: FloatArray,
        clipped: BoolArray | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        mu = self.law.mean(eta)
        if self.c == inf:
            return np.asarray(y - mu), np.asarray(mu * (1 - mu))
        gain, moments = self.law.gain(eta), self.law.moments(eta, self.c)
        psi = np.clip(self.law.residual(y, eta), -self.c, self.c) - moments.mean
        return np.asarray(psi * gain), np.asarray(moments.slope * gain * gain)

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) y − μ, or cut and centred where there is a c."""
        return (
            np.asarray(y - self.law.mean(eta)) if self.c == inf else self.with_curvature(y, eta)[0]
        )

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:
        """E μ′(η + δ), δ ~ N(0, v), as κμ′(κη), κ² = 1/(1 + πv/8) (MacKay 1992)."""
        kappa = 1 / np.sqrt(1 + np.pi * variance / 8)
        mu = expit(kappa * eta)
        return np.asarray(kappa * mu * (1 - mu) * self._cut(eta))

    @property
    def curvature(self) -> ScoreCurvature:
        """Bent: the logistic mean is known away from the solution."""
        return Bent(self.away)

    def away(self, eta: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(rows,) E q where the solution's predictor is η + change, and its derivative."""
        there, slope = expit(eta + change), self._cut(eta)
        return np.asarray(slope * (there - expit(eta))), np.asarray(slope * there * (1 - there))

    def _cut(self, eta: FloatArray) -> FloatArray:
        """What the cut of residuals leaves of the information."""
        return np.ones_like(eta) if self.c == inf else self.law.moments(eta, self.c).slope

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        """The logistic score's smaller ball where it applies, else the one about 0."""
        ball = logistic_ball(self, direction, radius)
        return ball or whole_ball(len(direction), radius * self.bound)


class BinomialFamily(GlmFamily):
    """Logistic regression."""

    name, link, tuning, radius = "binomial", "logit", inf, 2.0
    menu, nanoseconds = (inf,), 100
    blocks = "maximum likelihood, binomial family, logit link"
    convex = True

    def problem(self, response: Term) -> str | None:
        if response.lower >= 0 and response.upper <= 1:
            return None
        return "A binomial response must be boolean, or have bounds within [0, 1]."

    def start(self, term: Term, values: FloatArray, dispersion: float | None) -> Start:  # noqa: ARG002
        share = float(np.clip(np.mean(values), _LEAST_SHARE, 1 - _LEAST_SHARE))
        return Start(log(share / (1 - share)), 1.0, term.upper)

    def score(self, c: float, scale: float, start: Start) -> BinomialScore:  # noqa: ARG002
        law = Binomial()
        limits = law.predictor_limits(start.upper)
        top = 0.25 if c == inf else 1.0
        return BinomialScore(
            law,
            c,
            1.0,
            1.0,
            limits,
            start.eta,
            signed=False,
            centred=False,
            curvature_bound=top,
            most=top,
        )

    def likelihood(self, scale: float, start: Start) -> BinaryLikelihoodScore:
        law = Binomial()
        return BinaryLikelihoodScore(law, scale, law.predictor_limits(start.upper), start.eta)

    def curvature(self, c: float, start: Start) -> float:
        return _EXPLAINED * super().curvature(c, start)


BINOMIAL = BinomialFamily()
