"""The information matrix that a released design predicts at another θ: post-processing of releases.

At the start every record has the same η, so the first released information is, but for a factor, the
second moment S of the standardised design. Later information depends on θ through h(η) m²(η). It is
predicted on a public table of normal rows with second moment S (rare dummies apart, at random with
their released frequencies): far from the start that is much nearer than the last released matrix, and
its error is what the next release corrects.
"""

from dataclasses import dataclass
from math import inf

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.glm.score import QuasiScore
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.jacobian import whitening
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.matrices import eigen
from reticent_server.numerics.public_random import public_generator

_ROWS = 2000
_ROUNDS = 8
_LEAST = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class PublicDesign:
    """Public rows x̃ (rows, q) in the internal order, white_size of them white; R_c² and the cap."""

    X: FloatArray
    white_size: int
    radius_squared: float
    cap: float

    def information(
        self, theta: FloatArray, score: QuasiScore, transform: FloatArray
    ) -> FloatArray:
        """(q, q) mean w h m² x̃x̃ᵀ at θ, with weights in the coordinates u = Wx̃."""
        return self._mean(*self._at(theta, score), transform)

    def settled(self, theta: FloatArray, score: QuasiScore, k0: float) -> FloatArray:
        """The information whose own whitening W = (P/k₀)^(−1/2) gives it, by a few rounds from I."""
        squares, h = self._at(theta, score)
        P = k0 * np.eye(self.X.shape[1])
        for _ in range(_ROUNDS):
            P = self._mean(squares, h, whitening(_usable(P / k0), self.white_size))
        return _usable(P)

    def weights(self, eta: FloatArray, score: QuasiScore, transform: FloatArray) -> FloatArray:
        """(rows,) w."""
        return self._weights(score.leverage(eta) ** 2, transform)

    def _at(self, theta: FloatArray, score: QuasiScore) -> tuple[FloatArray, FloatArray]:
        """(m², h) of the rows."""
        eta = np.clip(self.X @ theta, *score.limits)
        return score.leverage(eta) ** 2, score.evaluate(np.zeros(len(eta)), eta)[1]

    def _mean(self, squares: FloatArray, h: FloatArray, transform: FloatArray) -> FloatArray:
        weights = self._weights(squares, transform) * h * squares
        return np.asarray((self.X.T * weights) @ self.X / max(len(h), 1))

    def _weights(self, squares: FloatArray, transform: FloatArray) -> FloatArray:
        u = self.X[:, : self.white_size] @ transform[: self.white_size, : self.white_size].T
        w = mallows_weights(np.sum(u * u, axis=1) * squares, self.radius_squared)
        if self.cap < inf:
            w = np.minimum(w, mallows_weights(squares, self.cap))
        return np.asarray(w)


def public_design(coding: Coding, S: FloatArray, cap: float) -> PublicDesign:
    """Normal rows with second moment S (q, q) on the white block, rare dummies independent of them."""
    rng = public_generator("design of a prediction")
    q, head = coding.white_size, int(coding.design.intercept)
    white = S[:q, :q] / (max(float(S[0, 0]), _LEAST) if head else 1.0)
    mean = white[0, 1:] if head else np.zeros(q)
    values, vectors = eigen(white[head:, head:] - np.outer(mean, mean))
    root = vectors * np.sqrt(np.maximum(values, _LEAST))
    half = rng.standard_normal((_ROWS // 2, q - head))
    slopes = np.vstack([half, -half]) @ root.T + mean
    a = np.array([1 / where.scale for where in coding.rare_locations])
    share = np.clip(np.diag(S)[q:] / np.maximum(a, _LEAST) ** 2, _LEAST, 1 - _LEAST)
    rare = a * (rng.random((_ROWS, len(a))) < share)
    X = np.hstack([np.ones((_ROWS, head)), slopes, rare])
    return PublicDesign(X, q, coding.white_radius_squared or 1.0, cap)


def _usable(P: FloatArray) -> FloatArray:
    """Eigenvalues at least a millionth of the largest."""
    values, vectors = eigen(P)
    least = max(1e-6 * float(values[-1:].sum()), 1e-12)
    return np.asarray((vectors * np.maximum(values, least)) @ vectors.T)
