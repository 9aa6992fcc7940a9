# SPDX-License-Identifier: Apache-2.0
"""The noise-free regressions: R's values where its data are at hand, and first principles
always.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.huber import fit_huber
from benchmarks.noise_free.whitened import fit_whitened_mallows, inverse_root, mean_weight
from scipy.stats import norm

from reticent_server.numerics.huber_mallows import regress
from reticent_server.numerics.mallows import mallows_weights, mean_weighted_norm
from reticent_server.numerics.psi import Huber
from support.seeds import seeded
from support.tables.references import numbers, shared_csv

R = json.loads((Path(__file__).parents[2] / "fixtures" / "r_huber_regressions.json").read_text())


def houses() -> tuple[Any, Any] | None:
    columns = shared_csv("kc_house_data.csv")
    if columns is None:
        return None
    x = [numbers(columns[k]) for k in ("bedrooms", "bathrooms", "grade")]
    sqft = numbers(columns["sqft_living"]) / 1000
    X = np.column_stack([np.ones(len(sqft)), sqft, *x])
    return X, numbers(columns["price"]) / 1e5


def made_up(n: int = 300, seed: int = 1) -> tuple[Any, Any]:
    rng = seeded(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 2)), rng.exponential(size=n)])
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.standard_t(3, size=n)
    y[:10] += 50
    return X, y


@pytest.mark.slow
def test_agrees_with_r_on_house_prices() -> None:
    table = houses()
    if table is None:
        return
    X, y = table
    n, p = X.shape
    w = np.minimum(1, 10 / np.linalg.norm(X, axis=1))
    equations = {
        "own_unweighted_dfnp": {"degrees": n - p},
        "own_unweighted_dfn": {},
        "own_mallows_wscale_dfsumw": {"weights": w, "scale_weights": w, "degrees": w.sum()},
        "own_mallows_wscale_dfsumw_minus_p": {
            "weights": w,
            "scale_weights": w,
            "degrees": w.sum() - p,
        },
        "own_mallows_unwscale_dfn": {"weights": w},
        "own_mallows_unwscale_dfnp": {"weights": w, "degrees": n - p},
        "rlm": {"degrees": n - p},
        "rlm_case": {"weights": w, "scale_weights": w, "degrees": w.sum() - p},
    }
    for name, how in equations.items():
        fit = fit_huber(X, y, 1.345, **how)
        np.testing.assert_allclose(fit.coefficients, R[name]["coefficients"], rtol=1e-9)
        assert fit.scale == pytest.approx(R[name]["scale"], rel=1e-9)
        if "standard_errors" in R[name]:
            np.testing.assert_allclose(fit.standard_errors, R[name]["standard_errors"], rtol=1e-9)


def test_proposal_2_solves_its_equations() -> None:
    X, y = made_up()
    w = np.minimum(1, 2 / np.linalg.norm(X, axis=1))
    fit = fit_huber(X, y, 1.2, weights=w, scale_weights=w, degrees=w.sum() - 4)
    z = (y - X @ fit.coefficients) / fit.scale
    family = Huber(1.2)
    assert fit.converged
    assert np.max(np.abs(X.T @ (w * family.psi(z)))) < 1e-10 * len(y)
    assert w @ family.psi(z) ** 2 == pytest.approx(family.mean_square * (w.sum() - 4), abs=1e-9)


def test_sandwich_is_the_variance_of_the_score_through_the_numerical_jacobian() -> None:
    X, y = made_up()
    fit = fit_huber(X, y, 1.5)
    family, n, h = Huber(1.5), len(y), 1e-7

    def score(beta: Any) -> Any:
        return X.T @ family.psi((y - X @ beta) / fit.scale) / n

    moves = fit.coefficients + h * np.eye(4)
    base = score(fit.coefficients)
    M = -np.column_stack([(score(moved) - base) / h for moved in moves])
    s = X.T * family.psi((y - X @ fit.coefficients) / fit.scale)
    expected = np.linalg.inv(M) @ (s @ s.T / n) @ np.linalg.inv(M).T / n
    np.testing.assert_allclose(fit.covariance, expected, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("masked", [False, True])
def test_whitened_fit_solves_all_three_equations(masked: bool) -> None:
    X, y = made_up(2000)
    used = (np.arange(len(y)) % 3 > 0).astype(float) if masked else np.ones(len(y))
    R2, kappa, family = 3.2, mean_weighted_norm(3, 3.2), Huber(1.0)
    fit = fit_whitened_mallows(
        X, y, 1.0, radius_squared=R2, mean_norm=kappa, in_use=used if masked else None
    )
    u = X @ inverse_root(fit.whitening)
    w = used * mallows_weights(np.sum(u**2, axis=1), R2)
    z = (y - X @ fit.coefficients) / fit.scale
    assert fit.converged
    assert np.max(np.abs(u.T @ (w * family.psi(z)))) < 1e-9 * len(y)
    assert np.median(np.abs(z[used > 0])) == pytest.approx(norm.ppf(0.75), rel=1e-6)
    second = (u.T * (w * family.weight(z))) @ u / used.sum()
    np.testing.assert_allclose(second, kappa * mean_weight(family) * np.eye(4), atol=1e-6)


def test_whitened_fit_is_affine_equivariant() -> None:
    X, y = made_up(1000)
    how = {"radius_squared": 3.2, "mean_norm": mean_weighted_norm(3, 3.2)}
    A = np.array([[1, 2, 0, 1], [0, 3, 1, 0], [0, 0, 0.2, 5], [0, 0, 0, 1.5]])
    fit = fit_whitened_mallows(X, y, 1.0, **how)
    moved = fit_whitened_mallows(X @ A, 2 * y + X @ A @ np.ones(4), 1.0, **how)
    expected = 2 * np.linalg.solve(A, fit.coefficients) + 1
    np.testing.assert_allclose(moved.coefficients, expected, rtol=1e-6)
    assert moved.scale == pytest.approx(2 * fit.scale, rel=1e-6)


def test_columns_left_out_of_the_whitening_do_not_move_the_weights() -> None:
    X, y = made_up(1000)
    dummy = (np.arange(len(y)) % 50 == 0).astype(float)[:, None]
    how = {"radius_squared": 3.2, "mean_norm": mean_weighted_norm(3, 3.2), "whitened": 4}
    fit = fit_whitened_mallows(np.hstack([X, dummy]), y, 1.0, **how)
    stretched = fit_whitened_mallows(np.hstack([X, 10 * dummy]), y, 1.0, **how)
    np.testing.assert_allclose(fit.weights, stretched.weights, rtol=1e-9)
    assert fit.coefficients[4] == pytest.approx(10 * stretched.coefficients[4], rel=1e-6)


def test_a_column_that_is_mostly_one_value_keeps_its_records() -> None:
    rng = seeded(4)
    X = np.column_stack([np.ones(5000), rng.normal(size=(5000, 2)), rng.random(5000) < 0.05])
    y = X.sum(axis=1) / 2 + rng.normal(size=5000)
    fit = fit_whitened_mallows(X, y, 1.0, radius_squared=3.2, mean_norm=mean_weighted_norm(3, 3.2))
    assert fit.converged
    assert fit.weights[X[:, 3] == 1].mean() > 0.03
    assert fit.coefficients[3] == pytest.approx(0.5, abs=4 * fit.standard_errors[3])


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((1, 1)), np.zeros(1)),
        (np.ones((5, 2)), np.full(5, 3.0)),
        (np.zeros((4, 3)), np.arange(4.0)),
    ],
)
def test_degenerate_tables_give_finite_values(X: Any, y: Any) -> None:
    for fit in (
        fit_huber(X, y, 1.0),
        fit_whitened_mallows(X, y, 1.0, radius_squared=0.8, mean_norm=0.7),
    ):
        assert np.all(np.isfinite(fit.coefficients))
        assert np.all(np.isfinite(fit.covariance))


def test_regress_minimises_the_loss() -> None:
    X, y = made_up()
    family, s, w = Huber(0.7), 0.8, np.linspace(0.2, 1, 300)
    beta = regress(X, y, s, w, family, np.zeros(4))
    least = w @ family.loss((y - X @ beta) / s)
    rng = seeded(0)
    for step in rng.normal(scale=1e-3, size=(50, 4)):
        assert w @ family.loss((y - X @ (beta + step)) / s) > least
