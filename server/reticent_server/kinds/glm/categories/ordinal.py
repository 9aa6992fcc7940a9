# SPDX-License-Identifier: Apache-2.0
"""The ordinal logit (proportional odds): one predictor, and thresholds between the levels.

P(y ≤ j) = F(α_j − η), F logistic. One threshold, the anchor a, is 0, as η has an intercept; the
others follow from the gaps g_i = α_{i+1} − α_i = ln(1 + exp bλ_i) (S = K − 2 spacings λ), for which
dg/dλ = b(1 − e^{−g}) =: bd. Of a record of level y with the thresholds up = α_y − η and
low = α_{y−1} − η (∞ at the ends), π = F(up) − F(low), A = f(up)/π, B = f(low)/π,

    s_η = F(up) + F(low) − 1 = B − A                                |s_η| ≤ 1
    s_λi = b d_i (A [i < y] − B [i < y − 1] − (A − B) [i < a])       |s_λi| ≤ b

As π = F(up)(1 − F(low))(1 − e^{−g}), of the level's own gap, i = y − 1, the last is
dA = (1 − F(up))/(1 − F(low)) ≤ 1 or −dB = −F(low)/F(up) ≥ −1, however rare the level is; of the
other gaps it is 0 or ±d_i s_η, d_i ≤ 1. So

    R²s_η² + ‖s_λ‖² ≤ R² + b²(K − 2)

and the bound of a step is its maximum over η and y at the public gaps, on a grid (the primitive
clips what the grid may miss). π is taken as that product, without a difference of almost equal
numbers.

Reported are the slopes and the thresholds α_j − θ₀, as of R's polr:
P(y ≤ j) = F(threshold_j − xᵀβ).

Source: McCullagh (1980), Regression models for ordinal data.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy.special import expit, logit

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.glm.categories.law import Latent, information

_FARTHEST = 30.0  # |η|: beyond it probabilities are 0 or 1 to 10⁻¹³
_LEAST_GAP, _LARGEST_GAP = 1e-3, 12.0  # of predictors: a level of 1 in 4,000, and odds of 160,000
STRETCH = 1.5
"""b: what thresholds have of a record's score. At 1 intervals of the outer ones of 7 levels were
13 % wider, at 2 those of slopes 4 % (n = 20,000, ε = 1)."""
# of a gap before any release, relative: a profile's noise, and what regressors explain of the
# spread
_UNSURE = 0.5
_GRID = 1201  # values of η at which a bound is taken, .05 apart: within 10⁻³ of the supremum
# sup I_ηη: of K levels it is (1 − 1/K²)/3 at most, the variance of ridits about the middle
_MOST = 1 / 3


@dataclass(frozen=True, slots=True)
class Ordinal:
    """The ordinal law of K levels with the anchor a; satisfies law.CategoryLaw. P = 1, S = K −
    2."""

    levels: int
    anchor: int
    name: str = "ordinal"
    words: str = "maximum likelihood of an ordinal logit (proportional odds)"
    predictors: int = 1
    most: float = _MOST

    @property
    def spacings(self) -> int:
        """K − 2: the gaps between the K − 1 thresholds."""
        return self.levels - 2

    def start(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From the logits of the cumulative shares: the anchor's as η, the gaps as λ."""
        thresholds = logit(np.cumsum(shares)[:-1] / np.sum(shares))
        return -thresholds[self.anchor : self.anchor + 1], self.kept(_spacings(np.diff(thresholds)))

    def kept(self, spacings: FloatArray) -> FloatArray:
        """λ with every gap within its public bounds."""
        return np.asarray(np.clip(spacings, *_spacings(np.array([_LEAST_GAP, _LARGEST_GAP]))))

    def unsure(self, spacings: FloatArray) -> FloatArray:
        """(S,) sd of λ at which every gap is off by a public share of itself."""
        return np.asarray(_UNSURE * _gaps(spacings) / (STRETCH * expit(STRETCH * spacings)))

    def cells(self, at: Latent) -> tuple[FloatArray, FloatArray]:
        """Differences of logistic functions at the thresholds, and their scores."""
        K, rows = self.levels, at.predictors.shape[1]
        eta = np.clip(at.predictors[0], -_FARTHEST, _FARTHEST)
        ends = self.thresholds(at.spacings)[:, None] - eta
        F = np.vstack([np.zeros(rows), expit(ends), np.ones(rows)])
        left = np.vstack([np.ones(rows), expit(-ends), np.zeros(rows)])
        shares = expit(STRETCH * at.spacings)
        inside = np.concatenate([[1.0], shares, [1.0]])[:, None]
        A, B = left[1:] / (left[:-1] * inside), F[:-1] / (F[1:] * inside)
        s = np.empty((K, 1 + self.spacings, rows))
        s[:, 0] = F[:-1] + F[1:] - 1
        for y in range(K):
            for i, d in enumerate(STRETCH * shares):
                own = A[y] * (i < y) - B[y] * (i < y - 1)
                s[y, 1 + i] = d * (own - (A[y] - B[y]) * (i < self.anchor))
        return np.asarray(F[1:] * left[:-1] * inside), s

    def score_bound(self, radius: float, spacings: FloatArray) -> float:
        """The maximum over η and levels at the public gaps."""
        return _bounds(self, radius, tuple(spacings.tolist()))[0]

    def information_bound(self, radius: float, spacings: FloatArray) -> float:
        """The maximum over η at the public gaps."""
        return _bounds(self, radius, tuple(spacings.tolist()))[1]

    def names(self, levels: tuple[str, ...], terms: tuple[str, ...]) -> list[str]:
        """The terms without the intercept, then "low|high" of each threshold."""
        pairs = pairwise(levels)
        return [*terms[1:], *(f"{low}|{high}" for low, high in pairs)]

    def reported(self, theta: FloatArray, spacings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slopes and thresholds, as MASS::polr has them, and their derivative."""
        q, S = theta.shape[1], self.spacings
        beta = np.concatenate([theta[0, 1:], self.thresholds(spacings) - theta[0, 0]])
        change = np.zeros((q + S, q + S))
        change[: q - 1, 1:q] = np.eye(q - 1)
        change[q - 1 :, 0] = -1.0
        change[q - 1 :, q:] = self._moves * STRETCH * expit(STRETCH * spacings)
        return beta, change

    def thresholds(self, spacings: FloatArray) -> FloatArray:
        """α (K − 1,), 0 at the anchor."""
        return np.asarray(self._moves @ _gaps(spacings))

    @property
    def _moves(self) -> FloatArray:
        """(K − 1, S) ∂α_j/∂g_i = [i < j] − [i < a]."""
        j, i = np.arange(self.levels - 1)[:, None], np.arange(self.spacings)[None, :]
        return (i < j).astype(np.float64) - (i < self.anchor)


def _gaps(spacings: FloatArray) -> FloatArray:
    """g (S,) of λ (S,)."""
    return np.logaddexp(0.0, STRETCH * spacings)


def _spacings(gaps: FloatArray) -> FloatArray:
    """λ (S,) of g (S,) > 0."""
    return np.asarray(np.log(np.expm1(gaps)) / STRETCH)


@lru_cache(maxsize=256)  # a plan and its forecast ask for the same steps' bounds
def _bounds(law: Ordinal, radius: float, spacings: tuple[float, ...]) -> tuple[float, float]:
    eta = np.linspace(-_FARTHEST, _FARTHEST, _GRID)
    at = Latent(eta[None, :], np.array(spacings))
    p, s = law.cells(at)
    J = information(p, s)
    score = radius**2 * s[:, 0] ** 2 + np.sum(s[:, 1:] ** 2, axis=1)
    own, across = J[0, 0] ** 2, np.sum(J[0, 1:] ** 2, axis=0)
    rest = np.sum(J[1:, 1:] ** 2, axis=(0, 1))
    whole = radius**4 * own + 2 * radius**2 * across + rest
    return sqrt(float(score.max())), sqrt(float(whole.max()))


def ordinal(shares: FloatArray) -> Ordinal:
    """The law anchored at the threshold that is nearest to the middle of the public shares (K,)."""
    cumulated = np.cumsum(shares)[:-1] / np.sum(shares)
    return Ordinal(len(shares), int(np.argmin(np.abs(cumulated - 0.5))))
