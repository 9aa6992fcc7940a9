# SPDX-License-Identifier: Apache-2.0
"""Whitened Mallows regressions, solved to the precision of floats: the baseline of tests and
benchmarks.

Huber's: Σ w(u_i) ψ_c(r_i/s) u_i = 0,  s = median|r_i|/.6745,  u = M^(−1/2) x_i, and

    (1/n) Σ w(u_i) (ψ_c(z)/z)(r_i/s) u_i u_iᵀ = κ k_c I  on the columns that are whitened,

M not below .4 of its first iterate at W = I, β = 0, s = 1 (for standardised X, y). On skewed data
it differs from the unweighted fit. The biweight's equation has several solutions: what is computed
is the one that reweighting reaches from Huber's fit, with its weights w(M^(−1/2)x), κ and E[ψ(z)/z]
in place of k_c.

Source: Maronna (1976) for the whitening; Huber & Ronchetti (2009), ch. 7; Maronna, Martin & Yohai
(2006), ch. 4–5.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from benchmarks.noise_free.huber import median_scale
from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.biweight import Biweight, fit_biweight
from reticent_server.numerics.huber_mallows import HuberFit, finished, regress
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.matrices import cholesky, eigen, floored, rebuild
from reticent_server.numerics.psi import Huber

WHITENING_GUARD = 0.4
"""The least whitening matrix, as a multiple of the one before any whitening. A column that differs
from its usual value in less than about 1/q of the records would otherwise be whitened without end,
and lose its records; in other designs the whitening matrix stays above .55 of its start.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhitenedFit(HuberFit):
    """whitening: M (q, q); guard: what M is kept above."""

    whitening: FloatArray
    guard: FloatArray


def mean_weight(family: Huber | Biweight) -> float:
    """E ψ(z)/z under the normal law, by integration on both sides of c."""

    def inside(z: float) -> float:
        return float(family.weight(np.float64(z)) * norm.pdf(z))

    return float(2 * sum(quad(inside, *ends)[0] for ends in ((0.0, family.c), (family.c, 40.0))))


def fit_whitened_mallows(
    X: FloatArray,
    y: FloatArray,
    c: float,
    *,
    radius_squared: float,
    mean_norm: float,
    whitened: int | None = None,
    in_use: FloatArray | None = None,
) -> WhitenedFit:
    """Solves the whitened Mallows–Huber equations for X (n, q), y (n,).

    radius_squared R² bounds ‖u‖² of the first `whitened` columns (default: all), the others keep
    out of w and of the whitening; mean_norm is κ; in_use (n,) is a 0/1 mask.
    """
    family = Huber(c)
    q = X.shape[1] if whitened is None else whitened
    used = np.ones(len(y)) if in_use is None else in_use
    kept = used > 0
    k0 = mean_norm * mean_weight(family)
    M, beta = np.eye(q), np.zeros(X.shape[1])
    s = median_scale(y[kept])
    first = used * mallows_weights(white_norms(X[:, :q], M), radius_squared) * family.weight(y)
    guard = WHITENING_GUARD * second_moment(X[:, :q], first, used.sum() * k0)
    for _ in range(1000):
        w = used * mallows_weights(white_norms(X[:, :q], M), radius_squared)
        beta = regress(X, y, s, w, family, beta, steps=3)
        r = y - X @ beta
        s = median_scale(r[kept])
        previous = M
        M = second_moment(X[:, :q], w * family.weight(r / s), used.sum() * k0)
        M = at_least(M, guard)
        if np.abs(M - previous).max(initial=0.0) <= 1e-13 * np.abs(M).max(initial=0.0):
            break
    fit = finished(X, y, s, w, family, beta)
    return WhitenedFit(
        **{x.name: getattr(fit, x.name) for x in fields(fit)}, whitening=M, guard=guard
    )


def white_norms(X: FloatArray, M: FloatArray) -> FloatArray:
    """(n,) ‖M^(−1/2)x‖²."""
    u = X @ inverse_root(M)
    return np.asarray(np.sum(u * u, axis=1))


def second_moment(X: FloatArray, w: FloatArray, total: float) -> FloatArray:
    """Σ w x xᵀ/total, with eigenvalues of 10⁻¹² at least."""
    return floored((X.T * w) @ X / max(total, 1e-12), 1e-12)


def fit_whitened_biweight(
    X: FloatArray,
    y: FloatArray,
    c: float,
    start: WhitenedFit,
    *,
    radius_squared: float,
    mean_norm: float,
) -> WhitenedFit:
    """Solves the module's whitened equations for records in use, X (n, q), y (n,).

    start: their whitened Mallows–Huber fit; the other arguments as there. The fit's weights are w.
    """
    family, beta, M = Biweight(c), start.coefficients, start.whitening
    white, k0 = X[:, : len(M)], mean_norm * mean_weight(family)
    for _ in range(1000):
        w = mallows_weights(white_norms(white, M), radius_squared)
        fit = fit_biweight(X, y, beta, c, weights=w)
        beta, previous = fit.coefficients, M
        z = (y - X @ beta) / fit.scale
        M = at_least(second_moment(white, w * family.weight(z), len(y) * k0), start.guard)
        if np.abs(M - previous).max(initial=0.0) <= 1e-13 * np.abs(M).max(initial=0.0):
            break
    return replace(
        start,
        coefficients=beta,
        scale=fit.scale,
        weights=w,
        covariance=fit.covariance,
        residual=fit.residual,
        whitening=M,
    )


def inverse_root(matrix: FloatArray) -> FloatArray:
    """The symmetric M^(−1/2) of a positive semi-definite matrix.

    Eigenvalues below 10⁻¹² of the largest count as that (1 where all are 0).
    """
    values, vectors = eigen(matrix)
    largest = float(values[-1]) if len(values) and values[-1] > 0 else 1.0
    return rebuild(1 / np.sqrt(np.maximum(values, 1e-12 * largest)), vectors)


def at_least(matrix: FloatArray, least: FloatArray) -> FloatArray:
    """The matrix raised to `least` (positive definite) wherever it is below it.

    In the coordinates in which `least` is I, eigenvalues below 1 become 1.
    """
    root = cholesky(least)
    inverse = np.linalg.inv(root)
    return np.asarray(root @ floored(inverse @ matrix @ inverse.T, 1.0) @ root.T)
