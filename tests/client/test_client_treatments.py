# SPDX-License-Identifier: Apache-2.0
"""The results of did and event_study: the treatment's coefficients, with and without an intercept
before them.
"""

from typing import Any

import numpy as np
import pytest

from reticent.kinds.did import DidResults
from reticent.kinds.event_study import EventStudyResults
from reticent.results.regression import RegressionResults

BEFORE_AND_AFTER = ["event_time[<=-2]", "event_time[0]", "event_time[>=1]"]


def released(query: dict[str, Any], terms: list[str], **more: Any) -> dict[str, Any]:
    p = len(terms)
    b = np.arange(1.0, p + 1)
    result = {
        "terms": terms,
        "coefficients": b.tolist(),
        "standard_errors": [0.5] * p,
        "privacy_standard_errors": [0.3] * p,
        "covariance": (0.25 * np.eye(p)).tolist(),
        "confidence_level": 0.95,
        "confidence_intervals": [[x - 1, x + 1] for x in b],
        "p_values": [0.01 * x for x in b],
        "estimable": [True] * p,
        "directions": None,
        "scale": 1.0,
        "tuning": 4.0,
        "estimand": "e",
        "n": 9,
        "warnings": [],
    } | more
    return {"id": "r", "dataset": "d", "query": query, "result": result, "status": "reply"}


DID = {"kind": "did", "y": "log(w)", "treated": "t", "time": "year", "covariates": "x"}
STUDY = {"kind": "event_study", "y": "w", "treatment_time": "s", "time": "year"}


@pytest.mark.parametrize("head", [[], ["Intercept"]])
def test_the_effect_is_the_treatment_s(head: list[str]) -> None:
    found = DidResults(released(DID, [*head, "did(t)", "C(year)[2]", "x"]))
    value = len(head) + 1.0
    assert found.effect == value
    assert found.effect_interval == (value - 1, value + 1)
    assert found.effect_pvalue == pytest.approx(0.01 * value)
    assert found.formula == "log(w) ~ did(t) + C(year) + x"
    with pytest.raises(ValueError, match="linear_regression"):
        found.margins()


@pytest.mark.parametrize("head", [[], ["Intercept"]])
def test_the_effects_are_those_of_their_times(head: list[str]) -> None:
    test = {"statistic": 4.0, "df": 1, "p_value": 0.04}
    more = {"event_times": [-2, 0, 1], "pretrend": test}
    found = EventStudyResults(released(STUDY, [*head, *BEFORE_AND_AFTER, "C(year)[2]"], **more))
    assert found.event_times.tolist() == [-2, 0, 1]
    assert found.effects.tolist() == [len(head) + k for k in (1.0, 2.0, 3.0)]
    assert found.pretrend is not None
    assert found.pretrend.hypotheses == ("event_time[<=-2] = 0",)
    assert found.pretrend.pvalue == 0.04
    axes = found.plot()
    assert [t.get_text() for t in axes.get_xticklabels()] == ["≤-2", "-1", "0", "≥1"]
    less = more | {"pretrend": {"statistic": None, "df": 1, "p_value": None}}
    assert EventStudyResults(released(STUDY, BEFORE_AND_AFTER, **less)).pretrend is None


def test_nothing_is_predicted_where_each_person_has_a_level() -> None:
    query = {"kind": "linear_regression", "formula": "w ~ x", "effects": "person"}
    fit = RegressionResults(released(query, ["x"], effects="person"))
    with pytest.raises(ValueError, match="no level to predict from"):
        fit.predict({"x": [1.0]})
    assert fit.margins().estimates.tolist() == [1.0]
