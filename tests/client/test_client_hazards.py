# SPDX-License-Identifier: Apache-2.0
"""A hazard regression's results from a release by hand: ratios, curves and their intervals, the
summary, the plot.
"""

from typing import Any

import numpy as np
import pytest

import reticent
from reticent._shapes.results import FittedModel
from reticent.kinds.hazard_regression import HazardResults
from reticent.lifelines import CoxPHFitter

CUTS, HAZARDS = [1.0, 3.0], [0.2, 0.1]
COVARIANCE = [[0.04, 0.0, 0.01], [0.0, 0.09, 0.0]]
OWN = [0.01, 0.0, 0.0225]  # the coefficient's row, which is the fit's


def released(**more: Any) -> Any:
    result = {
        "terms": ["x"],
        "coefficients": [0.5],
        "standard_errors": [0.15],
        "covariance": [[0.0225]],
        "confidence_level": 0.95,
        "confidence_intervals": [[0.2, 0.8]],
        "p_values": [0.0009],
        "privacy_standard_errors": [0.1],
        "estimable": [True],
        "directions": [{"vector": [0.15], "resolved": True}],
        "scale": None,
        "tuning": None,
        "estimand": "hazard ratios",
        "n": 1000,
        "warnings": [],
        "cuts": CUTS,
        "stop": 1.0,
        "baseline": {
            "hazards": HAZARDS,
            "log_standard_errors": [0.2, 0.3],
            "reference": {"x": 2.0},
            "covariance": COVARIANCE,
        },
    }
    return HazardResults(
        {
            "id": "1",
            "dataset": "people",
            "version": 1,
            "status": "reply",
            "query": {"kind": "hazard_regression", "formula": "Surv(t, e) ~ x"},
            "charged": {"epsilon": 1.0, "delta": 1e-6, "rho": 0.02},
            "guarantee": {
                "tier": "unconditional",
                "unit": "row",
                "epsilon": 1.0,
                "delta": 1e-6,
                "mechanism": "m",
                "statement": "s",
                "reference": "r",
                "assumptions": [],
            },
            "result": result | more,
            "created_at": "2026-01-01T00:00:00Z",
        }
    )


def test_ratios_are_exponentials_with_the_releases_intervals() -> None:
    fit = released()
    fit.check()
    assert fit.hazard_ratios() == {"x": pytest.approx(tuple(np.exp([0.5, 0.2, 0.8])))}
    assert fit.reference == {"x": 2.0}
    assert "exp(coef)" in str(fit.summary(exp=True))
    assert "intervals: 2, up to 3" in str(fit.summary())


def test_a_curve_is_of_its_stratum() -> None:
    """A level with twice the hazards has twice the cumulative hazard, and its own errors."""
    one = released().result["baseline"]
    two = one | {"hazards": [0.4, 0.2], "covariance": (4 * np.array(COVARIANCE)).tolist()}
    fit = released(strata={"column": "g", "levels": ["a", "b"], "baselines": [one, two]})
    fit.check()
    assert fit.strata == ("a", "b")
    assert released().strata == ()
    frame, at = {"x": [2.0]}, [2.0]
    a, b = (fit.predict_survival(frame, at, stratum=g) for g in fit.strata)
    assert a.survival == pytest.approx(released().predict_survival(frame, at).survival)
    assert b.survival == pytest.approx(a.survival**2)
    wide = np.log(np.log(b.lower) / np.log(b.survival)) / np.log(
        np.log(a.lower) / np.log(a.survival)
    )
    assert wide == pytest.approx(2.0)
    for fit_, stratum in ((fit, None), (fit, "c"), (released(), "a")):
        with pytest.raises(ValueError, match="stratum must be one of"):
            fit_.predict_survival(frame, at, stratum=stratum)


def test_replies_that_repeat_the_coefficients_covariance_have_the_same_curves() -> None:
    baseline = released().result["baseline"]
    old = released(baseline=baseline | {"covariance": [*COVARIANCE, OWN]})
    old.check()
    frame = {"x": [3.0]}
    assert old.predict_survival(frame).lower == pytest.approx(
        released().predict_survival(frame).lower
    )
    with pytest.raises(ValueError, match="one hazard for each interval"):
        released(baseline=baseline | {"covariance": COVARIANCE[:1]}).check()


def test_curves_by_hand() -> None:
    """At x = 3, t = 2: Λ = (.2 + .1) e^.5; ln Λ has the gradient (2/3, 1/3, 1)."""
    found = released().predict_survival({"x": [3.0, 2.0]}, [0.0, 2.0])
    gradient = np.array([2 / 3, 1 / 3, 1.0])
    sd = np.sqrt(gradient @ np.array([*COVARIANCE, OWN]) @ gradient)
    hazard = 0.3 * np.exp(0.5)
    assert found.survival == pytest.approx(np.array([[1, np.exp(-hazard)], [1, np.exp(-0.3)]]))
    assert found.lower[0, 1] == pytest.approx(np.exp(-hazard * np.exp(1.959964 * sd)), rel=1e-6)
    assert found.upper[0, 1] == pytest.approx(np.exp(-hazard * np.exp(-1.959964 * sd)), rel=1e-6)
    at_cuts = released().predict_survival({"x": [2.0]})
    assert at_cuts.survival == pytest.approx(np.exp([[-0.2, -0.4]]))


def test_after_the_fit_the_baseline_stands_for_the_intercept() -> None:
    """A factor has a level without an indicator, the one that others are compared with."""
    covariance = [[0.04, 0.01], [0.01, 0.09]]
    fit = released(
        terms=["C(g)[b]", "C(g)[c]"],
        coefficients=[0.5, -0.3],
        standard_errors=[0.2, 0.3],
        covariance=covariance,
        confidence_intervals=[[0.1, 0.9], [-0.9, 0.3]],
        p_values=[0.01, 0.3],
        privacy_standard_errors=[0.1, 0.1],
        estimable=[True, True],
        directions=[
            {"vector": [0.2, 0.05], "resolved": True},
            {"vector": [0, 0.29], "resolved": True},
        ],
        baseline={
            "hazards": HAZARDS,
            "log_standard_errors": [0.2, 0.3],
            "reference": {"C(g)[b]": 0.0, "C(g)[c]": 0.0},
            "covariance": np.diag([0.04, 0.09, 0.04, 0.09]).tolist(),
        },
    )
    assert fit.predict({"g": ["a", "b", "c"]}) == pytest.approx([0.0, 0.5, -0.3])
    assert fit.contrasts("g", "trt.vs.ctrl").estimates == pytest.approx([0.5, -0.3])
    curves = fit.predict_survival({"g": ["a", "b"]}, [1.0]).survival
    assert curves[:, 0] == pytest.approx(np.exp([-0.2, -0.2 * np.exp(0.5)]))


def test_an_offset_multiplies_the_hazards() -> None:
    """Of each row or of all; the intervals' width in the log hazard is the same."""
    frame = {"x": [2.0, 2.0]}
    curves = released().predict_survival(frame, [1.0], offset=[0.0, np.log(3)])
    assert curves.survival[:, 0] == pytest.approx(np.exp([-0.2, -0.6]))
    assert np.log(curves.lower[1, 0]) == pytest.approx(3 * np.log(curves.lower[0, 0]))
    both = released().predict_survival(frame, [1.0], offset=np.log(3))
    assert both.survival[:, 0] == pytest.approx(np.exp([-0.6, -0.6]))
    for wrong in ([1.0], np.nan, [0.0, np.inf]):
        with pytest.raises(ValueError, match="one for each row"):
            released().predict_survival(frame, [1.0], offset=wrong)


@pytest.mark.parametrize(("field", "cell"), [("offset", np.log(3)), ("exposure", 3.0)])
def test_curves_and_ratios_count_the_column_of_the_offset(field: str, cell: float) -> None:
    fit = released()
    fit.release["query"][field] = "o"
    curves = fit.predict_survival({"x": [2.0], "o": [cell]}, [1.0])
    assert curves.survival[0, 0] == pytest.approx(np.exp(-0.6))
    assert fit.predict({"x": [2.0], "o": [cell]}) == pytest.approx(np.log(3) + 2 * 0.5)
    with pytest.raises(reticent.InvalidFormula, match="lack o"):
        fit.predict_survival({"x": [2.0]}, [1.0])


@pytest.mark.parametrize("times", [[], [-1.0], [3.5], [2.0, 1.0]])
def test_times_that_have_no_curve(times: Any) -> None:
    with pytest.raises(ValueError, match="up to the last of the cuts"):
        released().predict_survival({"x": [2.0]}, times)


def test_plots_and_frames() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    axes = released().plot_survival({"x": [1.0, 3.0]})
    assert len(axes.lines) == 2
    assert axes.lines[1].get_ydata()[-1] == pytest.approx(np.exp(-0.4 * np.exp(0.5)))
    pyplot.close("all")
    assert released().baseline_frame()["hazard"].tolist() == HAZARDS


@pytest.mark.parametrize(
    "wrong",
    [
        {"cuts": [1.0]},
        {
            "baseline": {
                "hazards": HAZARDS,
                "log_standard_errors": [1, 1],
                "reference": {"x": 2},
                "covariance": [[1.0]],
            }
        },
    ],
)
def test_a_release_that_does_not_fit_together_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="one hazard for each interval"):
        released(**wrong).check()


def test_a_forest_plot_has_a_ratio_and_its_interval_on_a_logarithmic_axis() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    axes = released().plot_hazard_ratios()
    interval, ratio, one = axes.lines
    assert interval.get_xdata() == pytest.approx(np.exp([0.2, 0.8]))
    assert ratio.get_xdata() == pytest.approx(np.exp([0.5]))
    assert list(one.get_xdata()) == [1.0, 1.0]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "hazard ratio, 95 % interval")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x"]
    from matplotlib import pyplot as plt

    plt.close(axes.figure)


def test_lifelines_members_of_a_fit_are_the_releases() -> None:
    fitter = CoxPHFitter()
    fitter._model = FittedModel(released())
    frame = fitter.predict_survival_function({"x": [2.0, 3.0]}, [1.0, 3.0])
    assert frame.index.tolist() == [1.0, 3.0]
    assert frame[0].to_numpy() == pytest.approx(np.exp([-0.2, -0.4]))
    assert fitter.hazard_ratios_.tolist() == pytest.approx([np.exp(0.5)])
    pytest.importorskip("matplotlib").use("Agg")
    axes = fitter.plot()
    assert axes.get_xscale() == "log"
    from matplotlib import pyplot as plt

    plt.close(axes.figure)


TEST: dict[str, Any] = {
    "terms": ["x"],
    "trends": [-1.6],
    "standard_errors": [0.64],
    "p_values": [0.0124],
    "statistic": 6.25,
    "df": 1,
    "p_value": 0.0124,
    "bins": [
        {
            "end": end,
            "events": 50.0,
            "terms": ["x"],
            "coefficients": [b],
            "standard_errors": [0.2],
            "privacy_standard_errors": [0.1],
            "confidence_intervals": [[b - 0.4, b + 0.4]],
        }
        for end, b in ((2.0, 0.9), (3.0, 0.1))
    ],
}


def test_a_test_of_proportional_hazards_is_read_shown_and_drawn() -> None:
    fit = released(proportionality=TEST)
    fit.check()
    test = fit.cox_zph()
    assert test.conf_int().shape == (2, 1, 2)
    assert test.begins.tolist() == [0.0, 2.0]
    frame = test.to_frame()
    assert frame["coef"].tolist() == [0.9, 0.1]
    assert frame["upper"].tolist() == [1.3, 0.5]
    text = str(test.summary())
    assert "all terms" in text
    assert "6.25" in text
    assert ".012" in text
    axes = test.plot("x")
    assert axes.get_ylabel() == "coefficient of x, 95 % interval"
    assert len(axes.collections) == 2
    with pytest.raises(ValueError, match="must be one of: x"):
        test.plot("y")
    with pytest.raises(ValueError, match="proportionality=3"):
        released().cox_zph()
    with pytest.raises(ValueError, match="in each bin"):
        released(proportionality=TEST | {"trends": [1.0, 2.0]}).check()


def test_a_term_that_is_not_told_is_not_tested() -> None:
    none = TEST | {
        "p_values": [None],
        "statistic": None,
        "p_value": None,
        "df": 0,
        "bins": [each | {"confidence_intervals": [[None, None]]} for each in TEST["bins"]],
    }
    test = released(proportionality=none).cox_zph()
    assert np.isnan(test.pvalue)
    assert not test.plot().collections
    assert "nan" not in str(test.summary())
