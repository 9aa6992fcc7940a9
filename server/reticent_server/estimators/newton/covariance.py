"""The covariance of the released coefficients: sampling noise and privacy noise, from releases only.

A = sWᵀJ⁻¹ (θ per unit of gradient), d = J⁻¹g, v = Wd, ω_t the averaging weights:

    C = A(Q/n)Aᵀ + Σ_t ω_t² A_t [ sd_g²I + ((1 − λ)sd_J)²/2 (|d|²I + ddᵀ)
                                 + (λk₀sd_M)²/2 W(|v|²I + vvᵀ)W ] A_tᵀ

The second term is the gradient's noise; the third the Jacobian's (a symmetric noise N with variance
sd_J² on and sd_J²/2 off the diagonal has cov(Nd) = (sd_J²/2)(|d|²I + ddᵀ)), which the shrinkage by λ
left 1 − λ of; the last the noise of M, of which the fraction λ of the Jacobian was made. The first is
the sandwich of the estimating equation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.jacobian import Curvature, noise_norm, shrinkage_rates
from reticent_server.numerics.matrices import psd_part

_LEAST_MEAT = 1e-9


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


def sampling_covariance(
    last: StepRecord, meat: FloatArray, n: float, noise: float = 0.0
) -> FloatArray:
    """A(Q/n)Aᵀ with the released meat (q, q) made positive semi-definite; noise: sd_Q."""
    return np.asarray(last.gain @ psd_part(calmed_meat(last, meat, noise)) @ last.gain.T / n)


def calmed_meat(last: StepRecord, meat: FloatArray, noise: float) -> FloatArray:
    """Q (q, q) shrunk towards a multiple of the predicted information, as the Jacobian is.

    In the frame where the prediction is I, and Q would be m I if errors did not depend on x, entries
    are moved to m I by λ_jk = max(λ_j, λ_k), λ_j the rate of the noise of coordinate j relative to
    m = tr Q/q. Without that the noise makes some directions look surer than they are, and joint
    tests reject too often.
    """
    B = last.curvature.frame @ np.linalg.inv(last.curvature.transform)
    E = B @ meat @ B.T
    m = max(float(np.trace(E)) / len(E), _LEAST_MEAT)
    rates = shrinkage_rates(noise_norm(noise, len(E)) * np.sum(B**2, axis=1) / m)
    mixed = np.maximum.outer(rates, rates)
    back = np.linalg.inv(B)
    return np.asarray(back @ ((1 - mixed) * E + mixed * m * np.eye(len(E))) @ back.T)


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
    released = ((1 - curvature.shrinkage) * curvature.noise) ** 2 / 2
    noise = step.gradient_noise**2 * np.eye(len(d)) + _random_times(d, released)
    return np.asarray(noise + W @ _random_times(v, prior) @ W)


def _random_times(d: FloatArray, half_variance: float) -> FloatArray:
    """cov(Nd) of a symmetric noise matrix N."""
    return half_variance * (float(d @ d) * np.eye(len(d)) + np.outer(d, d))
