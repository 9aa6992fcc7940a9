# SPDX-License-Identifier: Apache-2.0
"""A study's moments and its declared formula against least squares on the table, and tables that
nothing can be said of.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from reticent_server.errors import InvalidFormula, InvalidQuery
from reticent_server.fitting.trust.thresholds import BARED
from reticent_server.kinds.study.ground import column_reach
from reticent_server.kinds.study.kind import Study
from reticent_server.kinds.study.leaning import NarrowMoments
from reticent_server.kinds.study.main import before_meat, formula_of
from reticent_server.kinds.study.moments import Moments
from support.fits.regressions import drive
from support.kinds.studies import (
    NO_NOISE,
    boolean,
    factor,
    numeric,
    planned,
    read,
    whole,
)
from support.seeds import seeded

COLUMNS = [numeric("y"), numeric("x"), numeric("k"), boolean("b"), factor("g", "acd")]


def table(n: int = 4_000, seed: int = 1) -> dict[Any, Any]:
    rng = seeded(seed)
    x = rng.uniform(-2, 3, n)
    g = rng.integers(0, 3, n) * 1.0
    b = (rng.random(n) < 0.3) * 1.0
    y = 5 + 2 * x - 0.5 * x**2 + b + 0.4 * (g == 1) + (0.5 + np.abs(x)) * rng.normal(size=n)
    return {"y": y, "x": x, "k": rng.normal(40, 3, n), "b": b, "g": g}


def answered(data: Any, query: Any, epsilon: Any = NO_NOISE, **facts: Any) -> Any:
    plan = planned(data, COLUMNS, query, epsilon, **facts)
    return drive(plan.run(), whole(data)).result


def design(data: Any, *columns: Any) -> Any:
    return np.column_stack([np.ones(len(data["y"])), *columns])


@pytest.fixture(scope="module")
def data() -> Any:
    return table()


def test_moments_are_the_tables_own(data: Any) -> None:
    result = answered(data, Study(("y", "x", "I(x**2)", "k", "C(g)")))
    x, g = data["x"], data["g"]
    Z = design(data, data["y"], x, data["k"], g == 1, g == 2, x**2)
    order = [
        result["terms"].index(t)
        for t in ("Intercept", "y", "x", "k", "C(g)[c]", "C(g)[d]", "I(x**2)")
    ]
    moments = np.array(result["moments"])[np.ix_(order, order)]
    exact = Z.T @ Z / len(Z)
    np.testing.assert_allclose(moments, exact, rtol=2e-3, atol=1e-5)
    assert abs(result["clipped"]["share"]) < 1e-3
    assert result["variables"]["C(g)"] == ["C(g)[c]", "C(g)[d]"]


def test_the_declared_formula_is_least_squares_with_robust_errors(data: Any) -> None:
    formula = "y ~ x + I(x**2) + b + C(g)"
    result = answered(data, Study(("y", "x", "I(x**2)", "b", "C(g)", "k"), main=formula))
    main, x, g = result["main"], data["x"], data["g"]
    X = design(data, x, data["b"], g == 1, g == 2, x**2)
    order = [
        main["terms"].index(t) for t in ("Intercept", "x", "b", "C(g)[c]", "C(g)[d]", "I(x**2)")
    ]
    fit = sm.OLS(data["y"], X).fit(cov_type="HC0")
    away = (np.array(main["coefficients"])[order] - fit.params) / fit.bse
    assert np.max(np.abs(away)) < 0.15
    ratio = np.array(main["standard_errors"])[order] / fit.bse
    assert np.all(np.abs(ratio - 1) < 0.05)
    classical = np.array(main["classical_standard_errors"])[order] / sm.OLS(data["y"], X).fit().bse
    assert np.all(np.abs(classical - 1) < 0.05)
    assert np.max(np.abs(fit.bse / sm.OLS(data["y"], X).fit().bse - 1)) > 0.15


def test_a_formula_without_intercept_is_about_columns_as_they_are(data: Any) -> None:
    main = answered(data, Study(("y", "x", "k"), main="y ~ 0 + x + k"))["main"]
    X = np.column_stack([data["x"], data["k"]])
    fit = sm.OLS(data["y"], X).fit(cov_type="HC0")
    np.testing.assert_allclose(main["coefficients"], fit.params, atol=0.15 * fit.bse.min())
    np.testing.assert_allclose(main["standard_errors"], fit.bse, rtol=0.05)


def test_groups_have_moments_of_their_own(data: Any) -> None:
    result = answered(data, Study(("y", "x"), by="g", main="y ~ x", where="x < 2"))
    assert set(result["groups"]) == {"a", "c", "d"}
    for code, level in enumerate("acd"):
        used = (data["g"] == code) & (data["x"] < 2)
        own, y = result["groups"][level], data["y"][used]
        fit = sm.OLS(y, sm.add_constant(data["x"][used])).fit(cov_type="HC0")
        away = (np.array(own["main"]["coefficients"]) - fit.params) / fit.bse
        assert np.max(np.abs(away)) < 0.15
        assert abs(own["moments"][0][0] * len(data["y"]) - used.sum()) < 0.01 * used.sum()
        assert abs(own["clipped"]["share"]) < 0.01
    assert "moments" not in result


def test_missing_cells_leave_records_out(data: Any) -> None:
    columns = [numeric("y"), numeric("x", missing=("NA",))]
    gone = np.arange(len(data["y"])) % 3 == 0
    x = np.where(gone, 0.0, data["x"])
    plan = planned({"y": data["y"], "x": x}, columns, Study(("y", "x"), main="y ~ x"), NO_NOISE)
    result = drive(plan.run(), whole({"y": data["y"], "x": x}, {"x": gone})).result
    fit = sm.OLS(data["y"][~gone], sm.add_constant(x[~gone])).fit()
    away = (np.array(result["main"]["coefficients"]) - fit.params) / fit.bse
    assert np.max(np.abs(away)) < 0.2


def test_without_a_profile_a_share_pays_for_one(data: Any) -> None:
    result = answered(data, Study(("y", "x", "b"), main="y ~ x + b"), profile=False)
    assert result["shares"]["profile"] > 0
    assert result["warnings"]
    fit = sm.OLS(data["y"], design(data, data["x"], data["b"])).fit()
    away = (np.array(result["main"]["coefficients"]) - fit.params) / fit.bse
    assert np.max(np.abs(away)) < 0.3


def test_shares_are_the_whole_budget(data: Any) -> None:
    for query in (Study(("y", "x")), Study(("y", "x"), main="y ~ x", by="g")):
        plan = planned(data, COLUMNS, query)
        assert 0.999 < sum(plan.forecast["shares"].values()) <= 1 + 1e-12


def test_the_forecast_is_what_comes(data: Any) -> None:
    """Privacy over sampling error of a regression of the first variable, and a correlation's
    interval.
    """
    big = table(40_000)
    query = Study(("y", "x", "k", "b"))
    forecast = planned(big, COLUMNS, query).forecast
    study = read(query, answered(big, query, 1.0))
    fit = study.ols("y ~ x + k + b")
    seen = np.asarray(fit.privacy_bse) / np.asarray(fit.sampling_bse)
    told = np.array(forecast["privacy_to_sampling"])
    assert np.all(seen / told < 1.7)
    assert np.all(told / seen < 2.2)
    low, high = study.partial_corr("k", "b").conf_int()
    assert (high - low) / 2 == pytest.approx(forecast["correlation_half_width"], rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draws", "off"), [(60, 0.4), pytest.param(200, 0.25, marks=pytest.mark.audit)]
)
def test_the_noise_of_coefficients_is_what_is_said(draws: int, off: float) -> None:
    """The sd of θ over draws of noise, over its prediction (60 draws: 9 % each, 200: 5 %)."""
    data, query = table(5_000), Study(("y", "x", "k", "b"))
    plan = planned(data, COLUMNS, query, 4.0)
    fits = [
        read(query, drive(plan.run(), whole(data)).result).ols("y ~ x + k + b")
        for _ in range(draws)
    ]
    told = [f for f in fits if np.isfinite(f.privacy_bse).all()]  # others are told without errors
    assert len(told) > 0.75 * draws
    spread = np.std([np.asarray(f.params) for f in told], axis=0)
    said = np.mean([np.asarray(f.privacy_bse) for f in told], axis=0)
    np.testing.assert_allclose(spread / said, 1.0, atol=off)


def test_a_tail_that_the_profile_does_not_know_is_seen_in_the_histogram() -> None:
    data = table(20_000)
    data["k"] = np.where(np.arange(20_000) % 50 == 0, 900.0, data["k"])
    query = Study(("y", "x", "k"))
    result = drive(planned(table(20_000), COLUMNS, query).run(), whole(data)).result
    assert any("Heavy tails" in said for said in result["warnings"])
    assert result["warnings"][-1] in read(query, result).ols("y ~ x").result["warnings"]


def test_a_term_of_few_large_values_is_named() -> None:
    data = table(20_000)
    data["k"] = np.exp(1.5 * seeded(4).normal(size=20_000))
    query = Study(("y", "x", "k"))
    plan = planned(data, COLUMNS, query)
    said, *_ = drive(plan.run(), whole(data)).result["warnings"]
    assert said.startswith("Much of the variance of k comes from few records")
    assert said in plan.forecast["notes"]
    assert answered(table(20_000), query, 1.0)["warnings"] == []


def test_a_formula_with_a_column_of_few_large_values_has_no_intervals() -> None:
    data = table(20_000)
    data["k"] = np.exp(1.5 * seeded(4).normal(size=20_000))
    query = Study(("y", "x", "k", "b"), main="y ~ x + k")
    result = answered(data, query, 4.0)
    assert result["lost"][result["terms"].index("k")] > BARED.value
    assert result["main"]["p_values"] == [None] * 3
    assert result["main"]["warnings"][0].startswith("No intervals: much of k lies in few records")
    study = read(query, result)
    for fit in (
        study.ols("y ~ x + k"),
        study.ols("k ~ x"),
        study.iv("y ~ x | k"),
        study.ridge("y ~ k", 0.1),
    ):
        assert not any(fit.estimable)
        assert any(w.startswith("No intervals: much of k") for w in fit.result["warnings"])
        assert np.all(np.isfinite(fit.params))
    assert study.iv("y ~ x | k").anderson_rubin() == ((-np.inf, np.inf),)
    assert all(study.ols("y ~ x + b").estimable)
    assert all(study.select("y", ["x", "b"]).fit.estimable)


def test_only_columns_that_a_profile_shows_to_be_skewed_have_to_have_their_tails_excluded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, asked = table(), []
    data["k"] = np.exp(1.5 * seeded(4).normal(size=len(data["k"])))

    def tails(_: Any, sums: Any, *others: Any) -> Any:
        asked.append(others[-1].tolist())
        return np.zeros(len(sums))

    monkeypatch.setattr(NarrowMoments, "tails", tails)
    query = Study(("y", "x", "k"))
    names = answered(data, query)["terms"]
    answered(data, query, profile=False)
    assert asked == [[name == "k" for name in names], [False] * 4]


def test_a_tail_that_only_the_profile_has_leaves_the_intervals() -> None:
    """Noise in the count of a value far out looks like a tail; the moments say that there is
    none.
    """
    data = table(20_000)
    believed = table(20_000)
    believed["k"] = np.exp(1.5 * seeded(4).normal(size=20_000))
    data["k"] = 1 + seeded(5).uniform(size=20_000)
    query = Study(("y", "x", "k"), main="y ~ x + k")
    result = drive(planned(believed, COLUMNS, query, 4.0).run(), whole(data)).result
    assert max(result["lost"]) < BARED.value
    assert all(result["main"]["estimable"])


def test_the_reach_of_a_column_is_that_of_its_declared_bounds(data: Any) -> None:
    coding = planned(data, COLUMNS, Study(("y", "x", "b", "C(g)"))).ground.coding
    reach, x = column_reach(coding), coding.design.names.index("x")
    assert reach[x] == ((1e3 + abs(coding.centres[x])) / coding.scales[x]) ** 2
    dummies = [k for k, name in enumerate(coding.design.names) if name not in {"x", "y"}]
    assert not reach[dummies].any()


DEGENERATE = {
    "one repeated row": lambda n: {"y": np.full(n, 2.0), "x": np.full(n, 1.0), "g": np.zeros(n)},
    "constant x": lambda n: {"y": np.arange(n) / n, "x": np.zeros(n), "g": np.arange(n) % 3 * 1.0},
    "y is x": lambda n: {"y": np.arange(n) * 1.0, "x": np.arange(n) * 1.0, "g": np.zeros(n)},
    "not numbers": lambda n: {"y": np.full(n, np.nan), "x": np.full(n, np.inf), "g": np.zeros(n)},
    "far apart": lambda n: {"y": np.where(np.arange(n) % 2, 1e3, -1e3),
                            "x": np.r_[1e3, np.zeros(n - 1)], "g": np.full(n, 2.0)},
}  # fmt: skip


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("n", [1, 5, 300])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, NO_NOISE])
@pytest.mark.parametrize("by", [None, "g"])
def test_it_always_replies(name: str, n: int, epsilon: float, by: str | None) -> None:
    made = DEGENERATE[name](n)
    query = Study(("y", "x", "I(x**2)"), main="y ~ x + I(x**2)", by=by)
    facts = {k: np.zeros(n) for k in made}
    plan = planned(facts, COLUMNS[:2] + COLUMNS[4:], query, epsilon)
    study = read(query, drive(plan.run(), whole(made)).result)
    one = study["a"] if by else study
    assert np.all(np.isfinite(one.ols("y ~ x").params))
    assert np.all(np.isfinite(one.main.params))
    if n < 300:
        assert not any(one.main.estimable) or epsilon == NO_NOISE


def test_a_shut_gate_gives_no_interval_and_says_what_to_leave_out() -> None:
    data = table(3_000)
    data["k"] = data["x"] + 1e-4 * data["k"]
    query = Study(("y", "x", "k"), main="y ~ x + k")
    main = answered(data, query, 1.0)["main"]
    assert main["p_values"] == [None] * 3
    assert main["gate"] is None or main["gate"] > 1 / 3
    assert "x, k" in main["warnings"][0]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Study(("y", "x"), main="y ~ k"), InvalidQuery),
        (Study(("y", "x"), main="k ~ x"), InvalidQuery),
        (Study(("y", "C(g)"), main="y ~ 0 + C(g)"), InvalidQuery),
        (Study(("y", "g"), by="g"), InvalidQuery),
        (Study(("y", "x"), by="x"), InvalidQuery),
        (Study(("y", "poly(x, 9)", "poly(k, 9)", "bs(x, knots=[0])"), by="g"), None),
        (Study(("y", "0")), InvalidFormula),
        (Study(("y ~ x",)), InvalidFormula),
        (Study(("y", "nothing")), InvalidFormula),
        (
            Study(("y", " + ".join(f"poly(x, {k})" for k in range(1, 11)), "poly(k, 10)")),
            InvalidFormula,
        ),
    ],
)
def test_what_cannot_be_asked(data: Any, query: Any, error: Any) -> None:
    if error is None:
        planned(data, COLUMNS, query)
        return
    with pytest.raises(error):
        planned(data, COLUMNS, query)


def test_a_factor_of_one_level_leaves_the_intercept() -> None:
    columns = [factor("g", "a")]
    made = {"g": np.zeros(50)}
    query = Study(("g",))
    plan = planned(made, columns, query)
    assert plan.forecast["terms"] == ["Intercept"]
    result = drive(plan.run(), whole(made)).result
    assert result["terms"] == ["Intercept"]
    assert result["variables"] == {"g": []}


@pytest.mark.parametrize("profile", [True, False])
def test_bounds_beyond_what_moments_can_be_of_are_refused(profile: bool) -> None:
    columns = [numeric("y", -1e200, 1e200)]
    with pytest.raises(InvalidQuery, match="too wide"):
        planned({"y": np.array([-1e200, 0.0, 1e200] * 9)}, columns, Study(("y",)), profile=profile)
    near = [numeric("y", -1e110, 1e110)]
    made = {"y": np.array([-1e110, 0.0, 1e110] * 9)}
    plan = planned(made, near, Study(("y",)), profile=profile)
    assert np.all(np.isfinite(drive(plan.run(), whole(made)).result["moments"]))


def test_terms_that_two_variables_share_count_once(data: Any) -> None:
    result = answered(data, Study(("y", "x*b", "x", "b:x")))
    assert result["terms"] == ["Intercept", "y", "x", "b", "x:b"]
    assert result["variables"] == {"y": ["y"], "x*b": ["x", "b", "x:b"], "x": ["x"], "b:x": ["x:b"]}


def test_scores_are_white_where_errors_have_one_variance() -> None:
    """The meat's expectation is I then: what the whitener is for."""
    rng = seeded(2)
    X = rng.normal(size=(20_000, 3)) @ np.array([[1, 0.8, 0], [0, 0.5, 0], [0, 0, 2.0]])
    Z = np.column_stack([np.ones(len(X)), X @ [1, 2, 0.5] + rng.normal(size=len(X)), X])
    plan = planned(table(100), COLUMNS, Study(("y", "x", "k", "b"), main="y ~ x + k + b"))
    formula = formula_of(*plan.question.main, plan.ground.coding)
    exact = Moments(Z.T @ Z, np.eye(5), 0.0)
    fitted = before_meat(formula, exact, NarrowMoments(exact.sums, exact.root, 0.0, 0.0, 0.0))
    scores = (Z @ fitted.scores.whitener.T) * (Z @ fitted.scores.residual)[:, None]
    np.testing.assert_allclose(scores.T @ scores / len(Z), np.eye(4), atol=0.1)


def with_gaps(data: Any) -> tuple[Any, Any, Any]:
    """The table, its missing cells (y is the response), and the columns of it."""
    n = len(data["y"])
    gone = {"x": np.arange(n) % 3 == 0, "g": np.arange(n) % 5 == 0, "y": np.arange(n) % 50 == 0}
    made = {k: np.where(gone[k], 0.0, data[k]) if k in gone else data[k] for k in data}
    columns = [
        numeric("y", missing=("NA",)),
        numeric("x", missing=("NA",)),
        numeric("k"),
        replace(factor("g", "acd"), missing=("NA",)),
    ]
    return made, gone, columns


FILLED = Study(("y", "x", "I(x**2)", "C(g)"), main="y ~ x + C(g)", missing="indicator")


def test_missing_cells_are_filled_and_said_by_an_indicator(data: Any) -> None:
    """Moments of the columns by hand: x at its released median, its square at the median's, no
    level of g.
    """
    made, gone, columns = with_gaps(data)
    plan = planned(made, columns, FILLED, NO_NOISE)
    result = drive(plan.run(), whole(made, gone)).result
    x = np.where(gone["x"], np.quantile(made["x"], 0.5), made["x"])
    c, d = ((made["g"] == k) & ~gone["g"] for k in (1, 2))
    Z = design(data, made["y"], x, c, d, x**2, gone["x"], gone["g"])[~gone["y"]]
    cells = ["missing(x)", "missing(g)"]
    names = ["Intercept", "y", "x", "C(g)[c]", "C(g)[d]", "I(x**2)", *cells]
    order = [result["terms"].index(name) for name in names]
    moments = np.array(result["moments"])[np.ix_(order, order)]
    np.testing.assert_allclose(moments, Z.T @ Z / len(data["y"]), rtol=2e-3, atol=1e-3)
    assert result["variables"]["I(x**2)"] == ["I(x**2)", "missing(x)"]
    assert [result["dummies"][k] for k in order] == [
        False,
        False,
        False,
        *[True] * 2,
        False,
        *[True] * 2,
    ]
    main = result["main"]
    X = design(data, x, c, d, gone["x"], gone["g"])[~gone["y"]]
    fit = sm.OLS(made["y"][~gone["y"]], X).fit()
    at = [main["terms"].index(k) for k in ("Intercept", "x", "C(g)[c]", "C(g)[d]", *cells)]
    assert np.max(np.abs((np.array(main["coefficients"])[at] - fit.params) / fit.bse)) < 0.2


def test_a_missing_cell_of_a_factor_has_none_of_its_levels(data: Any) -> None:
    """Also where the code that is stored for it, 0, is that of a level with a dummy."""
    made, gone, columns = with_gaps(data)
    query = Study(("y", 'C(g, ref="c")'), missing="indicator")
    result = drive(planned(made, columns, query, NO_NOISE).run(), whole(made, gone)).result
    at = next(k for k, name in enumerate(result["terms"]) if name.endswith("[a]"))
    exact = ((made["g"] == 0) & ~gone["g"] & ~gone["y"]).mean()
    assert result["moments"][0][at] == pytest.approx(exact, rel=5e-3)


def test_a_formula_over_filled_cells_is_told_to_name_their_indicator(data: Any) -> None:
    made, gone, columns = with_gaps(data)
    plan = planned(made, columns, FILLED, NO_NOISE)
    study = read(FILLED, drive(plan.run(), whole(made, gone)).result)
    assert "add missing(x)," in study.ols("y ~ x").result["warnings"][0]
    assert study.ols("y ~ x + I(x**2) + missing(x)").result["warnings"] == []


def test_the_columns_of_a_condition_and_of_the_first_variable_stay_masks(data: Any) -> None:
    made, gone, columns = with_gaps(data)
    query = Study(("y", "x", "k"), missing="indicator", where="x > 0")
    plan = planned(made, columns, query, NO_NOISE)
    result = drive(plan.run(), whole(made, gone)).result
    assert result["terms"] == ["Intercept", "y", "x", "k"]
    used = (made["x"] > 0) & ~gone["x"] & ~gone["y"]
    assert result["moments"][0][0] == pytest.approx(used.mean(), rel=1e-3)


def test_without_a_profile_filled_cells_are_counted_by_the_studys_own(data: Any) -> None:
    made, gone, columns = with_gaps(data)
    near = [columns[0], replace(columns[1], lower=-2.0, upper=3.0), *columns[2:]]
    plan = planned(made, near, FILLED, NO_NOISE, profile=False)
    result = drive(plan.run(), whole(made, gone)).result
    at, n = result["terms"].index("missing(x)"), len(data["y"])
    exact = (gone["x"] & ~gone["y"]).sum() / n
    assert result["moments"][0][at] == pytest.approx(exact, rel=5e-3)


def test_more_columns_than_a_study_may_have_are_refused_with_their_indicators() -> None:
    columns = [numeric(f"x{k}", missing=("NA",)) for k in range(40)]
    made = {f"x{k}": np.arange(50.0) for k in range(40)}
    with pytest.raises(InvalidQuery, match="indicators"):
        planned(made, columns, Study(tuple(made), missing="indicator"))
