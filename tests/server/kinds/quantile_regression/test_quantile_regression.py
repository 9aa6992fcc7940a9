"""Quantile regressions beside QuantReg on the same tables: near it, with intervals that hold the truth."""

import json

import numpy as np
import pytest
from scipy.stats import expon, norm

from reticent_server.domain.results import result_json
from reticent_server.errors import InvalidQuery
from reticent_server.formula import parse_formula
from reticent_server.kinds.quantile_regression.model import planned_bandwidth
from reticent_server.kinds.quantile_regression.plan import crosses, plan_quantile_regression
from support.fits.quantile_regression import BETA, X, Y, planned, table, without_privacy
from support.fits.regressions import HUGE_RHO, facts_of, profile_of, whole
from support.kinds.recipes import outcome
from support.tables.follow_up import offer

LAWS = {
    "normal": (lambda rng, n: rng.normal(size=n), norm.ppf),
    "skewed": (lambda rng, n: rng.exponential(size=n) - 1, lambda tau: expon.ppf(tau) - 1),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("tau", [0.25, 0.5, 0.75])
def test_with_little_noise_it_is_quantreg_with_the_replys_weights(law, tau):
    rng, n = np.random.default_rng(3), 20_000
    data = table(rng, n, LAWS[law][0])
    (fit,) = outcome(planned(data, (tau,), HUGE_RHO), whole(data)).fits
    exact, error = without_privacy(data, fit), np.array(fit.standard_errors)
    assert (np.abs(np.array(fit.coefficients) - exact) < 0.4 * error).all()


CELLS = [("normal", 0.5, 5000, 1.0), ("skewed", 0.25, 5000, 4.0)]


@pytest.mark.parametrize(("law", "tau", "n", "epsilon"), CELLS)
def test_intervals_hold_the_truth_and_the_noise_is_as_reported(law, tau, n, epsilon):
    """Of 30 seeded tables: 90 intervals, whose coverage has a standard error of .02; the distance from QuantReg in
    reported errors of the noise, to which the kernel adds where errors are skewed."""
    rng, (errors, quantile) = np.random.default_rng(n), LAWS[law]
    truth = BETA + np.array([quantile(tau), 0, 0])
    held, distance = [], []
    for _ in range(30):
        data = table(rng, n, errors)
        (fit,) = outcome(planned(data, (tau,), offer(epsilon).rho), whole(data)).fits
        low, high = np.array(fit.confidence_intervals).T
        held.append((low <= truth) & (truth <= high))
        gap = np.array(fit.coefficients) - without_privacy(data, fit)
        distance.append(gap / np.array(fit.privacy_standard_errors))
    assert np.mean(held) >= 0.88
    assert 0.6 < np.sqrt(np.mean(np.square(distance))) < {"normal": 1.6, "skewed": 2.5}[law]


def test_several_levels_share_the_charge_and_come_in_order():
    rng = np.random.default_rng(1)
    data = table(rng, 20_000, LAWS["normal"][0])
    plan = planned(data, (0.75, 0.25, 0.5), offer(4.0).rho)
    assert plan.rho <= offer(4.0).rho
    assert plan.rho == sum(fit.rho for fit in plan.fits)
    found = outcome(plan, whole(data))
    json.dumps(result_json(found), allow_nan=False)
    assert [fit.tau for fit in found.fits] == [0.25, 0.5, 0.75]
    constants = [fit.coefficients[0] for fit in found.fits]
    assert constants == pytest.approx(BETA[0] + norm.ppf([0.25, 0.5, 0.75]), abs=0.15)
    assert not found.crossing
    assert found.warnings == []
    assert plan.passes == sum(fit.passes for fit in plan.fits)
    assert plan.forecast["taus"] == [0.25, 0.5, 0.75]


def test_quantiles_that_cross_are_noted():
    apart = np.array([[0.0, 0.1], [1.0, -0.2]])
    assert not crosses(apart, intercept=True)
    assert crosses(np.array([[0.0, 2.0], [1.0, 0.5]]), intercept=True)
    assert not crosses(apart[:1], intercept=True)
    data = table(np.random.default_rng(2), 400, LAWS["normal"][0])
    found = outcome(planned(data, (0.5, 0.52), offer(0.3).rho), whole(data))
    assert found.crossing == bool(found.warnings)


def test_a_response_with_many_equal_values_has_no_intervals():
    rng, n = np.random.default_rng(5), 5000
    data = table(rng, n, LAWS["normal"][0])
    data["y"] = np.rint(data["y"] / 2)
    (fit,) = outcome(planned(data, (0.5,), offer(2.0).rho), whole(data)).fits
    assert fit.confidence_intervals == [(None, None)] * 3
    assert any("quantiles jump" in said for said in fit.warnings)


def test_bandwidths_are_wider_where_there_is_less_to_see():
    data = table(np.random.default_rng(0), 5000, LAWS["normal"][0])
    plan = planned(data, (0.5,), offer(1.0).rho).first
    sizes, rho = plan.sizes, plan.rho
    few = planned_bandwidth(sizes, rho // 10**4, 0.5)
    assert few > planned_bandwidth(sizes, rho, 0.5) >= 0.15
    assert planned_bandwidth(sizes, HUGE_RHO, 0.9) == pytest.approx((3 / 5000) ** (2 / 9))


def test_the_same_level_twice_is_refused():
    data = table(np.random.default_rng(0), 100, LAWS["normal"][0])
    with pytest.raises(InvalidQuery, match="different"):
        planned(data, (0.5, 0.5), offer(1.0).rho)


def test_without_a_profile_or_an_intercept_it_still_replies():
    rng, n = np.random.default_rng(4), 5000
    data = table(rng, n, LAWS["normal"][0])
    for formula, profile in (("y ~ x0 + x1", None), ("y ~ 0 + x0 + x1", profile_of(data, [*X, Y]))):
        facts = facts_of(n, [*X, Y], profile)
        design = parse_formula(formula, facts.schema, "x0 > -1")
        plan = plan_quantile_regression(facts, design, (0.5,), 0.9, offer(4.0).rho)
        found = outcome(plan, whole(data))
        json.dumps(result_json(found), allow_nan=False)
        assert found.fits[0].confidence_level == 0.9
        assert found.fits[0].records_in_use == pytest.approx((data["x0"] > -1).sum(), rel=0.1)
