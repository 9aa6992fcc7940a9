# SPDX-License-Identifier: Apache-2.0
"""Structural models and reliability of a study: beside lavaan's figures, and with noise whose law
is known.

tests/fixtures/lavaan.json has what lavaan 0.6-14 makes of three models of HolzingerSwineford1939
(n = 301), and the covariance (over n) that it makes them of: sem(model, data), parameterEstimates,
standardizedSolution, fitMeasures; the second with fixed.x = FALSE.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from reticent import InvalidFormula, NotEstimable
from reticent._study.formula import Columns
from reticent._study.moments import _centred, _of_sums
from reticent._study.path_fit import fitted, jacobian, movement, start, structure
from reticent._study.path_text import path_model
from reticent_server.kinds.study.kind import Study as Question
from support.client.studies import result_of
from support.kinds.studies import read
from support.seeds import seeded

mpl.use("Agg")
LAVAAN = json.loads((Path(__file__).parents[1] / "fixtures/lavaan.json").read_text("utf-8"))
NAMES = tuple(f"x{k}" for k in range(1, 10))
K = np.array(LAVAAN["covariance"])
MODELS = [model["model"] for model in LAVAAN["models"]]


def table_with(covariance: Any, n: int = 301) -> Any:
    """Rows (n, m) that have this covariance (over n) exactly."""
    rows = seeded(4).normal(size=(n, len(covariance)))
    rows -= rows.mean(axis=0)
    white = rows @ np.linalg.inv(np.linalg.cholesky(rows.T @ rows / n)).T
    return 3.0 + white @ np.linalg.cholesky(covariance).T


def study_of(covariance: Any = K, n: int = 301, sd: float = 0.0, seed: int = 0) -> Any:
    table = table_with(covariance, n)
    names = NAMES[: len(covariance)]
    return read(Question(names), result_of(table, sd, seed, names))


@pytest.fixture(scope="module")
def study() -> Any:
    return study_of()


@pytest.mark.parametrize("which", range(3))
def test_estimates_and_indices_are_lavaans(study: Any, which: int) -> None:
    theirs = LAVAAN["models"][which]
    fit = study.sem(theirs["model"])
    rows = dict(
        zip(
            theirs["rows"]["name"],
            zip(theirs["rows"]["est"], theirs["rows"]["std"], strict=True),
            strict=True,
        )
    )
    assert {str(e).strip() for e in fit.estimates} == set(rows)
    for e in fit.estimates:
        np.testing.assert_allclose((e.est, e.std_all), rows[str(e).strip()], atol=2e-5)
    for name, value in theirs["fit"].items():
        assert fit.fit_indices[name] == pytest.approx(value, abs=2e-4), name
    assert fit.fit_indices["noise"] == pytest.approx(1.0)


@pytest.mark.parametrize("which", range(3))
def test_errors_are_lavaans_where_the_model_holds(study: Any, which: int) -> None:
    """lavaan's depend on the fitted covariance alone; ours are the same where it is
    the released one."""
    theirs = LAVAAN["models"][which]
    model = path_model(theirs["model"], Columns(("1", *NAMES)), ("1", *NAMES), std_lv=False)
    S = structure(model)
    order = [NAMES.index(name) for name in model.columns]
    own = K[np.ix_(order, order)]
    sigma = K.copy()
    sigma[np.ix_(order, order)] = S.implied(fitted(S, start(S, model, own), own))
    fit = study_of(sigma).sem(theirs["model"])
    rows = dict(
        zip(
            theirs["rows"]["name"],
            zip(theirs["rows"]["se"], theirs["rows"]["std_se"], strict=True),
            strict=True,
        )
    )
    for e in fit.estimates:
        np.testing.assert_allclose(
            (e.se, e.std_se), rows[str(e).strip()], atol=3e-4, err_msg=str(e)
        )
    assert fit.fit_indices["chisq"] == pytest.approx(0.0, abs=1e-6)


def test_the_fit_moves_as_its_derivative_says() -> None:
    names = ("1", *NAMES)
    model = path_model(MODELS[0], Columns(names), names, std_lv=True)
    S = structure(model)
    theta = fitted(S, start(S, model, K), K)
    E = seeded(1).normal(size=K.shape)
    E = (E + E.T) * 1e-6
    after = fitted(S, theta, K + E)
    np.testing.assert_allclose(
        after - theta, np.tensordot(movement(S, theta, K), E, 2), atol=1e-9, rtol=1e-3
    )
    J = jacobian(lambda t: S.implied(t).ravel(), theta)
    np.testing.assert_allclose(J.T.reshape(-1, 9, 9), S.slopes(theta), atol=1e-12)


def test_a_gradient_in_moments_is_that_of_their_covariance() -> None:
    rng = seeded(2)
    S, G, E = (A @ A.T for A in rng.normal(size=(3, 4, 4)))
    step = 1e-6
    moved = (_centred(S + step * E) - _centred(S - step * E)) / (2 * step)
    G = G[1:, 1:]
    assert np.sum(_of_sums(G, S) * E) == pytest.approx(np.sum(G * moved), rel=1e-6)


def _implied(which: int = 0) -> Any:
    names = ("1", *NAMES)
    model = path_model(MODELS[which], Columns(names), names, std_lv=True)
    S = structure(model)
    return S.implied(fitted(S, start(S, model, K), K))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draws", "off"), [(24, 0.6), pytest.param(200, 0.2, marks=pytest.mark.audit)]
)
def test_errors_and_the_test_of_fit_count_the_noise(draws: int, off: float) -> None:
    """Of data that the model holds exactly: over draws of noise alone, estimates have the privacy
    errors that are said, and what χ² has by noise is what is taken out. `off` is four standard
    errors of a deviation.
    """
    sigma = _implied()
    fits = [study_of(sigma, 20_000, 0.008, seed).sem(MODELS[0]) for seed in range(draws)]
    for name in ("visual =~ x2", "textual ~~ textual", "visual ~~ speed", "x9 ~~ x9"):
        seen, said = [f[name].est for f in fits], [f[name].privacy_se for f in fits]
        assert np.std(seen) / np.mean(said) == pytest.approx(1.0, abs=off), name
    factor = np.mean([f.fit_indices["noise"] for f in fits])
    assert factor > 2
    # T is the noise's share alone, 24(c − 1), so that T′ is about 24(1 − 1/c): exact data have no
    # more.
    seen = np.mean([f.fit_indices["chisq"] for f in fits])
    assert seen == pytest.approx(24 * (1 - 1 / factor), abs=4 * np.sqrt(48 / draws))
    # Exact data have no residuals, but noise's: with the factor c of it these would have 0.03.
    assert np.mean([f.fit_indices["srmr"] for f in fits]) < 0.004
    alpha = [
        study_of(sigma, 20_000, 0.008, s).reliability(["x1", "x2", "x3"]) for s in range(draws)
    ]
    for value, said in (("alpha", "alpha_privacy_bse"), ("omega", "omega_privacy_bse")):
        ratio = np.std([getattr(a, value) for a in alpha]) / np.mean(
            [getattr(a, said) for a in alpha]
        )
        assert ratio == pytest.approx(1.0, abs=off), value


@pytest.mark.parametrize(
    ("items", "alpha", "omega"),
    [("x1 x2 x3", 0.6261171, 0.6325532), ("x4 x5 x6", 0.8827069, 0.8858809),
        ("x7 x8 x9", 0.688455, 0.6961353)],
)  # fmt: skip
def test_reliability_is_the_textbooks(study: Any, items: str, alpha: float, omega: float) -> None:
    """α and the one-factor ω of R's lavaan and psych."""
    found = study.reliability(items.split())
    assert found.alpha == pytest.approx(alpha, abs=1e-6)
    assert found.omega == pytest.approx(omega, abs=1e-6)
    low, high = found.conf_int("omega")
    assert low < omega < high < 1
    assert "alpha" in repr(found)


def test_a_factors_omega_is_semtools(study: Any) -> None:
    found = study.sem(MODELS[0]).reliability()
    expected = {"visual": 0.6253180, "textual": 0.8851754, "speed": 0.6877600}
    assert found == pytest.approx(expected, abs=1e-6)


def test_what_a_fit_shows(study: Any) -> None:
    fit = study.sem("f =~ x1 + a*x2 + x3; x4 ~ b*f; ab := a*b")
    frame = fit.parameter_estimates()
    assert list(frame.columns[:5]) == ["lhs", "op", "rhs", "label", "est"]
    assert fit["ab"].est == pytest.approx(fit["a"].est * fit["x4 ~ f"].est)
    assert fit["ab"].conf_int()[0] < fit["ab"].est
    assert fit.rsquared["x4"] == pytest.approx(fit["x4 ~ f"].std_all ** 2)
    assert len(fit.standardized_solution()) == len(frame)
    assert "RMSEA" in str(fit.summary())
    assert study.sem(MODELS[0]).factor_correlations["visual", "speed"].std_all == pytest.approx(
        0.4705, abs=1e-4
    )
    fit.plot()
    with pytest.raises(KeyError, match="the parameters are"):
        fit["x9 ~ f"]


def test_a_saturated_path_model_is_least_squares(study: Any) -> None:
    fit, line = study.sem("x1 ~ x2 + x3"), study.ols("x1 ~ x2 + x3")
    assert fit["x1 ~ x2"].est == pytest.approx(line.params["x2"])
    assert fit["x1 ~ x2"].se == pytest.approx(line.bse["x2"], rel=1e-3)
    assert fit.fit_indices["df"] == 0


def test_too_much_noise_and_improper_solutions_are_refused() -> None:
    with pytest.raises(NotEstimable, match="larger epsilon"):
        study_of(sd=0.3).sem(MODELS[0])
    heywood = np.full((3, 3), 0.3) + 0.7 * np.eye(3)
    heywood[0, 1] = heywood[1, 0] = heywood[0, 2] = heywood[2, 0] = 0.7
    with pytest.raises(NotEstimable, match="Heywood"):
        study_of(heywood).sem("f =~ x1 + x2 + x3")
    found = study_of(heywood).reliability(["x1", "x2", "x3"])
    assert np.isnan(found.omega)
    assert "below 0" in found.notes[0]


def test_a_model_that_the_columns_leave_open_is_said(study: Any) -> None:
    with pytest.raises(NotEstimable, match="not identified"):
        study.sem("f =~ x1 + x2; g =~ x3 + x4; f ~~ g; f ~ g")
    with pytest.raises(InvalidFormula, match="leave some out"):
        study.sem("f =~ x1 + x2")


JUDGES = (
    np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
    * 1.0
)
"""Four judges of six targets: Shrout & Fleiss (1979), table 2."""


def test_intraclass_correlations_are_shrout_and_fleiss() -> None:
    """To the digits of their table 4, and of R's psych::ICC."""
    names = ("a", "b", "c", "d")
    found = read(Question(names), result_of(JUDGES, names=names)).icc(names)
    expected = {
        "ICC(3,1)": 0.7148407,
        "ICC(2,1)": 0.2897638,
        "ICC(3,k)": 0.9093155,
        "ICC(2,k)": 0.6200505,
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-6)
    assert "ICC(2,1)" in repr(found)


def test_limits_of_agreement_are_bland_and_altmans(study: Any) -> None:
    """The limits' error is s√(1/n + 1.96²/2n) by the normal law (Bland & Altman 1999)."""
    found, table = study.bland_altman("x1", "x3"), table_with(K)
    d = table[:, 0] - table[:, 2]
    s = d.std(ddof=1)
    np.testing.assert_allclose(
        found.values, [d.mean(), d.mean() - 1.96 * s, d.mean() + 1.96 * s], atol=1e-12
    )
    errors = s * np.sqrt([1 / 301, *[1 / 301 + 1.96**2 / 602] * 2])
    np.testing.assert_allclose(found.bse, errors, rtol=5e-3)
    with pytest.raises(InvalidFormula, match="two columns"):
        study.icc(["x1"])


@pytest.mark.slow
def test_agreement_counts_the_noise() -> None:
    """Over 60 draws: an sd is known to 4 of its standard errors, .37."""
    studies = [study_of(K, 20_000, 0.01, seed) for seed in range(60)]
    for of in (lambda s: s.icc(["x1", "x2", "x3"]), lambda s: s.bland_altman("x1", "x2")):
        found = [of(s) for s in studies]
        ratio = np.std([f.values for f in found], axis=0) / np.mean(
            [f.privacy_bse for f in found], axis=0
        )
        assert ratio == pytest.approx(np.ones(len(ratio)), abs=0.37)


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("f =~ x1 + p*x2 + x3; a := " + "-" * 900 + "1", "at most 500 characters"),
        ("f =~ x1 + p*x2 + x3; a := " + "(" * 210 + "p" + ")" * 210, "an expression of labels"),
        ("f =~ x1 + p*x2 + x3; a := " + "p+" * 600 + "p", "at most 500 characters"),
        ("f =~ x1 + p*x2 + x3; a := 1/0*p", "divisions and powers"),
        ("f =~ x1 + p*x2 + x3; a := p*0/(p-p)", "divisions and powers"),
        ("f =~ x1 + p*x2 + x3; a := 10**309/10**308*p", "divisions and powers"),
        ("f =~ x1 + p*x2 + x3; a := p**(0-1e308)", "divisions and powers"),
        ("f =~ x1 + p*x2 + x3; a := p*1" + "0" * 400, "an expression of labels"),
        ("f =~ x1 + p*x2 + x3; a := p*1e999", "of the labels p"),
        ("f =~ x1 + p*x2 + x3; a := p*1j", "an expression of labels"),
        ("f =~ x1 + p*x2 + x3; a := p*True", "of the labels p"),
        ("f =~ x1 + p*x2 + x3; a := p*'q'", "an expression of labels"),
        ("f =~ x1 + x2 + x3; f ~~ -1*f", "numbers that it fixes|no maximum|Heywood|not identified"),
        ("x1 ~ x2; x2 ~~ 0*x2", "numbers that it fixes|not identified"),
        ("x1 ~ 1e300*x2", "a fixed number is 0 or from"),
        ("x1 ~ 1e999*x2", "a fixed number is 0 or from"),
        ("x1 ~ 1e-300*x2", "a fixed number is 0 or from"),
        ("x1 ~ x2 #" + "y" * 10_000, "more than 10000"),
        ("x1 ~ " + "y" * 9_000, "y…"),
        ("x1 ~ " + "*".join(["x2"] * 9), "write a term as"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_a_strangers_text_is_refused_in_a_short_sentence(study: Any, model: str, told: str) -> None:
    with pytest.raises((InvalidFormula, NotEstimable), match=told) as raised:
        study.sem(model)
    assert len(str(raised.value)) < 400


def test_a_product_of_many_factors_is_refused_before_its_terms_are_listed(study: Any) -> None:
    with pytest.raises(InvalidFormula, match="at most 8 factors"):
        study.ols("x1 ~ " + "*".join(["x2"] * 9))
