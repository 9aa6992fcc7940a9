# SPDX-License-Identifier: Apache-2.0
"""Calls as scripts for statsmodels, pyfixest, linearmodels and lifelines have them: what is asked
of the server, the members that people read, and what cannot be answered says what to write.
"""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import reticent
import reticent.statsmodels.formula.api as smf
from reticent import NotPrivate
from reticent._shapes.refusals import INSTEAD
from reticent.lifelines import AalenJohansenFitter, CoxPHFitter, KaplanMeierFitter
from reticent.linearmodels import IV2SLS, PanelOLS
from reticent.pyfixest import feols, fepois
from support.client.replying_server import DATASET, TERMS, Server, release

families = sm.families
Call = Callable[[reticent.Dataset], Any]
LS = {"kind": "linear_regression", "loss": "squared"}
R2 = {"fit_statistics": True}
MLE = {"kind": "glm", "target": "likelihood"}
LOGIT = MLE | {"family": "binomial", "link": "logit"}

CALLS: list[tuple[Call, dict[str, Any]]] = [
    (lambda d: smf.ols("price ~ grade", data=d).fit(), LS | R2 | {"formula": "price ~ grade"}),
    (
        lambda d: smf.ols(("np.log(price) ~ C(zone, Treatment(reference='b')) + "
            "I(grade**2)"), d).fit(cov_type="HC1"),
        LS | R2 | {"formula": "np.log(price) ~ C(zone, Treatment(reference='b')) + I(grade**2)"},
    ),
    (
        lambda d: smf.ols("price ~ grade - 1", d, subset="new == 1").fit(disp=0, maxiter=100),
        LS | {"formula": "price ~ grade - 1", "where": "new == 1"},
    ),
    (lambda d: smf.ols("price ~ 0 + grade", data=d).fit(), LS | {"formula": "price ~ 0 + grade"}),
    (lambda d: smf.ols("price ~ I(grade - 1) + bs(x, df=4)", data=d).fit(),
        LS | R2 | {"formula": "price ~ I(grade - 1) + bs(x, df=4)"}),
    (lambda d: smf.wls("price ~ grade", d, weights="w").fit(),
        LS | {"formula": "price ~ grade", "weights": "w"}),
    (lambda d: smf.rlm("price ~ grade", d).fit(),
        {"kind": "linear_regression", "formula": "price ~ grade"}),
    (
        lambda d: smf.rlm("price ~ grade", d, M=sm.robust.norms.TukeyBiweight()).fit(),
        {"kind": "linear_regression", "loss": "tukey", "formula": "price ~ grade"},
    ),
    (lambda d: smf.gee("price ~ grade", "zone", d).fit(), LS | {"formula": "price ~ grade"}),
    (
        lambda d: smf.gee("new ~ grade", "zone", d, cov_struct=sm.cov_struct.Independence(),
            family=families.Binomial()).fit(),
        LOGIT | {"formula": "new ~ grade"},
    ),
    (lambda d: smf.logit("new ~ grade", data=d).fit(disp=0), LOGIT | {"formula": "new ~ grade"}),
    (lambda d: smf.probit("new ~ grade", data=d).fit(method="newton"),
        LOGIT | {"link": "probit", "formula": "new ~ grade"}),
    (
        lambda d: smf.poisson("grade ~ new", d, exposure="years").fit(),
        MLE | {"family": "poisson", "exposure": "years", "formula": "grade ~ new"},
    ),
    (lambda d: smf.glm("new ~ grade", d, family=families.Binomial()).fit(),
        LOGIT | {"formula": "new ~ grade"}),
    (
        lambda d: smf.glm("new ~ grade", d,
            family=families.Binomial(link=families.links.CLogLog())).fit(),
        LOGIT | {"link": "cloglog", "formula": "new ~ grade"},
    ),
    (
        lambda d: smf.glm("price ~ grade", d,
            family=families.Gamma(link=families.links.Log())).fit(),
        MLE | {"family": "gamma", "formula": "price ~ grade"},
    ),
    (
        lambda d: smf.glm("grade ~ new", d, family=families.NegativeBinomial(alpha=0.5),
            offset="o").fit(),
        MLE | {"family": "negative_binomial", "dispersion": 0.5, "offset": "o",
            "formula": "grade ~ new"},
    ),
    (lambda d: smf.glm("price ~ grade", d).fit(), LS | R2 | {"formula": "price ~ grade"}),
    (
        lambda d: smf.negativebinomial("grade ~ new", d).fit(),
        {"kind": "glm", "family": "negative_binomial", "formula": "grade ~ new"},
    ),
    (
        lambda d: smf.quantreg("price ~ grade", d).fit(q=0.9),
        {"kind": "quantile_regression", "tau": 0.9, "formula": "price ~ grade"},
    ),
    (
        lambda d: smf.phreg("days ~ grade", d, status="sold").fit(),
        {"kind": "hazard_regression", "formula": "Surv(days, sold) ~ grade"},
    ),
    (lambda d: feols("price ~ grade", d, vcov="hetero"), LS | R2 | {"formula": "price ~ grade"}),
    (
        lambda d: feols("price ~ grade | person + zone", d, vcov={"CRV1": "person"}),
        LS | {"formula": "price ~ grade + C(zone)", "effects": "person"},
    ),
    (lambda d: fepois("grade ~ new | zone", d),
        MLE | {"family": "poisson", "formula": "grade ~ new + C(zone)"}),
    (
        lambda d: PanelOLS.from_formula("price ~ grade + EntityEffects",
            data=d).fit(cov_type="clustered", cluster_entity=True),
        LS | {"formula": "price ~ grade", "effects": "person"},
    ),
    (
        lambda d: CoxPHFitter().fit(d, duration_col="days", event_col="sold", formula="grade + "
        "C(zone)"),
        {"kind": "hazard_regression", "formula": "Surv(days, sold) ~ grade + C(zone)"},
    ),
    (
        lambda d: KaplanMeierFitter().fit("days", "sold", d, cuts=[30.0, 90.0]),
        {"kind": "survival_curve", "time": "days", "event": "sold", "cuts": [30.0, 90.0]},
    ),
    (
        lambda d: AalenJohansenFitter().fit("days", "zone", "a", d, censored="c"),
        {"kind": "cumulative_incidence", "time": "days", "event": "zone", "censored": "c"},
    ),
]  # fmt: skip

REFUSED: list[tuple[Call, str]] = [
    (lambda d: smf.ols("price ~ np.maximum(grade, 3)", d), "no function of a private formula"),
    (lambda d: smf.ols("price ~ grade", d, subset=np.array([True])), "subset is a condition"),
    (lambda d: smf.wls("price ~ grade", d, weights=np.ones(3)), "the name of a column"),  # type: ignore[arg-type]
    (lambda d: smf.ols("price ~ grade", d).fit(cov_type="HAC", cov_kwds={"maxlags": 3}), "robust"),
    (lambda d: smf.ols("price ~ grade", d).fit_regularized(), "lasso"),
    (lambda d: smf.rlm("price ~ grade", d, M=sm.robust.norms.AndrewWave()), "HuberT"),
    (lambda d: smf.mnlogit("zone ~ grade", d), "multinomial"),
    (lambda d: smf.mixedlm("price ~ grade", d, groups="zone"), "mixedlm"),
    (lambda d: smf.gee("price ~ grade", np.ones(3), d), "person's column"),
    (
        lambda d: smf.gee("price ~ grade", "zone", d, cov_struct=sm.cov_struct.Exchangeable()),
        "working_correlation",
    ),
    (lambda d: smf.phreg("days ~ grade", d, status=np.ones(3)), "column of events"),  # type: ignore[arg-type]
    (lambda d: smf.glm("price ~ grade", d, family=families.Gamma()), "Log"),
    (lambda d: smf.glm("price ~ grade", d, family=families.Tweedie()), "families are"),
    (lambda d: feols("price ~ 1 | zone | grade ~ new", d), "study"),
    (lambda d: feols("price ~ csw(grade, new)", d), "one by one"),
    (lambda d: feols("price ~ grade", d, vcov={"CRV1": "zone"}), "leave vcov out"),
    (lambda d: fepois("grade ~ new | person", d), "Person effects"),
    (lambda d: PanelOLS.from_formula("price ~ grade + TimeEffects", d), "C(year)"),
    (lambda d: PanelOLS(None, None), "from_formula"),
    (lambda d: IV2SLS.from_formula("price ~ [grade ~ new]", d), "study"),
    (lambda d: CoxPHFitter().fit(d, "days"), "event_col"),
    (lambda d: CoxPHFitter().params_, "Call fit"),
    (lambda d: KaplanMeierFitter().fit("days", "sold", d, by="zone"), "one curve"),
    (lambda d: KaplanMeierFitter().median_survival_time_, "Call fit"),
    (lambda d: AalenJohansenFitter().plot(), "Call fit"),
]  # fmt: skip


@pytest.fixture
def ds(server: Server) -> reticent.Dataset:
    """Of persons, with what a call spends."""
    document = copy.deepcopy(DATASET) | {"unit": {"column": "person", "max_rows": 4}}
    server.always(200, document)
    return server.client().dataset("houses").budgeted(0.5)


@pytest.fixture
def fit(server: Server, ds: reticent.Dataset) -> Any:
    server.always(201, release())
    return smf.ols("y ~ x1*x2 + g", data=ds).fit()


@pytest.mark.parametrize(("call", "query"), CALLS)
def test_a_script_s_call_asks_what_it_says(
    server: Server, ds: reticent.Dataset, call: Call, query: dict[str, Any]
) -> None:
    server.always(422, {"code": "invalid_query", "title": "refused", "detail": "As far as asked."})
    with pytest.raises(reticent.InvalidQuery, match="As far as asked"):
        call(ds)
    body = server.body()
    assert body["query"] == query
    assert body["privacy"] == {"epsilon": 0.5}


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_cannot_be_asked_says_what_to_write(
    server: Server, ds: reticent.Dataset, call: Call, said: str
) -> None:
    asked = len(server.requests)
    with pytest.raises(NotPrivate) as refused:
        call(ds)
    assert said in str(refused.value)
    assert len(server.requests) == asked, "nothing was asked, and nothing charged"


def test_a_data_frame_is_statsmodels_own(server: Server) -> None:
    with pytest.raises(reticent.InvalidQuery, match="import"):
        smf.ols("price ~ grade", data=pd.DataFrame({"price": [1.0]}))


def test_the_members_that_people_read(fit: Any) -> None:
    own = fit.fit
    assert isinstance(fit.params, pd.Series)
    assert list(fit.params.index) == [name.replace("[", "[T.") for name in TERMS]
    np.testing.assert_array_equal(fit.params.to_numpy(), np.asarray(own.params))
    assert fit.params["x1"] == own.params["x1"]
    assert fit.bse["x1"] == own.bse["x1"]
    assert np.exp(fit.params)["x1"] == pytest.approx(np.exp(own.params["x1"]))
    assert fit.tvalues["x1"] == own.tvalues["x1"]
    assert fit.pvalues["x2"] == own.pvalues["x2"]
    assert fit.conf_int().loc["x1"].tolist() == own.conf_int()[list(own.names).index("x1")].tolist()
    assert fit.conf_int(alpha=0.1, cols=[1]).shape == (1, 2)
    assert fit.cov_params().loc["x1", "x2"] == own.cov_params()[1, 2]
    assert fit.nobs == 20_000
    assert fit.df_model == len(TERMS) - 1
    assert fit.df_resid == fit.nobs - len(TERMS)
    assert fit.t_test("x1 = 0").pvalue == own.wald_test("x1 = 0").pvalue
    assert fit.wald_test(["x1 = 0", "x2 = 0"]).df == 2
    assert str(fit.summary()) == str(fit.summary2()) == repr(fit) == str(own.summary())
    with pytest.raises(NotPrivate, match="matrices"):
        fit.f_test(np.eye(2))


def test_predictions_are_of_public_frames(fit: Any) -> None:
    frame = pd.DataFrame({"x1": [0.0, 1.0], "x2": [0.0, 0.0], "g": ["a", "a"]}, index=[7, 8])
    with pytest.raises(NotPrivate, match="public values"):
        fit.predict()
    values = fit.predict(frame)
    assert list(values.index) == [7, 8]
    np.testing.assert_array_equal(values.to_numpy(), fit.fit.predict(frame))
    assert fit.get_prediction(frame).summary_frame(alpha=0.1).shape[0] == 2


@pytest.mark.parametrize("name", INSTEAD)
def test_members_of_single_records_say_what_to_write(fit: Any, name: str) -> None:
    with pytest.raises(NotPrivate, match=name):
        getattr(fit, name)
    assert not hasattr(fit, name)


def test_an_unknown_member_is_a_plain_error(fit: Any) -> None:
    with pytest.raises(AttributeError, match="wobble"):
        _ = fit.wobble


def test_a_plain_fit_lacks_r_squared_in_words(fit: Any) -> None:
    with pytest.raises(reticent.NotFound, match="fit_statistics"):
        _ = fit.rsquared


def test_fixed_effects_have_pyfixest_s_methods(
    server: Server, ds: reticent.Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    server.always(201, release())
    fit = feols("y ~ x1*x2 + g", ds, epsilon=2.0)
    assert server.body()["privacy"] == {"epsilon": 2.0}
    assert fit.coef()["x1"] == fit.model.fit.params["x1"]
    assert fit.tidy()["Std. Error"]["x1"] == fit.se()["x1"]
    assert list(fit.tidy().columns[:4]) == ["Estimate", "Std. Error", "t value", "Pr(>|t|)"]
    fit.summary()
    assert "Linear regression on houses" in capsys.readouterr().out


def test_what_a_call_spends_comes_before_what_is_usual(server: Server) -> None:
    ds = server.dataset()
    with pytest.raises(reticent.InvalidPrivacy, match="Give epsilon"):
        smf.ols("price ~ grade", data=ds).fit()
    with pytest.raises(reticent.InvalidPrivacy):
        ds.budgeted()
    usual = ds.budgeted(0.25, delta=1e-7)
    server.always(201, release("mean"))
    usual.mean("price")
    assert server.body()["privacy"] == {"epsilon": 0.25, "delta": 1e-7}
    usual.mean("price", epsilon=0.5)
    assert server.body()["privacy"] == {"epsilon": 0.5}
    assert replace(usual) == usual
    assert usual.ols.__self__ is usual


def test_a_budgeted_width_is_planned_before_it_is_spent(server: Server) -> None:
    ds = server.dataset().budgeted(ci_ratio=1.25)
    server.always(500, {})
    with pytest.raises(reticent.ReticentError):
        smf.ols("price ~ grade", data=ds).fit()
    assert server.requests[-1].url.path.endswith("/v1/plans")
    assert server.body()["wanted"] == {"ci_ratio": 1.25}
