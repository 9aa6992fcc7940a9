# SPDX-License-Identifier: Apache-2.0
"""Robust generalised linear models: R's glmrob to 1e-6, and what no reference covers from first
principles.
"""

from math import inf
from typing import Any

import numpy as np
import pytest
from benchmarks.noise_free.glm_robust import Equation, fit_glm

from reticent_server.numerics.families import Binomial, Gamma, Poisson
from support.seeds import seeded
from support.tables.references import REFERENCE, epilepsy, numbers, shared_csv

ENTRIES = REFERENCE["glmrob"]


def adult() -> tuple[Any, Any] | None:
    columns = shared_csv("adult.data")
    if columns is None:
        return None
    age, hours = numbers(columns["age"]) / 10, numbers(columns["hours_per_week"]) / 10
    education = numbers(columns["education_num"])
    male = np.array([float(s == "Male") for s in columns["sex"]])
    X = np.column_stack([np.ones(len(age)), age, education, hours, male])
    return X, np.array([float(s == ">50K") for s in columns["Salary"]])


def leverage(X: Any) -> Any:
    Q, _ = np.linalg.qr(X)
    return np.sum(Q * Q, axis=1)


def weights_of(entry: Any, X: Any) -> Any:
    match entry["weights"]:
        case "none":
            return np.ones(len(X))
        case "hat":
            return (1 - leverage(X)) ** 2
        case _:
            return np.sqrt(1 - leverage(X))


def glmrob_covariance(X: Any, fit: Any, c: Any) -> Any:
    """glmrob's expected form: M⁻¹(E ψ² w² g² xxᵀ − aaᵀ)M⁻¹/n."""
    eta, n = X @ fit.coefficients, len(X)
    moments, gain, w = fit.family.moments(eta, c), fit.family.gain(eta), fit.weights
    M = (X.T * (moments.slope * w * gain**2)) @ X / n
    a = X.T @ (moments.mean * w * gain) / n
    Q = (X.T * (moments.square * (w * gain) ** 2)) @ X / n - np.outer(a, a)
    return np.linalg.solve(M, np.linalg.solve(M, Q).T) / n


def check(name: Any, X: Any, y: Any, family: Any) -> None:
    entry = ENTRIES[name]
    c = entry["tuning"] or inf
    fit = fit_glm(X, y, family, c, weights=weights_of(entry, X))
    assert fit.converged
    np.testing.assert_allclose(fit.coefficients, entry["coefficients"], rtol=1e-6)
    if "covariance" in entry:
        covariance = glmrob_covariance(X, fit, c)
        np.testing.assert_allclose(covariance, entry["covariance"], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [k for k in ENTRIES if k.startswith("epilepsy")])
def test_poisson_agrees_with_r(name: str) -> None:
    check(name, *epilepsy(), Poisson())


@pytest.mark.audit
def test_binomial_agrees_with_r() -> None:
    found = adult()
    if found is not None:
        for name in (k for k in ENTRIES if k.startswith("adult")):
            check(name, *found, Binomial())


def table(family: Any, n: int = 40_000, seed: int = 3) -> tuple[Any, Any, Any]:
    """x (n, 3) with intercept, y from the family at β = (.5, .4, −.3)."""
    rng = seeded(seed)
    X = np.column_stack([np.ones(n), rng.normal(size=n), rng.random(n) < 0.3]).astype(float)
    beta = np.array([0.5, 0.4, -0.3])
    mu = family.mean(X @ beta)
    match family.name:
        case "binomial":
            y = (rng.random(n) < mu).astype(float)
        case "poisson":
            y = rng.poisson(mu).astype(float)
        case "gamma":
            y = rng.gamma(1 / family.dispersion, family.dispersion * mu)
        case _:
            y = mu + family.dispersion**0.5 * rng.normal(size=n)
    return X, y, beta


FAMILIES = [Binomial(), Poisson(), Gamma(0.3)]


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
@pytest.mark.parametrize("c", [1.2, 2.0, inf])
def test_fisher_consistent_at_the_model(family: Any, c: float) -> None:
    """At 40,000 records the fit is within 4 standard errors of the truth; without a(μ) it is
    not.
    """
    X, y, beta = table(family)
    fit = fit_glm(X, y, type(family)(), c)
    assert fit.converged
    assert np.all(np.abs(fit.coefficients - beta) < 4 * fit.standard_errors)
    assert fit.family.dispersion == pytest.approx(family.dispersion, rel=0.05)


@pytest.mark.slow
def test_without_the_correction_it_would_not_be_consistent() -> None:
    X, y, _ = table(Gamma(0.3), n=10_000)
    fit = fit_glm(X, y, Gamma(), 1.2)
    a = fit.family.moments(np.zeros(1), 1.2).mean[0]
    assert abs(a) / fit.family.dispersion**0.5 > 10 * fit.standard_errors[0]


@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.name)
def test_information_is_the_expected_derivative_of_the_score(family: Any) -> None:
    X, y, beta = table(family, n=200_000)
    equation = Equation(X, y, family, 1.3, np.ones(len(y)), (-30.0, 30.0))
    h = 1e-4
    numeric = np.column_stack(
        [
            (equation.mean_score(beta - h * e) - equation.mean_score(beta + h * e)) / (2 * h)
            for e in np.eye(3)
        ]
    )
    np.testing.assert_allclose(numeric, equation.information(beta), rtol=0.06, atol=0.02)


@pytest.mark.slow
def test_separated_and_constant_data_give_a_value() -> None:
    X = np.column_stack([np.ones(50), np.linspace(-1, 1, 50), np.zeros(50)])
    for y in (X[:, 1] > 0, np.zeros(50), np.ones(50)):
        for family in (Binomial(), Poisson()):
            fit = fit_glm(X, y.astype(float), family)
            assert np.all(np.isfinite(fit.coefficients))
