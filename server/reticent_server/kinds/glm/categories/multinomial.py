# SPDX-License-Identifier: Apache-2.0
"""The multinomial logit: every level but the first has coefficients of its own.

P(y = k) = exp(ζ_k)/Σ exp(ζ_j), ζ = Hᵀη, H (K − 1, K) Helmert's orthonormal contrasts, so that no
level is special to the noise. With π the probabilities and e the indicator of the record's level,

    s = H(e − π)                ‖s‖ = ‖e − π‖ ≤ √2    (attained where another level is certain)
    I = H(diag π − ππᵀ)Hᵀ       ‖I‖_F ≤ ½             (attained by two levels of ½ each)

The second: with a = Σπ², ‖diag π − ππᵀ‖_F² = a − 2Σπ³ + a², and a² ≤ Σπ·Σπ³ = Σπ³ (Cauchy), so it
is at most a − a² ≤ ¼. Reported are differences to the first level, β_k = Γᵀ(H_k − H_1).

Source: McFadden (1974), Conditional logit analysis; Agresti (2013), Categorical data analysis,
section 8.1.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.glm.categories.law import Latent


@dataclass(frozen=True, slots=True)
class Multinomial:
    """The multinomial law of K levels; satisfies law.CategoryLaw. P = K − 1, no spacings."""

    levels: int
    name: str = "multinomial"
    words: str = "maximum likelihood of a multinomial logit, first level as the baseline"
    spacings: int = 0
    most: float = 0.5

    @property
    def predictors(self) -> int:
        """K − 1: contrasts of the levels' logits."""
        return self.levels - 1

    def start(self, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The contrasts of the shares' logarithms; there is no λ."""
        return np.asarray(contrasts(self.levels) @ np.log(shares)), np.zeros(0)

    def kept(self, spacings: FloatArray) -> FloatArray:
        """λ itself, which is empty."""
        return spacings

    def unsure(self, spacings: FloatArray) -> FloatArray:
        """Empty, as λ is."""
        return spacings

    def cells(self, at: Latent) -> tuple[FloatArray, FloatArray]:
        """Softmax probabilities, and s = H(e − π) of each level."""
        H = contrasts(self.levels)
        p = self._probabilities(H, at)
        mean = np.zeros((self.levels - 1, at.predictors.shape[1]))
        for column, each in zip(H.T, p, strict=True):
            mean += column[:, None] * each
        return p, np.asarray(H.T[:, :, None] - mean)

    def _probabilities(self, H: FloatArray, at: Latent) -> FloatArray:
        zeta = np.zeros((self.levels, at.predictors.shape[1]))
        for row, eta in zip(H, at.predictors, strict=True):
            zeta += row[:, None] * eta
        zeta -= zeta.max(axis=0)
        np.exp(zeta, out=zeta)
        return np.asarray(zeta / zeta.sum(axis=0))

    def score_bound(self, radius: float, spacings: FloatArray) -> float:  # noqa: ARG002 - one interface
        """√2 R."""
        return sqrt(2) * radius

    def information_bound(self, radius: float, spacings: FloatArray) -> float:  # noqa: ARG002
        """R²/2."""
        return radius**2 / 2

    def names(self, levels: tuple[str, ...], terms: tuple[str, ...]) -> list[str]:
        """ "level: term" of each level but the first, level by level."""
        return [f"{level}: {term}" for level in levels[1:] for term in terms]

    def reported(
        self,
        theta: FloatArray,
        spacings: FloatArray,  # noqa: ARG002 - one interface
    ) -> tuple[FloatArray, FloatArray]:
        """Logits against the first level, as in other software, and their derivative."""
        H = contrasts(self.levels)
        change = (H[:, 1:] - H[:, :1]).T
        whole = np.kron(change, np.eye(theta.shape[1]))
        return (change @ theta).ravel(), np.asarray(whole, dtype=np.float64)


def contrasts(levels: int) -> FloatArray:
    """H (K − 1, K): rows of length 1, orthogonal to each other and to (1, …, 1)."""
    H = np.zeros((levels - 1, levels))
    for p in range(1, levels):
        H[p - 1, :p], H[p - 1, p] = 1.0, -float(p)
        H[p - 1] /= sqrt(p * (p + 1))
    return H
