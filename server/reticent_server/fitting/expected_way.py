# SPDX-License-Identifier: Apache-2.0
"""The filter's covariance in a forecast, step by step, by triangular factors alone.

With C = RRᵀ, H = J/unit and N = SSᵀ the covariance of a step's score (fitting.filter), a step
leaves

    C⁺ = (C⁻¹ + HN⁻¹H)⁻¹ = R (I + ZᵀZ)⁻¹ Rᵀ,   Z = S⁻¹HR                    (Woodbury's identity)

and with I + ZᵀZ = FᵀF, F lower triangular, R⁺ = RF⁻¹ is lower triangular again. C⁺ is positive
semi-definite whatever rounding does, and a step takes products of triangles in place of
decompositions.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsm, strmm

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.filter import LEAST_NOISE, SMALLEST, Correction, spread_of_error
from reticent_server.fitting.whitening import on_average
from reticent_server.numerics.matrices import cholesky, floored, power


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedWay:
    """root: R (q, q) of what is left of the way, C = RRᵀ, lower triangular."""

    root: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """C (q, q)."""
        return np.asarray(self.root @ self.root.T)

    def variance(self, rows: FloatArray) -> FloatArray:
        """(rows,) of the predictors of rows (rows, q); of rows in single precision in single
        precision.
        """
        moved = _times_lower(rows, self.root)
        return np.asarray(np.einsum("ij,ij->i", moved, moved), dtype=np.float64)

    def widened(self, more: FloatArray) -> "ExpectedWay":
        """With the covariance `more` (q, q) added."""
        return ExpectedWay(triangular_root(self.covariance + more))

    def after(self, H: FloatArray, error: FloatArray, noise: float) -> "ExpectedWay":
        """After a step. H: (q, q). error: (q, q) covariance of what H is wrong by, times the way;
        noise: variance of a coordinate of the released mean score.
        """
        eye = np.eye(len(H))
        S = triangular_root(error + (noise + LEAST_NOISE) * eye)
        Z = dtrsm(1.0, S, _times_lower(H, self.root), lower=1)
        return ExpectedWay(_divided(self.root, _reversed_root(eye + Z.T @ Z)))


@dataclass(frozen=True, eq=False)
class ExpectedFrame:
    """The frame B of a step, BJB = I. J: (q, q). free: how many axes are (fitting.whitening).

    Free axes may point anywhere, so each is given what they have on average. Where all axes are
    alike what is asked for is had without J's root.
    """

    J: FloatArray
    free: int

    @cached_property
    def back(self) -> FloatArray:
        """B⁻¹ = J^½ (q, q)."""
        return power(self.J, 0.5)

    def squared(self, way: ExpectedWay) -> FloatArray:
        """(q,) the squared way along the axes, the diagonal of B⁻¹CB⁻¹."""
        q, R = len(self.J), way.root
        if self.free == q:  # the trace of JC
            return np.full(q, float(np.sum(_times_lower(self.J, R) * R)) / q)
        return on_average(np.sum(_times_lower(self.back, R) ** 2, axis=1), self.free)

    def error(self, squared: FloatArray, known: Correction, unit: float) -> FloatArray:
        """(q, q) covariance of what H = J/unit is wrong by, times a way of these squares (q,)."""
        spread = spread_of_error(squared, known.error, known.shape) / unit**2
        if np.all(spread == spread[0]):
            return np.asarray(spread[0] * self.J)
        V = self.back * np.sqrt(spread)
        return np.asarray(V @ V.T)


def usable(J: FloatArray) -> FloatArray:
    """J (q, q) with eigenvalues of SMALLEST at least, which costs a decomposition only where they
    are below.
    """
    try:
        np.linalg.cholesky(J - SMALLEST * np.eye(len(J)))
    except np.linalg.LinAlgError:
        return floored(J, SMALLEST)
    return J


def triangular_root(matrix: FloatArray) -> FloatArray:
    """The lower Cholesky factor of a positive semi-definite matrix (q, q)."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:  # a direction that no row has
        return cholesky(matrix)


def _reversed_root(matrix: FloatArray) -> FloatArray:
    """Lower triangular F (q, q) with FᵀF = M: Cholesky's factor of the axes in reverse order."""
    return np.asarray(np.linalg.cholesky(matrix[::-1, ::-1])[::-1, ::-1].T)


def _times_lower(rows: FloatArray, lower: FloatArray) -> FloatArray:
    """(rows, q) rows @ L, L (q, q) lower triangular."""
    if rows.dtype == np.float32:
        return np.asarray(strmm(1.0, lower.T.astype(np.float32), rows.T, lower=0).T)
    return np.asarray(dtrmm(1.0, lower.T, rows.T, lower=0).T)


def _divided(R: FloatArray, F: FloatArray) -> FloatArray:
    """RF⁻¹ (q, q) of lower triangles."""
    return np.asarray(dtrsm(1.0, F.T, R.T, lower=0).T)
