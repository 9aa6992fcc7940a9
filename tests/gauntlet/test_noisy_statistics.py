# SPDX-License-Identifier: Apache-2.0
"""The peer that regresses from noisy sufficient statistics: right without noise, and its errors
count the noise.
"""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm
from benchmarks.adassp import adassp
from benchmarks.noisy_statistics import Told, least_squares, noisy_statistics

from support.seeds import seeded

N, TRUTH = 20_000, np.array([1.0, 0.5, -2.0])


def table(seed: int = 0) -> tuple[Any, Any]:
    rng = seeded(seed)
    X = rng.normal(size=(N, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]]) * [1.0, 5.0] + 3
    return X, TRUTH[0] + X @ TRUTH[1:] + rng.normal(size=N)


def test_least_squares_are_those_of_statsmodels() -> None:
    X, y = table()
    ours = least_squares(X, y)
    theirs = sm.OLS(y, sm.add_constant(X)).fit(cov_type="HC1")
    assert ours.coefficients == pytest.approx(theirs.params)
    assert ours.standard_errors == pytest.approx(theirs.bse)


def test_without_noise_it_is_least_squares() -> None:
    X, y = table()
    ours = noisy_statistics(X, y, Told.of(X, y, 1.0), 1e12, seeded(1))
    ols = least_squares(X, y)
    assert ours.coefficients == pytest.approx(ols.coefficients, abs=1e-4)
    assert ours.standard_errors == pytest.approx(ols.standard_errors, rel=0.05)


def test_adassp_is_least_squares_without_noise_and_shrinks_with_it() -> None:
    X, y = table()
    told, ols = Told.of(X, y, 1.0), least_squares(X, y)
    exact = adassp(X, y, told, 1e12, seeded(1))
    assert exact.coefficients == pytest.approx(ols.coefficients, abs=1e-3)
    shrunk = [adassp(X, y, told, 1e-5, seeded(k)).coefficients[2] for k in range(50)]
    assert abs(np.median(shrunk)) < 0.8 * abs(ols.coefficients[2])


@pytest.mark.slow
def test_its_standard_errors_count_the_noise() -> None:
    X, y = table()
    told, rng = Told.of(X, y, 1.0), seeded(2)
    fits = [noisy_statistics(X, y, told, 0.05, rng) for _ in range(400)]
    ols = least_squares(X, y)
    spread = np.std([fit.coefficients for fit in fits], axis=0)
    said = np.median([fit.standard_errors for fit in fits], axis=0)
    noise = np.sqrt(said**2 - ols.standard_errors**2)
    assert np.all(spread > 0.5 * ols.standard_errors)
    assert noise == pytest.approx(spread, rel=0.2)  # the sd of 400 values is known to 3.5 %
