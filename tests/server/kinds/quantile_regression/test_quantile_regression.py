# SPDX-License-Identifier: Apache-2.0
"""Quantile regressions beside QuantReg on the same tables: near it, with intervals that hold the
truth.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import expon, norm

from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.beliefs import SEEN, beliefs_of
from reticent_server.fitting.budget import Sizes
from reticent_server.fitting.filter import no_correction, prior
from reticent_server.fitting.state import State
from reticent_server.fitting.whitening import unwhitened
from reticent_server.formula import parse_formula
from reticent_server.kinds import registry
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.quantile_regression.model import RADII, planned_bandwidth, planned_radius
from reticent_server.kinds.quantile_regression.plan import crosses, plan_quantile_regression
from support.fits.quantile_regression import BETA, X, Y, planned, table, without_privacy
from support.fits.regressions import HUGE_RHO, facts_of, profile_of, whole
from support.kinds.recipes import outcome
from support.seeds import seeded
from support.tables.follow_up import offer

LAWS = {
    "normal": (lambda rng, n: rng.normal(size=n), norm.ppf),
    "skewed": (lambda rng, n: rng.exponential(size=n) - 1, lambda tau: expon.ppf(tau) - 1),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("tau", [0.25, 0.5, 0.75])
def test_with_little_noise_it_is_quantreg_with_the_replys_weights(law: str, tau: float) -> None:
    rng, n = seeded(3), 20_000
    data = table(rng, n, LAWS[law][0])
    (fit,) = outcome(planned(data, (tau,), HUGE_RHO), whole(data)).fits
    exact, error = without_privacy(data, fit), np.array(fit.standard_errors)
    assert (np.abs(np.array(fit.coefficients) - exact) < 0.5 * error).all()


CELLS = [("normal", 0.5, 5000, 1.0), ("skewed", 0.25, 5000, 4.0)]


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(("law", "tau", "n", "epsilon"), CELLS)
def test_intervals_hold_the_truth_and_the_noise_is_as_reported(
    law: str, tau: float, n: int, epsilon: float
) -> None:
    """Of 30 seeded tables: 90 intervals, whose coverage has a standard error of .02; the distance
    from QuantReg in reported errors of the noise, to which the kernel adds where errors are
    skewed.
    """
    rng, (errors, quantile) = seeded(n), LAWS[law]
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


def test_a_narrower_kernel_leaves_room_for_another_solution() -> None:
    """Before the steps whose kernels are narrower, and in proportion to the scale; not before those
    with the first.
    """
    data = table(seeded(3), 2000, LAWS["normal"][0])
    newton = planned(data, (0.3,), HUGE_RHO).fits[0].newton
    whitening = unwhitened(newton.coordinates, newton.sizes.radius_squared)
    C = 0.01 * np.eye(newton.sizes.size)
    known = no_correction(whitening, newton.family.shape)
    state = State(np.zeros(len(C)), beliefs_of(SEEN, C), 2.0, known, 2000.0)
    model, steps = newton.public_model(whitening), newton.budget.steps
    for remaining in (2, 1, 0):
        room = newton.place(model, state, steps - 1 - remaining).state.covariance - C
        drift = newton.family.drift(remaining)
        np.testing.assert_allclose(room, prior(whitening, 2.0 * drift), atol=1e-12)
        assert (np.trace(room) > 0) == (remaining < 2)


def test_several_levels_share_the_charge_and_come_in_order() -> None:
    rng = seeded(1)
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


def test_quantiles_that_cross_are_noted() -> None:
    apart = np.array([[0.0, 0.1], [1.0, -0.2]])
    assert not crosses(apart, intercept=True)
    assert crosses(np.array([[0.0, 2.0], [1.0, 0.5]]), intercept=True)
    assert not crosses(apart[:1], intercept=True)
    data = table(seeded(2), 400, LAWS["normal"][0])
    found = outcome(planned(data, (0.5, 0.52), offer(0.3).rho), whole(data))
    assert found.crossing == bool(found.warnings)


def test_a_response_with_many_equal_values_has_no_intervals() -> None:
    rng, n = seeded(5), 5000
    data = table(rng, n, LAWS["normal"][0])
    data["y"] = np.rint(data["y"] / 2)
    (fit,) = outcome(planned(data, (0.5,), offer(2.0).rho), whole(data)).fits
    assert fit.confidence_intervals == [(None, None)] * 3
    assert any("quantiles jump" in said for said in fit.warnings)


def test_bandwidths_are_wider_where_there_is_less_to_see() -> None:
    data = table(seeded(0), 5000, LAWS["normal"][0])
    plan = planned(data, (0.5,), offer(1.0).rho).first
    sizes, rho = plan.sizes, plan.rho
    few = planned_bandwidth(sizes, rho // 10**4, 0.5, 0.8)
    assert few > planned_bandwidth(sizes, rho, 0.5, 0.8) >= 0.15
    assert planned_bandwidth(sizes, rho, 0.5, 8.0) > planned_bandwidth(sizes, rho, 0.5, 0.8)
    assert planned_bandwidth(sizes, HUGE_RHO, 0.9, 0.8) == pytest.approx((3 / 5000) ** (2 / 9))


def test_the_radius_is_the_widest_whose_noise_is_not_felt() -> None:
    sizes = Sizes(size=5, radius_squared=0.0, n=54_875, expected_n=54_875)
    ample, ordinary = offer(4.0).rho, offer(1.0).rho
    assert planned_radius(sizes, ample, 0.5) == RADII[-1]
    assert RADII[0] < planned_radius(sizes, ordinary, 0.5) < RADII[-1]
    assert planned_radius(replace(sizes, expected_n=2_000), ordinary, 0.5) == RADII[0]
    assert planned_radius(sizes, ordinary, 0.95) < planned_radius(sizes, ordinary, 0.5)
    assert planned_radius(replace(sizes, unit_rows=9), ordinary, 0.5) == RADII[0]
    some = planned_radius(sizes, ordinary, 0.5)
    assert planned_radius(sizes, ordinary, 0.5, RADII[-1]) > some  # more noise, for heavy terms
    assert planned_radius(replace(sizes, expected_n=500), ordinary, 0.5, RADII[-1]) < RADII[-1]
    assert planned_radius(sizes, ordinary, 0.5, RADII[0]) == some


@pytest.mark.slow
def test_weights_that_move_the_target_are_told() -> None:
    """A slope that differs in the tail of a term: near all records' at a wide radius, with a
    warning at a narrow one.
    """
    rng, n = seeded(8), 20_000
    data = table(rng, n, LAWS["normal"][0])
    data["x0"] = np.clip(rng.standard_t(4, n), -20, 20)
    data["y"] = np.abs(data["x0"]) * data["x0"] + rng.normal(size=n)
    (narrow,) = outcome(planned(data, (0.5,), offer(0.5).rho), whole(data)).fits
    (wide,) = outcome(planned(data, (0.5,), HUGE_RHO), whole(data)).fits
    assert any("far from the middle of x0" in said for said in narrow.warnings)
    every = sm.QuantReg(data["y"], sm.add_constant(np.column_stack([data["x0"], data["x1"]]))).fit(
        0.5
    )
    away = [abs(fit.coefficients[1] - every.params[1]) for fit in (narrow, wide)]
    assert away[1] < away[0]


def test_the_same_level_twice_is_refused() -> None:
    data = table(seeded(0), 100, LAWS["normal"][0])
    with pytest.raises(InvalidQuery, match="different"):
        planned(data, (0.5, 0.5), offer(1.0).rho)


@pytest.mark.parametrize(
    ("terms", "by", "said"),
    [("poly(x0, 10) + poly(x1, 10)", None, "189 coefficients"), ("x0", "g", "90 fits of groups")],
)
def test_many_quantiles_of_many_terms_or_groups_are_refused(
    terms: str, by: str | None, said: str
) -> None:
    """A plan is free, so that its work is bounded; one quantile of as many is planned."""
    levels = tuple(f"l{k}" for k in range(10))
    columns = (Y, *X, Column("g", ColumnKind.CATEGORICAL, 0, 9, levels))
    facts, tenths = facts_of(5000, list(columns), None), tuple(k / 10 for k in range(1, 10))
    query = QuantileRegression(f"y ~ {terms}", tenths, by=by)
    with pytest.raises(InvalidQuery, match=said):
        registry.plan(facts, query, offer(1.0))
    assert registry.plan(facts, replace(query, tau=0.5), offer(1.0)).rho > 0


@pytest.mark.slow
def test_without_a_profile_or_an_intercept_it_still_replies() -> None:
    rng, n = seeded(4), 5000
    data = table(rng, n, LAWS["normal"][0])
    for formula, profile in (("y ~ x0 + x1", None), ("y ~ 0 + x0 + x1", profile_of(data, [*X, Y]))):
        facts = facts_of(n, [*X, Y], profile)
        design = parse_formula(formula, facts.schema, "x0 > -1")
        plan = plan_quantile_regression(facts, design, (0.5,), 0.9, offer(4.0).rho)
        found = outcome(plan, whole(data))
        json.dumps(result_json(found), allow_nan=False)
        assert found.fits[0].confidence_level == 0.9
        assert found.fits[0].records_in_use == pytest.approx((data["x0"] > -1).sum(), rel=0.1)
