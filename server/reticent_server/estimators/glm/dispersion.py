"""The Gamma family's last step, jointly in η and ln s (s² = φ), because a(φ) moves with φ.

With mean score G and mean χ-score H, both weighted by w, measured at (θ, s),

    g = W⁻¹G = Px/s − (Pe₀/d) D t              x = θ* − θ,  t = ln s* − ln s,  P = d·mean w x̃x̃ᵀ
    H = mean w(ψ_k²(z) − κ_k) = (B/d) e₀ᵀPx − (P₀₀/d) H_s t

    D = ∂E ψ_c/∂ln s,  H_s = ∂(E ψ_k² − κ_k)/∂ln s  at a fixed law;  B = E[2ψ_k 1{|z| < k} T]/s,  T = y/μ

so t = (H − (Bs/d) g₀)/((P₀₀/d)(BsD/d − H_s)) and x = sP⁻¹g + (sD/d) t e₀: linear in what is released,
with a sandwich from the joint meat of (w v q, w χ). Without an intercept e₀ is absent, and s is taken as
known. Source: Huber & Ronchetti (2009), ch. 6 (simultaneous M-estimates), for the Gamma law.
"""

from dataclasses import dataclass
from math import exp

import numpy as np
from scipy.special import gammainc

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.families import gamma_moments

_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class ChiScore:
    """χ(z) = ψ_k²(z) − κ_k(s)."""

    k: float
    kappa: float

    @property
    def bound(self) -> float:
        """sup |χ|."""
        return max(self.k**2 - self.kappa, self.kappa)


def chi_score(s: float, k: float) -> ChiScore:
    return ChiScore(k, gamma_moments(s * s, s * s, k)[2])


@dataclass(frozen=True, slots=True, eq=False)
class JointStep:
    """A (q, q + 1): (g, H) to the change of θ; t (q + 1,): (g, H) to the change of ln s."""

    gain: FloatArray
    log_scale: FloatArray


def joint_step(J: FloatArray, W: FloatArray, s: float, c: float, k: float) -> JointStep:
    """From the usable information J (q, q) in u = Wx̃ at the scale s."""
    q, back = len(J), np.linalg.inv(W)
    P = back @ J @ back.T
    d = gamma_moments(s * s, s * s, c)[1]
    D, H_s = (_slope(s, cut, which) for cut, which in ((c, 0), (k, 2)))
    B = _tilt(s, k)
    divisor = P[0, 0] / d * (B * s * D / d - H_s)
    t = np.append(-(B * s / d) * back[0], 1.0) / divisor
    gain = np.hstack([s * np.linalg.solve(P, back), np.zeros((q, 1))])
    gain[0] += s * D / d * t
    return JointStep(gain, t)


def _slope(s: float, cut: float, which: int) -> float:
    """∂/∂ln s, at a fixed law, of a moment minus its value under Gamma(s²): −∂/∂ln √φ at fixed s."""
    up, down = (gamma_moments((s * exp(h)) ** 2, s * s, cut)[which] for h in (_STEP, -_STEP))
    return -(up - down) / (2 * _STEP)


def _tilt(s: float, k: float) -> float:
    """B = (2/s²) E[(T − 1)T; |T − 1| < ks]."""
    nu, low, high = 1 / s**2, max(0.0, 1 - k * s), 1 + k * s
    first, second = (gammainc(nu + j, nu * high) - gammainc(nu + j, nu * low) for j in (1, 2))
    return float(2 / s**2 * ((1 + s**2) * second - first))


def bounded_log_scale(t: float) -> float:
    """e^t within a factor of 2."""
    return min(max(exp(min(max(t, -1.0), 1.0)), 0.5), 2.0)
