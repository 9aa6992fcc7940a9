"""A fit on the affine subspace Rθ = r, for score tests: the path keeps to it, the last step leaves it.

With N a basis of the null space of R, P the information in x̃ and p the way from θ to the subspace, a
restricted step minimises the quadratic model of the loss on it,

    θ ← θ + p + N(NᵀPN)⁻¹Nᵀ(sg − Pp)

and the last one, unrestricted, is the one-step estimate from the restricted fit: its Rθ − r is
R A g, the efficient score, and a Wald test of it is Rao's test (Heritier & Ronchetti 1994, eq. 8).
Everything is post-processing of the same releases as an unrestricted fit's.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.covariance import StepRecord


@dataclass(frozen=True, slots=True, eq=False)
class Restriction:
    """rows R (k, q) of full rank and values r (k,), for θ in standardised units, internal order."""

    rows: FloatArray
    values: FloatArray

    def move(self, record: StepRecord, theta: FloatArray) -> FloatArray:
        """The restricted step (q,) from θ (q,) of a release."""
        N = self.null_basis
        p = np.linalg.pinv(self.rows) @ (self.values - self.rows @ theta)
        back = np.linalg.inv(record.curvature.transform)
        P = back @ record.curvature.J @ back.T
        downhill = record.scale * back @ record.gradient - P @ p
        return np.asarray(p + N @ np.linalg.solve(N.T @ P @ N, N.T @ downhill))

    @property
    def null_basis(self) -> FloatArray:
        """N (q, q − k), orthonormal."""
        k = len(self.rows)
        return np.asarray(np.linalg.svd(self.rows)[2][k:].T)


def restricted_move(
    restriction: Restriction | None, record: StepRecord, theta: FloatArray
) -> FloatArray:
    """The step of a release from θ: its own where there is no restriction."""
    return record.move if restriction is None else restriction.move(record, theta)
