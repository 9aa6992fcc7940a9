# SPDX-License-Identifier: Apache-2.0
"""Wald, score and likelihood-ratio-type tests: what they compute, their level, their power."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from reticent_server.domain.design import ColumnValue, Indicator, Term
from reticent_server.domain.hypothesis import LinearHypothesis
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.identifiability import Directions
from reticent_server.formula import parse_hypothesis
from reticent_server.kinds import registry
from reticent_server.kinds.hypothesis_test.plan import tested_fit as under_test
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.hypothesis_test.statistics import (
    FitUnderTest,
    likelihood_ratio,
    wald,
)
from reticent_server.kinds.hypothesis_test.terms import term_hypotheses
from support.fits.linear_plans import Y, numerics
from support.fits.regressions import (
    HUGE_RHO,
    drive,
    facts_of,
    linear_table,
    profile_of,
    whole,
)
from support.kinds.hypotheses import outcome_of, planned, table_of
from support.kinds.named_tests import offer
from support.seeds import seeded

FAMILIES = ("linear", "binomial", "poisson", "gamma")
TESTS = ("wald", "score", "lr")
NAMES = ("Intercept", "x1", "x2", "x1:x2", "C(g)[b = 1]")


@pytest.mark.parametrize(
    ("text", "row", "value"),
    [
        ("x1 = 0", [0, 1, 0, 0, 0], 0),
        ("x1", [0, 1, 0, 0, 0], 0),
        ("2*x1 - x2 = 1", [0, 2, -1, 0, 0], 1),
        (" 3 = x1 * 2 + x1:x2 ", [0, -2, 0, -1, 0], -3),
        ("C(g)[b = 1] = -Intercept", [1, 0, 0, 0, 1], 0),
        ("-x2 + 1e-1 = .5", [0, 0, -1, 0, 0], 0.4),
    ],
)
def test_hypotheses_are_read(text: str, row: list[Any], value: float) -> None:
    found = parse_hypothesis([text], NAMES)
    np.testing.assert_allclose(found.rows, [row])
    np.testing.assert_allclose(found.values, [value])


@pytest.mark.parametrize(
    "texts",
    [[], [""], ["1 = 2"], ["secret = 0"], ["x1 = x1"], ["x1 = 0", "2*x1 = 1"], ["x1 = 0 = 0"],
     ["x1 x2"], ["1e999*x1 = 0"], ["x1 ="], ["x1" * 2000], ["x1 = 0"] * 6],
)  # fmt: skip
def test_what_is_no_hypothesis_is_refused_without_an_echo(texts: list[Any]) -> None:
    with pytest.raises(InvalidQuery) as refused:
        parse_hypothesis(texts, NAMES)
    assert "secret" not in refused.value.detail


def resolved(q: Any) -> Directions:
    return Directions(np.eye(q), np.ones(q, dtype=bool))


def example_fit(rng: np.random.Generator, q: int = 4) -> FitUnderTest:
    A, B = rng.normal(size=(2, q, 2 * q))
    M, C = A @ A.T, B @ B.T / 500
    return FitUnderTest(
        rng.normal(0, 0.1, q), C, np.linalg.inv(M), 500.0, resolved(q), np.zeros(q, bool)
    )


def test_wald_is_the_quadratic_form_and_lr_has_the_law_of_its_own() -> None:
    rng = seeded(0)
    fit = example_fit(rng)
    R = np.array([[0, 1.0, 0, -1], [0, 0, 1, 0]])
    hypothesis = LinearHypothesis(("a", "b"), tuple(map(tuple, R)), (0.1, 0.0))
    gap = R @ fit.coefficients - [0.1, 0]
    expected = gap @ np.linalg.inv(R @ fit.covariance @ R.T) @ gap
    found = wald(fit, hypothesis)
    assert found.statistic == pytest.approx(expected)
    assert found.p_value == pytest.approx(chi2.sf(expected, 2))
    ratio = likelihood_ratio(fit, hypothesis)
    middle = fit.n * np.linalg.inv(R @ fit.inverse_information @ R.T)
    assert ratio.statistic == pytest.approx(gap @ middle @ gap)
    draws = rng.multivariate_normal([0, 0], R @ fit.covariance @ R.T, 200_000)
    larger = np.mean(np.einsum("ij,jk,ik->i", draws, middle, draws) > ratio.statistic)
    assert ratio.p_value == pytest.approx(larger, abs=0.005)


def test_one_row_gives_wald_and_lr_the_same_p_value() -> None:
    fit = example_fit(seeded(1))
    hypothesis = LinearHypothesis(("a",), ((0.0, 1.0, 2.0, 0.0),), (0.0,))
    a, b = wald(fit, hypothesis), likelihood_ratio(fit, hypothesis)
    assert a.p_value == pytest.approx(b.p_value, rel=1e-9)


def test_what_a_few_records_decide_is_not_tested() -> None:
    fit = replace(example_fit(seeded(1)), barred=np.array([False, True, False, False]))
    for test in (wald, likelihood_ratio):
        of_it = LinearHypothesis(("a",), ((0.0, 1.0, 2.0, 0.0),), (0.0,))
        of_others = LinearHypothesis(("a",), ((0.0, 0.0, 2.0, 1.0),), (0.0,))
        assert test(fit, of_it).p_value is None
        assert test(fit, of_others).p_value is not None


@pytest.mark.parametrize("test", ["wald", "lr"])
def test_tests_of_least_squares_are_of_all_records_and_say_so(test: str) -> None:
    """A response whose mean moves with x2 and whose median does not: least squares finds it, as the
    first line says.
    """
    table = linear_table(20_000, 3, seeded(8))
    rng = seeded(7)
    tail = rng.random(20_000) < 0.05 + 0.02 * np.clip(table["x2"], -2, 2)
    table["y"] = table["y"] + np.where(tail, 12.0, 0.0)
    X = np.column_stack([np.ones(20_000), *(table[f"x{k}"] for k in range(3))])
    exact = np.linalg.lstsq(X, table["y"], rcond=None)[0]
    query = HypothesisTest(
        "y ~ x0 + x1 + x2", (f"x2 = {exact[3]:.6f}",), test, loss="squared", tuning=None
    )
    columns = [*numerics(3), Y]
    facts = facts_of(20_000, columns, profile_of(table, columns))
    plan: Any = registry.plan(facts, query, offer(4))
    assert plan.outlined.answers == "Least squares"
    result = drive(plan.run(), whole(table)).result
    fit = result["fit"]
    # five standard errors of the noise: by chance once in 10⁶, were the seed another
    assert abs(fit["coefficients"][3] - exact[3]) < 5 * fit["privacy_standard_errors"][3]
    assert result["p_value"] > 1e-6
    assert query.other_target() == replace(query, loss="huber")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (HypothesisTest("y ~ x0", ("x0 = 0",), "score", loss="squared"), "wald or lr"),
        (HypothesisTest("y ~ x0", ("x0 = 0",), family="poisson", loss="squared"), "family out"),
    ],
)
def test_least_squares_is_refused_where_it_is_not(query: HypothesisTest, said: str) -> None:
    with pytest.raises(InvalidQuery, match=said):
        registry.plan(facts_of(1000, [*numerics(1), Y], None), query, offer(1))
    assert HypothesisTest("y ~ x0", ("x0 = 0",), "score").other_target() is None


def test_a_factor_is_one_term_of_the_table() -> None:
    def level(column: Any, code: Any) -> Indicator:
        return Indicator(column, code)

    x = ColumnValue("x")
    terms = (
        Term("x", (x,), 0, 1),
        Term("C(g)[b]", (level("g", 1.0),), 0, 1, dummy=True),
        Term("C(g)[c]", (level("g", 2.0),), 0, 1, dummy=True),
        Term("x:C(g)[b]", (x, level("g", 1.0)), 0, 1),
        Term("x:C(g)[c]", (x, level("g", 2.0)), 0, 1),
    )
    found = term_hypotheses(terms, intercept=True)
    assert [(name, h.df) for name, h in found] == [("x", 1), ("C(g)", 2), ("x:C(g)", 2)]
    np.testing.assert_array_equal(found[1][1].rows, np.eye(6)[[2, 3]])


def test_the_covariance_under_test_is_the_reply_s() -> None:
    """With the privacy noise, most of it here."""
    table = table_of("linear", 600, seeded(9))
    plan = planned(table, "linear", "wald", ["x2 = 0"], 0.5)
    ground, fit = drive(plan.model.fitted(), whole(table)).result
    result, found = plan.model.result(ground, fit), under_test(ground.coding, fit, None)
    np.testing.assert_allclose(found.covariance, result["covariance"], rtol=1e-6)  # shortened
    np.testing.assert_allclose(found.coefficients, result["coefficients"])
    assert np.all(np.array(result["privacy_standard_errors"]) ** 2 < np.diag(found.covariance))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", FAMILIES)
def test_without_noise_the_three_tests_agree_near_the_null(family: str) -> None:
    table = table_of(family, 20_000, seeded(4))
    found = {t: outcome_of(table, family, t, ["x2 = 0"], rho=HUGE_RHO) for t in TESTS}
    p = [found[t]["p_value"] for t in TESTS]
    assert np.ptp(p) < 0.05
    assert found["wald"]["statistic"] == pytest.approx(found["score"]["statistic"], abs=0.35)


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_false_hypothesis_is_rejected_and_a_true_one_is_not(family: str, test: str) -> None:
    table = table_of(family, 20_000, seeded(5))
    false = outcome_of(table, family, test, ["x0 = 0"])
    true = outcome_of(table, family, test, ["x0 = x1", "x2 = 0"])
    json.dumps([false, true], allow_nan=False)
    assert false["p_value"] < 1e-4
    assert true["p_value"] > 1e-4
    assert true["df"] == 2
    assert ("fit" in true) is (test != "score")


def test_a_score_far_from_a_restricted_fit_is_what_is_tested() -> None:
    """With a log link, where an unrestricted fit with such a last score gives no intervals."""
    table = table_of("gamma", 20_000, seeded(5))
    assert outcome_of(table, "gamma", "score", ["x0 = 0"])["p_value"] < 1e-4


@pytest.mark.parametrize(
    ("tested", "test", "epsilon", "said"),
    [
        (5, "wald", 0.25, True),
        (5, "score", 0.4, False),
        (4, "wald", 0.4, False),
        (5, "lr", 9, False),
    ],
)
def test_many_hypotheses_under_much_noise_are_warned_of(
    tested: int, test: Any, epsilon: float, said: bool
) -> None:
    table = linear_table(5_000, 5, seeded(6))
    columns = [*numerics(5), Y]
    facts = facts_of(5_000, columns, profile_of(table, columns))
    names = [f"x{j}" for j in range(5)]
    texts = tuple(f"{name} = 1" for name in names[:tested])
    query = HypothesisTest(f"y ~ {' + '.join(names)}", texts, test)
    plan: Any = registry.plan(facts, query, offer(epsilon))
    found = drive(plan.run(), whole(table)).result
    for sentences in (plan.forecast["notes"], found["warnings"]):
        assert any("five or more hypotheses" in each for each in sentences) is said


@pytest.mark.slow
def test_a_table_of_terms_and_what_is_not_estimable() -> None:
    table = table_of("linear", 5_000, seeded(6))
    result = outcome_of(table, "linear", "wald", None)
    assert [row["term"] for row in result["table"]] == ["x0", "x1", "x2"]
    constant = table | {"x1": np.full(5_000, 3.0)}
    rows = [outcome_of(constant, "linear", t, ["x1 = 0"]) for t in TESTS for _ in range(3)]
    assert sum(row["p_value"] is None and not row["estimable"] for row in rows) >= 5


@pytest.mark.slow
@pytest.mark.sample(16)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_table_raises(family: str, test: str) -> None:
    top = {"linear": 1000.0, "binomial": 1.0}.get(family, 1000.0)
    for y in (np.zeros(200), np.full(200, top), np.arange(200) % 2 * top):
        table = table_of(family, 200, seeded(7)) | {"y": y}
        for epsilon in (0.05, 30.0):
            json.dumps(
                outcome_of(table, family, test, ["x0 = 1", "x1 = x2"], epsilon), allow_nan=False
            )


@pytest.mark.audit
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_level_is_what_is_said(family: str, test: str) -> None:
    rng = seeded(8)
    p = [
        outcome_of(table_of(family, 5_000, rng), family, test, ["x2 = 0"])["p_value"]
        for _ in range(1_000)
    ]
    assert 0.035 - 0.014 <= np.mean(np.array(p, dtype=float) < 0.05) <= 0.065 + 0.014
