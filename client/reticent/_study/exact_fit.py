# SPDX-License-Identifier: Apache-2.0
"""How well a structural model fits noisy moments: χ², RMSEA, CFI, TLI and SRMR that count the
noise.

With Σ = LLᵀ, e = L⁻¹(K − Σ)L⁻ᵀ as a vector of lower entries (√2 times those off the diagonal), J
its slopes in θ and M the projection off J, T = N·F is about N/2·‖Me‖². Sampling gives e the
covariance 2/N·I, noise V: T is a sum Σλχ²₁ with λ the eigenvalues of M(I + N/2·V)M. Two moments of
it are matched, T′ = aT + df − aΣλ, a = √(df/Σλ²), which has df degrees of freedom and is T without
noise (Asparouhov & Muthén 2010). F less Σλ/N estimates the misfit of the population, from which
RMSEA, CFI and TLI follow (Steiger & Lind 1980; Bentler 1990; Tucker & Lewis 1973). SRMR is less the
noise's mean square.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy.special import chdtrc, chndtr, chndtrinc

from reticent._study.moments import FloatArray, Moments
from reticent._study.path_fit import Structure, discrepancy

_CLOSE = 0.05
"""RMSEA that is called close: MacCallum, Browne & Sugawara (1996)."""
_LEVEL = 0.90
"""Of RMSEA's interval, by the same source."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """T, its degrees of freedom, and Σλ and Σλ² of its law under an exact fit."""

    T: float
    df: int
    first: float
    second: float

    @property
    def a(self) -> float:
        """√(df/Σλ²), by which T is scaled to the variance of χ²; 1 for a model with no degree of
        freedom."""
        return sqrt(self.df / self.second) if self.df else 1.0

    @property
    def chisq(self) -> float:
        """T′ (df); never below 0."""
        return max(self.a * self.T + self.df - self.a * self.first, 0.0)

    @property
    def pvalue(self) -> float:
        """Of exact fit: P(χ²(df) > T′); nan for a model with no degree of freedom."""
        return float(chdtrc(self.df, self.chisq)) if self.df else nan

    def rmsea(self, noncentrality: float, n: float) -> float:
        """√(noncentrality/(a n df)), 0 for a negative noncentrality. n: records of the table."""
        return sqrt(max(noncentrality, 0.0) / (self.a * n * self.df)) if self.df else 0.0

    def end(self, probability: float) -> float:
        """The noncentrality at which χ² is below what was seen with this probability."""
        if self.df == 0 or chdtrc(self.df, self.chisq) > 1 - probability:
            return 0.0
        return float(chndtrinc(self.chisq, self.df, probability))


def misfit(
    S: Structure, theta: FloatArray, moments: Moments, places: Sequence[int], units: FloatArray
) -> tuple[Misfit, float]:
    """Of the columns at `places`, times units (m,); and the SRMR."""
    K = moments.covariance(places) * np.outer(units, units)
    sigma = S.implied(theta)
    back = np.linalg.inv(np.linalg.cholesky(sigma))
    J = np.array([_entries(back @ each @ back.T) for each in S.slopes(theta)]).T.reshape(
        S.m * (S.m + 1) // 2, -1
    )
    Q = np.linalg.qr(J)[0]
    M = np.eye(len(J)) - Q @ Q.T
    slopes = [(back * units).T @ U @ (back * units) for U in _units(S.m)]
    V = M @ moments.carried(places, np.zeros(len(slopes)), slopes).privacy @ M
    extra = moments.records / 2 * V
    T = moments.records * discrepancy(S, theta, K)
    first = S.df + float(np.trace(extra))
    second = S.df + 2 * float(np.trace(extra)) + float(np.sum(extra**2))
    return Misfit(T, S.df, first, second), _srmr(K, sigma, V)


def _srmr(K: FloatArray, sigma: FloatArray, V: FloatArray) -> float:
    """From residuals in units of the columns' deviations; V: the noise's covariance of Me."""
    m = len(K)
    sd = np.sqrt(np.diag(K))
    lower = np.tril_indices(m)
    residual = ((K - sigma) / np.outer(sd, sd))[lower]
    L = np.linalg.cholesky(sigma) / sd[:, None]
    turned = np.array([(L @ U @ L.T)[lower] for U in _units(m)]).T
    noise = float(np.sum((turned @ V) * turned))
    return sqrt(max(float(np.sum(residual**2)) - noise, 0.0) / len(residual))


def indices(own: Misfit, baseline: Misfit, srmr: float, n: float) -> dict[str, float]:
    """By lavaan's names."""
    excess, worst = own.T - own.first, baseline.T - baseline.first
    cfi = 1 - max(excess, 0.0) / max(excess, worst, 0.0) if max(excess, worst) > 0 else 1.0
    tli = 1 - excess / own.df * baseline.df / worst if own.df and worst > 0 else nan
    tail = (1 - _LEVEL) / 2
    close = own.a * n * own.df * _CLOSE**2
    return {
        "chisq": own.chisq,
        "df": float(own.df),
        "pvalue": own.pvalue,
        "cfi": cfi,
        "tli": tli,
        "rmsea": own.rmsea(own.chisq - own.df, n),
        "rmsea.ci.lower": own.rmsea(own.end(1 - tail), n),
        "rmsea.ci.upper": own.rmsea(own.end(tail), n),
        "rmsea.pvalue": 1 - float(chndtr(own.chisq, own.df, close)) if own.df else nan,
        "srmr": srmr,
        "noise": own.first / own.df if own.df else 1.0,
    }


def _entries(matrix: FloatArray) -> FloatArray:
    """Lower entries, those off the diagonal times √2: ‖·‖ is Frobenius's."""
    rows, columns = np.tril_indices(len(matrix))
    return np.asarray(matrix[rows, columns] * np.where(rows == columns, 1.0, sqrt(2)))


def _units(m: int) -> list[FloatArray]:
    """Symmetric matrices whose products with a matrix are its entries as of _entries."""
    found = []
    for i, j in zip(*np.tril_indices(m), strict=True):
        U = np.zeros((m, m))
        U[i, j] = U[j, i] = 1.0 if i == j else sqrt(0.5)
        found.append(U)
    return found
