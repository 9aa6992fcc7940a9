# SPDX-License-Identifier: Apache-2.0
"""Least squares whose scores are cut as a whole: the textbook's target, told what the cut takes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.design import Compare
from reticent_server.domain.schema import Unit
from reticent_server.domain.steps import RunningCounts
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.mechanisms import registry
from support.fits.linear_plans import Y, gaps, linear_plan, numerics, target_of
from support.fits.regressions import (
    HUGE_RHO,
    boolean,
    drive,
    facts_of,
    linear_table,
    numeric,
    plain_design,
    profile_of,
    query,
    whole,
)
from support.seeds import seeded

RHO = rho_units(1.0, 1e-6)
N = 20_000


def table_of(n: int = N, seed: int = 1, errors: Any = None, size: float = 1.0) -> Any:
    """y = x0 + x1 + errors, the second regressor skewed."""
    rng = seeded(seed)
    table = linear_table(n, 2, rng)
    table["x1"] = np.minimum(rng.exponential(size=n), 8.0)
    noise = rng.normal(size=n) if errors is None else errors(rng, n)
    return table | {"y": size * (table["x0"] + table["x1"]) + noise}


def plan_of(table: Any, rho: int = RHO, **more: Any) -> Any:
    columns = [*numerics(1), numeric("x1", 0.0, 10.0)]
    return linear_plan(table, columns, rho, loss="squared", **more)


def result_of(table: Any, rho: int = RHO, **more: Any) -> Any:
    return drive(plan_of(table, rho, **more).run(), whole(table)).result


def pareto(rng: np.random.Generator, n: int) -> Any:
    """α = .9: the largest of 20,000 errors is longer than all others together now and then."""
    return 0.02 * np.minimum(rng.pareto(0.9, size=n), 4500.0)


@pytest.mark.parametrize("where", [None, Compare("x0", ">", -0.3)])
def test_without_noise_it_is_ols_of_the_records_in_use(where: Any) -> None:
    table = table_of()
    plan = plan_of(table, HUGE_RHO, **({} if where is None else {"where": where}))
    found = drive(plan.run(), whole(table)).result
    used = table["x0"] > -0.3 if where else np.ones(N, dtype=bool)
    X = np.column_stack([np.ones(N), table["x0"], table["x1"]])[used]
    ols = np.linalg.lstsq(X, table["y"][used], rcond=None)[0]
    assert found["coefficients"] == pytest.approx(ols, abs=2e-3)  # a standard error is .007
    away, ratios = gaps(found, target_of(plan, whole(table)))
    assert np.abs(away).max() < 0.3
    assert ratios == pytest.approx(1.0, abs=0.1)


def test_skewed_errors_do_not_move_it_as_they_move_a_robust_fit() -> None:
    """Errors whose mean is 0 given x, and whose median moves with it."""
    table = table_of(errors=lambda rng, n: rng.exponential(size=n) - 1.0)
    table["y"] = table["y"] + (table["x1"] - 1) * (seeded(2).exponential(size=N) - 1)
    plain = result_of(table, HUGE_RHO)
    robust = drive(
        linear_plan(table, [*numerics(1), numeric("x1", 0.0, 10.0)], HUGE_RHO).run(), whole(table)
    ).result
    X = np.column_stack([np.ones(N), table["x0"], table["x1"]])
    ols = np.linalg.lstsq(X, table["y"], rcond=None)[0]
    assert abs(plain["coefficients"][2] - ols[2]) < 0.02 < abs(robust["coefficients"][2] - ols[2])


def test_the_reply_says_what_it_estimates_and_what_the_cut_takes() -> None:
    result = result_of(table_of())
    assert result["estimand"].startswith("least-squares coefficients of all records in use")
    assert result["tuning"] is None
    assert result["cut"]["tail_index"] > 2
    assert 50 < result["cut"]["records_beyond"] < 75
    parts = np.array(result["cut"]["allowances"]) / np.array(result["standard_errors"])
    assert np.all((parts > 0) & (parts < 0.8))
    assert result["weighting"]["radius_squared"] > 1e200
    assert all(result["estimable"])


def test_a_tail_of_few_records_is_declined_with_what_to_ask_instead() -> None:
    result = result_of(table_of(errors=pareto, size=0.02))
    assert not any(result["estimable"])
    (said, *_) = result["warnings"]
    assert "records decide" in said
    assert 'loss="huber"' in said


def test_its_steps_cost_what_is_planned() -> None:
    table = table_of()
    plan = plan_of(table)
    steps = drive(plan.run(), whole(table)).steps
    assert sum(map(registry.rho, steps)) == plan.rho <= RHO
    assert plan.rho > RHO * (1 - 1e-6)
    assert len(steps) == plan.passes
    (lengths,) = (s for s in steps if s.label == "lengths of scores")
    assert all(isinstance(part, RunningCounts) for part in lengths.parts)


def test_the_last_scores_are_cut_at_one_released_length_and_not_at_a_product_of_bounds() -> None:
    table = table_of()
    plan = plan_of(table)
    *_, first, second, third = drive(plan.run(), whole(table)).steps
    clips = [step.parts[0].clip for step in (first, second, third)]
    assert clips[0] == clips[1] == clips[2] == third.parts[1].clip
    assert clips[0] < 4 * np.sqrt(4 * 3) * 3 / 2  # 4 scales times a radius of √(4q), by half


def test_less_noise_cuts_fewer_records() -> None:
    table = table_of()
    few, many = (result_of(table, rho)["cut"]["records_beyond"] for rho in (16 * RHO, RHO))
    assert few == pytest.approx(many / 4, rel=0.2)


@pytest.mark.parametrize("factor", [1, 40])
def test_a_rare_combination_that_public_rows_lack_is_covered_or_declined(factor: int) -> None:
    """Two dummies that add up to 1 but for 1 record in 150."""
    rng = seeded(4)
    table = linear_table(N, 1, rng)
    a = (rng.random(N) < 0.5).astype(float)
    b = np.where(rng.random(N) < 1 / 150, a, 1 - a)
    table |= {"a": a, "b": b, "y": table["x0"] + 2 * a + b + rng.normal(size=N)}
    columns = [*numerics(1), boolean("a"), boolean("b")]
    plan = linear_plan(table, columns, factor * RHO, loss="squared")
    X = np.column_stack([np.ones(N), table["x0"], a, b])
    ols = np.linalg.lstsq(X, table["y"], rcond=None)[0]
    result = drive(plan.run(), whole(table)).result
    away = np.abs(np.array(result["coefficients"]) - ols) / np.array(result["standard_errors"])
    assert np.all((away < 6) | ~np.array(result["estimable"]))


@pytest.mark.parametrize("more", [{"tuning": 3.0}])
def test_a_tuning_constant_asks_for_the_truncated_fit(more: Any) -> None:
    table = table_of()
    result = result_of(table, **more)
    assert result.get("cut") is None
    assert result["tuning"] == 3.0


def test_persons_keep_the_truncated_fit() -> None:
    table = table_of(2000)
    every = [*numerics(1), numeric("x1", 0.0, 10.0), Y]
    facts = facts_of(2000, every, profile_of(table, every))
    persons = replace(facts, schema=replace(facts.schema, unit=Unit("person", 4)))
    design = plain_design(every[:-1], Y)
    plan = plan_linear_regression(persons, design, query(loss="squared"), RHO)
    assert plan.budget.tail == 0
    assert plan.model.loss.c == 4.0
