# SPDX-License-Identifier: Apache-2.0
"""Regressions on factors of which declared levels have no record: their coefficients are null, with
a reason, and the others are those of a factor that does not declare them.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.fitting.empty_levels import without_empty_levels
from reticent_server.formula import parse_formula
from reticent_server.kinds import registry
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.hypothesis_test.query import HypothesisTest
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.kinds.named_tests import offer
from support.kinds.recipes import answer, block_of, facts_of, numeric
from support.seeds import seeded

N = 8000
FULL, FIVE = tuple("abcd"), (*"abcd", "z")


def columns(levels: tuple[str, ...]) -> tuple[Column, ...]:
    return (
        numeric("x", -4.0, 4.0),
        Column("g", ColumnKind.CATEGORICAL, 0, len(levels) - 1, levels),
        Column("b", ColumnKind.BOOLEAN, 0, 1),
        Column("h", ColumnKind.CATEGORICAL, 0, 3, ("lo", "mid", "hi", "never")),
        Column("c", ColumnKind.INTEGER, 0, 30),
        numeric("y", -10.0, 10.0),
    )


def table(n: int = N) -> dict[str, Any]:
    """Nobody has the last level of h."""
    rng = seeded(3)
    x = np.clip(rng.normal(size=n), -4, 4)
    g = rng.integers(0, 4, n) * 1.0
    eta = 0.8 * x - 0.4 + np.array([0.0, 0.5, -0.5, 0.3])[g.astype(int)]
    return {
        "x": x,
        "g": g,
        "b": (rng.random(n) < 1 / (1 + np.exp(-eta))) * 1.0,
        "h": np.digitize(eta + rng.logistic(size=n), (-0.8, 0.8)) * 1.0,
        "c": np.minimum(rng.poisson(np.exp(0.3 * x + 0.2)), 30) * 1.0,
        "y": np.clip(eta + rng.normal(size=n), -10, 10),
    }


def asked(query: Any, levels: tuple[str, ...], data: Any, epsilon: float = 100) -> Any:
    plan = registry.plan(facts_of(len(data["x"]), columns(levels)), query, offer(epsilon))
    return answer(plan, block_of(**data))


QUESTIONS = {
    "least squares": LinearRegression("y ~ x + g", loss="squared"),
    "huber": LinearRegression("y ~ x + g"),
    "descent": LinearRegression("y ~ x + g", mechanism="gradient_descent"),
    "statistics": LinearRegression("y ~ x + g", loss="squared", fit_statistics=True),
    "logit": Glm("b ~ x * g", "binomial"),
    "poisson": Glm("c ~ x + g", "poisson"),
    "robust poisson": Glm("c ~ x + g", "poisson", target="robust"),
    "quantile": QuantileRegression("y ~ x + g", 0.5),
    "multinomial": Glm("h ~ x + g", "multinomial"),
    "ordinal": Glm("h ~ x + g", "ordinal"),
}


def fit_of(reply: Any) -> Any:
    return reply["fits"][0] if "fits" in reply else reply


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_an_empty_level_takes_its_own_coefficients_alone(name: str) -> None:
    """ε = 100: standard errors are those of sampling, 1.1 apart at most."""
    query, data = QUESTIONS[name], table()
    found, plain = (fit_of(asked(query, levels, data)) for levels in (FIVE, FULL))
    lost = [term for term in found["terms"] if "[z]" in term]
    assert [term for term in found["terms"] if term not in lost] == plain["terms"]
    assert lost
    assert any(said.startswith("No coefficient") and "g[z]" in said for said in found["warnings"])
    places = {term: j for j, term in enumerate(found["terms"])}
    for term in lost:
        j = places[term]
        assert found["coefficients"][j] is found["standard_errors"][j] is None
        assert (found["estimable"][j], found["confidence_intervals"][j]) == (False, [None, None])
        assert set(found["covariance"][j]) == {None}
    for k, term in enumerate(plain["terms"]):
        j = places[term]
        assert found["estimable"][j]
        se = plain["standard_errors"][k]
        assert found["standard_errors"][j] == pytest.approx(se, rel=0.25)
        # both are of the same records: what differs is noise, .02 of a standard error, and weights
        assert found["coefficients"][j] == pytest.approx(plain["coefficients"][k], abs=0.5 * se)


def test_least_squares_with_an_empty_year_are_those_of_statsmodels() -> None:
    rng = seeded(5)
    data = {
        "x": np.clip(rng.normal(size=N), -4, 4),
        "year": 2000.0 + rng.integers(0, 20, N),
        "u": rng.uniform(0, 1, N),
    }
    declared = (
        numeric("x", -4.0, 4.0),
        Column("year", ColumnKind.INTEGER, 2000, 2020),
        numeric("u", 0.0, 1.0),
    )
    query = LinearRegression("u ~ x + C(year)", loss="squared")
    found = answer(registry.plan(facts_of(N, declared), query, offer(50)), block_of(**data))
    right = smf.ols("u ~ x + C(year)", pd.DataFrame(data)).fit(cov_type="HC1")
    assert sum(found["estimable"]) == 21
    assert found["coefficients"][-1] is None
    x = found["terms"].index("x")
    assert found["coefficients"][x] == pytest.approx(right.params["x"], abs=right.bse["x"])
    assert found["standard_errors"][x] == pytest.approx(right.bse["x"], rel=0.1)
    assert found["scale"] == pytest.approx(0.289, abs=0.03)


def test_the_level_after_an_empty_reference_is_the_reference() -> None:
    data = table()
    plain = asked(QUESTIONS["least squares"], FULL, data)
    shifted = {**data, "g": data["g"] + 1}
    found = asked(QUESTIONS["least squares"], ("z", *FULL), shifted)
    assert found["terms"] == plain["terms"]
    assert found["baselines"] == plain["baselines"] == {"g": "a"}
    assert all(found["estimable"])
    assert found["coefficients"] == pytest.approx(plain["coefficients"], abs=0.02)
    assert any("a is the reference in its place" in said for said in found["warnings"])


def test_a_table_of_terms_counts_the_coefficients_that_there_are() -> None:
    found = asked(HypothesisTest("y ~ x + g", None, loss="squared"), FIVE, table())
    tested = {row["term"]: (row["df"], row["estimable"]) for row in found["table"]}
    assert tested == {"x": (1, True), "g": (3, True)}
    found = asked(HypothesisTest("y ~ x + g", ["g[z] = 0"], loss="squared"), FIVE, table())
    assert (found["statistic"], found["p_value"]) == (None, None)


def known(levels: tuple[str, ...], counts: tuple[float, ...]) -> DatasetFacts:
    """With a curator's profile."""
    quantiles = tuple(np.linspace(-3, 3, 25).tolist())
    profile = {
        "g": ColumnProfile(counts=counts, count_sd=5.0),
        "x": ColumnProfile(quantiles=quantiles),
        "y": ColumnProfile(quantiles=quantiles),
        "b": ColumnProfile(counts=(4000.0, 4000.0), count_sd=5.0),
    }
    return replace(facts_of(N, columns(levels)), profile=Profile(profile))


def test_a_plan_uses_a_profile_and_says_so() -> None:
    facts = known(FIVE, (2000.0, 2000.0, 2000.0, 2000.0, 4.0))
    plan = registry.plan(facts, QUESTIONS["least squares"], offer(1))
    assert plan.precision is not None
    assert plan.precision.names == ("Intercept", "x", "g[b]", "g[c]", "g[d]")
    assert any("there may be none: g[z]" in note for note in plan.forecast["notes"])
    reply = answer(plan, block_of(**table()))
    assert reply["terms"][-1] == "g[z]"
    assert reply["coefficients"][-1] is None
    assert "records_in_use" not in reply


DESIGNS = [
    ("y ~ x + g", (9, 9, 9, 9, 0), ["Intercept", "x", "g[b]", "g[c]", "g[d]"]),
    ("y ~ x * g", (9, 9, 9, 0, 0), ["Intercept", "x", "g[b]", "g[c]", "x:g[b]", "x:g[c]"]),
    ("y ~ x * g", (0, 0, 9, 9, 9), ["Intercept", "x", "g[d]", "g[z]", "x:g[d]", "x:g[z]"]),
    ("y ~ 0 + g", (0, 9, 9, 9, 9), ["g[b]", "g[c]", "g[d]", "g[z]"]),
    ("y ~ g + g:x", (0, 9, 9, 0, 9), ["Intercept", "g[c]", "g[z]", "g[b]:x", "g[c]:x", "g[z]:x"]),
    ("y ~ C(g, Sum)", (9, 9, 9, 9, 0), ["Intercept", *(f"C(g, Sum)[S.{k}]" for k in "abcd")]),
    ("y ~ g", (0, 0, 0, 0, 0), ["Intercept", "g[b]", "g[c]", "g[d]", "g[z]"]),
]


@pytest.mark.parametrize(("formula", "hundreds", "names"), DESIGNS)
def test_which_columns_are_left_out(
    formula: str, hundreds: tuple[int, ...], names: list[str]
) -> None:
    facts = known(FIVE, tuple(100.0 * k for k in hundreds))
    design = parse_formula(formula, facts.schema)
    assert list(without_empty_levels(design, facts).design.names) == names


def test_the_few_records_of_a_level_that_is_left_out_are_out_of_use() -> None:
    """Were they of the reference, ten of them that are far off would move it."""
    data = table()
    few = {**data, "y": data["y"].copy(), "g": data["g"].copy()}
    few["g"][:10], few["y"][:10] = 4.0, 10.0
    facts = known(FIVE, (2000.0, 2000.0, 2000.0, 2000.0, 12.0))
    plan = registry.plan(facts, QUESTIONS["least squares"], offer(100))
    found = answer(plan, block_of(**few))
    right = smf.ols("y ~ x + C(g)", pd.DataFrame(few)[10:]).fit()
    assert found["coefficients"][0] == pytest.approx(right.params["Intercept"], abs=0.01)


def test_an_influence_release_is_of_the_design_that_was_asked_for() -> None:
    query = LinearRegression("y ~ x + g", mechanism="influence", calibration="ptr")
    plan: Any = registry.plan(known(FIVE, (2000.0, 2000.0, 2000.0, 2000.0, 4.0)), query, offer(1))
    assert plan.pilot.ground.left_out is None


def test_fits_by_group_leave_out_what_nobody_has() -> None:
    data = {**table(), "k": np.arange(N) % 2 * 1.0}
    declared = (*columns(FIVE), Column("k", ColumnKind.BOOLEAN, 0, 1))
    query = LinearRegression("y ~ x + g", loss="squared", by="k")
    found = answer(registry.plan(facts_of(N, declared), query, offer(100)), block_of(**data))
    for group, code in zip(found["groups"], (0, 1), strict=True):
        frame = pd.DataFrame(data)[data["k"] == code]
        right = smf.ols("y ~ x + C(g)", frame).fit()
        assert group["coefficients"][-1] is None
        assert sum(group["estimable"]) == 5
        x = group["terms"].index("x")
        assert group["coefficients"][x] == pytest.approx(right.params["x"], abs=right.bse["x"])
