# SPDX-License-Identifier: Apache-2.0
"""The whole recipe: its target, its equivariance, its honesty about what cannot be estimated."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.design import Apply, ColumnValue, Compare, Term
from reticent_server.domain.schema import ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.shared.linear.plan import plan_linear_regression
from reticent_server.mechanisms import registry
from support.fits.linear_plans import Y, fitted, gaps, linear_plan, numerics, target_of
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

KEYS = {
    "terms",
    "coefficients",
    "standard_errors",
    "covariance",
    "confidence_level",
    "confidence_intervals",
    "p_values",
    "privacy_standard_errors",
    "estimable",
    "directions",
    "weighting",
    "steps",
    "shares",
    "warnings",
    "scale",
    "tuning",
    "estimand",
    "n",
}


def table_of(n: int = 5000, p: int = 3, seed: int = 0, **more: Any) -> Any:
    return linear_table(n, p, seeded(seed), **more)


def skewed_table(n: int = 4000) -> dict[Any, Any]:
    rng = seeded(3)
    x0, x1 = rng.lognormal(0, 0.7, n), rng.gamma(2, 1, n)
    d = (rng.random(n) < 0.05).astype(float)
    y = 2 * x0 - x1 + 3 * d + (0.3 + 0.5 * x0) * rng.standard_t(4, n)
    return {"x0": x0, "x1": x1, "d": d, "y": y}


def sparse_table() -> Any:
    rng = seeded(8)
    table = linear_table(20_000, 2, rng)
    table["x2"] = (rng.random(20_000) < 0.06) * (1 + rng.exponential(size=20_000))
    return table | {"y": table["y"] + 0.5 * table["x2"]}


def uncentred() -> dict[Any, Any]:
    rng = seeded(4)
    x0, x1 = 50 + 5 * rng.normal(size=4000), 120 + 3 * rng.normal(size=4000)
    y = 0.02 * (x0 - 50) * (x1 - 120) + 0.1 * x0 + rng.normal(size=4000)
    return {"x0": x0, "x1": x1, "y": y}


def product() -> Any:
    """y ~ x0*x1."""
    x0, x1 = (ColumnValue(f"x{j}") for j in range(2))
    design = plain_design(numerics(2), Y)
    return replace(design, terms=(*design.terms, Term("x0:x1", (x0, x1), -1e6, 1e6)))


CASES = {
    "clean": (table_of, numerics(3), {}),
    "no intercept": (table_of, numerics(3), {"intercept": False}),
    "skewed, a rare dummy": (skewed_table, [*numerics(2), boolean("d")], {}),
    "a column that is mostly zero": (sparse_table, [*numerics(2), numeric("x2", 0.0, 20.0)], {}),
    "a common dummy": (
        lambda: table_of() | {"d": (np.arange(5000) % 5 < 2).astype(float)},
        [*numerics(3), boolean("d")],
        {},
    ),
    "where": (table_of, numerics(3), {"where": Compare("x0", ">", -0.3)}),
    "intercept only": (table_of, [], {}),
    "tuning": (table_of, numerics(3), {"tuning": 0.7}),
    "least squares, truncated": (table_of, numerics(3), {"loss": "squared", "tuning": 4.0}),
    "biweight": (table_of, numerics(3), {"loss": "tukey"}),
    "an interaction of uncentred columns": (uncentred, numerics(2), {"design": product()}),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("case", CASES)
def test_without_noise_it_solves_the_estimating_equation(case: str) -> None:
    make, columns, more = CASES[case]
    table = make()
    plan = linear_plan(table, columns, **more)
    result = drive(plan.run(), whole(table)).result
    target = target_of(plan, whole(table))
    gap, ratio = gaps(result, target)
    assert np.max(np.abs(gap)) < 0.1
    np.testing.assert_allclose(ratio, 1, atol=0.05)
    scale = target.scale * plan.ground.coding.response_location.scale
    assert result["scale"] == pytest.approx(scale, rel=0.03)
    assert all(result["estimable"])
    assert np.max(result["privacy_standard_errors"] / target.standard_errors) < 0.25


def test_missing_records_are_left_out() -> None:
    table, columns = table_of(), numerics(3)
    missing = np.arange(5000) % 4 == 0
    table["x1"] = np.where(missing, 0.0, table["x1"])
    plan = linear_plan(table, columns, missing_columns=("x1",))
    result = drive(plan.run(), whole(table, {"x1": missing})).result
    kept = {k: np.ascontiguousarray(v[~missing]) for k, v in table.items()}
    target = target_of(plan, whole(kept, {"x1": missing[~missing]}))
    gap, ratio = gaps(result, target)
    assert np.max(np.abs(gap)) < 0.06
    np.testing.assert_allclose(ratio, 1, atol=0.05)
    assert result["records_in_use"] == pytest.approx(3750, abs=1)
    assert result["n"] == 5000


def test_the_fit_follows_the_units_of_the_data() -> None:
    table, columns = table_of(), numerics(3)
    moved = {
        "x0": 10 + 3 * table["x0"],
        "x1": -0.1 * table["x1"],
        "x2": table["x2"],
        "y": 5 - 2 * table["y"],
    }
    first, second = (drive(linear_plan(t, columns).run(), whole(t)).result for t in (table, moved))
    b = np.array(first["coefficients"])
    slopes = -2 * b[1:] / np.array([3, -0.1, 1])
    expected = np.array([5 - 2 * b[0] - 10 * slopes[0], *slopes])
    np.testing.assert_allclose(second["coefficients"], expected, atol=2e-4)
    assert second["scale"] == pytest.approx(2 * first["scale"], rel=5e-3)
    se = np.array(first["standard_errors"])[1:] * 2 / np.array([3, 0.1, 1])
    np.testing.assert_allclose(np.array(second["standard_errors"])[1:], se, rtol=0.02)


def test_derived_terms_are_fitted_in_their_own_units() -> None:
    rng = seeded(2)
    x = rng.lognormal(0, 1, 5000)
    table = {"x": x, "y": 1 + 2 * np.log(x) + rng.normal(0, 0.3, 5000)}
    columns = [numeric("x", 1e-3, 1e3)]
    design = plain_design(columns, Y)
    log = Term("log(x)", (Apply("log", ColumnValue("x")),), -7, 7)
    design = type(design)(design.response, (log,), True, None, ("x", "y"))
    facts = facts_of(5000, [*columns, Y], profile_of(table, [*columns, Y]))
    plan = plan_linear_regression(facts, design, query(), rho_units(20, 1e-6))
    result = drive(plan.run(), whole(table)).result
    assert result["terms"] == ["Intercept", "log(x)"]
    assert result["coefficients"] == pytest.approx([1, 2], abs=0.05)


@pytest.mark.parametrize("profile", [True, False])
def test_the_result_has_its_keys_and_is_consistent(profile: bool) -> None:
    plan, result = fitted(table_of(), numerics(3), profile=profile)
    assert set(result) >= KEYS
    json.dumps(result, allow_nan=False)
    se = np.array(result["standard_errors"])
    np.testing.assert_allclose(np.sqrt(np.diag(result["covariance"])), se)
    assert np.all(np.array(result["privacy_standard_errors"]) < se)
    assert result["directions"] == []  # all are resolved
    half = np.diff(result["confidence_intervals"], axis=1)[:, 0] / 2
    np.testing.assert_allclose(half, 1.959964 * se, rtol=1e-5)
    assert result["coefficients"] == pytest.approx([0, 1, 1, 1], abs=0.15)
    assert plan.passes == len(plan.budget.rounds) + 2 * result["steps"] - 1 + (not profile)
    assert sum(result["shares"].values()) == pytest.approx(1)
    assert any("profile" in w for w in result["warnings"]) is (not profile)


def collinear() -> Any:
    table = table_of()
    return table | {"x1": 2 * table["x0"]}


def constant() -> Any:
    return table_of() | {"x1": np.full(5000, 3.0)}


def never() -> Any:
    return table_of() | {"d": np.zeros(5000)}


EMPTY_DIRECTIONS = [
    (collinear, numerics(3), ["x0", "x1"]),
    (constant, [numeric("x0"), numeric("x1", 0, 10), numeric("x2")], ["Intercept", "x1"]),
    (never, [*numerics(3), boolean("d")], ["d"]),
]


def test_directions_are_in_the_units_of_the_coefficients() -> None:
    """What they add up to is the variance of every coefficient, where noise leaves the last step
    nothing to go.
    """
    _, result = fitted(collinear(), numerics(3), 1e6)
    vectors = np.array([direction["vector"] for direction in result["directions"]])
    se = np.array(result["standard_errors"])
    np.testing.assert_allclose(np.sum(vectors**2, axis=0), se**2, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(("make", "columns", "unknown"), EMPTY_DIRECTIONS)
def test_a_direction_without_information_is_said_to_be_so(
    make: Callable[..., Any], columns: list[Any], unknown: list[Any]
) -> None:
    """But by chance: noise passes for information some times in a hundred."""
    right = 0
    for _ in range(12):
        _, result = fitted(make(), columns)
        flagged = [t for t, ok in zip(result["terms"], result["estimable"], strict=True) if not ok]
        right += set(unknown) <= set(flagged)
        for k, term in enumerate(result["terms"]):
            assert (result["p_values"][k] is None) is (term in flagged)
            assert (result["confidence_intervals"][k] == [None, None]) is (term in flagged)
        said = any("Not identifiable" in w or "too few" in w for w in result["warnings"])
        assert said is bool(flagged)
    assert right >= 9


NOBODY = Compare("x0", ">", 999.0)
DEGENERATE = {
    "one record": {k: v[:1] for k, v in table_of().items()},
    "fewer records than coefficients": {k: v[:3] for k, v in table_of().items()},
    "equal responses": table_of() | {"y": np.full(5000, 2.0)},
    "everything equal": {k: np.full(50, 1.0) for k in ("x0", "x1", "x2", "y")},
    "at the bounds": {k: np.full(50, 1e3) * (-1) ** np.arange(50) for k in ("x0", "x1", "x2", "y")},
    "not finite": table_of() | {"y": np.full(5000, np.nan)},
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("profile", [True, False])
@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("epsilon", [0.05, 20.0])
def test_no_table_raises(case: str, epsilon: float, profile: bool) -> None:
    table = DEGENERATE[case]
    if case == "not finite":
        prior = profile_of(table_of(), [*numerics(3), Y]) if profile else None
        facts = facts_of(5000, [*numerics(3), Y], prior)
        rho = rho_units(epsilon, 1e-6)
        plan = plan_linear_regression(facts, plain_design(numerics(3), Y), query(), rho)
        result = drive(plan.run(), whole(table)).result
    else:
        _, result = fitted(table, numerics(3), epsilon, profile=profile)
    json.dumps(result, allow_nan=False)


def test_an_own_profile_of_equal_responses_has_no_scale_to_measure() -> None:
    """With hardly any noise the quartiles that the fit releases for itself are equal."""
    table = table_of() | {"y": np.repeat([1.0, 7.0], [4990, 10])}
    whole_numbers = replace(Y, kind=ColumnKind.INTEGER)
    facts = facts_of(5000, [*numerics(3), whole_numbers], None)
    design = plain_design(numerics(3), whole_numbers)
    plan = plan_linear_regression(facts, design, query(), HUGE_RHO)
    assert plan.budget.scales
    result = drive(plan.run(), whole(table)).result
    assert result["coefficients"][0] == pytest.approx(1.0, abs=0.2)


@pytest.mark.slow
def test_without_records_nothing_is_estimable() -> None:
    """But where the released number of records is three standard deviations above 0, once in
    740.
    """
    results = [fitted(table_of(), numerics(3), where=NOBODY)[1] for _ in range(20)]
    assert sum(any(r["estimable"]) for r in results) <= 3
    assert all(r["n"] == 5000 for r in results)


def test_noise_dominated_fits_say_so_and_do_not_repeat_themselves() -> None:
    table = table_of(2000)
    plan, result = fitted(table, numerics(3), 0.1)
    assert (
        plan.forecast_fit.ratios.min() > 3
    )  # of all terms: near the limit rounding decides which one is estimable
    noise, error = (np.array(result[f"{k}standard_errors"]) for k in ("privacy_", ""))
    assert np.all(noise < error)
    assert not any(result["estimable"])
    assert result["warnings"]
    again = drive(plan.run(), whole(table)).result
    assert again["coefficients"] != result["coefficients"]


@pytest.mark.slow
def test_planning_reads_no_table_and_spends_exactly_rho() -> None:
    """Less where an own profile says that residuals have no scale."""
    for epsilon in (0.01, 1.0, 30.0):
        for profile in (True, False):
            rho = rho_units(epsilon, 1e-6)
            plan = linear_plan(table_of(), numerics(3), rho, profile=profile, max_rows=2)
            trace = drive(plan.run(), whole(table_of()))
            parts = [part for step in trace.steps for part in step.parts]
            spent = sum(map(registry.rho, trace.steps))
            assert plan.rho <= rho
            assert spent == plan.rho or (not profile and spent < plan.rho)
            assert len(trace.steps) == plan.passes or (
                not profile and len(trace.steps) < plan.passes
            )
            assert all(part.unit_rows * part.person_rows == 2 for part in parts)
            assert plan.columns == ("x0", "x1", "x2", "y")


def test_a_design_of_rare_dummies_alone() -> None:
    """Without intercept and white terms there is nothing to weigh or to whiten."""
    rng = seeded(6)
    d = (rng.random(4000) < 0.1).astype(float)
    table = {"d": d, "y": 3 * d + rng.normal(size=4000)}
    for epsilon in (0.05, 2.0):
        _, result = fitted(table, [boolean("d")], epsilon, intercept=False)
    assert result["coefficients"] == pytest.approx([3], abs=0.5)


def test_a_regression_without_response_or_terms_is_refused() -> None:
    design = plain_design([], Y, intercept=False)
    facts = facts_of(10, [Y], None)
    with pytest.raises(InvalidQuery):
        plan_linear_regression(facts, design, query(), 10**10)
