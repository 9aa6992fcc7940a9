# SPDX-License-Identifier: Apache-2.0
"""Released cumulative incidences in the client: curves, contrasts of groups, the plot, lifelines'
members.
"""

from typing import Any

import numpy as np
import pytest

from reticent import CumulativeIncidences, InvalidQuery
from reticent.lifelines import AalenJohansenFitter

RELAPSE: dict[str, Any] = {
    "cause": "relapse",
    "times": [1.0, 2.0],
    "incidence": [0.2, 0.4],
    "standard_errors": [0.03, 0.04],
    "privacy_standard_errors": [0.01, 0.01],
    "confidence_intervals": [[0.14, 0.26], [0.32, 0.48]],
    "at_risk": [100.0, 80.4],
    "events": [20.0, 16.0],
    "times_lost": [0.1, 0.4],
    "times_lost_standard_errors": [0.02, 0.05],
}
DEATH = RELAPSE | {"cause": "death", "incidence": [0.1, 0.1], "times_lost": [0.05, 0.15]}
TEST = {
    "cause": "relapse",
    "statistic": 5.0,
    "df": 1,
    "p_value": 0.0253,
    "observed_minus_expected": [4.0, -4.0],
    "until": 2.0,
    "privacy_share": 0.2,
}


def released(by: str | None = "arm") -> CumulativeIncidences:
    levels = ("new", "old") if by else (None,)
    curves = [{"level": level} | each for level in levels for each in (RELAPSE, DEATH)]
    result: dict[str, Any] = {"confidence_level": 0.95, "n": 200, "curves": curves}
    if by:
        result["tests"] = [TEST]
    query = {"kind": "cumulative_incidence", "time": "months", "event": "outcome", "by": by}
    return CumulativeIncidences({"result": result, "query": query, "status": "reply"})


def test_curves_are_found_by_cause_and_level() -> None:
    found = released()
    assert found.causes == ("relapse", "death")
    assert [curve.label for curve in found.curves][:2] == ["new: relapse", "new: death"]
    at = found.curve("relapse", "old").at(1.5)
    assert (at.value, at.standard_error, at.interval) == (0.2, 0.03, (0.14, 0.26))
    assert released(None).curve("death").label == "death"
    for time, message in ((0.5, "before"), (3.0, "reach")):
        with pytest.raises(ValueError, match=message):
            found.curve("death", "new").at(time)
    with pytest.raises(KeyError):
        found.curve("death")


def test_times_lost_are_up_to_one_of_the_times() -> None:
    lost = released(None).curve("relapse").time_lost(2.0)
    assert lost.value == 0.4
    assert lost.interval == pytest.approx((0.4 - 0.098, 0.4 + 0.098), abs=1e-4)
    with pytest.raises(ValueError, match="cuts"):
        released(None).curve("relapse").time_lost(1.5)


def test_groups_differ_by_differences_and_by_gray_s_test() -> None:
    found = released()
    assert found.difference("relapse", "new", "old", 2.0).standard_error == pytest.approx(
        0.04 * np.sqrt(2)
    )
    lost = found.time_lost_difference("death", "new", "old", 2.0)
    assert (lost.value, lost.standard_error) == pytest.approx((0.0, 0.05 * np.sqrt(2)))
    assert found.tests["relapse"].pvalue == 0.0253
    assert not released(None).tests
    assert found.to_frame().shape == (8, 9)


@pytest.mark.slow
def test_the_plot_has_causes_groups_and_numbers_at_risk() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot as plt

    axes = released().plot()
    assert len(axes.lines) == 4
    assert [text.get_text() for text in axes.texts] == [
        "number at risk", "new", "100", "80", "old", "100", "80",
    ]  # fmt: skip
    assert "relapse" in axes.get_legend().get_title().get_text()
    alone = released(None).plot(cause="death", at_risk=False)
    assert (len(alone.lines), len(alone.texts)) == (1, 0)
    plt.close("all")


def test_lifelines_members() -> None:
    fitter = AalenJohansenFitter()
    fitter._release = released(None)
    fitter._curve = fitter._release.curve("relapse")
    density = fitter.cumulative_density_["CIF_relapse"]
    assert density.to_dict() == {0.0: 0.0, 1.0: 0.2, 2.0: 0.4}
    assert fitter.confidence_interval_.loc[2.0].tolist() == [0.32, 0.48]
    assert fitter.variance_.loc[1.0].tolist() == pytest.approx([9e-4])
    with pytest.raises(InvalidQuery, match="its columns"):
        fitter.fit("months", "outcome", "relapse", {"months": [1.0]})
