# SPDX-License-Identifier: Apache-2.0
"""The Gamma family's last step, jointly in θ and ln s (s² = φ), because a(φ) moves with φ.

With mean score G (in u = Wx̃) and mean χ-score H, both weighted by w, measured at (θ, s),

    G = Jy/s − (D/d) J W⁻ᵀe₀ t                 y = W⁻ᵀ(θ* − θ),  t = ln s* − ln s
    H = mean w(ψ_k²(z) − κ_k) = (B/d) e₀ᵀW⁻¹Jy − (P₀₀/d) H_s t,   P = W⁻¹JW⁻ᵀ

    D = ∂E ψ_c/∂ln s,  H_s = ∂(E ψ_k² − κ_k)/∂ln s  at a fixed law
    B = E[2ψ_k 1{|z| < k} T]/s,  T = y/μ

so t = (H − (Bs/d) e₀ᵀW⁻¹G)/((P₀₀/d)(BsD/d − H_s)), and G + (D/d) J W⁻ᵀe₀ t is the score of θ at s*:
linear in what is released, with a sandwich from the joint meat of (w u q, w χ). Without an
intercept e₀ is absent, and s is taken as known. Source: Huber & Ronchetti (2009), ch. 6
(simultaneous M-estimates), for the Gamma law.
"""

from dataclasses import dataclass
from math import exp

import numpy as np
from scipy.special import gammainc

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.score import JointStep, Score
from reticent_server.kinds.glm.quasi import SCALE_CUT, quasi
from reticent_server.numerics.families import gamma_moments

# of ln s in a central difference: its error is of order 10⁻⁸, below what a dispersion is told to
_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class GammaDispersion:
    """χ(z) = ψ_k²(z) − κ_k(s); satisfies fitting.score.Joint."""

    k: float = SCALE_CUT

    def bound(self, score: Score) -> float:
        """max(k² − κ, κ), κ at the score's scale."""
        kappa = self._kappa(score)
        return max(self.k**2 - kappa, kappa)

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) ψ_k²(z) − κ."""
        z = np.clip(quasi(score).residual(y, eta), -self.k, self.k)
        return np.asarray(z * z - self._kappa(score))

    def _kappa(self, score: Score) -> float:
        return gamma_moments(score.scale**2, score.scale**2, self.k)[2]

    def step(self, score: Score, J: FloatArray, transform: FloatArray) -> JointStep:
        """Solves the two equations of the module's docstring for θ and ln s."""
        q, s, c, back = len(J), score.scale, quasi(score).c, np.linalg.inv(transform)
        d = gamma_moments(s * s, s * s, c)[1]
        D, H_s = (_slope(s, cut, which) for cut, which in ((c, 0), (self.k, 2)))
        B = _tilt(s, self.k)
        divisor = float(back[0] @ J @ back[0]) / d * (B * s * D / d - H_s)
        t = np.append(-(B * s / d) * back[0], 1.0) / divisor
        gradient = np.hstack([np.eye(q), np.zeros((q, 1))]) + np.outer(D / d * J @ back[0], t)
        return JointStep(np.asarray(gradient), np.asarray(t))


def _slope(s: float, cut: float, which: int) -> float:
    """∂/∂ln s, at a fixed law, of a moment minus its value under Gamma(s²): −∂/∂ln √φ at fixed
    s."""
    up, down = (gamma_moments((s * exp(h)) ** 2, s * s, cut)[which] for h in (_STEP, -_STEP))
    return -(up - down) / (2 * _STEP)


def _tilt(s: float, k: float) -> float:
    """B = (2/s²) E[(T − 1)T; |T − 1| < ks]."""
    nu, low, high = 1 / s**2, max(0.0, 1 - k * s), 1 + k * s
    first, second = (gammainc(nu + j, nu * high) - gammainc(nu + j, nu * low) for j in (1, 2))
    return float(2 / s**2 * ((1 + s**2) * second - first))
