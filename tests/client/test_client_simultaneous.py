# SPDX-License-Identifier: Apache-2.0
"""Simultaneous intervals: the law of the largest |z|, against cases in closed form and
simulation.
"""

import numpy as np
import pytest
from scipy import stats

import reticent
from reticent._simultaneous import critical_value
from support.client.replying_server import COVARIANCE, release
from support.seeds import seeded

LEVELS = [0.5, 0.9, 0.95, 0.999]


@pytest.mark.sample(12)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("p", [1, 2, 5, 20, 64])
def test_independent_estimates(p: int, level: float) -> None:
    scale = np.logspace(-6, 6, p)
    found = critical_value(np.diag(scale), level)
    assert found == pytest.approx(stats.norm.ppf((1 + level ** (1 / p)) / 2), abs=2e-4)


@pytest.mark.parametrize("level", LEVELS)
def test_estimates_that_are_one(level: float) -> None:
    sign = np.array([1.0, -1.0, 1.0])
    found = critical_value(np.outer(sign, sign), level)
    assert found == pytest.approx(stats.norm.ppf((1 + level) / 2), abs=2e-3)


@pytest.mark.sample(4)
@pytest.mark.parametrize("rho", [-0.15, 0.3, 0.9])
@pytest.mark.parametrize("p", [2, 6])
def test_equally_correlated_estimates_against_simulation(p: int, rho: float) -> None:
    """400,000 draws: a standard error of 3.4e-4, and the tolerance of six of them."""
    correlation = np.full((p, p), rho) + (1 - rho) * np.eye(p)
    c = critical_value(correlation, 0.95)
    z = seeded(1).multivariate_normal(np.zeros(p), correlation, 400_000)
    assert np.mean(np.abs(z).max(axis=1) <= c) == pytest.approx(0.95, abs=2e-3)


def test_dunnett_s_table() -> None:
    """Five treatments with one control, two-sided at 5 %, known variance: Dunnett (1964), d =
    2.51.
    """
    correlation = np.full((5, 5), 0.5) + 0.5 * np.eye(5)
    assert critical_value(correlation, 0.95) == pytest.approx(2.511, abs=2e-3)


def test_the_same_covariance_gives_the_same_value_and_a_singular_one_gives_one() -> None:
    X = seeded(0).normal(size=(8, 4))
    first, second = (critical_value(X @ X.T, 0.95) for _ in range(2))
    assert first == second
    assert 1.96 < first < stats.norm.ppf(1 - 0.025 / 8)


def test_intervals_of_a_fit_are_wider_in_one_proportion() -> None:
    fit = reticent.RegressionResults(release())
    usable = np.array(fit.estimable)
    c = critical_value(np.array(COVARIANCE)[np.ix_(usable, usable)], 0.95)
    one, joint = fit.conf_int(), fit.conf_int(simultaneous=True)
    ratio = np.diff(joint, axis=1)[usable] / np.diff(one, axis=1)[usable]
    np.testing.assert_allclose(ratio, c / stats.norm.ppf(0.975))
    np.testing.assert_allclose(joint.mean(axis=1)[usable], one.mean(axis=1)[usable])
    assert np.all(
        np.diff(fit.conf_int(0.01, simultaneous=True), axis=1)[usable]
        > 1.1 * np.diff(joint, axis=1)[usable]
    )


def test_what_is_not_estimable_is_left_out() -> None:
    document = release()
    p = len(document["result"]["terms"])
    document["result"]["estimable"] = [False] * p
    document["result"]["confidence_intervals"] = [[None, None]] * p
    intervals = reticent.RegressionResults(document).conf_int(simultaneous=True)
    assert np.isnan(intervals).all()


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_alpha_is_a_probability(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        reticent.RegressionResults(release()).conf_int(alpha)
