"""The covariance of the released coefficients: sampling noise and privacy noise, from releases only.

A = sWᵀJ⁻¹ (θ per unit of gradient), d = J⁻¹g, v = Wd, ω_t the averaging weights:

    C = A(Q/n)Aᵀ + Σ_t ω_t² A_t [ sd_g²I + (sd_J²/2)(|d|²I + ddᵀ)
                                 + λ²k₀²(sd_M²/2) W(|v|²I + vvᵀ)W ] A_tᵀ

The second term is the gradient's noise; the third the Jacobian's (a symmetric noise N with variance
sd_J² on and sd_J²/2 off the diagonal has cov(Nd) = (sd_J²/2)(|d|²I + ddᵀ)); the last the noise of M,
of which the fraction λ of the Jacobian was made. The first is the sandwich of the estimating equation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.jacobian import Curvature
from reticent_server.numerics.matrices import psd_part


@dataclass(frozen=True, slots=True, eq=False)
class StepRecord:
    """What one step released and did, per record in use: all public.

    scale: s; gradient: g (q,) and its noise sd; k0; curvature; prior_noise: sd_M.
    """

    scale: float
    gradient: FloatArray
    gradient_noise: float
    k0: float
    curvature: Curvature
    prior_noise: float

    @property
    def gain(self) -> FloatArray:
        """A (q, q)."""
        return self.scale * self.curvature.transform.T @ np.linalg.inv(self.curvature.J)

    @property
    def move(self) -> FloatArray:
        """A g (q,): the step in θ."""
        return self.scale * self.curvature.transform.T @ self.curvature.solve(self.gradient)


def penalised(record: StepRecord, ridge: FloatArray, theta: FloatArray) -> StepRecord:
    """The step of a loss with the penalty ½θᵀ(λD)θ: J + WλDWᵀ and g − WλDθ/s."""
    W = record.curvature.transform
    curvature = replace(record.curvature, J=record.curvature.J + W @ ridge @ W.T)
    return replace(
        record,
        curvature=curvature,
        gradient=record.gradient - W @ ridge @ theta / record.scale,
    )


def sampling_covariance(last: StepRecord, meat: FloatArray, n: float) -> FloatArray:
    """A(Q/n)Aᵀ with the released meat (q, q) made positive semi-definite."""
    return np.asarray(last.gain @ psd_part(meat) @ last.gain.T / n)


def privacy_covariance(steps: Sequence[StepRecord], weights: Sequence[float]) -> FloatArray:
    """Σ ω_t²A_t[…]A_tᵀ (q, q)."""
    parts = [w**2 * (s.gain @ _noise(s) @ s.gain.T) for s, w in zip(steps, weights, strict=True)]
    return np.asarray(sum(parts))


def _noise(step: StepRecord) -> FloatArray:
    curvature = step.curvature
    d = curvature.solve(step.gradient)
    W = curvature.transform
    v = W @ d
    prior = (curvature.shrinkage * step.k0 * step.prior_noise) ** 2 / 2
    noise = step.gradient_noise**2 * np.eye(len(d)) + _random_times(d, curvature.noise**2 / 2)
    return np.asarray(noise + W @ _random_times(v, prior) @ W)


def _random_times(d: FloatArray, half_variance: float) -> FloatArray:
    """cov(Nd) of a symmetric noise matrix N."""
    return half_variance * (float(d @ d) * np.eye(len(d)) + np.outer(d, d))
