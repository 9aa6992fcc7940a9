"""Quantile regressions of simulated tables: planned, answered, and without privacy."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from statsmodels.regression.quantile_regression import QuantReg

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.quantile_regression.plan import (
    QuantileRegressionPlan,
    plan_quantile_regression,
)
from support.fits.regressions import Table, facts_of, numeric, plain_design, profile_of

X = [numeric("x0", -20, 20), numeric("x1", -20, 20)]
Y = numeric("y", -60, 60)
BETA = np.array([1.0, 0.5, -0.5])


def table(
    rng: np.random.Generator, n: int, errors: Callable[[np.random.Generator, int], FloatArray]
) -> Table:
    """y = 1 + x0/2 − x1/2 + errors(rng, n)."""
    x = rng.normal(size=(2, n))
    y = np.clip(BETA[0] + BETA[1:] @ x + errors(rng, n), -60, 60)
    return {"x0": x[0].copy(), "x1": x[1].copy(), "y": y}


def planned(data: Table, taus: tuple[float, ...], rho: int, **more: Any) -> QuantileRegressionPlan:
    """A plan on a public profile of the table."""
    facts = facts_of(len(data["y"]), [*X, Y], profile_of(data, [*X, Y]), **more)
    return plan_quantile_regression(facts, plain_design(X, Y), taus, 0.95, rho)


def without_privacy(data: Table, fit: Any) -> FloatArray:
    """QuantReg's coefficients with the weights that the reply names."""
    rows = np.column_stack([np.ones(len(data["y"])), data["x0"], data["x1"]])
    A, radius_squared = np.array(fit.weighting["matrix"]), fit.weighting["radius_squared"]
    weights = np.minimum(1, radius_squared / ((rows @ A.T) ** 2).sum(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = QuantReg(data["y"] * weights, rows * weights[:, None]).fit(q=fit.tau, max_iter=2000)
    return np.asarray(found.params)
