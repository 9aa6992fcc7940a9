# SPDX-License-Identifier: Apache-2.0
"""Huber's Proposal 2: location and scale jointly, noise-free, with its influence function.

    Σ ψ_c(u_i) = 0,   Σ ψ_c²(u_i) = κ d,   u_i = (y_i − μ)/σ,   κ = E ψ_c²(N(0, 1)),

d = n by default.

(R's `hubers` has d = n − 1.) With 1_i = 1{|u_i| < c} and

    A = [[mean 1, mean u1], [2 mean u1, 2 mean u²1]]

the empirical influence function at y is σ A⁻¹ (ψ_c(u), ψ_c²(u) − κ)ᵀ: a quadratic in t = ψ_c(u) on
[−c, c], whose largest absolute value in a component is at an end or at its vertex.

Source: Huber & Ronchetti (2009), ch. 6.4; Hampel et al. (1986), ch. 4.2d.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.proposal2_convex import jacobian
from reticent_server.numerics.psi import Huber

_MAD_TO_SD = 0.6744897501960817


@dataclass(frozen=True, slots=True, eq=False)
class LocationScaleFit:
    """location, scale, covariance (2, 2) of the two, and the largest |mean estimating equation|."""

    location: float
    scale: float
    covariance: FloatArray
    residual: float

    @property
    def converged(self) -> bool:
        return self.residual < 1e-10


def fit_proposal2(y: FloatArray, c: float, *, degrees: float | None = None) -> LocationScaleFit:
    """Solves Proposal 2 for y (n,); where more than half of y ties the scale goes towards 0."""
    n, family = len(y), Huber(c)
    target = family.mean_square * (n if degrees is None else degrees) / n
    mu = float(np.median(y))
    s = max(float(np.median(np.abs(y - mu))) / _MAD_TO_SD, float(np.std(y)) * 1e-3, 1e-300)
    for _ in range(500):
        moved = _newton(y, mu, s, c, target)
        done = abs(moved[0] - mu) + abs(moved[1] - s) <= 1e-15 * s
        mu, s = moved
        if done:
            break
    psi = family.psi((y - mu) / s)
    residual = max(abs(float(psi.mean())), abs(float((psi**2).mean()) - target))
    return LocationScaleFit(mu, s, sandwich(y, mu, s, c), residual)


def sandwich(y: FloatArray, mu: float, s: float, c: float) -> FloatArray:
    """σ² A⁻¹ Q A⁻ᵀ/n of (μ, σ), Q the empirical second moment of the score."""
    u, family = (y - mu) / s, Huber(c)
    psi = family.psi(u)
    scores = np.vstack([psi, psi**2 - family.mean_square])
    inverse = np.linalg.pinv(jacobian(u, c))
    return np.asarray(s**2 * inverse @ (scores @ scores.T / len(y)) @ inverse.T / len(y))


def influence(u: FloatArray, A: FloatArray, sigma: float, c: float) -> FloatArray:
    """(2, k) influence on (μ, σ) of records at standardised residuals u (k,)."""
    psi = Huber(c).psi(u)
    scores = np.vstack([psi, psi**2 - Huber(c).mean_square])
    return np.asarray(sigma * np.linalg.solve(A, scores))


def sensitivities(A: FloatArray, sigma: float, c: float) -> FloatArray:
    """(2,) gross-error sensitivities of μ and σ: suprema of |influence| over all records."""
    inverse = np.linalg.inv(A)
    bounds = []
    for b, a in inverse:
        vertex = float(np.clip(-b / (2 * a), -c, c)) if a != 0 else c
        u = np.array([-c, c, vertex])
        bounds.append(float(np.max(np.abs(b * u + a * (u**2 - Huber(c).mean_square)))))
    return sigma * np.array(bounds)


def _newton(y: FloatArray, mu: float, s: float, c: float, target: float) -> tuple[float, float]:
    """One step on (μ, ln σ), shortened so that σ changes by at most half; else a fixed-point
    step.
    """
    family = Huber(c)
    u = (y - mu) / s
    psi = family.psi(u)
    equations = np.array([psi.mean(), (psi**2).mean() - target])
    A = jacobian(u, c)
    if abs(np.linalg.det(A)) > 1e-6 and np.max(np.abs(equations)) < 0.1:
        d_mu, d_s = np.linalg.solve(A, equations)
        if abs(d_s) < 0.5 and abs(d_mu) < c:
            return mu + s * float(d_mu), s * (1 + float(d_s))
    slope = max(float(A[0, 0]), 0.1)
    ratio = float(np.clip(np.sqrt((psi**2).mean() / target), 0.5, 2.0))
    return mu + s * float(equations[0]) / slope, s * ratio
