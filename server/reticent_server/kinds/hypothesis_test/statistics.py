# SPDX-License-Identifier: Apache-2.0
"""Wald, score and likelihood-ratio-type tests from a released fit: post-processing, free of charge.

With Rβ = r of rank k, β̂ the released coefficients and C their covariance, privacy noise included:

    Wald    (Rβ̂ − r)ᵀ(RCRᵀ)⁻¹(Rβ̂ − r) ~ χ²_k
    score   the same, with the one-step estimate from the restricted fit and its covariance there
    LR      n(Rβ̂ − r)ᵀ(RM⁻¹Rᵀ)⁻¹(Rβ̂ − r) ~ Σ λ_i χ²₁, λ the eigenvalues of n(RM⁻¹Rᵀ)⁻¹RCRᵀ,

M the information (the Jacobian of the mean score): n UᵀU with U = M_{22.1}^{1/2}β̂₂ for β₂ = 0.
Without privacy noise C = M⁻¹QM⁻¹/n, and the λ are those of Heritier & Ronchetti (1994), Proposition
3.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from reticent_server.domain.hypothesis import LinearHypothesis
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.identifiability import Directions
from reticent_server.numerics.matrices import eigen
from reticent_server.numerics.weighted_chi2 import survival

# relative eigenvalue at which a covariance is inverted: keeps the statistic finite
_SMALLEST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class FitUnderTest:
    """Released coefficients (q,) in the reported order and units, their covariance C, M⁻¹, n in
    use.

    directions: which of them the releases can tell from none. barred: (q,) those that a few records
    or events decide, of which no test is made.
    """

    coefficients: FloatArray
    covariance: FloatArray
    inverse_information: FloatArray
    n: float
    directions: Directions
    barred: NDArray[np.bool_]

    def tells(self, R: FloatArray) -> bool:
        """Whether hypotheses with these rows (k, q) are tested."""
        return self.directions.estimable(R) and not np.any(R[:, self.barred])


@dataclass(frozen=True, slots=True)
class HypothesisOutcome:
    """A test's statistic, degrees of freedom and p-value; None where some combination of what is
    tested is not identifiable."""

    statistic: float | None
    df: int
    p_value: float | None


def wald(fit: FitUnderTest, hypothesis: LinearHypothesis) -> HypothesisOutcome:
    """The Wald test; the score test where `fit` is the one-step estimate from a restricted fit."""
    R, gap = _tested(fit, hypothesis)
    if not fit.tells(R):
        return HypothesisOutcome(None, hypothesis.df, None)
    middle = R @ fit.covariance @ R.T
    statistic = float(gap @ np.linalg.pinv(_scaled(middle), hermitian=True) @ gap)
    return HypothesisOutcome(statistic, hypothesis.df, float(chdtrc(hypothesis.df, statistic)))


def likelihood_ratio(fit: FitUnderTest, hypothesis: LinearHypothesis) -> HypothesisOutcome:
    """The likelihood-ratio-type test, with the privacy noise in its null law."""
    R, gap = _tested(fit, hypothesis)
    if not fit.tells(R):
        return HypothesisOutcome(None, hypothesis.df, None)
    values, vectors = eigen(R @ fit.inverse_information @ R.T)
    root = vectors / np.sqrt(np.maximum(values, _SMALLEST * max(float(values[-1]), 1e-300)))
    U = root.T @ gap
    law = eigen(fit.n * root.T @ R @ fit.covariance @ R.T @ root)[0]
    statistic = fit.n * float(U @ U)
    return HypothesisOutcome(statistic, hypothesis.df, survival(statistic, np.maximum(law, 0.0)))


def _tested(fit: FitUnderTest, hypothesis: LinearHypothesis) -> tuple[FloatArray, FloatArray]:
    R = np.array(hypothesis.rows)
    return R, R @ fit.coefficients - np.array(hypothesis.values)


def _scaled(middle: FloatArray) -> FloatArray:
    """Symmetric; a singular direction is left to the pseudo-inverse."""
    return np.asarray((middle + middle.T) / 2)
