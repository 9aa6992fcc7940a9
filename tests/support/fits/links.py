# SPDX-License-Identifier: Apache-2.0
"""Binomial regressions with other links: tables, plans, and the estimating equation without
privacy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.glm.plan import GlmPlan, plan_glm
from reticent_server.kinds.glm.query import Glm
from support.fits.regressions import Table, boolean, facts_of, numeric, plain_design, profile_of

X = [numeric("x0", -20, 20), numeric("x1", -3, 3), boolean("x2")]
Y = boolean("y")
MEANS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "probit": ndtr,
    "cloglog": lambda eta: np.asarray(-np.expm1(-np.exp(eta))),
    "log": lambda eta: np.asarray(np.exp(np.minimum(eta, 0.0))),
}
SLOPES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "probit": lambda eta: np.asarray(np.exp(-0.5 * eta**2) / np.sqrt(2 * np.pi)),
    "cloglog": lambda eta: np.asarray(np.exp(eta - np.exp(eta))),
    "log": lambda eta: np.asarray(np.where(eta < 0, np.exp(np.minimum(eta, 0.0)), 0.0)),
}
BETA: dict[str, FloatArray] = {
    "probit": np.array([-0.3, 0.5, -0.4, 0.4]),
    "cloglog": np.array([-0.8, 0.5, -0.4, 0.4]),
    "log": np.array([-1.9, 0.2, -0.3, 0.4]),
}


def table(rng: np.random.Generator, n: int, link: str, beta: FloatArray | None = None) -> Table:
    """x0 normal (bounded by ±3 for the log link, so that risks stay below 1), x1 uniform, x2 of 0
    and 1.
    """
    x0 = np.clip(rng.normal(size=n), -3, 3)
    x1, x2 = rng.uniform(-1.7, 1.7, n), (rng.random(n) < 0.4).astype(float)
    rows = np.column_stack([np.ones(n), x0, x1, x2])
    chances = MEANS[link](rows @ (BETA[link] if beta is None else beta))
    y = (rng.random(n) < chances).astype(float)
    return {"x0": x0, "x1": x1, "x2": x2, "y": y}


def planned(data: Table, link: str, rho: int, **more: Any) -> GlmPlan:
    """A plan on a public profile of the table."""
    facts = facts_of(len(data["y"]), [*X, Y], profile_of(data, [*X, Y]), **more)
    return plan_glm(facts, plain_design(X, Y), Glm("y ~ x", "binomial", link=link), rho)


def without_privacy(
    data: Table, link: str, weights: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """(β, sandwich errors) of Σ w x (y − F(xᵀβ)) = 0."""
    rows = np.column_stack([np.ones(len(data["y"])), *(data[f"x{j}"] for j in range(3))])
    w = np.ones(len(rows)) if weights is None else weights
    beta = BETA[link].copy()
    for _ in range(50):
        eta = rows @ beta
        g = rows.T @ (w * (data["y"] - MEANS[link](eta)))
        H = (rows.T * (w * SLOPES[link](eta))) @ rows
        beta = beta + np.linalg.solve(H, g)
    scores = rows * (w * (data["y"] - MEANS[link](rows @ beta)))[:, None]
    A = np.linalg.inv(H)
    return beta, np.asarray(np.sqrt(np.diag(A @ (scores.T @ scores) @ A)))


def reply_weights(data: Table, fit: Any) -> FloatArray:
    """(n,) the weights that a reply names."""
    rows = np.column_stack([np.ones(len(data["y"])), *(data[f"x{j}"] for j in range(3))])
    A, radius_squared = np.array(fit.weighting["matrix"]), fit.weighting["radius_squared"]
    return np.asarray(np.minimum(1, radius_squared / ((rows @ A.T) ** 2).sum(axis=1)))
