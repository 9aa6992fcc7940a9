# SPDX-License-Identifier: Apache-2.0
"""Released survival curves in the client: contrasts of groups, and numbers at risk under the
plot.
"""

from typing import Any

import numpy as np
import pytest

from reticent import SurvivalCurves

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
}
OTHER = CURVE | {
    "survival": [0.9, 0.7],
    "standard_errors": [0.04, 0.03],
    "restricted_mean": 1.75,
    "restricted_mean_standard_error": 0.08,
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
