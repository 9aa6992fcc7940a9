# SPDX-License-Identifier: Apache-2.0
"""Residuals in the client: the question is the fit's, and table, frame and plots say what was
released.
"""

from typing import Any

import matplotlib as mpl
import pytest

import reticent
from reticent.kinds.binned_residuals import as_released, question_of
from support.client.replying_server import Server, release

mpl.use("Agg")
RESULT = {
    "edges": [0.0, 0.2, 1.0],
    "numbers": [100.0, -2.0],
    "fitted": [0.1, 0.6],
    "residuals": [0.05, -0.3],
    "standard_errors": [0.02, 0.5],
    "privacy_standard_errors": [0.01, 0.4],
    "confidence_intervals": [[0.01, 0.09], [-1.0, 0.8]],
    "standard_deviations": [0.3, 0.0],
    "clipped": [[-0.2, 1.0], [-1.0, 0.8]],
    "confidence_level": 0.95,
    "n": 20_000,
}


def fit(query: dict[str, Any], scale: float | None = 2.0, **law: Any) -> reticent.RegressionResults:
    document = release("linear_regression")
    return reticent.RegressionResults(
        document | {"query": query, "result": document["result"] | {"scale": scale} | law}
    )


@pytest.mark.parametrize("field", ["offset", "exposure"])
def test_a_fit_of_rates_is_refused(field: str) -> None:
    """Its fitted counts need the exposure, which the question does not have."""
    rates = fit({"kind": "glm", "formula": "y ~ x", "family": "poisson", field: "z"})
    with pytest.raises(reticent.InvalidQuery, match="exposure"):
        question_of(rates, None)


def test_the_question_is_the_fits() -> None:
    linear = fit({"kind": "linear_regression", "formula": "y ~ x", "where": "z > 1"})
    asked = question_of(linear, [0.0, 1.0])
    assert asked["coefficients"] == linear.params.tolist()
    assert (asked["formula"], asked["where"], asked["bins"]) == ("y ~ x", "z > 1", [0.0, 1.0])
    assert (asked["link"], asked["scale"], asked.get("variance_power")) == ("identity", 2.0, None)
    law = {"family": "gamma", "link": "log", "variance_power": 2.0}
    counts = question_of(fit({"kind": "glm", "formula": "y ~ x", "family": "gamma"}, **law), None)
    assert (counts["link"], counts["variance_power"]) == ("log", 2.0)
    asked = {"kind": "glm", "formula": "y ~ x", "family": "binomial", "link": "probit"}
    yes = question_of(fit(asked, None, family="binomial", link="probit"), None)
    assert (yes["link"], yes["scale"]) == ("probit", None)
    with pytest.raises(reticent.InvalidQuery, match="does not say the link"):
        question_of(fit(asked, None, family="binomial"), None)
    with pytest.raises(reticent.InvalidQuery, match="linear regression or a GLM"):
        question_of(fit({"kind": "quantile_regression", "formula": "y ~ x"}), None)


@pytest.mark.slow
def test_a_fit_is_asked_about(server: Server) -> None:
    query = {"kind": "binned_residuals", "formula": "y ~ x", "coefficients": [1.0, 2.0]}
    ds = server.dataset()
    server.always(201, release("mean") | {"query": query, "result": RESULT})
    found = ds.residuals(fit({"kind": "linear_regression", "formula": "y ~ x"}), epsilon=0.5)
    assert isinstance(found, reticent.BinnedResiduals)
    assert found.observed.tolist() == pytest.approx([0.15, 0.3])
    assert found.nobs == 20_000
    assert found.to_frame().loc[0, "upper"] == 0.09
    assert "[0.025" in found.summary()
    plain = found.plot()
    assert plain.lines[0].get_ydata().tolist() == [0.05, -0.3]
    curve = found.plot(calibration=True)
    assert curve.lines[0].get_ydata().tolist() == pytest.approx([0.15, 0.3])
    assert curve.get_ylabel() == "observed mean"


def test_the_formula_has_the_numbers_and_levels_of_the_released_terms() -> None:
    """A profile that was released since would give center, scale and lump other ones."""
    terms = ["Intercept", "scale(x, at=2500, by=1400)", "center(`a b`, at=3)"]
    terms += ['lump(g, keep=["u (1)", "v"], other="rest")[rest]', "log(z)"]
    formula = "y ~ scale(x) + center(`a b`) + lump(g, n=2) + log(z) + scale(w) + center(v, at=1)"
    assert as_released(formula, terms) == (
        "y ~ scale(x, at=2500, by=1400) + center(`a b`, at=3) + "
        'lump(g, keep=["u (1)", "v"], other="rest") + log(z) + scale(w) + center(v, at=1)'
    )
