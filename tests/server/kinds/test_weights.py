# SPDX-License-Identifier: Apache-2.0
"""Weights, offset and exposure: what is estimated, against statsmodels; what is refused; blocks."""

from typing import Any

import numpy as np
import pytest
import statsmodels.api as sm

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.special_columns import offset_design, special, weighted_design
from reticent_server.formula import parse_formula
from reticent_server.kinds.glm.kind import KIND as GLM
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.linear_regression.kind import KIND as LINEAR
from reticent_server.kinds.median.kind import KIND as MEDIAN
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantile_regression.kind import KIND as QUANTILE
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.quantiles.kind import KIND as QUANTILES
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.subsample_aggregate.kind import KIND as BLOCKS
from reticent_server.kinds.subsample_aggregate.query import SubsampleAggregateQuery
from support.fits.regressions import drive, facts_of, numeric, profile_of, totals, whole
from support.seeds import seeded

N = 20_000
RATIO = 5.0  # of the largest weight to the smallest
LEVELS = Column("g", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "b"))
COLUMNS = [
    numeric("x", -6, 6),
    numeric("w", 1, RATIO),
    numeric("y", -30, 30),
    numeric("k", 0, 400),
    numeric("signed", -1, 1),
    numeric("zero", 0, 0),
]


class Offer:
    """Little noise: intervals are those of sampling."""

    rho, epsilon, delta = rho_units(200.0, 1e-6), 10**15, 10**12


class Usual:
    """ε = 1."""

    rho, epsilon, delta = rho_units(1.0, 1e-6), 10**9, 10**6


def survey(seed: int = 0) -> Any:
    """Heavy records have another slope, and errors of another size; counts have the weight as their
    exposure.
    """
    rng = seeded(seed)
    x, w = rng.normal(size=N), rng.uniform(1, RATIO, N)
    y = 1 + x * (1 + (w > RATIO / 2)) + rng.normal(size=N) * (0.5 + w / RATIO)
    k = rng.poisson(w * np.exp(-0.5 + 0.4 * x)) * 1.0
    return {
        "x": x.clip(-6, 6),
        "w": w,
        "y": y.clip(-30, 30),
        "k": np.minimum(k, 400),
        "signed": np.zeros(N),
        "zero": np.zeros(N),
    }


def facts(table: Any, max_rows: int = 1) -> Any:
    numeric_columns = [c for c in COLUMNS if c.name != "zero"]
    return facts_of(N, [*COLUMNS, LEVELS], profile_of(table, numeric_columns), max_rows)


def fit(kind: Any, query: Any) -> tuple[Any, Any]:
    table = survey()
    plan = kind.plan(facts(table), query, Offer)
    return plan, drive(plan.run(), whole(table)).result


def test_weighted_least_squares_has_the_surveys_sandwich() -> None:
    table = survey()
    _, result = fit(LINEAR, LinearRegression("y ~ x", loss="squared", tuning=20.0, weights="w"))
    X = sm.add_constant(table["x"])
    known = sm.WLS(table["y"], X, weights=table["w"]).fit(cov_type="HC0")
    errors = np.array(result["standard_errors"])
    np.testing.assert_allclose(errors, known.bse, rtol=0.2)  # .04 over tables
    assert np.abs((result["coefficients"] - known.params) / known.bse).max() < 0.5
    plain = sm.OLS(table["y"], X).fit()
    assert np.abs((known.params - plain.params) / known.bse).max() > 5
    assert result["sum_of_weights"] == pytest.approx(table["w"].sum(), rel=0.01)
    assert "records_in_use" not in result
    assert result["estimand"].endswith("; scores multiplied by w")


def test_hubers_loss_takes_the_weighted_median_of_residuals() -> None:
    table = survey()
    _, result = fit(LINEAR, LinearRegression("y ~ x", weights="w"))
    r = np.abs(table["y"] - result["coefficients"][0] - result["coefficients"][1] * table["x"])
    order = np.argsort(r)
    heavy = np.cumsum(table["w"][order])
    middle = r[order][np.searchsorted(heavy, heavy[-1] / 2)]
    assert result["scale"] == pytest.approx(middle / 0.6745, rel=0.01)
    assert np.median(r) / middle < 0.98


@pytest.mark.slow
def test_a_weighted_logit_is_that_of_statsmodels() -> None:
    table = survey()
    rng = seeded(3)
    chance = 1 / (1 + np.exp(-table["x"] * (table["w"] > RATIO / 2)))
    table["b"] = (rng.random(N) < chance) * 1.0
    columns = [*COLUMNS[:2], Column("b", ColumnKind.BOOLEAN, 0.0, 1.0)]
    known = facts_of(N, columns, profile_of(table, columns))
    plan = GLM.plan(known, Glm("b ~ x", "binomial", weights="w"), Offer)
    result = drive(plan.run(), whole(table)).result
    model = sm.GLM(
        table["b"], sm.add_constant(table["x"]), sm.families.Binomial(), freq_weights=table["w"]
    )
    target = model.fit()
    slope, error = result["coefficients"][1], result["standard_errors"][1]
    assert slope == pytest.approx(target.params[1], abs=error)
    X, p = sm.add_constant(table["x"]), target.fittedvalues
    bread = np.linalg.inv((X * (table["w"] * p * (1 - p))[:, None]).T @ X)
    scores = X * (table["w"] * (table["b"] - p))[:, None]
    sandwich = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
    assert error == pytest.approx(sandwich[1], rel=0.1)
    whole_sample = sm.GLM(table["b"], sm.add_constant(table["x"]), sm.families.Binomial()).fit()
    assert abs(slope - whole_sample.params[1]) > 3 * error


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
def test_an_exposure_makes_rates(family: str) -> None:
    more: Any = {"dispersion": 0.01} if family == "negative_binomial" else {}
    _, result = fit(GLM, Glm("k ~ x", family, exposure="w", tuning=50.0, **more))
    table = survey()
    known = sm.GLM(
        table["k"], sm.add_constant(table["x"]), sm.families.Poisson(), exposure=table["w"]
    ).fit(cov_type="HC0")
    off = np.abs((result["coefficients"] - known.params) / known.bse)
    assert off.max() < 1
    np.testing.assert_allclose(result["standard_errors"], known.bse, rtol=0.25)
    assert result["estimand"].endswith("with an offset in the predictor")


@pytest.mark.slow
def test_an_offset_has_the_links_units() -> None:
    """x as an offset beside x as a term: its coefficient falls by 1."""
    _, plain = fit(GLM, Glm("k ~ x", "poisson", exposure="w"))
    _, moved = fit(GLM, Glm("k ~ x", "poisson", offset="signed"))
    assert moved["coefficients"][0] - plain["coefficients"][0] == pytest.approx(
        np.log((1 + RATIO) / 2), abs=0.05
    )


def test_a_narrow_upper_bound_costs_less() -> None:
    """The forecast's noise grows with the largest weight over the mean one."""
    table = survey()
    narrow = LINEAR.plan(facts(table), LinearRegression("y ~ x"), Usual).forecast
    weighted = LINEAR.plan(facts(table), LinearRegression("y ~ x", weights="w"), Usual).forecast
    pairs = zip(weighted["privacy_to_sampling"], narrow["privacy_to_sampling"], strict=True)
    for more, less in pairs:
        assert 1.25 < more / less < 1.9  # √(E a/E a²) for shares a = w/5: 1.55


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("rows", [61, 977])
def test_sums_do_not_depend_on_the_block_size(rows: int) -> None:
    table = survey()
    plan = GLM.plan(
        facts(table), Glm("k ~ x", "poisson", where="x > -1", weights="w", exposure="w"), Offer
    )
    small = whole({name: values[:1100] for name, values in table.items()})
    for step in drive(plan.run(), small).steps:
        for one, other in zip(totals(step, small), totals(step, small, rows), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("kind", "query", "words"),
    [
        (LINEAR, LinearRegression("y ~ x", weights="nope"), "numeric column"),
        (LINEAR, LinearRegression("y ~ x", weights="g"), "numeric column"),
        (LINEAR, LinearRegression("y ~ x", weights="signed"), "at least 0"),
        (LINEAR, LinearRegression("y ~ x", weights="zero"), "at least 0"),
        (LINEAR, LinearRegression("y ~ x", weights="w", mechanism="influence"), "newton"),
        (LINEAR, LinearRegression("y ~ x", weights="w", mechanism="gradient_descent"), "newton"),
        (GLM, Glm("k ~ x", "gaussian", weights="w"), "gaussian"),
        (QUANTILE, QuantileRegression("y ~ x", weights="w", by="g"), "weights or by"),
        (QUANTILES, Quantiles("y", weights="w", by="g"), "by"),
        (QUANTILES, Quantiles("y", weights="w", intervals=True), "weighted share below"),
        (MEDIAN, Median("y", weights="w", by="g"), "by"),
        (MEDIAN, Median("y", weights="w", intervals=True), "weighted share below"),
        (MEDIAN, Median("y", "ptr", weights="w"), "exponential only"),
        (MEDIAN, Median("y", weights="signed"), "at least 0"),
        (GLM, Glm("k ~ x", "gamma", exposure="w"), "families of counts"),
        (GLM, Glm("k ~ x", "poisson", exposure="k"), "above 0"),
        (GLM, Glm("k ~ x", "poisson", exposure="w", offset="signed"), "not both"),
        (
            BLOCKS,
            SubsampleAggregateQuery(LinearRegression("y ~ x", weights="w")),
            "no weights",
        ),
        (
            BLOCKS,
            SubsampleAggregateQuery(Glm("k ~ x", "poisson", exposure="w")),
            "no offset",
        ),
    ],
)
def test_refusals_say_what_to_change(kind: Any, query: Any, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        kind.plan(facts(survey()), query, Offer)


@pytest.mark.parametrize("field", ["weights", "exposure"])
def test_tables_of_persons_have_neither(field: str) -> None:
    table = survey()
    schema = facts(table, max_rows=3).schema
    design = parse_formula("k ~ x", schema)
    asked = {
        "weights": lambda: weighted_design(design, schema, "w"),
        "exposure": lambda: offset_design(design, schema, None, "w"),
    }[field]
    with pytest.raises(InvalidQuery, match="one row"):
        asked()


def test_a_design_without_them_is_itself() -> None:
    schema = facts(survey()).schema
    design = parse_formula("k ~ x", schema)
    assert weighted_design(design, schema, None) is design
    assert offset_design(design, schema, None, None) is design
    assert special(design) == ""


@pytest.mark.slow
def test_a_weighted_regression_quantile_is_that_of_weighted_check_losses() -> None:
    """Beside QuantReg of wy on wX, which has the same solution."""
    table = survey()
    _, result = fit(QUANTILE, QuantileRegression("y ~ x", 0.5, weights="w"))
    (found,) = result["fits"]
    X, w = sm.add_constant(table["x"]), table["w"]
    known = sm.QuantReg(table["y"] * w, X * w[:, None]).fit(0.5).params
    plain = sm.QuantReg(table["y"], X).fit(0.5).params
    errors = np.array(found["standard_errors"])
    assert np.abs((found["coefficients"] - known) / errors).max() < 1
    assert np.abs((known - plain) / errors).max() > 3
    assert found["estimand"].endswith("; scores multiplied by w")
    assert found["sum_of_weights"] == pytest.approx(w.sum(), rel=0.01)


@pytest.mark.parametrize("by_median", [True, False])
def test_weighted_quantiles_are_those_of_the_population(by_median: bool) -> None:
    table = survey()
    order = np.argsort(table["y"])
    heavy = np.cumsum(table["w"][order]) / table["w"].sum()
    asked = (0.5,) if by_median else (0.1, 0.5, 0.9)
    if by_median:
        _, result = fit(MEDIAN, Median("y", weights="w"))
        values = [result["value"]]
    else:
        _, result = fit(QUANTILES, Quantiles("y", asked, weights="w"))
        values = result["values"]
    found = [heavy[np.searchsorted(table["y"][order], v, side="right") - 1] for v in values]
    assert found == pytest.approx(asked, abs=3e-3)
    plain = np.quantile(table["y"], asked[-1])
    assert by_median or abs(values[-1] - plain) > 0.05


def test_what_weighted_quantiles_are_expected_to_be_worth() -> None:
    """Noise over Σa."""
    table = survey()
    a = table["w"] / RATIO
    plan = QUANTILES.plan(facts(table), Quantiles("y", (0.5,), weights="w"), Usual)
    whole_records = QUANTILES.plan(facts(table), Quantiles("y", (0.5,)), Usual)
    ratio = plan.forecast["rank_error"] / whole_records.forecast["rank_error"]
    assert ratio == pytest.approx(N / a.sum(), rel=0.02)
    unknown = QUANTILES.plan(facts_of(N, COLUMNS, None), Quantiles("y", (0.5,), weights="w"), Usual)
    assert unknown.forecast["rank_error"] == 2 * whole_records.forecast["rank_error"]
