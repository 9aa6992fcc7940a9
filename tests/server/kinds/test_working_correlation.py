# SPDX-License-Identifier: Apache-2.0
"""Generalised least squares with exchangeable rows of a person, against statsmodels' GEE."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.formula import exchangeable, parse_formula
from reticent_server.kinds.linear_regression.kind import KIND
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.numerics.evaluate import evaluate_term
from reticent_server.numerics.person_columns import prepared
from support.fits.panels import facts_of, panel
from support.fits.regressions import HUGE_RHO, drive, numeric
from support.seeds import seeded

EPSILON_1 = int(0.0174 * RHO_UNITS)  # ρ of ε = 1 at δ = 10⁻⁶
TRUTH = np.array([1.0, 0.5, -0.3])


def answer(table: Any, absent: Any, m: int, rho: int, correlation: float, **more: Any) -> Any:
    query = LinearRegression(
        "y ~ x0 + x1", **({"loss": "squared"} | more), working_correlation=correlation
    )
    plan = KIND.plan(facts_of(table, absent, m), query, PrivacyCost(10**9, 10**12, rho))
    return drive(plan.run(), Block(0, len(absent), table, {ABSENT: absent})).result


def gee(table: Any, absent: Any, m: int, correlation: float) -> Any:
    """statsmodels' GEE with this correlation, which is not estimated."""
    used = ~absent
    X = sm.add_constant(np.column_stack([table["x0"], table["x1"]])[used])
    who = np.repeat(np.arange(len(absent) // m), m)[used]
    rows = sm.cov_struct.Exchangeable()
    rows.dep_params = correlation
    rows.update = lambda params: None
    model = sm.GEE(table["y"][used], X, who, cov_struct=rows)
    return model.fit(params_niter=1)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "correlation"), [(5, 0.5), (3, 0.9), (4, 0.0)])
def test_without_noise_it_is_gee_with_errors_by_person(m: int, correlation: float) -> None:
    table, absent = panel(1, 2000, m, levels=False, correlation=0.0)
    result = answer(table, absent, m, HUGE_RHO, correlation)
    theirs = gee(table, absent, m, correlation)
    assert result["terms"] == ["Intercept", "x0", "x1"]
    np.testing.assert_allclose(result["coefficients"], theirs.params, atol=0.3 * theirs.bse.min())
    np.testing.assert_allclose(result["standard_errors"], theirs.bse, rtol=0.08)
    if correlation <= 0.5:
        assert result["scale"] == pytest.approx(np.sqrt(2.0), rel=0.05), "all of the variance"
    assert ("working correlation" in result["estimand"]) == (correlation > 0)


def test_it_is_more_precise_than_independent_rows() -> None:
    table, absent = panel(2, 5000, 8, levels=False)
    own, other = (answer(table, absent, 8, EPSILON_1, c) for c in (0.5, 0.0))
    assert all(own["estimable"])
    ratio = np.array(own["standard_errors"]) / np.array(other["standard_errors"])
    assert np.all(ratio[1:] < 0.9)


@pytest.mark.slow
def test_at_a_usual_budget_most_intervals_hold_the_truth() -> None:
    """Also where errors are serially correlated, as the working correlation says they are not."""
    hits, told = 0, 0
    for seed in range(4):
        table, absent = panel(seed, 5000, 8, levels=False)
        result = answer(table, absent, 8, EPSILON_1, 0.4)
        ends = np.array(result["confidence_intervals"], dtype=float)
        told += sum(result["estimable"])
        hits += int(np.sum((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH)))
    assert told == 12
    assert hits >= 7, "of 12 intervals of 95 %: seeded, and fewer by chance once in 10^4"


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.95])
def test_every_row_lies_within_the_bounds_of_its_terms(correlation: float) -> None:
    """At the corners of the declared bounds, of any number of rows; some attain the intercept's."""
    m, rng = 4, seeded(0)
    columns = (numeric("y", -3, 5), numeric("x", 2, 7))
    schema = Schema(columns, Unit("person", m))
    design = exchangeable(parse_formula("y ~ x", schema), schema, correlation)
    size = 400 * m
    table = {c.name: rng.choice([c.lower, c.upper], size) for c in columns}
    absent = rng.random(size) < 0.4
    block = prepared(design, Block(0, size, table, {ABSENT: absent}))
    terms = (design.response, *design.terms)
    used = ~absent
    for term in terms:
        assert term is not None
        values = evaluate_term(term, block)[used]
        assert term.lower - 1e-9 <= values.min()
        assert values.max() <= term.upper + 1e-9
    one = evaluate_term(design.terms[0], block)[used]
    assert one.min() == pytest.approx(design.terms[0].lower)


def refusal(m: int = 4, **fields: Any) -> str:
    columns = tuple(numeric(n, -20, 20) for n in ("y", "x", "z"))
    unit = Unit("person", m) if m > 1 else Unit()
    facts = DatasetFacts("t", "t", 1, "v", 100, Schema(columns, unit)).of_places()
    query = LinearRegression(**({"formula": "y ~ x", "working_correlation": 0.3} | fields))
    with pytest.raises((InvalidQuery, InvalidFormula)) as error:
        KIND.plan(facts, query, PrivacyCost(10**9, 10**12, RHO_UNITS))
    return str(error.value)


def test_what_it_cannot_have_is_said() -> None:
    assert "several rows a person" in refusal(m=1)
    assert "an intercept" in refusal(formula="y ~ 0 + x")
    assert "leave one out" in refusal(effects="person")
    assert "newton mechanism only" in refusal(mechanism="influence")
    assert "leave them out" in refusal(weights="z")
    assert "working correlation" in refusal(fit_statistics=True)
    assert "mean" in refusal(formula="y ~ x + mean(x)")
