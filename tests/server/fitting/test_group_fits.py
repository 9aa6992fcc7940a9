# SPDX-License-Identifier: Apache-2.0
"""Fits of groups: each finds its own group's coefficients, whatever the others' are, in the passes
of one fit.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import ByGroup, CountSum, SumStep
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.group_fits import Strata, in_lockstep
from reticent_server.fitting.trust.words import FEW_IN_GROUP
from reticent_server.kinds import registry
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression
from support.fits.regressions import drive, whole
from support.kinds.named_tests import PEOPLE, offer
from support.kinds.recipes import facts_of, numeric
from support.seeds import seeded

COLUMNS = (
    numeric("y", -30.0, 30.0),
    numeric("x", -6.0, 6.0, ("",)),
    Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"), ("",)),
    Column("b", ColumnKind.BOOLEAN, 0, 1),
)
TRUE = np.array([[0.0, 1.0], [2.0, 0.0], [-1.0, -1.0]])
N = 30_000


def table(n: int = N, shares: tuple[float, ...] = (0.5, 0.3, 0.2)) -> dict[str, Any]:
    rng = seeded(4)
    g, x = rng.choice(3, n, p=shares), rng.normal(size=n)
    eta = TRUE[g, 0] + TRUE[g, 1] * x
    y = eta + rng.normal(size=n)
    b = rng.random(n) < 1 / (1 + np.exp(-eta))
    return {"y": y, "x": np.clip(x, -6, 6), "g": g.astype(float), "b": b.astype(float)}


def run(query: Any, epsilon: float = 4.0, rows: dict[str, Any] | None = None) -> Any:
    columns = rows or table()
    missing = {k: np.zeros(len(columns["y"]), np.bool_) for k in ("x", "g")}
    plan = registry.plan(facts_of(len(columns["y"]), COLUMNS), query, offer(epsilon))
    return plan, drive(plan.run(), whole(columns, missing))


QUERIES = {
    "linear": LinearRegression("y ~ x", by="g"),
    "tukey": LinearRegression("y ~ x", loss="tukey", by="g"),
    "least squares": LinearRegression("y ~ x", loss="squared", by="g"),
    "binomial": Glm("b ~ x", "binomial", by="g"),
    "gaussian": Glm("y ~ x", "gaussian", by="g"),
    "median": QuantileRegression("y ~ x", by="g"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
def test_each_group_has_its_own_coefficients(name: str) -> None:
    plan, trace = run(QUERIES[name])
    groups = trace.result["groups"]
    assert [group["level"] for group in groups] == ["a", "b", "c"]
    assert trace.result["by"] == "g"
    for group, true in zip(groups, TRUE, strict=True):
        fit = group["fits"][0] if "fits" in group else group
        errors = np.array(fit["standard_errors"])
        assert all(fit["estimable"])
        # six standard errors: by chance once in 10⁸, were the seed another
        np.testing.assert_array_less(np.abs(np.array(fit["coefficients"]) - true), 6 * errors)
        assert errors.max() < 0.1
    assert len(trace.steps) <= plan.passes


@pytest.mark.slow
def test_a_group_has_the_fit_that_it_would_have_by_itself() -> None:
    _, by = run(LinearRegression("y ~ x", by="g"), 10.0)
    _, alone = run(LinearRegression("y ~ x", 'g == "b"'), 10.0)
    group, fit = by.result["groups"][1], alone.result
    np.testing.assert_allclose(group["coefficients"], fit["coefficients"], atol=0.02)
    np.testing.assert_allclose(group["standard_errors"], fit["standard_errors"], rtol=0.1)


@pytest.mark.sample(4)
def test_least_squares_of_groups_is_that_of_all_their_records() -> None:
    """A response whose tail is on one side, where robust fits are elsewhere: each group says what
    was cut of it.
    """
    rows = table()
    rng = seeded(9)
    rows["y"] = np.clip(rows["y"] + rng.exponential(2.0, N) ** 1.5 / 2, -30, 30)
    plan, trace = run(LinearRegression("y ~ x", loss="squared", by="g"), 4.0, rows)
    assert plan.outlined.answers == "Least squares"
    for g, group in enumerate(trace.result["groups"]):
        own = rows["g"] == g
        X = np.column_stack([np.ones(own.sum()), rows["x"][own]])
        exact = np.linalg.lstsq(X, rows["y"][own], rcond=None)[0]
        assert all(group["estimable"])
        assert group["cut"]["records_beyond"] > 1
        # six standard errors of the noise: by chance once in 10⁸, were the seed another
        off = np.abs(np.array(group["coefficients"]) - exact)
        np.testing.assert_array_less(off, 6 * np.array(group["privacy_standard_errors"]))
        assert off.max() < 0.1


@pytest.mark.slow
def test_a_group_without_records_and_a_small_one_have_no_intervals_and_the_large_one_has() -> None:
    rows = table(shares=(0.995, 0.005, 0.0))
    for name in ("linear", "median"):
        _, trace = run(QUERIES[name], 1.0, rows)
        large, small, empty = trace.result["groups"]
        for group, known in ((large, True), (small, False), (empty, False)):
            fit = group["fits"][0] if "fits" in group else group
            assert any(fit["estimable"]) is known
            assert (FEW_IN_GROUP in fit["warnings"]) is not known
            assert np.isfinite(fit["coefficients"]).all()
            if not known:
                assert fit["p_values"] == [None, None]


def test_quantiles_and_medians_are_those_of_the_groups() -> None:
    rows = table()
    _, trace = run(Quantiles("y", (0.9, 0.5), by="g"), 1.0, rows)
    _, medians = run(Median("y", by="g"), 1.0, rows)
    for k, (group, median) in enumerate(
        zip(trace.result["groups"], medians.result["groups"], strict=True)
    ):
        exact = np.quantile(rows["y"][rows["g"] == k], (0.9, 0.5))
        np.testing.assert_allclose(group["values"], exact, atol=0.1)
        assert median["value"] == pytest.approx(exact[1], abs=0.1)


REFUSED = {
    "is another": (LinearRegression("y ~ x + C(g)", by="g"), "g is one"),
    "kind": (LinearRegression("y ~ x", by="x"), "categorical, boolean or integer"),
    "unknown": (Glm("b ~ x", "binomial", by="nothing"), "by names a column"),
    "descent": (LinearRegression("y ~ x", by="g", mechanism="gradient_descent"), "newton"),
    "influence": (Glm("b ~ x", "binomial", by="g", mechanism="influence"), "newton"),
    "calibration": (LinearRegression("y ~ x", by="g", calibration="ptr"), "calibration"),
    "link": (Glm("y ~ x", "gaussian", by="g", link="logit"), "link"),
    "dispersion": (Glm("y ~ x", "gaussian", by="g", dispersion=0.5), "dispersion"),
    "ptr": (Median("y", "ptr", by="g"), "exponential"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_by_is_not_for_is_refused_by_name(name: str) -> None:
    query, said = REFUSED[name]
    with pytest.raises(InvalidQuery, match=said):
        registry.plan(facts_of(1000, COLUMNS), query, offer(1))


def test_persons_whose_rows_count_together_are_refused() -> None:
    for query in (LinearRegression("y ~ x", by="g"), Glm("b ~ x", "binomial", by="g")):
        with pytest.raises(InvalidQuery, match="several rows"):
            registry.plan(facts_of(1000, PEOPLE, 3), query, offer(1))


def test_groups_that_have_ended_leave_the_pass_to_the_others() -> None:
    recipes = in_lockstep(
        Strata("g", (0.0, 1.0, 2.0), ("a", "b", "c")), [_steps(0), _steps(3), _steps(1)]
    )
    step, seen, results = next(recipes), [], None
    while results is None:
        assert isinstance(step, SumStep)
        assert isinstance(step.joint, ByGroup)
        seen.append(len(step.joint.sizes))
        try:
            step = recipes.send(tuple(step.parts))  # type: ignore[arg-type]
        except StopIteration as stop:
            results = stop.value
    assert results == [0, 3, 1]
    assert seen == [2, 1, 1]


def _steps(times: int) -> Any:
    for _ in range(times):
        yield SumStep("", (CountSum(1, 1),), lambda _: ())
    return times


def test_the_time_is_planned_from_public_levels_alone() -> None:
    def deadline(levels: int) -> int:
        wide = Column("h", ColumnKind.CATEGORICAL, 0, levels - 1, tuple(map(str, range(levels))))
        plan = registry.plan(
            facts_of(10**5, (*COLUMNS, wide)), LinearRegression("y ~ x", by="h"), offer(4)
        )
        return plan.deadline_ms(10**5)

    assert deadline(2) < deadline(20) < deadline(60)
