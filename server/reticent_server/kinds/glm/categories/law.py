# SPDX-License-Identifier: Apache-2.0
"""What a fit needs to know of a model of a response with K levels: a law of the level at P linear
predictors.

A record's predictors are η = Γu (P,), u its whitened regressors; S more parameters, the spacings λ
(S,), are common to all records. With s = (s_η, s_λ) the derivative of the log-likelihood of its
level by (η, λ), and w = min(1, R²/‖u‖²),

    score        w (s_η ⊗ u, s_λ)
                 ‖·‖² ≤ sup (R²‖s_η‖² + ‖s_λ‖²)                  as ‖wu‖ ≤ R, w ≤ 1
    information  w E[x xᵀ], x = (s_η ⊗ u, s_λ), the expectation by the law at (η, λ): it does not
                 depend on the level
                 ‖·‖² ≤ sup (R⁴‖I_ηη‖² + 2R²‖I_ηλ‖² + ‖I_λλ‖²)   (Frobenius), as w‖u‖² ≤ R²

Each law says the two suprema; they are over all η and all levels, at the public λ of the step.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Latent:
    """Where a record is: predictors (P, rows), spacings (S,)."""

    predictors: FloatArray
    spacings: FloatArray


class CategoryLaw(Protocol):
    """A law of a response with K levels, by P linear predictors η and S shared parameters λ."""

    @property
    def name(self) -> str:
        """As in queries."""

    @property
    def words(self) -> str:
        """The words of the estimand."""
        ...

    @property
    def levels(self) -> int:
        """K."""

    @property
    def predictors(self) -> int:
        """P, the number of linear predictors."""

    @property
    def spacings(self) -> int:
        """S, the number of parameters that all records share."""

    @property
    def most(self) -> float:
        """The largest eigenvalue of I_ηη at any predictor."""

    def start(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(η (P,), λ (S,)) at which the levels have the public shares (K,)."""
        ...

    def kept(self, spacings: FloatArray) -> FloatArray:
        """λ (S,) within its public range."""
        ...

    def unsure(self, spacings: FloatArray) -> FloatArray:
        """(S,) standard deviations of λ before any score."""
        ...

    def cells(self, at: Latent) -> tuple[FloatArray, FloatArray]:
        """The levels' probabilities (K, rows), and s (K, P + S, rows) of each."""
        ...

    def score_bound(self, radius: float, spacings: FloatArray) -> float:
        """sup √(R²‖s_η‖² + ‖s_λ‖²)."""
        ...

    def information_bound(self, radius: float, spacings: FloatArray) -> float:
        """sup √(R⁴‖I_ηη‖² + 2R²‖I_ηλ‖² + ‖I_λλ‖²)."""
        ...

    def names(self, levels: tuple[str, ...], terms: tuple[str, ...]) -> list[str]:
        """The names of the reported coefficients (D,)."""
        ...

    def reported(self, theta: FloatArray, spacings: FloatArray) -> tuple[FloatArray, FloatArray]:
        """From Θ (P, q), in the units of the data, and λ: the reported coefficients (D,), and their
        derivative (D, D) by (Θ row by row, λ)."""
        ...


def chosen(scores: FloatArray, level: NDArray[np.int64]) -> FloatArray:
    """(L, rows) of scores (K, L, rows): those of each record's own level, 0 to K − 1."""
    return np.asarray(scores[level, :, np.arange(scores.shape[2])].T)


def information(probabilities: FloatArray, scores: FloatArray) -> FloatArray:
    """(L, L, rows) E s sᵀ, added level by level."""
    total = np.zeros((scores.shape[1], *scores.shape[1:]))
    for p, s in zip(probabilities, scores, strict=True):
        total += p * s[:, None] * s[None, :]
    return total


def expected(s: FloatArray, truth: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """(L, rows) E s of scores (K, L, rows) at one place where another, with its `cells`, is true;
    and its derivative (L, L, rows) by the true one."""
    p, there = truth
    mean, slope = np.zeros(s.shape[1:]), np.zeros((s.shape[1], *s.shape[1:]))
    for k in range(len(p)):
        mean += p[k] * s[k]
        slope += p[k] * s[k][:, None] * there[k][None, :]
    return mean, slope
