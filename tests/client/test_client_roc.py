# SPDX-License-Identifier: Apache-2.0
"""ROC curves in the client: what was released, and Bayes' rule for another prevalence."""

import math
from typing import Any

import matplotlib as mpl
import pytest

import reticent
from reticent.kinds.roc import question_of
from support.client.replying_server import release

mpl.use("Agg")


def cutoff(threshold: float, upward: Any, downward: Any) -> dict[str, Any]:
    shares = {
        name: value
        for k, (name, mid) in enumerate(
            (
                ("sensitivity", 0.8 - threshold / 10),
                ("specificity", 0.6 + threshold / 10),
                ("positive_predictive_value", 0.5),
                ("negative_predictive_value", 0.7),
            )
        )
        for name, value in (
            (name, mid),
            (f"{name}_interval", [mid - 0.1 - k / 100, mid + 0.1]),
        )
    }
    ratios = {
        "positive_likelihood_ratio": upward[0],
        "positive_likelihood_ratio_interval": upward[1],
        "negative_likelihood_ratio": downward[0],
        "negative_likelihood_ratio_interval": downward[1],
    }
    return {"threshold": threshold, **shares, **ratios}


def curve(**query: Any) -> reticent.RocCurve:
    result = {
        "auc": 0.75,
        "auc_interval": [0.7, 0.8],
        "standard_error": 0.025,
        "privacy_standard_error": 0.01,
        "confidence_level": 0.95,
        "levels": ["1", "0"],
        "numbers": [40.0, 160.0],
        "prevalence": 0.2,
        "prevalence_interval": [0.15, 0.25],
        "cutoffs": [
            cutoff(1.0, (4.0, [2.0, 8.0]), (0.5, [0.25, 1.0])),
            cutoff(2.0, (None, [3.0, None]), (0.5, [0.25, None])),
        ],
        "n": 200,
    }
    asked = {"kind": "roc", "score": "x", "outcome": "b", **query}
    found = reticent.RocCurve(release("mean") | {"query": asked, "result": result})
    found.check()
    return found


def test_predictive_values_of_another_prevalence_are_bayes_rule() -> None:
    found = curve().predictive_values(1.0, prevalence=0.5)
    assert found["positive_predictive_value"] == pytest.approx(0.8)
    assert found["positive_predictive_value_interval"] == pytest.approx((2 / 3, 8 / 9))
    assert found["negative_predictive_value"] == pytest.approx(2 / 3)
    assert found["negative_predictive_value_interval"] == pytest.approx((0.5, 0.8))
    unbounded = curve().predictive_values(2.0, prevalence=0.2)
    assert unbounded["positive_predictive_value"] == 1.0
    assert unbounded["positive_predictive_value_interval"] == pytest.approx((3 / 7, 1.0))
    assert unbounded["negative_predictive_value_interval"][0] == 0.0


@pytest.mark.parametrize("prevalence", [0.0, 1.0, -1.0, math.nan])
def test_a_prevalence_lies_between_0_and_1(prevalence: float) -> None:
    with pytest.raises(ValueError, match="prevalence"):
        curve().predictive_values(1.0, prevalence=prevalence)


def test_only_released_thresholds_are_described() -> None:
    with pytest.raises(ValueError, match="not released"):
        curve().to_frame([1.5])
    with pytest.raises(ValueError, match="not released"):
        curve().predictive_values(1.5, prevalence=0.5)


def test_frame_plot_and_summary_say_what_was_released() -> None:
    found = curve(thresholds=[2.0], positive="low")
    frame = found.to_frame()
    assert frame["sensitivity"].tolist() == pytest.approx([0.7, 0.6])
    assert math.isnan(frame.loc[1, "positive_likelihood_ratio_upper"])
    assert found.to_frame([2.0]).loc[0, "positive_likelihood_ratio_lower"] == 3.0
    line = found.plot().lines[0]
    curves = [each for each in line.axes.lines if len(each.get_xdata()) == 4]
    assert curves[0].get_xdata().tolist() == pytest.approx([1.0, 0.3, 0.2, 0.0])
    assert curves[0].get_ydata().tolist() == pytest.approx([1.0, 0.7, 0.6, 0.0])
    said = found.summary()
    assert "low is positive" in said
    assert "AUC 0.75" in said
    assert found.conf_int() == (0.7, 0.8)


def fitted(**query: Any) -> reticent.RegressionResults:
    document = release("linear_regression")
    return reticent.RegressionResults(document | {"query": query})


def test_a_fit_s_predictor_is_asked_for_with_its_terms_and_coefficients() -> None:
    logit = fitted(kind="glm", formula="`is ill` ~ x", family="binomial", where="z > 1")
    asked = question_of(logit, None, (0.5,))
    assert (asked["score"], asked["outcome"], asked["where"]) == ("x", "is ill", "z > 1")
    assert asked["coefficients"] == logit.params.tolist()
    assert asked["thresholds"] == [0.5]
    assert question_of(logit, "dead", ())["outcome"] == "dead"


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "glm", "formula": "y ~ x", "family": "ordinal"},
        {"kind": "glm", "formula": "y ~ x", "family": "poisson", "exposure": "z"},
        {"kind": "quantile_regression", "formula": "y ~ x"},
    ],
)
def test_a_fit_without_one_predictor_has_no_curve(query: dict[str, Any]) -> None:
    with pytest.raises(reticent.InvalidQuery, match="roc_of takes"):
        question_of(fitted(**query), None, ())
