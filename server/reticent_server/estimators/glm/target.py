"""What the noisy recipe estimates, computed without noise: for the curator, benchmarks and tests.

θ solves Σ w v q = 0 at the scale s with mean ψ_k²(z) = κ_k (where s is free), with weights whose
whitening settles: W = (P/k₀)^(−1/2) on the white block, P the weighted information at θ.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.estimators.glm.prediction import PublicDesign
from reticent_server.estimators.glm.recipe import GlmNewton
from reticent_server.estimators.glm.score import QuasiScore
from reticent_server.estimators.glm.settings import SCALE_CUT
from reticent_server.estimators.newton.jacobian import whitening
from reticent_server.estimators.newton.report import back_transform
from reticent_server.estimators.newton.target import standardised_table
from reticent_server.numerics.evaluate import evaluate_term, in_use
from reticent_server.numerics.glm_robust import estimated_dispersion
from reticent_server.numerics.matrices import eigen, rebuild

_ROUNDS = 400
_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class GlmTarget:
    """Private. coefficients and sandwich standard errors (q,), in the units of the data and the
    reported order; weights w (n,) of the records in use; residual: the largest |mean equation|."""

    coefficients: FloatArray
    standard_errors: FloatArray
    scale: float
    weights: FloatArray
    residual: float


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Records in use: rows x̃ with the recipe's radius and cap, and responses."""

    design: PublicDesign
    y: FloatArray

    def gradient(self, theta: FloatArray, score: QuasiScore, W: FloatArray) -> FloatArray:
        """(n, q) w m q x̃ of each record."""
        eta = np.clip(self.design.X @ theta, *score.limits)
        m, w = score.leverage(eta), self.design.weights(eta, score, W)
        return np.asarray(self.design.X * (w * m * score.evaluate(self.y, eta)[0])[:, None])


def noise_free_fit(newton: GlmNewton, block: Block) -> GlmTarget:
    """Solves the recipe's equations on a whole table."""
    table, score = _table(newton, block), newton.settings.score(newton.scale, newton.start)
    theta = newton.first_theta()
    P = np.eye(len(theta))
    for _ in range(_ROUNDS):
        W = whitening(_positive(P / newton.size_of(P)), newton.sizes.white_size)
        P = table.design.information(theta, score, W)
        g = table.gradient(theta, score, W).mean(axis=0)
        move = score.unit * np.linalg.pinv(P, hermitian=True) @ g
        length = sqrt(max(float(move @ P @ move) / newton.size_of(P), 0.0))
        theta = theta + move * min(1.0, 2.0 / max(length, 1e-300))
        moved = _rescaled(newton, table, theta, score)
        done = length < _TOLERANCE and abs(moved.scale / score.scale - 1) < _TOLERANCE
        score = moved
        if done:
            break
    return _reported(newton, table, theta, score, W)


def _table(newton: GlmNewton, block: Block) -> _Table:
    used = in_use(newton.coding.design, block)
    X, _ = standardised_table(newton.coding, block)
    y = evaluate_term(newton.coding.response, block)
    coding = newton.coding
    radius = coding.white_radius_squared or 1.0
    return _Table(PublicDesign(X[used], coding.white_size, radius, newton.cap), y[used])


def _rescaled(newton: GlmNewton, table: _Table, theta: FloatArray, score: QuasiScore) -> QuasiScore:
    if not newton.settings.scales:
        return score
    if not newton.settings.overdispersed:
        return replace(score, scale=1.0)
    eta = np.clip(table.design.X @ theta, *score.limits)
    mean = float(np.mean(score.residual_square(table.y, eta, SCALE_CUT)))
    law = score.law
    ratio = sqrt(estimated_dispersion(law, mean, SCALE_CUT) / law.dispersion)
    return replace(score, scale=newton.bounded_scale(score.scale * ratio))


def _reported(
    newton: GlmNewton, table: _Table, theta: FloatArray, score: QuasiScore, W: FloatArray
) -> GlmTarget:
    scores = table.gradient(theta, score, W)
    bread = np.linalg.pinv(table.design.information(theta, score, W), hermitian=True) * score.unit
    covariance = bread @ (scores.T @ scores / len(scores)) @ bread.T / len(scores)
    back = back_transform(newton.coding)
    eta = np.clip(table.design.X @ theta, *score.limits)
    return GlmTarget(
        coefficients=back.coefficients(theta),
        standard_errors=np.asarray(np.sqrt(np.diag(back.covariance(covariance)))),
        scale=score.scale,
        weights=table.design.weights(eta, score, W),
        residual=float(np.max(np.abs(scores.mean(axis=0)))),
    )


def _positive(M: FloatArray) -> FloatArray:
    values, vectors = eigen(M)
    return rebuild(np.maximum(values, 1e-9 * max(float(values[-1]), 1e-9)), vectors)
