# SPDX-License-Identifier: Apache-2.0
"""Noise-free robust generalised linear models: the baseline of tests and benchmarks.

`fit_glm` solves, to the precision of floats, Cantoni & Ronchetti's (2001) estimating equation

    Σ_i [ψ_c(r_i) − a(η_i)] w_i g(η_i) x_i = 0,   η_i = x_iᵀβ clipped to a public range,

with given weights w (R's `glmrob` has (1 − h)² for weights.on.x = "hat"), g = V^(−1/2)μ′. A
Gamma's dispersion φ solves Σ w (ψ_c²(r) − E ψ_c²) = 0 along with it (Proposal 2).
What the noisy Newton recipe estimates, with its own weights, is in noise_free.glm_target.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.dispersion import estimated_dispersion
from reticent_server.numerics.families import Family, Gamma

_STEPS = 200
_SMALLEST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class GlmFit:
    """coefficients (q,), their family (with φ), weights (n,), sandwich covariance (q, q) at fixed
    φ.

    residual: the largest |mean estimating equation|; converged: whether it is below 1e-9.
    """

    coefficients: FloatArray
    family: Family
    weights: FloatArray
    covariance: FloatArray
    residual: float

    @property
    def converged(self) -> bool:
        return self.residual < 1e-9

    @property
    def standard_errors(self) -> FloatArray:
        return np.asarray(np.sqrt(np.diag(self.covariance)))


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """The estimating equation of X (n, q), y (n,), a family, c and weights w (n,)."""

    X: FloatArray
    y: FloatArray
    family: Family
    c: float
    w: FloatArray
    limits: tuple[float, float]

    def predictor(self, beta: FloatArray) -> FloatArray:
        """(n,) η."""
        return np.clip(self.X @ beta, *self.limits)

    def scores(self, beta: FloatArray) -> FloatArray:
        """(n,) the factor of x in each record's score."""
        eta = self.predictor(beta)
        psi = np.clip(self.family.residual(self.y, eta), -self.c, self.c)
        corrected = psi - self.family.moments(eta, self.c).mean
        return np.asarray(corrected * self.w * self.family.gain(eta) / sqrt(self.family.dispersion))

    def mean_score(self, beta: FloatArray) -> FloatArray:
        return np.asarray(self.X.T @ self.scores(beta) / len(self.y))

    def information(self, beta: FloatArray) -> FloatArray:
        """(q, q) expected Jacobian of the mean score."""
        eta = self.predictor(beta)
        d = self.family.moments(eta, self.c).slope
        weights = d * self.w * self.family.gain(eta) ** 2 / self.family.dispersion
        return np.asarray((self.X.T * weights) @ self.X / len(self.y))

    def covariance(self, beta: FloatArray) -> FloatArray:
        """M⁻¹QM⁻¹/n with the empirical Q = mean s sᵀ."""
        inverse = np.linalg.pinv(self.information(beta), hermitian=True)
        meat = (self.X.T * self.scores(beta) ** 2) @ self.X / len(self.y)
        return np.asarray(inverse @ meat @ inverse / len(self.y))


def fit_glm(
    X: FloatArray,
    y: FloatArray,
    family: Family,
    c: float = inf,
    *,
    weights: FloatArray | None = None,
    start: FloatArray | None = None,
) -> GlmFit:
    """Solves the module's equation for X (n, q), y (n,). Not converged is a value, no error."""
    w = np.ones(len(y)) if weights is None else weights
    limits = family.predictor_limits(float(np.max(y, initial=0.0)))
    equation = Equation(X, y, family, c, w, limits)
    beta = _start(X, y, family) if start is None else start
    for _ in range(100):
        beta = solve(equation, beta)
        updated = _with_dispersion(equation, beta)
        change = abs(updated.family.dispersion / equation.family.dispersion - 1)
        equation = updated
        if change <= 1e-13:
            break
    return _finished(equation, solve(equation, beta))


def solve(equation: Equation, start: FloatArray, steps: int = _STEPS) -> FloatArray:
    """Fisher scoring with halving while the equation's norm in the information's metric grows."""
    beta = start
    for _ in range(steps):
        inverse = np.linalg.pinv(equation.information(beta), hermitian=True)
        score = equation.mean_score(beta)
        if np.max(np.abs(score)) <= 1e-16:
            break
        move = inverse @ score
        size = float(score @ move)
        for halving in range(20):
            moved = beta + move * 0.5**halving
            new = equation.mean_score(moved)
            if float(new @ inverse @ new) <= size * (1 + 1e-9):
                break
        else:
            break
        beta = moved
    return beta


def _with_dispersion(equation: Equation, beta: FloatArray) -> Equation:
    """The equation at the φ that solves Σ w(ψ_c² − E ψ_c²) = 0; unchanged where φ is known."""
    if not isinstance(equation.family, Gamma):
        return equation
    eta = equation.predictor(beta)
    for _ in range(200):
        r = np.clip(equation.family.residual(equation.y, eta), -equation.c, equation.c)
        square = float(equation.w @ (r * r) / equation.w.sum())
        before = equation.family.dispersion
        phi = max(estimated_dispersion(equation.family, square, equation.c), _SMALLEST)
        equation = replace(equation, family=replace(equation.family, dispersion=phi))
        if abs(phi / before - 1) <= 1e-15:
            break
    return equation


def _start(X: FloatArray, y: FloatArray, family: Family) -> FloatArray:
    """Least squares on a transformed response."""
    match family.name:
        case "binomial":
            target = 2 * (2 * y - 1)
        case "gaussian":
            target = y
        case _:
            target = np.log(np.maximum(y, 0.1 * max(float(np.mean(y)), 1e-300)))
    return np.asarray(np.linalg.lstsq(X, target, rcond=None)[0], dtype=np.float64)


def _finished(equation: Equation, beta: FloatArray) -> GlmFit:
    residual = float(np.max(np.abs(equation.mean_score(beta))))
    covariance = equation.covariance(beta)
    return GlmFit(beta, equation.family, equation.w, covariance, residual)
