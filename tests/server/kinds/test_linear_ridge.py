# SPDX-License-Identifier: Apache-2.0
"""Regression with a public ridge: its closed form, its intervals, and that it releases nothing
more.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.fitting.report import back_transform
from reticent_server.kinds.linear_regression.target import noise_free_fit
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.ridge import ridged, shrinkage
from support.fits.regressions import (
    HUGE_RHO,
    drive,
    facts_of,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    whole,
)
from support.seeds import seeded

COLUMNS, Y = [numeric(f"x{j}") for j in range(3)], numeric("y")


def planned(table: Any, ridge: Any, rho: Any, **more: Any) -> Any:
    every = [*COLUMNS, Y]
    facts = facts_of(len(table["y"]), every, profile_of(table, every))
    query = LinearRegression("y ~ x", ridge=ridge, **more)
    return plan_linear_regression(facts, plain_design(COLUMNS, Y), query, rho)


@pytest.mark.parametrize("ridge", [0.05, 1.0, 20.0])
def test_without_noise_and_cutting_it_is_weighted_ridge_regression(ridge: float) -> None:
    table = linear_table(4000, 3, seeded(1))
    plan = planned(table, ridge, HUGE_RHO, tuning=100.0)
    result = drive(plan.run(), whole(table)).result
    w = noise_free_fit(plan, whole(table)).weights
    X = np.column_stack([np.ones(4000), *(table[f"x{j}"] for j in range(3))])
    P, D = (X.T * w) @ X / 4000, ridge * np.diag([0.0, 1.0, 1.0, 1.0])
    closed = np.linalg.solve(P + D, X.T @ (w * table["y"]) / 4000)
    np.testing.assert_allclose(result["coefficients"], closed, atol=2e-3)
    assert f"penalty {ridge:g}/2" in result["estimand"]
    assert any("drawn towards 0" in text for text in result["warnings"])


@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_the_covariance_goes_through_the_same_map(ridge: float) -> None:
    P = np.array([[1.0, 0.2, 0.0], [0.2, 2.0, 0.5], [0.0, 0.5, 1.0]])
    A = shrinkage(P, ridge, intercept=True)
    np.testing.assert_allclose((P + ridge * np.diag([0, 1, 1])) @ A, P, atol=1e-12)
    np.testing.assert_allclose(shrinkage(P, 0.0, intercept=True), np.eye(3), atol=1e-12)


def map_of(fit: Any, coding: Any, ridge: Any) -> Any:
    """A of the released curvature, in the units of the data."""
    back = np.linalg.inv(back_transform(coding).matrix)
    P = back.T @ fit.information @ back * coding.response_location.scale**2
    return shrinkage((P + P.T) / 2, ridge, intercept=True)


def test_both_parts_of_the_covariance_are_mapped() -> None:
    table = linear_table(2000, 3, seeded(6))
    ground, fit = drive(planned(table, None, rho_units(4.0, 1e-6)).fitted(), whole(table)).result
    back = back_transform(ground.coding)
    A, found = map_of(fit, ground.coding, 0.7), ridged(fit, 0.7, ground.coding)
    before, after = (back.coefficients(one.theta) for one in (fit, found))
    np.testing.assert_allclose(after, A @ before, atol=1e-10)
    for part in ("sampling", "privacy"):
        before, after = (back.covariance(getattr(one, part)) for one in (fit, found))
        np.testing.assert_allclose(after, A @ before @ A.T, rtol=1e-8, atol=1e-12)


def test_the_penalty_is_in_the_units_of_the_data() -> None:
    """Whatever the profile's noise made of the standardised terms: another centre, another scale,
    the same fit.
    """
    table = linear_table(4000, 3, seeded(9))
    found = []
    for factor in (1.0, 1.7):
        every = [*COLUMNS, Y]
        profile = profile_of({k: factor * v + factor - 1 for k, v in table.items()}, every)
        facts = facts_of(4000, every, profile)
        asked = LinearRegression("y ~ x", ridge=1.0)
        plan = plan_linear_regression(facts, plain_design(COLUMNS, Y), asked, HUGE_RHO)
        found.append(drive(plan.run(), whole(table)).result["coefficients"])
    np.testing.assert_allclose(*found, atol=0.01)


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_the_steps_and_the_cost_are_those_of_the_fit_without_it(ridge: float) -> None:
    """What leaves the table does not depend on the ridge, so its privacy is the fit's."""
    table = linear_table(2000, 3, seeded(2))
    with_ridge, without = (planned(table, r, rho_units(1.0, 1e-6)) for r in (ridge, None))
    assert with_ridge.rho == without.rho
    trace, plain = drive(with_ridge.run(), whole(table)), drive(without.run(), whole(table))
    assert [s.parts for s in trace.steps] == [s.parts for s in plain.steps]


@pytest.mark.parametrize("ridge", [0.1, 1.0])
def test_a_ridge_makes_standard_errors_smaller(ridge: float) -> None:
    table = linear_table(2000, 3, seeded(2))
    results = (drive(planned(table, r, HUGE_RHO).run(), whole(table)).result for r in (ridge, None))
    narrow, wide = (np.array(result["standard_errors"][1:]) for result in results)
    assert (narrow < wide).all()


@pytest.mark.audit
def test_intervals_cover_the_penalised_truth() -> None:
    """The map A of each fit's released information, of the true slopes (1, 1, 1); 400
    replications.
    """
    rng = seeded(5)
    inside = []
    for _ in range(400):
        table = linear_table(5000, 3, rng)
        plan = planned(table, 0.5, rho_units(1.0, 1e-6))
        ground, fit = drive(
            planned(table, None, rho_units(1.0, 1e-6)).fitted(), whole(table)
        ).result
        result = plan.result(ground, ridged(fit, 0.5, ground.coding))
        truth = map_of(fit, ground.coding, 0.5) @ np.array([0.0, 1, 1, 1])
        low, high = np.array(result["confidence_intervals"]).T
        inside.append((low <= truth) & (truth <= high))
    assert 0.93 <= np.mean(inside) <= 0.975
