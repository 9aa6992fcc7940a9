# SPDX-License-Identifier: Apache-2.0
"""Fits, quantiles and medians by group: each group's own result, differences of disjoint groups,
one table, frame and plot.
"""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import reticent
from support.client.replying_server import Server, release

mpl.use("Agg")


def fit(level: str, shift: float, **more: Any) -> dict[str, Any]:
    """Two coefficients, moved."""
    coefficients = [1.0 + shift, -0.5 + shift]
    return {
        "terms": ["Intercept", "x"],
        "coefficients": coefficients,
        "standard_errors": [0.5, 0.25],
        "covariance": [[0.25, 0.0], [0.0, 0.0625]],
        "confidence_level": 0.95,
        "confidence_intervals": [
            [c - 1.959964 * se, c + 1.959964 * se]
            for c, se in zip(coefficients, (0.5, 0.25), strict=True)
        ],
        "p_values": [0.1, 0.1],
        "privacy_standard_errors": [0.2, 0.1],
        "estimable": [True, True],
        "scale": 1.0,
        "tuning": 1.345,
        "estimand": "coefficients",
        "warnings": [],
        "n": 20_000,
        "level": level,
        **more,
    }


def replied(kind: str, result: dict[str, Any], **query: Any) -> dict[str, Any]:
    query = {"kind": kind, "formula": "y ~ x", "by": "zone"} | query
    return release("linear_regression") | {
        "query": query,
        "result": {"by": "zone", "n": 20_000} | result,
    }


@pytest.fixture
def fits(server: Server) -> reticent.GroupRegressions:
    ds = server.dataset()
    groups = [fit("a", 0.0), fit("<b>", 2.0)]
    server.always(201, replied("linear_regression", {"groups": groups}))
    answer = ds.linear_regression("y ~ x", by="zone", epsilon=1.0)
    assert isinstance(answer, reticent.GroupRegressions)
    return answer


def test_each_group_has_a_fit_with_all_that_one_has(fits: reticent.GroupRegressions) -> None:
    assert (fits.by, fits.levels, fits.nobs) == ("zone", ("a", "<b>"), 20_000)
    first, second = fits.fits["a"], fits.fits["<b>"]
    np.testing.assert_allclose(np.asarray(second.params) - np.asarray(first.params), 2.0)
    assert np.isfinite(second.wald_test(f"{second.names[0]} = 0").pvalue)


def test_differences_are_of_disjoint_records(fits: reticent.GroupRegressions) -> None:
    between, first = fits.compare("a", "<b>"), fits.fits["a"]
    expected = reticent.compare(first, fits.fits["<b>"], independent=True)
    np.testing.assert_allclose(between.conf_int(), expected.conf_int())
    wide = np.diff(between.conf_int(), axis=1).ravel()
    alone = np.diff(first.conf_int(), axis=1).ravel()
    np.testing.assert_allclose(wide, alone * np.sqrt(2), rtol=1e-6)
    with pytest.raises(KeyError, match="the levels are a, <b>"):
        fits.compare("a", "c")


def test_one_table_frame_and_plot_have_all_groups(fits: reticent.GroupRegressions) -> None:
    frame = fits.to_frame()
    terms = len(fits.fits["a"].names)
    assert frame["zone"].tolist() == ["a"] * terms + ["<b>"] * terms
    assert "zone = <b>" in str(fits.summary())
    assert "&lt;b&gt;" in fits.table().html()
    labels = [text.get_text() for text in fits.plot().get_legend().get_texts()]
    assert labels == ["a", "<b>"]


def test_an_answer_without_groups_is_refused(server: Server) -> None:
    for groups in ([], [fit("a", 0.0, terms=["x"])]):
        ds = server.dataset()
        server.always(201, replied("linear_regression", {"groups": groups}))
        with pytest.raises(reticent.UnexpectedReply):
            ds.linear_regression("y ~ x", by="zone", epsilon=1.0)


def hazards(level: str, shift: float) -> dict[str, Any]:
    """A fit of one term with a baseline of two intervals."""
    baseline = {
        "hazards": [0.2, 0.1], "log_standard_errors": [0.2, 0.3], "reference": {"x": 2.0},
        "covariance": [[0.04, 0.0, 0.0], [0.0, 0.09, 0.0], [0.0, 0.0, 0.0625]],
    }  # fmt: skip
    one = fit(level, shift, cuts=[1.0, 3.0], stop=2.0, baseline=baseline)
    pairs = ("coefficients", "standard_errors", "confidence_intervals", "p_values")
    one |= {name: one[name][1:] for name in (*pairs, "privacy_standard_errors", "estimable")}
    return one | {"terms": ["x"], "covariance": [[0.0625]]}


def test_hazard_regressions_by_group(server: Server) -> None:
    ds, formula = server.dataset(), "Surv(t, e) ~ x"
    groups = [hazards("a", 0.0), hazards("b", 1.0)]
    server.always(201, replied("hazard_regression", {"groups": groups}, formula=formula))
    found = ds.hazard_regression(formula, by="zone", epsilon=1.0)
    assert isinstance(found, reticent.GroupHazards)
    assert found.fits["b"].hazard_ratios()["x"][0] == pytest.approx(np.exp(0.5))
    assert np.asarray(found.compare("a", "b").estimates) == pytest.approx([1.0])
    curves = [fit.predict_survival({"x": [2.0]}).survival for fit in found.fits.values()]
    np.testing.assert_allclose(curves[0], np.exp(-np.array([[0.2, 0.4]])))
    axes = found.plot_survival({"x": [2.0]})
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["a", "b"]
    assert "zone = b" in str(found.summary())


def test_quantile_regressions_by_group(server: Server) -> None:
    own = [fit("", float(k), tau=tau, bandwidth=0.2) for k, tau in enumerate((0.25, 0.75))]
    group = {"fits": own, "crossing": False, "warnings": [], "n": 20_000}
    groups = [group | {"level": "a"}, group | {"level": "b"}]
    ds = server.dataset()
    server.always(201, replied("quantile_regression", {"groups": groups}, tau=[0.25, 0.75]))
    found = ds.quantile_regression("y ~ x", [0.25, 0.75], by="zone", epsilon=1.0)
    assert isinstance(found, reticent.GroupQuantileRegressions)
    assert (found.by, list(found.groups), found.nobs) == ("zone", ["a", "b"], 20_000)
    np.testing.assert_allclose(np.asarray(found.compare("a", "b", 0.75).estimates), 0.0)
    assert set(found.to_frame()["tau"]) == {0.25, 0.75}
    text = str(found.summary())
    assert text.index("zone = a") < text.index("tau = 0.25") < text.index("zone = b")
    assert found.plot().get_legend() is not None


def test_quantiles_and_medians_by_group(server: Server) -> None:
    values = {"probabilities": [0.5, 0.1], "n": 20_000}
    groups = [
        values | {"level": "a", "values": [3.0, 1.0]},
        values | {"level": "b", "values": [5.0, 2.0]},
        values | {"level": "z", "values": [None, None]},
    ]
    ds = server.dataset()
    server.always(201, replied("quantiles", {"groups": groups}, column="y"))
    found = ds.quantiles("y", [0.5, 0.1], by="zone", epsilon=1.0)
    assert isinstance(found, reticent.GroupQuantiles)
    assert found.values[:2].tolist() == [[3, 1], [5, 2]]
    assert np.isnan(found.values[2]).all()
    assert found.groups["b"].values["10%"] == 2.0
    assert found.to_frame().loc["b", "50%"] == 5.0
    assert "b" in [text.get_text() for text in found.plot().get_yticklabels()]
    assert "10%" in str(found.summary())
    cells = {"a": 3.0, "b": 5.0, "z": None}
    medians = [{"level": level, "value": value, "n": 20_000} for level, value in cells.items()]
    server.always(201, replied("median", {"groups": medians}, column="y"))
    middle = ds.median("y", by="zone", epsilon=1.0)
    assert isinstance(middle, reticent.GroupStatistics)
    assert middle.values.to_dict() == pytest.approx({"a": 3.0, "b": 5.0, "z": np.nan}, nan_ok=True)
    assert middle.to_frame()["value"].tolist()[:2] == [3, 5]
    assert "median of y" in middle.plot().get_xlabel()
    assert "zone" in str(middle.summary())
    for each in (found, middle):
        assert each.summary().split("z ")[1].split()[0] == "–"


def test_statistics_of_a_fit_are_those_that_were_asked_for(server: Server) -> None:
    ds = server.dataset()
    plain = {k: v for k, v in fit("", 0.0).items() if k != "level"}
    told = {"rsquared": 0.5, "rsquared_adjusted": 0.49, "rsquared_interval": [0.4, 0.6]}
    document = replied("linear_regression", {})
    document["query"] = {"kind": "linear_regression", "formula": "y ~ x"}
    server.always(201, document | {"result": plain | {"statistics": told}})
    found = ds.linear_regression("y ~ x", fit_statistics=True, epsilon=1.0)
    assert isinstance(found, reticent.RegressionResults)
    assert (found.rsquared, found.rsquared_adj, found.rsquared_interval) == (0.5, 0.49, (0.4, 0.6))
    assert np.isnan(found.residual_sd)
    assert "R-squared: 0.5" in str(found.summary())
    assert found.f_test().statistic == pytest.approx(found.wald_test("x = 0").statistic)
    server.always(201, document | {"result": plain})
    without = ds.linear_regression("y ~ x", epsilon=1.0)
    assert isinstance(without, reticent.RegressionResults)
    with pytest.raises(reticent.NotFound, match="fit_statistics"):
        _ = without.rsquared
    assert "R-squared" not in str(without.summary())
