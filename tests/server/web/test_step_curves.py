# SPDX-License-Identifier: Apache-2.0
"""Survival curves on a page: steps from 1, ends where the data end, numbers at risk by tick."""

from typing import Any

from reticent_server.web.step_curves import MOST_CURVES, step_figure
from reticent_server.web.tables import shown

CURVE: dict[str, Any] = {
    "times": [10.0, 20.0, 40.0],
    "survival": [0.9, 0.5, 0.25],
    "confidence_intervals": [[0.8, 1.0], [0.4, 0.6], [None, None]],
    "at_risk": [100.4, 80.0, -3.0],
}


def test_one_curve_is_drawn_as_steps_with_its_numbers_at_risk() -> None:
    figure = step_figure({"horizon": 40.0} | CURVE)
    assert figure is not None
    (curve,) = figure.curves
    assert figure.ticks == ((0.0, "0"), (25.0, "10"), (50.0, "20"), (75.0, "30"), (100.0, "40"))
    assert curve.line == "M0 0H25.00V10.00H50.00V50.00H100.00V75.00"
    assert curve.low == "M0 0H25.00V20.00H50.00V60.00"  # no interval, no line
    assert curve.at_risk == ("100", "80", "0", "0", "–")


def test_groups_have_a_curve_each_and_none_is_left_out_unsaid() -> None:
    groups = [{"level": f"g{k}"} | CURVE for k in range(MOST_CURVES + 2)]
    figure = step_figure({"horizon": 40.0, "groups": [*groups, {"level": "few"}]})
    assert figure is not None
    assert [each.name for each in figure.curves] == [f"g{k}" for k in range(MOST_CURVES)]
    assert figure.left_out == 2
    assert shown({"horizon": 40.0, "groups": groups}).steps == step_figure(
        {"horizon": 40.0, "groups": groups}
    )


def test_incidences_rise_from_0_with_a_line_for_each_group_and_cause() -> None:
    rising = {"times": [10.0, 20.0], "incidence": [0.1, 0.4], "at_risk": [100.0, 80.0]}
    ends = {"confidence_intervals": [[0.0, 0.2], [0.3, 0.5]]}
    curves = [{"level": "a", "cause": cause} | rising | ends for cause in ("relapse", "death")]
    figure = step_figure({"curves": [*curves, {"cause": "none", "times": []}], "n": 100})
    assert figure is not None
    assert [each.name for each in figure.curves] == ["a relapse", "a death"]
    assert figure.curves[0].line == "M0 100H50.00V90.00H100.00V60.00"
    assert figure.ticks[-1] == (100.0, "20")
    assert figure.of == "Cumulative incidence"


def test_other_results_have_no_curve() -> None:
    for other in ({"value": 1.0}, {"horizon": None} | CURVE, {"horizon": 3.0, "times": []}):
        assert step_figure(other) is None
