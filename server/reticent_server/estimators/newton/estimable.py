"""Which coefficients the releases can tell apart from not identified: from released matrices only.

K = W⁻¹JW⁻¹/k₀ estimates the information of a step, the same for all steps. A direction v is *unresolved*
where vᵀKv, pooled over the steps by inverse noise variance (the noise has standard deviation
sd_J|W⁻¹v|²/k₀), is not above its noise or, once the design is whitened so that vᵀKv should be 1, below
the floor .25 of the recipe. Not above its noise is the k-th smallest in standard deviations if it is
below max(2, √(2kh)): the largest eigenvalue of noise in k dimensions is about √(2k), and the step
whose eigenvectors are the candidates has the share h of the pooled precision. Candidates are the eigenvectors of the last
Jacobian in its whitened frame or, where that is too noisy, those of the first Jacobian. A linear
combination of the coefficients is *estimable* unless unresolved directions carry most of the variance
that K would give it: of a collinear pair neither coefficient is, but what they do together is. That
finds a collinear pair, a constant column, a dummy that is never one and an empty mask; the chance to
miss a direction without any information is some 2 %.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.estimators.newton.covariance import StepRecord
from reticent_server.estimators.newton.jacobian import FLOOR, TRUSTED_NOISE, noise_norm
from reticent_server.numerics.matrices import eigen

UNRESOLVED_SHARE = 0.5
_RESOLVED = 2.0
_PRESENT = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Directions:
    """Of a fit with q coefficients. vectors: (q, q), column i the direction v_i divided by √(v_iᵀKv_i), so
    that the variance of a combination c is, up to a factor, Σ_i (cᵀv_i)²; resolved: (q,)."""

    vectors: FloatArray
    resolved: NDArray[np.bool_]

    def mapped(self, A: FloatArray) -> "Directions":
        """Of the coefficients Aθ, A (q, q)."""
        return Directions(A @ self.vectors, self.resolved)

    def share(self, R: FloatArray) -> float:
        """The largest share of variance in unresolved directions, over all combinations of R's rows (k, q)."""
        basis = np.linalg.qr((R @ self.vectors).T)[0]
        return float(np.linalg.norm(basis[~self.resolved], 2) ** 2) if self.unresolved else 0.0

    def estimable(self, R: FloatArray) -> bool:
        """Whether Rθ is: whether all combinations of R's rows (k, q) are."""
        return self.share(R) <= UNRESOLVED_SHARE

    @property
    def flags(self) -> NDArray[np.bool_]:
        """(q,) whether each coefficient is estimable."""
        return np.array([self.estimable(row[None]) for row in np.eye(len(self.vectors))])

    @property
    def unresolved(self) -> int:
        """How many directions are."""
        return int(np.sum(~self.resolved))

    @property
    def shown(self) -> list[dict[str, Any]]:
        """As a release shows them."""
        pairs = zip(self.vectors.T.tolist(), self.resolved.tolist(), strict=True)
        return [{"vector": vector, "resolved": resolved} for vector, resolved in pairs]


def any_present(count: Released) -> bool:
    """Whether a released number of records in use is three standard deviations of its noise above 0."""
    return bool(count.values[0] > _PRESENT * count.sd)


def fit_directions(steps: Sequence[StepRecord], *, present: bool) -> Directions:
    """The directions of a fit's steps, in x̃ and the internal order; none is resolved where the released
    number of records in use does not say that there are any (any_present)."""
    last = steps[-1]
    whitened = noise_norm(last.curvature.noise, len(last.gradient)) < TRUSTED_NOISE
    source = last if whitened else steps[0]
    frame = source.curvature.frame
    candidates = frame.T @ eigen(frame @ source.curvature.information @ frame.T)[1]
    values, sds = np.array([_pooled(steps, v) for v in candidates.T]).T
    shares = (sds / np.array([_noise(source, v) for v in candidates.T])) ** 2
    least = np.maximum(_RESOLVED * sds, FLOOR if whitened else 0.0)
    unresolved = (values < least) | _is_noise(values / sds, shares)
    return Directions(candidates / np.sqrt(np.maximum(values, least)), ~unresolved & present)


def _is_noise(z: FloatArray, shares: FloatArray) -> NDArray[np.bool_]:
    """(q,) whether a value, in standard deviations, is among the smallest that noise explains."""
    order = np.argsort(z)
    largest = np.sqrt(2 * (1 + np.arange(len(z))) * shares[order])
    explained = z[order] < np.maximum(_RESOLVED, largest)
    number = int(np.max(np.flatnonzero(explained), initial=-1)) + 1
    return np.isin(np.arange(len(z)), order[:number])


def _pooled(steps: Sequence[StepRecord], v: FloatArray) -> tuple[float, float]:
    """The pooled vᵀKv and its noise's standard deviation."""
    noise = np.array([_noise(step, v) for step in steps])
    values = np.array([float(v @ step.curvature.information @ v) for step in steps])
    precision = float(np.sum(noise**-2))
    return float(np.sum(values * noise**-2)) / precision, precision**-0.5


def _noise(step: StepRecord, v: FloatArray) -> float:
    """The standard deviation of the noise in a step's vᵀKv."""
    back = np.linalg.solve(step.curvature.transform, v)
    return max(step.curvature.noise * float(back @ back) / step.k0, 1e-12)
