# SPDX-License-Identifier: Apache-2.0
"""Results of multinomial and ordinal logits from a release by hand: probabilities and their
intervals, odds ratios, refusals.
"""

from typing import Any

import numpy as np
import pytest

from reticent.kinds import class_of
from reticent.kinds.category_regression import CategoryResults

LEVELS = ["low", "middle", "high"]
TERMS = {
    "multinomial": ["middle: Intercept", "middle: x", "high: Intercept", "high: x"],
    "ordinal": ["x", "low|middle", "middle|high"],
}
COEFFICIENTS = {"multinomial": [0.2, 0.5, -0.4, -1.0], "ordinal": [0.8, -0.5, 1.2]}


def released(family: str, **more: Any) -> Any:
    D = len(TERMS[family])
    covariance = 0.02 * np.eye(D) + 0.005
    se = float(np.sqrt(0.025))
    result = {
        "terms": TERMS[family],
        "coefficients": COEFFICIENTS[family],
        "standard_errors": [se] * D,
        "covariance": covariance.tolist(),
        "confidence_level": 0.95,
        "confidence_intervals": [[b - 1.96 * se, b + 1.96 * se] for b in COEFFICIENTS[family]],
        "p_values": [0.01] * D,
        "privacy_standard_errors": [0.1] * D,
        "estimable": [True] * D,
        "directions": [{"vector": row, "resolved": True} for row in np.eye(D).tolist()],
        "scale": None,
        "tuning": None,
        "estimand": "maximum likelihood",
        "n": 1000,
        "warnings": [],
        "family": family,
        "response": "g",
        "levels": LEVELS,
    }
    query = {"kind": "glm", "formula": "g ~ x", "family": family}
    document = {
        "id": "1",
        "dataset": "people",
        "version": 1,
        "status": "reply",
        "query": query,
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
    assert class_of(query) is CategoryResults
    return CategoryResults(document)


def by_hand(family: str, b: Any, x: float) -> Any:
    """(3,) probabilities."""
    if family == "multinomial":
        odds = np.exp([0.0, b[0] + b[1] * x, b[2] + b[3] * x])
        return odds / odds.sum()
    below = 1 / (1 + np.exp(-(np.array(b[1:]) - b[0] * x)))
    return np.diff([0.0, *below, 1.0])


@pytest.mark.parametrize("family", TERMS)
def test_probabilities_and_their_errors_are_those_of_the_delta_method(family: str) -> None:
    fit, h = released(family), 1e-6
    fit.check()
    found = fit.predict_levels({"x": [0.0, 1.5]})
    b = np.array(COEFFICIENTS[family])
    covariance = 0.02 * np.eye(len(b)) + 0.005
    for row, x in enumerate((0.0, 1.5)):
        p = by_hand(family, b, x)
        assert found.probability[row] == pytest.approx(p, abs=1e-12)
        steps = h * np.eye(len(b))
        G = np.array(
            [(by_hand(family, b + s, x) - by_hand(family, b - s, x)) / (2 * h) for s in steps]
        )
        se = np.sqrt(np.diag(G.T @ covariance @ G))
        assert found.std_err[row] == pytest.approx(se, rel=1e-6)
        half = 1.959964 * se / (p * (1 - p))
        ends = np.log(p / (1 - p)) + np.array([[-1.0], [1.0]]) * half
        both = np.array([found.lower[row], found.upper[row]])
        assert both == pytest.approx(1 / (1 + np.exp(-ends)), rel=1e-5)
    assert found.to_frame().shape == (6, 6)
    assert fit.predict({"x": [0.0]}) == pytest.approx(found.probability[:1])
    assert fit.predict({"x": [0.0]}).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("family", TERMS)
def test_ratios_tests_and_the_summary_leave_intercepts_and_thresholds_out(family: str) -> None:
    fit = released(family)
    slopes = [name for name in TERMS[family] if name.endswith("x")]
    assert list(fit.odds_ratios()) == slopes == list(fit.slopes)
    assert fit.odds_ratios()[slopes[0]][0] == pytest.approx(np.exp(fit.params[slopes[0]]))
    assert fit.f_test().df == len(slopes)
    assert fit.wald_test(f"{slopes[0]} = 0").df == 1
    assert f"Family: {family}" in str(fit.summary())
    assert "Scale" not in str(fit.summary())  # the model has none
    assert fit.response == "g"


@pytest.mark.parametrize("family", TERMS)
def test_what_rests_on_a_direction_in_the_noise_has_no_prediction(family: str) -> None:
    D = len(TERMS[family])
    lost = [{"vector": row, "resolved": i > 0} for i, row in enumerate(np.eye(D).tolist())]
    fit = released(family, directions=lost)
    found = fit.predict_levels({"x": [1.0, np.nan]})
    assert np.isnan(found.probability).all()
    assert np.isnan(found.upper).all()


def test_what_is_about_one_mean_is_refused_with_what_to_do() -> None:
    fit = released("ordinal")
    for asked in (
        lambda: fit.margins({"x": [1.0]}),
        lambda: fit.get_prediction({"x": [1.0]}),
        lambda: fit.marginal_means("f"),
        lambda: fit.contrasts("f"),
    ):
        with pytest.raises(ValueError, match="predict_levels"):
            asked()


@pytest.mark.parametrize(
    "more", [{"levels": ["a"]}, {"response": ""}, {"levels": ["a", "b", "c", "d"]}]
)
def test_a_release_that_does_not_fit_its_levels_is_no_release(more: Any) -> None:
    with pytest.raises(ValueError, match="levels"):
        released("multinomial", **more).check()
