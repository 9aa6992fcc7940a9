# SPDX-License-Identifier: Apache-2.0
"""Adjusted effects in the client: what was released, and models that are taken over."""

from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import reticent
from reticent.kinds.treatment_effect import models_of
from support.client.replying_server import Server, problem, release

mpl.use("Agg")

BALANCE = {
    "terms": ["x", "z"],
    "before": [0.5, -0.3],
    "before_standard_errors": [0.05, 0.05],
    "after": [0.01, -0.02],
    "after_standard_errors": [0.08, 0.08],
}
OVERLAP = {
    "edges": [0.0, 0.5, 1.0],
    "treated": [10.0, 40.0],
    "controls": [60.0, -2.0],
    "count_standard_error": 3.0,
}


def effect(**result: Any) -> reticent.TreatmentEffectResults:
    found = {
        "effect": 2.0,
        "standard_error": 0.5,
        "privacy_standard_error": 0.3,
        "models_standard_error": 0.1,
        "allowance": 0.1,
        "confidence_level": 0.95,
        "confidence_interval": [1.02, 2.98],
        "p_value": 0.0001,
        "estimand": "the average effect on the treated",
        "estimator": "aipw",
        "warnings": [],
        "n": 1000,
        "overlap": OVERLAP,
        "balance": BALANCE,
    } | result
    query = {"kind": "treatment_effect", "y": "y", "treatment": "a", "covariates": "x + z"}
    return reticent.TreatmentEffectResults(release("mean") | {"query": query, "result": found})


def test_the_effect_and_its_parts_are_read() -> None:
    found = effect()
    found.check()
    assert (found.effect, found.bse, found.privacy_bse, found.models_bse) == (2.0, 0.5, 0.3, 0.1)
    assert found.conf_int() == (1.02, 2.98)
    low, high = found.conf_int(0.1)
    assert (high - low) == pytest.approx(2 * 1.6449 * 0.5, rel=1e-4)
    assert found.to_frame().loc["a", "effect"] == 2.0
    text = str(found.summary())
    assert "average effect on the treated" in text
    assert "0.5" in text


def test_balance_and_overlap_are_frames_and_figures() -> None:
    found = effect()
    assert found.balance().loc["z", "before"] == -0.3
    assert [t.get_text() for t in found.love_plot().get_yticklabels()] == ["x", "z"]
    assert found.overlap_plot().get_xlabel() == "propensity"
    assert found.plot().get_xlabel().startswith("effect on y")


def test_without_an_interval_the_reasons_are_in_the_summary() -> None:
    found = effect(
        confidence_interval=[None, None], p_value=None, warnings=["Overlap is poor: ask."],
        overlap=None, balance=None,
    )  # fmt: skip
    assert np.isnan(found.conf_int()).all()
    assert np.isnan(found.conf_int(0.1)).all()
    assert np.isnan(found.pvalue)
    assert "Overlap is poor" in str(found.summary())
    with pytest.raises(ValueError, match="balance"):
        found.love_plot()
    with pytest.raises(ValueError, match="propensities"):
        found.overlap_plot()


def fit(formula: str, terms: list[str], link: str | None, **more: Any) -> Any:
    """A released regression of unit covariance."""
    p = len(terms)
    result = {
        "terms": terms,
        "coefficients": [float(i + 1) for i in range(p)],
        "standard_errors": [1.0] * p,
        "covariance": np.eye(p).tolist(),
        "privacy_standard_errors": [0.5] * p,
        "confidence_level": 0.95,
        "confidence_intervals": [[0.0, 1.0]] * p,
        "p_values": [0.5] * p,
        "estimable": [True] * p,
        "directions": [],
        "weighting": {"matrix": [], "radius_squared": 1.0},
        "scale": 1.0,
        "tuning": None,
        "steps": 3,
        "shares": {},
        "estimand": "",
        "n": 100,
        "warnings": [],
    } | ({} if link is None else {"link": link, "family": "binomial"})
    kind = "linear_regression" if link is None else "glm"
    family = {} if link is None else {"family": "binomial"}
    query = {"kind": kind, "formula": formula, **family} | more
    return reticent.RegressionResults(release("mean") | {"query": query, "result": result})


def test_released_models_give_their_coefficients_and_errors() -> None:
    logit = fit("a ~ x + z", ["Intercept", "x", "z"], "logit")
    line = fit("y ~ z + a + x", ["Intercept", "z", "a", "x"], None)
    fields = models_of("a", logit, line)
    assert fields["covariates"] == "x + z"
    assert fields["propensity"] == [1.0, 2.0, 3.0]
    assert fields["propensity_noise"][0][0] == 0.25  # the noise's part of the error, squared
    assert fields["outcome"] == [1.0, 3.0, 4.0, 2.0]  # intercept, a, x, z
    assert fields["outcome_link"] == "identity"
    assert models_of("a", None, line)["covariates"] == "z + x"


def test_models_of_something_else_are_refused() -> None:
    logit = fit("a ~ x + z", ["Intercept", "x", "z"], "logit")
    with pytest.raises(reticent.InvalidQuery, match="logit of the treatment"):
        models_of("b", logit, None)
    with pytest.raises(reticent.InvalidQuery, match="treatment as a term"):
        models_of("a", logit, fit("y ~ x + z", ["Intercept", "x", "z"], None))
    with pytest.raises(reticent.InvalidQuery, match="covariates of the propensity"):
        models_of("a", logit, fit("y ~ a + x", ["Intercept", "a", "x"], None))


def test_an_effect_needs_covariates_or_a_model_of_them() -> None:
    assert models_of("a", None, None, "x") == {}
    with pytest.raises(reticent.InvalidQuery, match="name covariates, or give a released model"):
        models_of("a", None, None)


@pytest.mark.parametrize("covariates", ["x + C(g)", ["x", "C(g)"], ("x", "C(g)")])
def test_covariates_are_a_text_or_a_list_of_terms(covariates: Any) -> None:
    server = Server()
    dataset = server.dataset()
    server.answer = lambda _: problem(422, "invalid_query")
    with pytest.raises(reticent.InvalidQuery):
        dataset.ate("price", "a", covariates, epsilon=1.0)
    assert server.body()["query"]["covariates"] == "x + C(g)"
