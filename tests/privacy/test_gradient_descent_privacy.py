# SPDX-License-Identifier: Apache-2.0
"""Noisy gradient descent: adversarial neighbours on the same released path, accuracy and
honesty.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.steps import Block
from reticent_server.kinds.linear_regression.gradient_descent import plan_gradient_descent
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import step_loss
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


def planned(table: Any, p: Any, rho: Any = RHO, *, max_rows: int = 1, profile: bool = True) -> Any:
    columns = [numeric(f"x{j}") for j in range(p)]
    columns += [boolean("d")] if "d" in table else []
    y = numeric("y")
    found = profile_of(table, [*columns, y]) if profile else None
    public = facts_of(len(table["y"]), [*columns, y], found, max_rows)
    return plan_gradient_descent(public, plain_design(columns, y), query(), rho)


def with_dummy(table: Any, rng: np.random.Generator) -> Any:
    return table | {"d": (rng.random(len(table["y"])) < 0.02).astype(float)}


EXTREMES = (1e3, -1e3, 1e9, -1e300, np.inf, np.nan, 0.0)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("max_rows", [1, 2])
def test_no_neighbour_on_the_released_path_loses_more_than_is_charged(max_rows: int) -> None:
    rng = seeded(max_rows)
    table = with_dummy(linear_table(60, 2, rng), rng)
    plan = planned(table, 2, max_rows=max_rows)
    for name, value in (("x0", 0.0), ("x1", 0.0), ("y", 900.0), ("d", 1.0)):
        table[name][:max_rows] = value  # full weight, the rare dummy, a saturated residual
    trace = drive(plan.run(), whole(table))
    charged = sum(map(registry.rho, trace.steps))
    assert charged == plan.rho <= RHO
    worst = 0.0
    for trial in range(25):
        other = {name: values.copy() for name, values in table.items()}
        for row in range(max_rows):
            for name in ("x0", "x1", "y"):
                other[name][row] = rng.choice(EXTREMES)
            other["d"][row] = rng.integers(2)
            if trial == 0:  # the residual turned round
                for name, value in (("x0", 0.0), ("x1", 0.0), ("y", -900.0), ("d", 1.0)):
                    other[name][row] = value
        losses = [step_loss(s, whole(table), whole(other)) for s in trace.steps]
        assert sum(losses) <= plan.rho
        worst = max(worst, sum(losses) / plan.rho)
    assert worst > 0.15


def test_without_a_profile_the_quartiles_are_paid_for() -> None:
    rng = seeded(3)
    table = linear_table(3000, 2, rng)
    plan = planned(table, 2, profile=False)
    trace = drive(plan.run(), whole(table))
    assert trace.steps[0].label == "own profile"
    assert sum(map(registry.rho, trace.steps)) == plan.rho <= RHO
    assert len(trace.steps) == plan.passes
    assert plan.shares["profile"] > 0


@pytest.mark.slow
def test_it_finds_the_coefficients_and_its_intervals_cover() -> None:
    hits, errors = [], []
    for seed in range(12):
        table = linear_table(20_000, 4, seeded(seed))
        result = drive(planned(table, 4).run(), whole(table)).result
        errors.append(np.linalg.norm(np.array(result["coefficients"][1:]) - 1))
        intervals = result["confidence_intervals"][1:]
        hits += [low <= 1 <= high for low, high in intervals]
    assert np.median(errors) < 0.02
    assert np.mean(hits) > 0.85
    assert result["steps"] == 20
    assert "Mallows-Huber" in result["estimand"]


def correlated_table(n: int, p: Any, rng: np.random.Generator, correlation: Any) -> tuple[Any, Any]:
    """Slopes ±1 against AR correlation: most of y is in the directions that a descent finds
    last.
    """
    C = correlation ** np.abs(np.subtract.outer(range(p), range(p)))
    X = rng.normal(size=(n, p)) @ np.linalg.cholesky(C).T
    slopes = (-1.0) ** np.arange(p)
    columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(p)}
    return columns | {"y": X @ slopes + 0.5 * rng.normal(size=n)}, slopes


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize(("p", "n", "correlation"), [(4, 20_000, 0.8), (10, 5000, 0.5)])
def test_intervals_count_what_a_descent_has_not_reached(p: int, n: int, correlation: float) -> None:
    """Without the bias the first design's intervals, errors of 20 standard errors, never cover."""
    hits = []
    for seed in range(8):
        table, slopes = correlated_table(n, p, seeded(100 + seed), correlation)
        result = drive(planned(table, p).run(), whole(table)).result
        beta, se = np.array(result["coefficients"][1:]), np.array(result["standard_errors"][1:])
        hits += [*(np.abs(beta - slopes) < 1.96 * se)]
        assert all(result["estimable"])
    assert np.mean(hits) > 0.75


def test_what_a_descent_has_not_reached_is_in_the_standard_errors() -> None:
    """A rare level of which 20 steps without noise come half of the way."""
    rng = seeded(1)
    table = with_dummy(linear_table(20_000, 2, rng), rng)
    table["y"] = table["y"] + 3 * table["d"]
    result = drive(planned(table, 2, HUGE_RHO).run(), whole(table)).result
    away, told = abs(result["coefficients"][3] - 3), result["privacy_standard_errors"][3]
    assert away > 0.3
    assert away < 2 * told


@pytest.mark.slow
def test_a_collinear_pair_is_not_estimable() -> None:
    table = linear_table(20_000, 2, seeded(5))
    table["x1"] = table["x0"].copy()
    results = [drive(planned(table, 2).run(), whole(table)).result for _ in range(6)]
    assert sum(r["estimable"] == [True, False, False] for r in results) >= 3
    assert all((r["p_values"][1] is None) is not r["estimable"][1] for r in results)


def test_hopeless_tables_have_an_answer() -> None:
    for values in (np.zeros(50), np.full(50, np.nan), np.full(50, 1e300)):
        table = {"x0": values.copy(), "x1": values.copy(), "y": values.copy()}
        plan = planned(linear_table(50, 2, seeded(1)), 2)
        result = drive(plan.run(), Block(0, 50, table, {})).result
        assert np.isfinite(result["coefficients"]).all()
        assert np.isfinite(result["standard_errors"]).all()
