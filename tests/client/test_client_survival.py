# SPDX-License-Identifier: Apache-2.0
"""Released survival curves in the client: contrasts of groups, and numbers at risk under the
plot.
"""

from typing import Any

import numpy as np
import pytest

from reticent import InvalidQuery, SurvivalCurves
from reticent.kinds.survival_curve import Curve
from reticent.lifelines import KaplanMeierFitter

CURVE = {
    "times": [1.0, 2.0],
    "survival": [0.8, 0.5],
    "standard_errors": [0.03, 0.04],
    "privacy_standard_errors": [0.01, 0.01],
    "confidence_intervals": [[0.74, 0.86], [0.42, 0.58]],
    "at_risk": [100.0, 80.4],
    "events": [20.0, 30.0],
    "median": 2.0,
    "median_interval": [1.5, None],
    "restricted_mean": 1.55,
    "restricted_mean_standard_error": 0.06,
    "restricted_mean_interval": [1.43, 1.67],
    "restricted_means": [0.9, 1.55],
    "restricted_mean_standard_errors": [0.02, 0.06],
}
OTHER = CURVE | {
    "survival": [0.9, 0.7],
    "standard_errors": [0.04, 0.03],
    "restricted_mean": 1.75,
    "restricted_mean_standard_error": 0.08,
    "restricted_means": [0.95, 1.75],
    "restricted_mean_standard_errors": [0.03, 0.08],
}


def released() -> SurvivalCurves:
    groups: list[dict[str, Any]] = [{"level": "a", **CURVE}, {"level": "b", **OTHER}]
    result = {"confidence_level": 0.95, "horizon": 2.0, "n": 200, "groups": groups}
    query = {"kind": "survival_curve", "time": "weeks", "event": "died", "by": "g"}
    return SurvivalCurves({"result": result, "query": query, "status": "reply"})


def test_curves_differ_by_their_difference_at_one_time() -> None:
    found = released().difference("a", "b", 1.5)
    assert found.value == pytest.approx(-0.1)
    assert found.standard_error == pytest.approx(0.05)
    assert found.interval == pytest.approx((-0.1 - 0.098, -0.1 + 0.098), abs=1e-4)


def test_restricted_means_differ_and_have_a_ratio() -> None:
    difference = released().restricted_mean_difference("b", "a")
    assert (difference.value, difference.standard_error) == pytest.approx((0.2, 0.1))
    ratio = released().restricted_mean_ratio("b", "a")
    assert ratio.value == pytest.approx(1.75 / 1.55)
    assert np.log(ratio.interval) == pytest.approx(
        np.log(1.75 / 1.55) + np.array([-1.96, 1.96]) * np.hypot(0.06 / 1.55, 0.08 / 1.75),
        abs=1e-5,
    )


def test_restricted_means_up_to_another_time() -> None:
    curve = released().curves["a"]
    found = curve.rmst(1.0)
    assert (found.value, found.standard_error) == (0.9, 0.02)
    assert found.interval == pytest.approx((0.9 - 0.0392, 0.9 + 0.0392), abs=1e-5)
    assert np.isnan(found.pvalue)
    difference = released().restricted_mean_difference("b", "a", 1.0)
    assert difference.value == pytest.approx(0.05)
    assert difference.standard_error == pytest.approx(np.hypot(0.02, 0.03))
    assert difference.pvalue == pytest.approx(0.16554, abs=1e-4)  # 2 Φ(−1.3868)
    assert released().restricted_mean_difference("b", "a", 2.0).value == pytest.approx(0.2)
    assert released().restricted_mean_ratio("b", "a", 1.0).value == pytest.approx(0.95 / 0.9)
    with pytest.raises(ValueError, match="reach"):
        curve.rmst(2.5)


def exponential(times: list[float]) -> Curve:
    """With hazard .3, and standard errors that grow."""
    survival = np.exp(-0.3 * np.array(times))
    content = {
        "times": times,
        "survival": survival.tolist(),
        "restricted_means": ((1 - survival) / 0.3).tolist(),
        "restricted_mean_standard_errors": [0.04 * t for t in times],
    }
    return Curve("", content)


def test_restricted_means_between_two_times_are_interpolated() -> None:
    curve = exponential([1.0, 1.5, 2.0])
    for tau in (0.5, 1.2, 1.9):
        if tau < 1:
            with pytest.raises(ValueError, match="0 and 1"):
                curve.rmst(tau)
            continue
        found = curve.rmst(tau)
        assert found.value == pytest.approx((1 - np.exp(-0.3 * tau)) / 0.3, abs=2e-5)
        assert found.standard_error == pytest.approx(0.04 * tau)
        assert found.interval[1] - found.value > 1.96 * found.standard_error
    with pytest.raises(ValueError, match="cuts"):
        exponential([1.0, 4.0]).rmst(2.5)


def test_survival_at_a_time_and_its_ratio() -> None:
    found = released().curves["a"].survival_at(1.5)
    assert (found.value, found.standard_error, found.interval) == (0.8, 0.03, (0.74, 0.86))
    ratio = released().survival_ratio("a", "b", 2.0)
    error = np.hypot(0.04 / 0.5, 0.03 / 0.7)
    assert ratio.value == pytest.approx(5 / 7)
    assert ratio.standard_error == pytest.approx(error)
    assert np.log(ratio.interval) == pytest.approx(
        np.log(5 / 7) + np.array([-1.96, 1.96]) * error, abs=1e-4
    )
    assert ratio.pvalue == pytest.approx(0.000210, rel=0.02)  # 2 Φ(−3.7066)


def test_lifelines_members_of_a_curve() -> None:
    fitter = KaplanMeierFitter()
    query = {"kind": "survival_curve", "time": "weeks", "event": "died", "by": None}
    fitter._release = SurvivalCurves({"result": CURVE, "query": query, "status": "reply"})
    assert fitter.survival_function_["KM_estimate"].to_dict() == {0.0: 1.0, 1.0: 0.8, 2.0: 0.5}
    assert fitter.confidence_interval_.loc[2.0].tolist() == [0.42, 0.58]
    assert fitter.median_survival_time_ == 2.0
    with pytest.raises(InvalidQuery, match="its columns"):
        fitter.fit("weeks", "died", {"weeks": [1.0], "died": [1]})


def test_a_time_that_a_curve_does_not_tell_of_is_refused() -> None:
    with pytest.raises(ValueError, match="before"):
        released().difference("a", "b", 0.5)
    with pytest.raises(ValueError, match="reach"):
        released().difference("a", "b", 3.0)


def test_numbers_at_risk_stand_under_the_plot() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = released().plot()
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["number at risk", "a", "100", "80", "b", "100", "80"]
    from matplotlib import pyplot as plt

    plt.close(axes.figure)
    bare = released().plot(at_risk=False)
    assert not bare.texts
    plt.close(bare.figure)


def test_a_release_without_means_by_time_says_so() -> None:
    with pytest.raises(ValueError, match="the horizon's mean alone"):
        Curve("", {"times": [1.0, 2.0]}).rmst(1.0)
