# SPDX-License-Identifier: Apache-2.0
"""A discontinuity's results from a release by hand: the jump, its interval, the summary, the lines,
the table.
"""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from reticent.kinds.discontinuity import DiscontinuityResults
from support.client.replying_server import release

mpl.use("Agg")
QUERY = {"kind": "discontinuity", "y": "y", "running": "x", "cutoff": 2.0, "bandwidth": 3.0}
RESULT = {
    "terms": ["Intercept", "x >= 2", "x", "x above 2"],
    "coefficients": [1.0, 0.5, 0.25, -0.5],
    "standard_errors": [0.1, 0.2, 0.1, 0.1],
    "privacy_standard_errors": [0.05, 0.1, 0.05, 0.05],
    "covariance": np.diag([0.01, 0.04, 0.01, 0.01]).tolist(),
    "confidence_intervals": [[0.8, 1.2], [0.1, 0.9], [0.05, 0.45], [-0.7, -0.3]],
    "p_values": [0.0, 0.012, 0.01, 0.0],
    "estimable": [True] * 4,
    "directions": [],
    "confidence_level": 0.95,
    "n": 900,
    "warnings": [],
}


def released(**more: Any) -> DiscontinuityResults:
    document = release("linear_regression")
    found = {"query": QUERY, "result": document["result"] | RESULT | more}
    return DiscontinuityResults(document | found)


def test_the_jump_and_its_interval() -> None:
    found = released()
    found.check()
    assert (found.jump, found.standard_error, found.pvalue) == (0.5, 0.2, 0.012)
    assert found.jump_interval() == (0.1, 0.9)
    low, high = found.jump_interval(0.5)
    assert 0.1 < low < 0.5 < high < 0.9
    assert list(found.to_frame().index)[1] == "x >= 2"


def test_the_summary_says_the_jump_first() -> None:
    text = str(released().summary())
    assert "Jump at 2: 0.5" in text
    assert text.index("Jump at 2") < text.index("x above 2")


def test_coefficients_without_intervals_are_no_loss_to_the_noise() -> None:
    text = str(released(estimable=[False, True, False, False]).summary())
    assert "Intercept (a first look)" in text
    assert "ot identifiable" not in text
    lost = str(released(estimable=[False] * 4).summary())
    assert "Not identifiable at this epsilon: x >= 2." in lost


def test_the_lines_are_a_jump_apart_at_the_cutoff() -> None:
    axes = released().plot()
    below, above = (line.get_xydata() for line in axes.get_lines()[:2])
    assert below[[0, -1], 0].tolist() == [-1.0, 2.0]
    assert above[[0, -1], 0].tolist() == [2.0, 5.0]
    assert above[0, 1] - below[-1, 1] == pytest.approx(0.5)
    assert (above[-1, 1] - above[0, 1]) / 3 == pytest.approx(-0.25)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")


def test_a_release_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="four or six coefficients"):
        released(confidence_intervals=[[0.0, 1.0]] * 3).check()


def test_an_effect_of_a_fuzzy_design_is_a_ratio_of_two_jumps() -> None:
    document = release("linear_regression")
    other = {"query": QUERY | {"y": "treated"}, "result": document["result"] | RESULT}
    found = released().fuzzy(DiscontinuityResults(document | other))
    assert found.value == 1.0
    assert found.interval[0] < 1.0 < found.interval[1]
    other["query"] = QUERY | {"bandwidth": 2.0}
    with pytest.raises(ValueError, match="same data set"):
        released().fuzzy(DiscontinuityResults(document | other))
