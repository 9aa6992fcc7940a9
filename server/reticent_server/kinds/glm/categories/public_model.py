# SPDX-License-Identifier: Apache-2.0
"""What the public rows lead to expect of a fit of levels: information, meat, and the mean score
along a way.

The parameters (D,) are Γ (P, q) of u row by row, then λ (S,).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.filter import StepCurvature
from reticent_server.fitting.whitening import Whitening
from reticent_server.kinds.glm.categories.law import CategoryLaw, Latent, expected, information
from reticent_server.numerics.mallows import mallows_weights

_UNKNOWN = 0.5
"""Relative error of the information that is expected of a spacing."""
_BLIND = 1e6  # noise of what a whitening says of a spacing: nothing


def stacked_whitening(whitening: Whitening, law: CategoryLaw) -> Whitening:
    """A whitening as that of all D parameters: the same for each predictor, nothing known of
    spacings but their expected information."""
    P, S = law.predictors, law.spacings
    more = np.ones(S)

    def blocks(M: FloatArray) -> FloatArray:
        whole = np.eye(P * len(M) + S)
        whole[: P * len(M), : P * len(M)] = np.kron(np.eye(P), M)
        return whole

    return replace(
        whitening,
        transform=blocks(whitening.transform),
        rows=np.zeros((0, P * len(whitening.error) + S)),
        free=P * len(whitening.error) + S,
        information=blocks(whitening.information),
        error=np.append(np.tile(whitening.error, P), _UNKNOWN * more),
        noise=np.append(np.tile(whitening.noise, P), _BLIND * more),
        moment=blocks(whitening.moment),
        stretch=np.append(np.tile(whitening.stretch, P), more),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PublicCategories:
    """The public rows in a whitening's coordinates, as a model of the records. unequal: as of
    fitting.budget.Sizes."""

    law: CategoryLaw
    whitening: Whitening
    radius_squared: float
    unequal: float = 1.0

    def latent(self, parameters: FloatArray) -> Latent:
        """At the parameters (D,)."""
        P, U = self.law.predictors, self.whitening.rows
        Gamma = parameters[: P * U.shape[1]].reshape(P, U.shape[1])
        return Latent(Gamma @ U.T, self.law.kept(parameters[P * U.shape[1] :]))

    @property
    def _weighted(self) -> tuple[FloatArray, FloatArray]:
        """(rows, q) with the frequency of the released moments, and their weights over the number
        of rows."""
        U = self.whitening.rows
        w = mallows_weights(np.sum(U**2, axis=1), self.radius_squared)
        return U @ self.whitening.frequency.T, np.asarray(w / len(U))

    def information(self, parameters: FloatArray) -> FloatArray:
        """J (D, D) to be expected."""
        at, (V, w) = self.latent(parameters), self._weighted
        return _spread(information(*self.law.cells(at)) * w, V, self.law)

    def meat(self, parameters: FloatArray) -> FloatArray:
        """Q (D, D), the second moment of the scores, to be expected of a settled fit."""
        at, (V, w) = self.latent(parameters), self._weighted
        J = information(*self.law.cells(at))
        return self.unequal * _spread(J * w**2 * len(V), V, self.law)

    def way(
        self, parameters: FloatArray, curvature: StepCurvature
    ) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]]:
        """From a way d (D,) to the solution: the mean score (D,) to be expected there, and its
        derivative (D, D)."""
        (_, here), (V, w) = self.law.cells(self.latent(parameters)), self._weighted
        back = curvature.back
        corrected = back @ curvature.E @ np.linalg.inv(back)
        P = self.law.predictors

        def mean(d: FloatArray) -> tuple[FloatArray, FloatArray]:
            s, slope = expected(here, self.law.cells(self.latent(parameters + d)))
            s = s * w
            g = np.concatenate([(s[:P] @ V).ravel(), s[P:].sum(axis=1)])
            return corrected @ g, corrected @ _spread(slope * w, V, self.law)

        return mean


def _spread(J: FloatArray, V: FloatArray, law: CategoryLaw) -> FloatArray:
    """(D, D) Σ of I (L, L, rows) ⊗ v vᵀ over rows V (rows, q), without v for spacings."""
    P, S, q = law.predictors, law.spacings, V.shape[1]
    found = np.zeros((P * q + S, P * q + S))
    for a in range(P):
        rows = slice(a * q, (a + 1) * q)
        for b in range(P):
            found[rows, b * q : (b + 1) * q] = (V * J[a, b][:, None]).T @ V
        found[rows, P * q :] = V.T @ J[a, P:].T
        found[P * q :, rows] = J[P:, a] @ V
    found[P * q :, P * q :] = J[P:, P:].sum(axis=2)
    return found
