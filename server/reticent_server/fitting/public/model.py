# SPDX-License-Identifier: Apache-2.0
"""The public rows as a model of the records: what a fit expects before anything is measured."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.curvature import LocalRows
from reticent_server.fitting.public.coordinates import USUAL
from reticent_server.fitting.score import Score
from reticent_server.fitting.whitening import Whitening
from reticent_server.numerics.mallows import mallows_weights


@dataclass(frozen=True, eq=False)
class PublicModel:
    """The public rows as a model of the records' weights and curvature in a whitening's
    coordinates.

    offset: (rows,) of their predictors, or 0. unequal: as of Sizes.
    """

    whitening: Whitening
    radius_squared: float
    offset: FloatArray | float = 0.0
    unequal: float = 1.0

    def predictor(self, score: Score, theta: FloatArray) -> FloatArray:
        """(rows,) η at θ (q,) in u."""
        return np.clip(self.whitening.rows @ theta + self.offset, *score.limits)

    @cached_property
    def frequency(self) -> FloatArray:
        """The whitening's, which takes three decompositions: every step asks for it."""
        return self.whitening.frequency

    @cached_property
    def _norms(self) -> FloatArray:
        """(rows,) ‖u‖² of the public rows."""
        return np.asarray(np.sum(self.whitening.rows**2, axis=1))

    def weights(self, score: Score, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(w, m), each (rows,)."""
        m = score.leverage(eta)
        return mallows_weights(self._norms * m**2, self.radius_squared), m

    def curvature(self, score: Score, theta: FloatArray, C: FloatArray) -> FloatArray:
        """J (q, q) to be expected at θ (q,, in u), C away from the solution."""
        return self.curvature_over(score, theta, self.variance(C))

    def curvature_over(self, score: Score, theta: FloatArray, variance: FloatArray) -> FloatArray:
        """The same, where the way to the solution has these variances (rows,) of predictors."""
        eta = self.predictor(score, theta)
        w, m = self.weights(score, eta)
        return self._moment(w * m**2 * score.expected(eta, variance))

    def _moment(self, h: FloatArray, factor: float = 1.0) -> FloatArray:
        """`factor` times T (mean h uuᵀ) Tᵀ (q, q), h (rows,): of many columns as the product of a
        matrix with itself, which takes half the time.
        """
        U, T = self.whitening.rows, self.frequency
        if len(T) <= USUAL or h.min() < 0:
            return np.asarray(factor * T @ ((U * h[:, None]).T @ U / len(U)) @ T.T)
        V = self._weighed_rows * np.sqrt(h)[:, None]
        return np.asarray(V.T @ V * (factor / len(V)))

    @cached_property
    def _weighed_rows(self) -> FloatArray:
        """(rows, q) T u."""
        if self.whitening.as_expected:
            return self.whitening.rows
        return np.asarray(self.whitening.rows @ self.frequency.T)

    def variance(self, C: FloatArray) -> FloatArray:
        """(rows,) of predictors where the way that is left has the covariance C (q, q)."""
        U = self.whitening.rows
        return np.asarray(np.sum(U @ C * U, axis=1))

    def meat(self, score: Score, theta: FloatArray) -> FloatArray:
        """Q (q, q), the second moment of the scores, to be expected of a settled fit."""
        eta = self.predictor(score, theta)
        w, m = self.weights(score, eta)
        h = (w * m) ** 2 * score.expected(eta, np.zeros(len(eta)))
        return self._moment(h, self.unequal * score.mean_square)

    def local(self, score: Score, theta: FloatArray) -> LocalRows:
        """The rows about θ (q,, in u)."""
        eta = self.predictor(score, theta)
        w, m = self.weights(score, eta)
        h = w * m**2 * score.expected(eta, np.zeros(len(eta)))
        return LocalRows(self.whitening.rows @ self.frequency.T, eta, w * m, h)
