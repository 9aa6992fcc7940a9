# SPDX-License-Identifier: Apache-2.0
"""Regressions with person effects and with means of persons, against the within estimator by
numpy.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.schema import ABSENT, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.kinds.registry import kind_of
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.fits.panels import facts_of, panel, within
from support.fits.regressions import HUGE_RHO, drive, numeric
from support.seeds import seeded

FORMULA = "y ~ x0 + x1"
TRUTH = np.array([0.5, -0.3])
EPSILON_1 = int(0.0174 * RHO_UNITS)  # ρ of ε = 1 at δ = 10⁻⁶


def answer(query: Any, table: Any, absent: Any, m: Any, rho: Any) -> Any:
    facts = facts_of(table, absent, m)
    plan = kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, rho))
    return drive(plan.run(), Block(0, len(absent), table, {ABSENT: absent})).result


def asked(formula: str = FORMULA, **more: Any) -> LinearRegression:
    return LinearRegression(formula, **({"loss": "squared", "effects": "person"} | more))


@pytest.mark.parametrize("m", [2, 5])
def test_without_noise_it_is_the_within_estimator_with_errors_by_person(m: Any) -> None:
    table, absent = panel(1, 3000, m)
    result = answer(asked(), table, absent, m, HUGE_RHO)
    beta, errors = within(table, absent, m, ("x0", "x1"))
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.4 * errors.min())
    np.testing.assert_allclose(result["standard_errors"], errors, rtol=0.08)
    assert result["terms"] == ["x0", "x1"]
    assert result["effects"] == "person"
    assert "deviations from the person's own means" in result["estimand"]
    pooled = answer(asked(effects=None), table, absent, m, HUGE_RHO)["coefficients"][1:]
    assert np.abs(np.array(pooled) - TRUTH).min() > 10 * errors.max(), "effects go with the terms"


def test_persons_with_one_row_in_use_say_nothing() -> None:
    table, absent = panel(2, 2000, 4, correlation=0.0)
    place = np.arange(len(absent)) % 4
    single = np.repeat(np.arange(2000) < 1000, 4)
    fewer = absent | (single & (place > 0))
    result = answer(asked(), table, fewer, 4, HUGE_RHO)
    beta, _ = within(table, fewer, 4, ("x0", "x1"))
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.01)
    assert result["clusters"] < 1000
    twos = (~fewer).reshape(-1, 4).sum(axis=1)
    assert result["records_in_use"] == pytest.approx(twos[twos > 1].sum(), rel=0.01)
    assert result["scale"] == pytest.approx(1.0, rel=0.1), "residuals have the errors' variance"


def test_a_term_that_is_constant_within_persons_is_named_and_spoils_no_other() -> None:
    table, absent = panel(3, 3000, 4)
    table["own"] = np.repeat(seeded(1).normal(size=3000), 4)
    result = answer(asked("y ~ x0 + x1 + own"), table, absent, 4, 10 * RHO_UNITS)
    assert result["estimable"] == [True, True, False]
    assert result["confidence_intervals"][2] == [None, None]
    assert any("same in all rows of a person" in said for said in result["warnings"])
    np.testing.assert_allclose(result["coefficients"][:2], TRUTH, atol=0.08)


def test_means_of_persons_take_the_between_part() -> None:
    """Mundlak's identity: with mean(x) beside x, the coefficient of x is the within estimator's
    (balanced rows).
    """
    table, absent = panel(4, 3000, 4, balanced=True)
    formula = "y ~ x0 + x1 + mean(x0) + mean(x1)"
    result = answer(asked(formula, effects=None), table, absent, 4, HUGE_RHO)
    assert result["terms"] == ["Intercept", "x0", "x1", "mean(x0)", "mean(x1)"]
    X = [table["x0"], table["x1"]]
    means = [np.repeat(v.reshape(-1, 4).mean(axis=1), 4) for v in X]
    D = np.column_stack([np.ones(len(absent)), *X, *means])
    beta = np.linalg.lstsq(D, table["y"], rcond=None)[0]
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.02)
    np.testing.assert_allclose(result["coefficients"][1:3], TRUTH, atol=0.05)
    assert abs(result["coefficients"][3]) > 0.1


@pytest.mark.slow
def test_at_a_usual_budget_most_intervals_hold_the_truth() -> None:
    hits, told, errors = 0, 0, []
    for seed in range(5):
        table, absent = panel(seed, 5000, 8, balanced=True)
        result = answer(asked(), table, absent, 8, EPSILON_1)
        ends = np.array(result["confidence_intervals"], dtype=float)
        told += sum(result["estimable"])
        hits += int(np.sum((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)))
        own = np.array(result["coefficients"]) - TRUTH
        errors.append((own**2, (within(table, absent, 8, ("x0", "x1"))[0] - TRUTH) ** 2))
    assert told == 10
    assert hits >= 5, "of 10 intervals of 95 %: seeded, and fewer by chance once in 10^6"
    private, exact = np.sqrt(np.mean(np.array(errors), axis=(0, 2)))
    assert private < 1.6 * exact


@pytest.mark.audit
@pytest.mark.parametrize(
    ("persons", "m", "balanced", "tables", "worst"),
    [(5000, 8, True, 100, 1.3), (20000, 8, False, 30, 1.25), (20000, 4, False, 60, 1.25)],
)
def test_error_and_coverage_over_many_tables(
    persons: Any, m: Any, balanced: Any, tables: Any, worst: Any
) -> None:
    hits, told, errors = 0, 0, []
    for seed in range(tables):
        table, absent = panel([seed, m], persons, m, balanced=balanced)
        result = answer(asked(), table, absent, m, EPSILON_1)
        ends = np.array(result["confidence_intervals"], dtype=float)
        ok = np.array(result["estimable"])
        told += int(ok.sum())
        hits += int(np.sum(((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH))[ok]))
        own = np.array(result["coefficients"]) - TRUTH
        errors.append((own**2, (within(table, absent, m, ("x0", "x1"))[0] - TRUTH) ** 2))
    private, exact = np.sqrt(np.mean(np.array(errors), axis=(0, 2)))
    assert private / exact < worst
    assert told > 0.9 * 2 * tables
    assert 0.88 <= hits / told <= 1.0, "seeded; below by chance less than once in 10^6 at .95"


def refusal(formula: str, m: int = 4, **more: Any) -> str:
    columns = [numeric(n, -20, 20) for n in ("y", "x", "y_lag", "lag2_y", "L1.y", "ylag")]
    from reticent_server.domain.facts import DatasetFacts

    unit = Unit("person", m) if m > 1 else Unit()
    facts = DatasetFacts("t", "t", 1, "v", 100, Schema(tuple(columns), unit)).of_places()
    query = LinearRegression(formula, **more)
    with pytest.raises((InvalidQuery, InvalidFormula)) as error:
        kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, RHO_UNITS))
    return str(error.value)


@pytest.mark.parametrize("name", ["y_lag", "lag2_y", "`L1.y`"])
def test_a_lagged_response_is_refused_with_the_reason(name: str) -> None:
    assert "Nickell" in refusal(f"y ~ x + {name}", effects="person")


def test_what_person_effects_cannot_have_is_said() -> None:
    assert "several rows a person" in refusal("y ~ x", m=1, effects="person")
    assert "Leave 0 out" in refusal("y ~ 0 + x", effects="person")
    assert "Name a term" in refusal("y ~ 1", effects="person")
    assert "newton" in refusal("y ~ x", effects="person", mechanism="gradient_descent")
    assert "mean(x)" in refusal("y ~ x + mean(x)", effects="person")
    assert "mean(...)" in refusal("y ~ x + mean(x)", m=1)
    assert "mean(...)" in refusal("y ~ x + mean(x)", mechanism="gradient_descent")
    with pytest.raises(AssertionError):  # another column's name is nobody's lag
        assert "Nickell" in refusal("y ~ 0 + ylag", effects="person")
