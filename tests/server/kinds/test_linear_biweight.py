# SPDX-License-Identifier: Apache-2.0
"""Tukey's biweight by noisy Newton: its target, what outliers do to it, its plan."""

import json
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.steps import GramSum, VectorSum
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.huber import PsiScore
from reticent_server.fitting.trust.words import NOT_ARRIVED
from reticent_server.kinds.linear_regression.target import noise_free_fit
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.numerics.biweight import Biweight
from support.fits.linear_plans import linear_plan, numerics
from support.fits.regressions import (
    HUGE_RHO,
    boolean,
    drive,
    facts_of,
    farther,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    whole,
)
from support.seeds import seeded

COLUMNS, Y = [numeric(f"x{j}") for j in range(3)], numeric("y")
TUKEY = LinearRegression("y ~ x", loss="tukey")


def table_of(n: int = 5000, outliers: int = 0) -> Any:
    table = linear_table(n, 3, seeded(7))
    for name, value in (("x0", 5.0), ("x1", 5.0), ("x2", 5.0), ("y", 12.0)):
        table[name][:outliers] = value
    return table


def planned(table: Any, rho: Any, asked: Any = TUKEY, columns: Any = COLUMNS, **design: Any) -> Any:
    n = len(table["y"])
    facts = facts_of(n, [*columns, Y], profile_of(table, [*columns, Y]))
    return plan_linear_regression(facts, plain_design(columns, Y, **design), asked, rho)


CASES = {
    "clean": (table_of, COLUMNS, TUKEY, {}),
    "outliers": (lambda: table_of(outliers=50), COLUMNS, TUKEY, {}),
    "no intercept": (table_of, COLUMNS, TUKEY, {"intercept": False}),
    "a small c": (table_of, COLUMNS, LinearRegression("y ~ x", loss="tukey", tuning=3.0), {}),
    "a rare dummy": (
        lambda: table_of() | {"d": (np.arange(5000) % 25 == 0).astype(float)},
        [*COLUMNS, boolean("d")],
        TUKEY,
        {},
    ),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", CASES)
def test_without_noise_it_solves_the_estimating_equation(case: str) -> None:
    make, columns, asked, more = CASES[case]
    table = make()
    plan = planned(table, HUGE_RHO, asked, columns, **more)
    result = drive(plan.run(), whole(table)).result
    target = noise_free_fit(plan, whole(table))
    gap = (np.array(result["coefficients"]) - target.coefficients) / target.standard_errors
    assert np.max(np.abs(gap)) < 0.06
    ratio = np.array(result["standard_errors"]) / target.standard_errors
    np.testing.assert_allclose(ratio, 1, atol=0.12)
    assert result["tuning"] == (asked.tuning or pytest.approx(4.685, abs=1e-3))
    assert result["estimand"].startswith("Mallows-Tukey")
    assert "from the Huber fit with tuning constant 1" in result["estimand"]
    assert all(result["estimable"])


def test_gross_outliers_move_huber_and_not_the_biweight() -> None:
    """What 2 % of the records at one wrong place change, without noise: a tenth as much."""
    moved = {}
    for asked in (LinearRegression("y ~ x", loss="huber"), TUKEY):
        clean, gross = (
            np.array(drive(planned(t, HUGE_RHO, asked).run(), whole(t)).result["coefficients"])
            for t in (table_of(20_000), table_of(20_000, outliers=400))
        )
        moved[asked.loss] = np.max(np.abs(gross - clean))
    assert moved["tukey"] < 0.3 * moved["huber"]


@pytest.mark.parametrize("asked", [LinearRegression("y ~ x"), TUKEY], ids=["huber", "tukey"])
def test_a_cluster_of_outliers_does_not_keep_the_path_from_its_target(asked: Any) -> None:
    table = table_of(outliers=250)
    plan = planned(table, HUGE_RHO, asked)
    result = drive(plan.run(), whole(table)).result
    target = noise_free_fit(plan, whole(table))
    away = np.array(result["coefficients"]) - target.coefficients
    assert np.max(np.abs(away) / result["standard_errors"]) < 3


@pytest.mark.parametrize(("loss", "sound", "long"), [("huber", 0.1, 0.4), ("tukey", 0.2, 0.8)])
def test_a_last_step_that_is_long_and_unlikely_leaves_no_interval(
    loss: str, sound: float, long: float
) -> None:
    """Scores are made up: of steps that have a chance of 0, only those have no interval that are
    longer, in residual scales, than any of a sound fit.
    """
    table = linear_table(20_000, 3, seeded(7))
    plan = linear_plan(table, numerics(3), rho_units(4.0, 1e-6), loss=loss)
    for way, warnings in ((0.0, []), (sound, []), (long, [NOT_ARRIVED])):
        found = drive(plan.run(), whole(table), farther(way)).result
        assert found["estimable"] == [not warnings] * 4
        assert found["warnings"] == warnings


def test_the_last_two_steps_have_the_biweights_score_and_its_bound() -> None:
    """And a Jacobian of both signs, which costs √2 more."""
    table = table_of()
    plan = planned(table, rho_units(1.0, 1e-6))
    trace = drive(plan.run(), whole(table))
    steps = [step for step in trace.steps if step.label.startswith("newton step")]
    R, T = plan.sizes.radius_squared**0.5, plan.budget.steps
    scores = [step.map_fn.point.score for step in steps]
    assert all(isinstance(score, PsiScore) for score in scores)
    assert [score.signed for score in scores] == [False] * (T - 2) + [True] * 2
    for step, score in zip(steps, scores, strict=True):
        gradient, *others = step.parts
        assert isinstance(gradient, VectorSum)
        assert gradient.clip == pytest.approx(R * score.bound)
        for gram in others:
            assert isinstance(gram, GramSum)
    jacobian, meat = steps[-1].parts[1:]
    assert jacobian.signed
    assert jacobian.clip == pytest.approx(R)
    assert not meat.signed
    assert meat.clip == pytest.approx(R * Biweight().bound)
    root = steps[-1].map_fn(whole(table))[1]
    assert (root.weights < 0).any()


def test_it_costs_what_was_offered_and_plans_from_public_facts() -> None:
    rho = rho_units(1.0, 1e-6)
    plan, huber = planned(table_of(), rho), planned(table_of(), rho, LinearRegression("y ~ x"))
    assert rho - 100 < min(plan.rho, huber.rho) <= max(plan.rho, huber.rho) <= rho
    forecast = plan.forecast
    json.dumps(dict(forecast), allow_nan=False)
    assert forecast["tuning"] == pytest.approx(4.685, abs=1e-3)
    assert np.all(plan.forecast_fit.privacy > huber.forecast_fit.privacy)
    assert 0 < plan.noise_ratio(rho) < 2 * huber.noise_ratio(rho)
    with pytest.raises(InvalidQuery):
        planned(table_of(), rho, LinearRegression("y ~ x", loss="tukey", tuning=1.9))


def test_the_forecast_is_of_the_size_of_what_comes() -> None:
    plan = planned(table_of(20_000), rho_units(1.0, 1e-6))
    result = drive(plan.run(), whole(table_of(20_000))).result
    privacy = np.array(result["privacy_standard_errors"])
    sampling = np.sqrt(np.array(result["standard_errors"]) ** 2 - privacy**2)
    ratio = privacy / sampling / np.array(plan.forecast["privacy_to_sampling"])
    assert np.all((ratio > 0.6) & (ratio < 1.7))


DEGENERATE = {
    "one record": {k: v[:1] for k, v in table_of().items()},
    "equal responses": table_of() | {"y": np.full(5000, 2.0)},
    "all beyond c": table_of() | {"y": 900.0 * (-1.0) ** np.arange(5000)},
    "everything equal": {k: np.full(50, 1.0) for k in ("x0", "x1", "x2", "y")},
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("epsilon", [0.05, 20.0])
def test_no_table_raises(case: str, epsilon: float) -> None:
    table = DEGENERATE[case]
    result = drive(planned(table, rho_units(epsilon, 1e-6)).run(), whole(table)).result
    json.dumps(result, allow_nan=False)
