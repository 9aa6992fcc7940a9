"""Noise-free Huber and Huber–Mallows regression: the curator's view, and the baseline of tests.

Two estimating equations are solved, each to the precision of floats:

`fit_huber`             Σ w_i ψ_c(r_i/s) x_i = 0,  Σ ω_i ψ_c²(r_i/s) = γ_c d     (Proposal 2)
    with given w, ω and d: R's `rlm(scale.est = "proposal 2")` has w = ω = 1, d = n − p, and its
    wt.method = "case" has ω = w, d = Σw − p.
`fit_whitened_mallows`  Σ w(u_i) ψ_c(r_i/s) u_i = 0,  s = median|r_i|/.6745,  u = M^(−1/2) x_i,
    (1/n) Σ w(u_i) (ψ_c(z)/z)(r_i/s) u_i u_iᵀ = κ k_c I  on the columns that are whitened, M not below
    .4 of its first iterate at W = I, β = 0, s = 1 (for standardised X, y; see mallows): what the noisy
    Newton recipe estimates. On skewed data it differs from the unweighted fit.

Source: Huber & Ronchetti (2009), ch. 7; Maronna (1976) for the whitening; NEWTON recipe.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.mallows import WHITENING_GUARD, mallows_weights
from reticent_server.numerics.matrices import at_least, floored, inverse_root
from reticent_server.numerics.psi import Huber

_MAD_TO_SD = 0.6744897501960817
_NEWTON_STEPS = 60
_LEAST_SCALE = 1e-100


@dataclass(frozen=True, slots=True)
class HuberFit:
    """coefficients (q,), scale, weights w (n,), and the sandwich covariance (q, q) at fixed scale.

    residual: the largest |mean estimating equation|; converged: whether it is below 1e-10.
    whitening: M (q, q) of a whitened fit, and guard, what M is kept above; else None.
    """

    coefficients: FloatArray
    scale: float
    weights: FloatArray
    covariance: FloatArray
    residual: float
    whitening: FloatArray | None = None
    guard: FloatArray | None = None

    @property
    def converged(self) -> bool:
        return self.residual < 1e-10

    @property
    def standard_errors(self) -> FloatArray:
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def sandwich(X: FloatArray, z: FloatArray, s: float, w: FloatArray, family: Huber) -> FloatArray:
    """V = M⁻¹QM⁻¹/n, M = (1/(ns)) Σ wψ′xxᵀ, Q = (1/n) Σ w²ψ²xxᵀ, z = r/s; s taken as known."""
    n = len(z)
    M = (X.T * (w * family.derivative(z))) @ X / (n * s)
    Q = (X.T * (w * family.psi(z)) ** 2) @ X / n
    inverse = np.linalg.pinv(M, hermitian=True)
    return np.asarray(inverse @ Q @ inverse / n)


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
    s = _median_scale(y - X @ beta)
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


def fit_whitened_mallows(
    X: FloatArray,
    y: FloatArray,
    c: float,
    *,
    radius_squared: float,
    mean_norm: float,
    whitened: int | None = None,
    in_use: FloatArray | None = None,
) -> HuberFit:
    """Solves the whitened Mallows–Huber equations for X (n, q), y (n,).

    radius_squared R² bounds ‖u‖² of the first `whitened` columns (default: all), the others keep
    out of w and of the whitening; mean_norm is κ; in_use (n,) is a 0/1 mask.
    """
    family = Huber(c)
    q = X.shape[1] if whitened is None else whitened
    used = np.ones(len(y)) if in_use is None else in_use
    kept = used > 0
    k0 = mean_norm * family.mean_weight
    M, beta = np.eye(q), np.zeros(X.shape[1])
    s = _median_scale(y[kept])
    first = used * mallows_weights(white_norms(X[:, :q], M), radius_squared) * family.weight(y)
    guard = WHITENING_GUARD * second_moment(X[:, :q], first, used.sum() * k0)
    for _ in range(1000):
        w = used * mallows_weights(white_norms(X[:, :q], M), radius_squared)
        beta = regress(X, y, s, w, family, beta, steps=3)
        r = y - X @ beta
        s = _median_scale(r[kept])
        previous = M
        M = second_moment(X[:, :q], w * family.weight(r / s), used.sum() * k0)
        M = at_least(M, guard)
        if np.abs(M - previous).max(initial=0.0) <= 1e-13 * np.abs(M).max(initial=0.0):
            break
    return replace(_finish(X, y, s, w, family, beta), whitening=M, guard=guard)


def regress(
    X: FloatArray,
    y: FloatArray,
    s: float,
    w: FloatArray,
    family: Huber,
    start: FloatArray,
    steps: int = _NEWTON_STEPS,
) -> FloatArray:
    """Minimises Σ w ρ_c((y − Xβ)/s) at fixed s by Newton steps that fall back to reweighting."""
    beta = start
    for _ in range(steps):
        z = (y - X @ beta) / s
        gradient = X.T @ (w * family.psi(z))
        if np.max(np.abs(gradient)) <= 1e-15 * max(1.0, float(w.sum())):
            break
        beta = _step(X, y, s, w, family, beta, z, gradient)
    return beta


def _step(
    X: FloatArray,
    y: FloatArray,
    s: float,
    w: FloatArray,
    family: Huber,
    beta: FloatArray,
    z: FloatArray,
    gradient: FloatArray,
) -> FloatArray:
    loss = float(w @ family.loss(z))
    for curvature in (family.derivative(z), family.weight(z)):
        hessian = (X.T * (w * curvature)) @ X
        moved = beta + s * (np.linalg.pinv(hessian, hermitian=True) @ gradient)
        if float(w @ family.loss((y - X @ moved) / s)) <= loss * (1 + 1e-15):
            break
    return np.asarray(moved)


def _finish(
    X: FloatArray,
    y: FloatArray,
    s: float,
    w: FloatArray,
    family: Huber,
    beta: FloatArray,
) -> HuberFit:
    beta = regress(X, y, s, w, family, beta)
    z = (y - X @ beta) / s
    residual = float(np.max(np.abs(X.T @ (w * family.psi(z))))) / len(y)
    return HuberFit(beta, s, w, sandwich(X, z, s, w, family), residual)


def second_moment(X: FloatArray, w: FloatArray, total: float) -> FloatArray:
    """Σ w x xᵀ/total, with eigenvalues of 10⁻¹² at least."""
    return floored((X.T * w) @ X / max(total, 1e-12), 1e-12)


def _median_scale(residuals: FloatArray) -> float:
    """median|r|/.6745, or a scale of no size where it is 0."""
    median = float(np.median(np.abs(residuals))) if len(residuals) else 0.0
    return max(median / _MAD_TO_SD, _LEAST_SCALE)


def _proposal_2(size: FloatArray, s: float, omega: FloatArray, target: float, c: float) -> float:
    """Solves Σ ω min(r², c²s²) = target s² in s, by Newton steps on the active set."""
    for _ in range(100):
        inner = size <= c * s
        denominator = target - c**2 * float(omega[~inner].sum())
        if denominator <= 0:
            s *= 2
            continue
        squares = float(omega[inner] @ size[inner] ** 2)
        previous, s = s, max(float(np.sqrt(squares / denominator)), _LEAST_SCALE)
        if abs(s - previous) <= 1e-15 * s:
            break
    return s


def white_norms(X: FloatArray, M: FloatArray) -> FloatArray:
    """(n,) ‖M^(−1/2)x‖²."""
    u = X @ inverse_root(M)
    return np.asarray(np.sum(u * u, axis=1))


def fit_mallows(
    X: FloatArray,
    y: FloatArray,
    c: float,
    weights: FloatArray,
    measure: Callable[[FloatArray], float],
) -> HuberFit:
    """Solves Σ w ψ_c(r/s) x = 0, s = measure(r), for X (n, q), y (n,) and given weights w (n,)."""
    family = Huber(c)
    beta = np.asarray(np.linalg.lstsq(X, y, rcond=None)[0], np.float64)
    s = max(measure(y - X @ beta), _LEAST_SCALE)
    for _ in range(500):
        beta = regress(X, y, s, weights, family, beta, steps=3)
        previous, s = s, max(measure(y - X @ beta), _LEAST_SCALE)
        if abs(s - previous) <= 1e-14 * s:
            break
    return _finish(X, y, s, weights, family, beta)
