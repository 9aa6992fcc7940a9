"""A released information matrix made usable for Fisher scoring.

As estimators.newton.jacobian, for information that changes with θ. A public prediction P = LLᵀ of the
information at the current θ (in x̃), made from earlier releases, is corrected by the release: in the
coordinates where the prediction is I the release is E + noise, with noise of relative standard
deviation ν_j, and the prediction is off by τ; their precision-weighted mean

    E ← (1 − K)I + K E,   K = τ²/(τ² + ν²),   τ² ← (1 − K)τ² + drift

(a Kalman step; K_jk = min(K_j, K_k) keeps it positive semi-definite) has its eigenvalues clipped to
[.25, 4], and is carried to the next prediction as L E Lᵀ. Only released matrices enter.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.jacobian import Curvature, noise_norm
from reticent_server.numerics.matrices import cholesky, floored

_FLOOR, _CEILING = 0.25, 4.0
_FIRST_FLOOR, _SMALLEST = 0.7, 1e-9
_MISFIT, _DRIFT = 0.15, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Corrected:
    """A usable information matrix, and τ, its relative error."""

    curvature: Curvature
    error: float


def first_information(J: FloatArray, sd: float, k0: float) -> Corrected:
    """From the first released J (in x̃, W = I); k0 is what a standardised normal design would give."""
    usable = floored(J, max(_FIRST_FLOOR * noise_norm(sd, len(J)), _SMALLEST))
    identity = np.eye(len(J))
    curvature = Curvature(usable, J / k0, identity, identity, usable / k0, sd, 0.0)
    return Corrected(curvature, float(np.hypot(_MISFIT, sd / k0)))


def later_information(
    J: FloatArray, sd: float, k0: float, P: FloatArray, W: FloatArray, error: float
) -> Corrected:
    """From a later released J (in u = Wx̃) and the prediction P (in x̃) of relative error τ.

    M of the result is the usable matrix (in x̃) over k₀.
    """
    root = cholesky(W @ P @ W.T)
    inverse = np.linalg.inv(root)
    nu = sd * np.sum(inverse**2, axis=1)
    gains = error**2 / (error**2 + nu**2)
    K = np.minimum.outer(gains, gains)
    E = (1 - K) * np.eye(len(J)) + K * (inverse @ J @ inverse.T)
    usable = root @ floored(E, _FLOOR, _CEILING) @ root.T
    back = np.linalg.inv(W)
    curvature = Curvature(
        J=usable,
        information=back @ J @ back.T / k0,
        transform=W,
        frame=np.sqrt(k0) * inverse @ W,
        M=back @ usable @ back.T / k0,
        noise=sd,
        shrinkage=float(1 - gains[0]),
    )
    return Corrected(curvature, float(np.hypot(error * np.sqrt(1 - gains[0]), _DRIFT)))


def correction(usable: FloatArray, predicted: FloatArray) -> FloatArray:
    """E (q, q) with LELᵀ = usable, LLᵀ = predicted."""
    inverse = np.linalg.inv(cholesky(predicted))
    return np.asarray(inverse @ usable @ inverse.T)


def corrected(predicted: FloatArray, E: FloatArray) -> FloatArray:
    """LELᵀ of another prediction."""
    root = cholesky(predicted)
    return np.asarray(root @ E @ root.T)
