# SPDX-License-Identifier: Apache-2.0
"""What the noisy recipe estimates, computed without noise: for benchmarks and tests.

θ solves Σ w v q = 0 at the scale s with mean ψ_k²(z) = κ_k (where s is free), with the weights of
the coordinates that whitening settles on the table itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import Block, FloatArray
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.kinds.glm.families.base import Start
from reticent_server.kinds.glm.quasi import CutSquares, QuasiScore, quasi
from reticent_server.kinds.shared.target import Target, offsets, records, settled_whitening, target
from reticent_server.numerics.mallows import mallows_weights
from reticent_server.numerics.matrices import pseudo_inverse

_ROUNDS, _TOLERANCE = 400, 1e-12
_LONGEST = 2.0  # step in the predictor
_HALVINGS = 20  # a step of a millionth is the end of what floats tell apart of the equations


def noise_free_fit(plan: FitPlan[Start], block: Block) -> Target:
    """Solves the plan's equations on a whole table. TypeError: its records are weighted, which is
    not computed here.
    """
    coding = plan.ground.coding
    if coding.design.weight is not None:
        raise TypeError("the target of a weighted fit is not computed here")
    X, y = records(coding, block)
    W = settled_whitening(plan, X).transform
    family = plan.model.family(plan.ground)
    measured = family.residuals
    residuals = measured if isinstance(measured, CutSquares) else None
    table = Equations(X, y, X @ W.T, plan.sizes.radius_squared, offsets(coding, block))
    score, theta = quasi(family.score(family.start, 0)), plan.ground.start
    for _ in range(_ROUNDS):
        move = step(table, theta, score, W)
        theta = theta + move
        scale = table.rescaled(theta, score, residuals)
        length = float(np.sqrt(np.mean((X @ move) ** 2)))
        done = length < _TOLERANCE and abs(scale / score.scale - 1) < _TOLERANCE
        score = quasi(family.score(scale, 0))
        if done:
            break
    J = table.observed(theta, score)
    scores = table.scores(theta, score)
    bread = W.T @ (pseudo_inverse(J) * score.unit)
    covariance = bread @ (scores.T @ scores / len(y)) @ bread.T / len(y)
    weights = table.weights(table.leverage(theta, score)[1])
    information = (X.T * weights) @ X
    return target(coding, theta, covariance, information, scale=score.scale, weights=weights)


def step(table: Equations, theta: FloatArray, score: QuasiScore, W: FloatArray) -> FloatArray:
    """(q,) a scoring step, halved for as long as that brings the equations nearer to 0, in gᵀJ⁺g at
    the step's start.

    A whole one jumps over the solution, and back, where the data's curvature is twice the law's.
    """
    g, J = table.equations(theta, score)
    inverse = pseudo_inverse(J)

    def away(move: FloatArray) -> float:
        moved, _ = table.equations(theta + move, score)
        return float(moved @ inverse @ moved)

    move = W.T @ (score.unit * inverse @ g)
    length = float(np.sqrt(np.mean((table.X @ move) ** 2)))
    move, start = move * min(1.0, _LONGEST / max(length, 1e-300)), float(g @ inverse @ g)
    left = away(move)
    for _ in range(_HALVINGS):
        halved = away(move / 2)
        if left <= min(halved, start):
            break
        move, left = move / 2, halved
    return np.asarray(move)


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """Records in use: rows x̃ and u (n, q), responses (n,), R², and what is added to predictors:
    (n,), or 0.
    """

    X: FloatArray
    y: FloatArray
    U: FloatArray
    radius_squared: float
    offset: FloatArray | float = 0.0

    def leverage(self, theta: FloatArray, score: QuasiScore) -> tuple[FloatArray, FloatArray]:
        eta = np.clip(self.X @ theta + self.offset, *score.limits)
        return eta, score.leverage(eta)

    def weights(self, m: FloatArray) -> FloatArray:
        """(n,) w."""
        return mallows_weights(np.sum(self.U**2, axis=1) * m**2, self.radius_squared)

    def scores(self, theta: FloatArray, score: QuasiScore) -> FloatArray:
        """(n, q) w m q u of each record."""
        eta, m = self.leverage(theta, score)
        return np.asarray(self.U * (self.weights(m) * m * score.evaluate(self.y, eta))[:, None])

    def equations(self, theta: FloatArray, score: QuasiScore) -> tuple[FloatArray, FloatArray]:
        """The mean score (q,) and J (q, q)."""
        eta, m = self.leverage(theta, score)
        w = self.weights(m)
        q, h = score.evaluate(self.y, eta), score.expected(eta, np.zeros_like(eta))
        n = len(self.y)
        return self.U.T @ (w * m * q) / n, (self.U.T * (w * m * m * h)) @ self.U / n

    def observed(self, theta: FloatArray, score: QuasiScore) -> FloatArray:
        """J (q, q) as the last step releases it."""
        eta, m = self.leverage(theta, score)
        w = self.weights(m)
        _, h = score.with_curvature(self.y, eta, w < 1)
        return np.asarray((self.U.T * (w * m * m * h)) @ self.U / len(self.y))

    def rescaled(self, theta: FloatArray, score: QuasiScore, residuals: CutSquares | None) -> float:
        """The next scale."""
        if residuals is None:
            return score.scale
        eta, _ = self.leverage(theta, score)
        return residuals.next(score, float(np.mean(residuals.squares(score, self.y, eta))))
