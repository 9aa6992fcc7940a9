# SPDX-License-Identifier: Apache-2.0
"""Independence of a noisy table: Pearson's test without noise, the right level with it."""

import numpy as np
import pytest
from scipy import stats

from reticent_server.numerics.independence import independence_test

SHARES = np.outer([0.5, 0.3, 0.2], [0.6, 0.2, 0.1, 0.1])


def test_without_noise_it_is_pearsons() -> None:
    table = np.random.default_rng(1).poisson(40, (3, 4)).astype(float)
    found = independence_test(table, 1e-9)
    statistic, p_value, df, _ = stats.chi2_contingency(table, correction=False)
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p_value))
    assert found.df == df


@pytest.mark.parametrize(("n", "sd"), [(500, 5.0), (500, 20.0), (5000, 50.0)])
def test_the_level_holds_with_noise_and_would_not_without_it(n: int, sd: float) -> None:
    rng = np.random.default_rng(7)
    tables = rng.multinomial(n, SHARES.ravel(), 1500).reshape(-1, 3, 4)
    noisy = tables + np.rint(rng.normal(0, sd, tables.shape))
    level = np.mean([independence_test(t, sd).p_value < 0.05 for t in noisy])
    naive = np.mean([independence_test(t, 1e-9).p_value < 0.05 for t in noisy])
    assert 0.03 <= level <= 0.07
    assert naive > 0.3


def test_dependence_is_found() -> None:
    rng = np.random.default_rng(3)
    table = 5000 * SHARES + 300 * np.outer([1, -1, 0], [1, -1, 0, 0])
    assert independence_test(table + rng.normal(0, 30, table.shape), 30.0).p_value < 1e-6


def test_hopeless_tables_have_a_p_value() -> None:
    for table in (np.zeros((2, 2)), np.full((2, 3), -50.0), np.array([[9.0, -40.0], [0.0, -3.0]])):
        assert 0 <= independence_test(table, 30.0).p_value <= 1
