# SPDX-License-Identifier: Apache-2.0
"""The score of maximum likelihood, whose sum is cut as a whole (fitting.whole_newton).

    score      v q,     v = m(η) u,   q = (y − μ)/(s√V),   m = g(η)/g(η₀),   g = μ′/√V
    curvature  h v vᵀ,  h = the observed over the expected information: 1 for canonical links

so that v q is the likelihood's score (y − μ)μ′/V · u in units of s g(η₀), and mean square and mean
of q and h are about 1 where the model holds. Neither q nor h is bounded, as the sum cuts v q at C
and v√h at L; h ≥ 0, as each likelihood here is log-concave in η (McCullagh & Nelder 1989, 4.3:
logit, probit, cloglog; Poisson, Gamma and the negative binomial at a known α with the link log).
"""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from scipy.special import factorial, stdtr

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.curvature import Bent, ScoreCurvature
from reticent_server.fitting.row_tail import TailShape, tail_shape
from reticent_server.fitting.score import BoolArray
from reticent_server.fitting.trust.thresholds import LIKELIHOOD_BEND
from reticent_server.fitting.whole_scores import TAIL_DEGREES, UNLIKE, UnboundedScore
from reticent_server.numerics import families as laws

_UNLIKE = 0.2
"""As UNLIKE of fitting.whole_scores: rows that are far out have predictors that are, and hardly any
information. With .35 a logit of 18 terms and 8,800 records had widths of 3.6 at epsilon = 1 in the
place of 2.5, at the same coverage.
"""
_ONE_SIGN = 0.9
"""Of what is cut, along one direction: .4 to .7 on seven of ten tables of amounts where one record
in 50 to 300 is cut, .9 where long scores are of long rows (wages by schooling, loans by income).
"""
_FAR, _FARTHER = 0.002, 0.4
"""The share of the records beyond the cut at which that is all of E, and the power by which it
grows: what is cut farther out is mostly longer than the curve before it tells. Of .03 to .1 % it
was .6 to .9 of the curve's E, and 2.3 of wages by schooling.
"""
_RARE = 0.2  # of a count, on average: nine of ten that are not 0 are 1
_RARE_COUNTS = 4  # 0 to 3: of a mean of .2 one count in 17,000 is more
_BEND_STEP = 0.05  # of η, of a difference of slopes: its error is of order .1 %
_SLOPE_STEP = 1e-3  # of η, of a central difference: its error is of order 10⁻⁶


@dataclass(frozen=True, slots=True)
class LikelihoodScore(UnboundedScore):
    """Satisfies fitting.whole_scores.WholeScore. law: without a dispersion of its own; scale: s;
    start: η₀.
    """

    law: laws.Family
    scale: float
    limits: tuple[float, float]
    start: float
    varies: bool = True
    signed: bool = False
    unlike: float = UNLIKE
    distances: FloatArray | None = field(default=None, repr=False, compare=False)

    @property
    def unit(self) -> float:
        """s/g(η₀)."""
        return self.scale / self._gain

    @property
    def _gain(self) -> float:
        return float(self.law.gain(np.array([self.start]))[0])

    def beside(self, distances: FloatArray | None) -> Self:
        """With what public rows say of the response's tail."""
        return replace(self, distances=distances)

    def events(self, eta: FloatArray, error: FloatArray) -> FloatArray:
        """(rows,) the least g²/s² within `error`, 1 at most."""
        least = np.minimum(
            *(self.law.gain(np.clip(eta + e, *self.limits)) for e in (error, -error))
        )
        return np.minimum((least / self.scale) ** 2, 1.0)

    @property
    def curvature(self) -> ScoreCurvature:
        """Bent, up to the error of a predictor that LIKELIHOOD_BEND says."""
        return Bent(self.away, most_off=LIKELIHOOD_BEND.value)

    def leverage(self, eta: FloatArray) -> FloatArray:
        """(rows,) g(η)/g(η₀)."""
        return np.asarray(self.law.gain(eta) / self._gain)

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) Pearson's residual over s, not cut."""
        return np.asarray(self.law.residual(y, eta) / self.scale)

    def with_curvature(
        self,
        y: FloatArray,
        eta: FloatArray,
        clipped: BoolArray | None = None,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        """q, and the observed over the expected information, not below 0."""
        return self.evaluate(y, eta), np.maximum(self.law.observed(y, eta), 0.0)

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """At η itself: steps know how the mean score bends."""
        return np.ones_like(eta)

    def away(self, eta: FloatArray, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(rows,) E q where the solution's predictor is η + change, and its derivative."""
        there = np.clip(eta + change, *self.limits)
        q, up, down = (
            self.evaluate(self.law.mean(there + h), eta) for h in (0.0, _SLOPE_STEP, -_SLOPE_STEP)
        )
        return q, np.asarray((up - down) / (2 * _SLOPE_STEP))

    def turned(self, eta: FloatArray) -> FloatArray:
        """(rows,) the second derivative of the mean score `away` from η, at η."""
        up, down = (self.away(eta, np.full_like(eta, h))[1] for h in (_BEND_STEP, -_BEND_STEP))
        return np.asarray((up - down) / (2 * _BEND_STEP))

    def beyond(self, length: FloatArray) -> FloatArray:
        """Counts and amounts: of a law about as heavy as real tables' residuals."""
        return np.asarray(2 * stdtr(TAIL_DEGREES, -length))

    def shape(self, lengths: FloatArray, eta: FloatArray) -> TailShape | None:  # noqa: ARG002 - one interface
        """None: the law of amounts is not known."""
        return None


@dataclass(frozen=True, slots=True)
class AmountLikelihoodScore(LikelihoodScore):
    """The score of amounts above 0, whose long residuals are all positive."""

    def leaning(self, size: int, share: float) -> float:  # noqa: ARG002 - one interface
        """All that is cut has one sign, so most of it is along one direction; the farther out, the
        fewer kinds of records are left, and the less a curve tells of them.
        """
        return max(_ONE_SIGN, float((_FAR / share) ** _FARTHER))


@dataclass(frozen=True, slots=True)
class CountLikelihoodScore(LikelihoodScore):
    """The score of counts: where they are rare, nearly all are none or one, and the law says how
    often."""

    def shape(self, lengths: FloatArray, eta: FloatArray) -> TailShape | None:
        """Scores of the first counts, each as often as a Poisson law says; None where counts are
        not rare, as real ones vary more.
        """
        mu = self.law.mean(eta)
        if float(np.mean(mu)) > _RARE:
            return None
        counts = np.arange(_RARE_COUNTS)
        scores = [lengths * np.abs(self.evaluate(np.full_like(mu, k), eta)) for k in counts]
        shares = [np.exp(-mu) * mu**k / factorial(k) for k in counts]
        return tail_shape(np.concatenate(scores), np.concatenate(shares) / len(mu))


@dataclass(frozen=True, slots=True)
class BinaryLikelihoodScore(LikelihoodScore):
    """The score of a yes or no: residuals have two values, and no tail."""

    unlike: float = _UNLIKE

    def beside(self, distances: FloatArray | None) -> Self:  # noqa: ARG002 - one interface
        return self

    def beyond(self, length: FloatArray) -> FloatArray:
        eta = np.array([self.start])
        p = float(self.law.mean(eta)[0])
        one, none = (abs(float(self.evaluate(np.array([y]), eta)[0])) for y in (1.0, 0.0))
        return np.asarray(p * (one > length) + (1 - p) * (none > length))

    def shape(self, lengths: FloatArray, eta: FloatArray) -> TailShape:
        """Scores of the two values, each as often as the predictor says."""
        p = self.law.mean(eta)
        one, none = (lengths * np.abs(self.evaluate(y, eta)) for y in (np.ones_like(p), 0 * p))
        return tail_shape(np.append(one, none), np.append(p, 1 - p) / len(p))
