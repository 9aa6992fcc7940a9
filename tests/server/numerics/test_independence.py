# SPDX-License-Identifier: Apache-2.0
"""Independence of a noisy table: Pearson's test without noise, the right level with it."""

import numpy as np
import pytest
from scipy import stats

from reticent_server.numerics.independence import independence_test
from support.seeds import seeded

SHARES = np.outer([0.5, 0.3, 0.2], [0.6, 0.2, 0.1, 0.1])


def test_without_noise_it_is_pearsons() -> None:
    table = seeded(1).poisson(40, (3, 4)).astype(float)
    found = independence_test(table, 1e-9)
    statistic, p_value, df, _ = stats.chi2_contingency(table, correction=False)
    assert (found.statistic, found.p_value) == pytest.approx((statistic, p_value))
    assert found.df == df


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(("n", "sd"), [(500, 5.0), (500, 20.0), (5000, 50.0)])
def test_the_level_holds_with_noise_and_would_not_without_it(n: int, sd: float) -> None:
    rng = seeded(7)
    tables = rng.multinomial(n, SHARES.ravel(), 1500).reshape(-1, 3, 4)
    noisy = tables + np.rint(rng.normal(0, sd, tables.shape))
    level = np.mean([independence_test(t, sd, 0).p_value < 0.05 for t in noisy])
    naive = np.mean([independence_test(t, 1e-9, 0).p_value < 0.05 for t in noisy])
    assert 0.03 <= level <= 0.07
    assert naive > 0.3


def test_dependence_is_found() -> None:
    rng = seeded(3)
    table = 5000 * SHARES + 300 * np.outer([1, -1, 0], [1, -1, 0, 0])
    assert independence_test(table + rng.normal(0, 30, table.shape), 30.0).p_value < 1e-6


def test_hopeless_tables_have_a_p_value() -> None:
    for table in (np.zeros((2, 2)), np.full((2, 3), -50.0), np.array([[9.0, -40.0], [0.0, -3.0]])):
        assert 0 <= independence_test(table, 30.0).p_value <= 1


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("sd", [0.5, 2.0, 10.0])
def test_the_simulated_level_holds_where_cells_have_few_records(sd: float) -> None:
    """600 tables of 100 records: a level of .05 has a standard error of .009; that of χ² is .05 to
    .14.
    """
    rng = seeded(11)
    shares = np.outer([0.9, 0.07, 0.03], [0.85, 0.1, 0.03, 0.02])
    tables = rng.multinomial(100, shares.ravel(), 600).reshape(-1, 3, 4)
    noisy = tables + np.rint(rng.normal(0, sd, tables.shape))
    found = [independence_test(t, sd, 199) for t in noisy]
    assert np.mean([t.simulated_p_value <= 0.05 for t in found]) <= 0.08
    assert np.mean([t.simulated_p_value <= 0.5 for t in found]) > 0.3
    if sd != 2.0:
        assert np.mean([t.p_value < 0.05 for t in found]) > 0.08


def test_the_simulated_p_value_is_chi_squareds_where_there_are_many_records() -> None:
    rng = seeded(12)
    tables = rng.multinomial(5000, SHARES.ravel(), 40).reshape(-1, 3, 4) + np.rint(
        rng.normal(0, 9, (40, 3, 4))
    )
    found = [independence_test(t, 9.0) for t in tables]
    gaps = [t.simulated_p_value - t.p_value for t in found]
    assert np.max(np.abs(gaps)) < 0.06
    assert independence_test(tables[0], 9.0) == found[0]
    dependent = independence_test(tables[0] + 300 * np.eye(3, 4), 9.0)
    assert dependent.simulated_p_value == 1 / 1000
    assert independence_test(np.ones((13, 12)), 1.0).simulated_p_value is None
