# SPDX-License-Identifier: Apache-2.0
"""The biweight's whitened regression: its equations, and the solution that its start decides on."""

from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.whitened import (
    fit_whitened_biweight,
    fit_whitened_mallows,
    inverse_root,
    mean_weight,
)
from scipy.stats import norm

from reticent_server.numerics.biweight import Biweight
from reticent_server.numerics.mallows import mallows_weights, mean_weighted_norm
from support.seeds import seeded

SIZES = {"radius_squared": 3.2, "mean_norm": mean_weighted_norm(3, 3.2)}
TRUTH = np.array([0.2, 0.4, 0.3, -0.2])


def made_up(n: int, outliers: int = 0) -> tuple[Any, Any]:
    rng = seeded(3)
    X = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    y = X @ TRUTH + 0.4 * rng.standard_t(3, n)
    y[:outliers] = 8.0
    return X, y


def fitted(X: Any, y: Any, whitened: Any = None) -> tuple[Any, Any]:
    start = fit_whitened_mallows(X, y, 1.0, whitened=whitened, **SIZES)
    return start, fit_whitened_biweight(X, y, 4.685, start, **SIZES)


@pytest.mark.sample(4)
@pytest.mark.parametrize("whitened", [None, 3])
def test_it_solves_all_three_equations(whitened: int | None) -> None:
    X, y = made_up(2000)
    start, fit = fitted(X, y, whitened)
    family, q = Biweight(4.685), whitened or 4
    u = X[:, :q] @ inverse_root(fit.whitening)
    w = mallows_weights(np.sum(u**2, axis=1), SIZES["radius_squared"])
    z = (y - X @ fit.coefficients) / fit.scale
    np.testing.assert_allclose(w, fit.weights, rtol=1e-8)
    assert np.max(np.abs(X.T @ (w * family.psi(z)))) < 1e-9 * len(y)
    assert np.median(np.abs(z)) == pytest.approx(norm.ppf(0.75), rel=1e-6)
    second = (u.T * (w * family.weight(z))) @ u / len(y)
    expected = SIZES["mean_norm"] * mean_weight(family) * np.eye(q)
    np.testing.assert_allclose(second, expected, atol=1e-6)
    assert np.all(np.linalg.eigvalsh(fit.whitening - start.guard) >= -1e-12)


@pytest.mark.slow
def test_its_covariance_has_the_derivative_that_is_negative_in_places() -> None:
    X, y = made_up(3000)
    _, fit = fitted(X, y)
    family, h = Biweight(4.685), 1e-6

    def score(beta: Any) -> Any:
        z = (y - X @ beta) / fit.scale
        return X.T @ (fit.weights * family.psi(z)) / len(y)

    moves = [fit.coefficients + h * e for e in np.eye(4)]
    M = -np.column_stack([(score(m) - score(fit.coefficients)) / h for m in moves])
    s = X.T * fit.weights * family.psi((y - X @ fit.coefficients) / fit.scale)
    bread = np.linalg.inv(M)
    expected = bread @ (s @ s.T / len(y)) @ bread.T / len(y)
    np.testing.assert_allclose(fit.covariance, expected, rtol=1e-4, atol=1e-12)


@pytest.mark.slow
def test_outliers_bend_the_start_and_not_the_fit() -> None:
    X, y = made_up(4000, outliers=400)
    start, fit = fitted(X, y)
    clean = fitted(X[400:], y[400:])[1]
    assert np.max(np.abs(start.coefficients - TRUTH)) > 0.08
    assert np.max(np.abs(fit.coefficients - clean.coefficients)) < 0.02


def test_the_start_decides_between_two_clusters() -> None:
    """Half the records follow one line, half another: the equation has a solution near each."""
    rng = seeded(1)
    X, noise = np.ones((2000, 1)), 0.1 * rng.normal(size=2000)
    y = np.where(np.arange(2000) < 1200, 0.0, 5.0) + noise
    sizes = {"radius_squared": 1.0, "mean_norm": 1.0}
    start = fit_whitened_mallows(X, y, 1.0, **sizes)
    fit = fit_whitened_biweight(X, y, 4.685, start, **sizes)
    assert abs(fit.coefficients[0]) < abs(start.coefficients[0])
