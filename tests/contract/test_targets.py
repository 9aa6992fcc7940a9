# SPDX-License-Identifier: Apache-2.0
"""Which question a reply answers: its first line, the names that ask for it, and the forecast of
the other target.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from scipy.special import expit

import reticent
from reticent_server.kinds import KINDS
from reticent_server.kinds.base import QuestionGroup
from reticent_server.kinds.shared import answers
from reticent_server.pipeline.services import Services
from reticent_server.workbench.controls import controls
from reticent_server.workbench.exports import EXPORTS, formats
from support.attacks.seeded_noise import seed_noise
from support.installations.small import Api, Installation, request_body, without_reader
from support.kinds.examples import QUERIES

OLS = {"kind": "linear_regression", "formula": "y ~ x + b", "loss": "squared"}
RLM = {"kind": "linear_regression", "formula": "y ~ x + b"}
MLE = {"kind": "glm", "formula": "b ~ x", "family": "binomial", "target": "likelihood"}
NAMES = {
    "ols": ("y ~ x", {}, answers.LEAST_SQUARES),
    "rlm": ("y ~ x", {}, answers.ROBUST),
    "logit": ("b ~ x", {}, answers.MAXIMUM_LIKELIHOOD),
    "probit": ("b ~ x", {}, answers.MAXIMUM_LIKELIHOOD),
    "poisson": ("k ~ x", {}, answers.MAXIMUM_LIKELIHOOD),
    "gamma": ("exp(x) ~ b", {}, answers.MAXIMUM_LIKELIHOOD),
    "negbin": ("k ~ x", {"dispersion": 0.5}, answers.MAXIMUM_LIKELIHOOD),
}
MODELS = {
    kind.name
    for kind in KINDS
    if kind.group in {QuestionGroup.MODEL, QuestionGroup.POLICY}
    and kind.name not in {"binned_residuals", "correlation"}
} | {"hazard_regression"}
"""Kinds whose numbers are of a model that others fit in another way."""


@pytest.fixture
def planner(services: Services, installation: Installation) -> Api:
    return Api(without_reader(services), installation.keys["ana"])


@pytest.fixture
def ds(services: Services, installation: Installation) -> Iterator[reticent.Dataset]:
    """The real client on the application, without a socket."""
    api = Api(services, installation.keys["ana"])

    def passed_on(request: httpx.Request) -> httpx.Response:
        names = ("idempotency-key", "content-type")
        headers = {name: request.headers[name] for name in names if name in request.headers}
        path = request.url.raw_path.decode()
        reply = api.send(request.method, path, content=request.content, headers=headers)
        return httpx.Response(reply.status_code, content=reply.content)

    transport = httpx.MockTransport(passed_on)
    with reticent.Client("http://reticent", key="k", transport=transport) as client:
        yield client.dataset("people")


def planned(api: Api, query: dict[str, Any], epsilon: float = 8.0) -> Any:
    reply = api.post("/v1/plans", request_body(query, epsilon=epsilon))
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.sample(32)
@pytest.mark.parametrize("name", QUERIES)
def test_every_model_says_which_question_it_answers(planner: Api, name: str) -> None:
    """A kind of model that is added cannot leave the line out."""
    said = planned(planner, QUERIES[name])["answers"]
    assert bool(said) or QUERIES[name]["kind"] not in MODELS


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("query", "said"),
    [
        (OLS, answers.LEAST_SQUARES),
        (RLM, answers.ROBUST),
        (RLM | {"loss": "tukey"}, answers.BIWEIGHT),
        (OLS | {"by": "g"}, answers.LEAST_SQUARES),
        (OLS | {"tuning": 6}, answers.cut_least_squares(6)),
        (RLM | {"ridge": 2.0},
            "Robust (Huber–Mallows), with a ridge penalty; least squares may differ"),
        (MLE, answers.MAXIMUM_LIKELIHOOD),
        (MLE | {"target": "robust"}, answers.ROBUST_LIKELIHOOD),
        ({"kind": "hypothesis_test", "formula": "y ~ x"}, answers.ROBUST),
        ({"kind": "mean", "column": "y"}, ""),
    ],
)  # fmt: skip
def test_the_line_is_of_the_target(planner: Api, query: dict[str, Any], said: str) -> None:
    assert planned(planner, query)["answers"] == said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "said"),
    [
        (OLS, "scores cut as a whole"),
        (MLE, "scores cut as a whole"),
        (RLM, "Huber-Mallows"),
        (MLE | {"target": "robust"}, "robust quasi-likelihood"),
    ],
)
def test_the_mechanism_does_not_name_the_other_target(
    planner: Api, query: dict[str, Any], said: str
) -> None:
    mechanism = planned(planner, query)["guarantee"]["mechanism"]
    assert mechanism == f"noisy Newton ({said}), discrete Gaussian sums"


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("query", [OLS, RLM, MLE])
def test_a_plan_forecasts_the_other_target_as_that_target_s_own_plan_does(
    planner: Api, query: dict[str, Any]
) -> None:
    plan = planned(planner, query)
    other = plan["other_target"]
    its = planned(planner, other["query"])
    assert (other["answers"], other["precision"]) == (its["answers"], its["precision"])
    assert its["other_target"]["precision"] == plan["precision"] != other["precision"]
    assert its["other_target"]["answers"] == plan["answers"] != its["answers"]


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "mean", "column": "y"},
        RLM | {"mechanism": "gradient_descent"},
        MLE | {"target": "robust", "by": "g"},  # which maximum likelihood does not have
        {"kind": "glm", "formula": "g ~ x", "family": "multinomial"},
    ],
)
def test_what_has_one_target_forecasts_one(planner: Api, query: dict[str, Any]) -> None:
    assert planned(planner, query)["other_target"] is None


@pytest.mark.slow
def test_names_ask_for_the_target_that_they_name(
    ds: reticent.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, "names and targets")
    for name in ("ols", "logit"):
        formula, more, said = NAMES[name]
        fit = getattr(ds, name)(formula, epsilon=0.5, **more)
        assert fit.answers == said
        assert str(fit.summary()).splitlines()[0] == f"{said}."


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", NAMES)
def test_plans_know_the_names_too(ds: reticent.Dataset, name: str) -> None:
    formula, more, said = NAMES[name]
    plan = ds.plan(getattr(ds, name), formula, epsilon=0.5, **more)
    assert plan.answers == said
    assert plan.query["kind"] == ("linear_regression" if name in {"ols", "rlm"} else "glm")
    assert str(plan.query) == str(ds.plan(name, formula, epsilon=0.5, **more).query)


@pytest.mark.slow
def test_both_forecasts_stand_in_a_plan(ds: reticent.Dataset) -> None:
    plan = ds.plan("ols", "y ~ x", epsilon=8.0)
    assert list(plan.targets) == [answers.LEAST_SQUARES, answers.ROBUST]
    assert plan.targets[answers.LEAST_SQUARES] == max(
        ratio or 0.0 for ratio in plan.ci_ratio.values()
    )
    words = " ".join(repr(plan).split())
    wide = plan.targets[answers.ROBUST]
    assert f"robust (Huber–Mallows): intervals up to {wide:.2g} times as wide as without" in words


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["ols", "rlm", "ols with statistics"])
def test_ci_ratio_works_with_each_target(ds: reticent.Dataset, name: str) -> None:
    more = {"fit_statistics": True} if "statistics" in name else {}
    plan = ds.plan(name[:3], "y ~ x", ci_ratio=1.1, **more)
    assert max(ratio or 0.0 for ratio in plan.ci_ratio.values()) == pytest.approx(1.1, rel=0.01)
    assert plan.query.get("loss", "huber") == ("huber" if name == "rlm" else "squared")


@pytest.mark.slow
def test_the_first_line_of_a_page_and_of_each_file(
    ds: reticent.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, "first lines")
    document = json.loads(json.dumps(ds.rlm("y ~ x", epsilon=2.0).release))
    for name in formats():
        text = EXPORTS[name].write(document, "http://server").decode("utf-8", "replace")
        if name in {"markdown", "html", "latex", "csv"}:
            said = next(i for i, part in enumerate(text.splitlines()) if "may differ" in part)
            first = text.splitlines()[: said + 1]
            assert said <= 2, name
            assert "Robust (Huber" in " ".join(first)
            assert "y ~ x" not in text[: text.index("may differ")].replace("\\", "")


def test_a_form_asks_for_the_target_before_anything_else() -> None:
    for kind in KINDS:
        named = [control.name for control in controls(kind)] if kind.for_analysts else []
        for name in {"loss", "target"}.intersection(named):
            assert named[0] == name, kind.name
            shown = dict(controls(kind)[0].options)
            assert not set(shown) & set(shown.values()), "a word of the interface is no plain word"


def effect(effects: Any) -> float:
    return float(effects.estimates[effects.names.index("x")])


@pytest.mark.slow
def test_what_follows_from_a_fit_is_of_its_target(
    ds: reticent.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Predictions, margins, tests, F and R² are computed from what least squares or maximum
    likelihood released.
    """
    seed_noise(monkeypatch, "what follows")
    frame = {"x": [-0.5, 0.0, 0.75]}
    ols = ds.ols("y ~ x", epsilon=20.0, fit_statistics=True)
    assert ols.answers == answers.LEAST_SQUARES
    line = ols.params["Intercept"] + ols.params["x"] * np.array(frame["x"])
    np.testing.assert_allclose(ols.predict(frame), line)
    assert effect(ols.margins()) == pytest.approx(ols.params["x"])
    assert ols.f_test().statistic == pytest.approx((ols.params["x"] / ols.bse["x"]) ** 2)
    assert ols.wald_test("x = 0").pvalue < 1e-6
    assert 0 < ols.rsquared < 1
    # 400 records identify no slope of a yes or no: the release is read as if they did
    hidden = ds.logit("b ~ x", epsilon=20.0).release
    sure = {"estimable": [True, True], "directions": None, "covariance": [[0.01, 0.0], [0.0, 0.04]]}
    logit = reticent.RegressionResults({**hidden, "result": {**hidden["result"], **sure}})
    eta = logit.params["Intercept"] + logit.params["x"] * np.array(frame["x"])
    np.testing.assert_allclose(logit.predict(frame), expit(eta))
    slope = np.mean(expit(eta) * (1 - expit(eta))) * logit.params["x"]
    assert effect(logit.margins(frame)) == pytest.approx(slope)
    assert logit.wald_test("x = 0").df == 1


@pytest.mark.slow
def test_weights_and_groups_follow_or_say_what_they_are(
    ds: reticent.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, "weights and groups")
    weighted = ds.ols("y ~ x", weights="k", epsilon=2.0)
    assert weighted.answers == answers.LEAST_SQUARES
    groups = ds.ols("y ~ x", by="g", epsilon=2.0)
    assert groups.answers == answers.LEAST_SQUARES
    assert groups.fits["a"].query["loss"] == "squared"
    with pytest.raises(reticent.InvalidQuery, match="not fitted by group"):
        ds.logit("b ~ x", by="g", epsilon=2.0)
