# SPDX-License-Identifier: Apache-2.0
"""Huber regression with Proposal 2, solved to the precision of floats: the baseline of tests and
benchmarks.

    Σ w_i ψ_c(r_i/s) x_i = 0,  Σ ω_i ψ_c²(r_i/s) = γ_c d

with given w, ω and d: R's `rlm(scale.est = "proposal 2")` has w = ω = 1, d = n − p, and its
wt.method = "case" has ω = w, d = Σw − p.

Source: Huber & Ronchetti (2009), ch. 7.
"""

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.huber_mallows import LEAST_SCALE, HuberFit, regress, sandwich
from reticent_server.numerics.psi import Huber

_MAD_TO_SD = 0.6744897501960817  # Φ⁻¹(3/4): the median of |z| under the normal law


def fit_huber(
    X: FloatArray,
    y: FloatArray,
    c: float,
    *,
    weights: FloatArray | None = None,
    scale_weights: FloatArray | None = None,
    degrees: float | None = None,
) -> HuberFit:
    """Solves Huber's regression with Proposal 2 for X (n, q), y (n,); see the module's equations.

    weights w and scale_weights ω default to 1, degrees d to n. Not converged is a value, no error.
    """
    n = len(y)
    family = Huber(c)
    w = np.ones(n) if weights is None else weights
    omega = np.ones(n) if scale_weights is None else scale_weights
    target = family.mean_square * (n if degrees is None else degrees)
    root = np.sqrt(w)
    beta = np.asarray(np.linalg.lstsq(X * root[:, None], y * root, rcond=None)[0], np.float64)
    s = median_scale(y - X @ beta)
    for _ in range(500):
        beta = regress(X, y, s, w, family, beta, steps=1)
        previous, s = s, _proposal_2(np.abs(y - X @ beta), s, omega, target, c)
        if abs(s - previous) <= 1e-15 * s:
            break
    beta = regress(X, y, s, w, family, beta)
    z = (y - X @ beta) / s
    gap = abs(float(omega @ family.psi(z) ** 2) - target) / n
    residual = max(float(np.max(np.abs(X.T @ (w * family.psi(z))))) / n, gap)
    return HuberFit(beta, s, w, sandwich(X, z, s, w, family), residual)


def median_scale(residuals: FloatArray) -> float:
    """median|r|/.6745, or a scale of no size where it is 0."""
    median = float(np.median(np.abs(residuals))) if len(residuals) else 0.0
    return max(median / _MAD_TO_SD, LEAST_SCALE)


def _proposal_2(size: FloatArray, s: float, omega: FloatArray, target: float, c: float) -> float:
    """Solves Σ ω min(r², c²s²) = target s² in s, by Newton steps on the active set."""
    for _ in range(100):
        inner = size <= c * s
        denominator = target - c**2 * float(omega[~inner].sum())
        if denominator <= 0:
            s *= 2
            continue
        squares = float(omega[inner] @ size[inner] ** 2)
        previous, s = s, max(float(np.sqrt(squares / denominator)), LEAST_SCALE)
        if abs(s - previous) <= 1e-15 * s:
            break
    return s
