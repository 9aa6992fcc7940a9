# SPDX-License-Identifier: Apache-2.0
"""The forecast of a plan over HTTP, and as the client reads it."""

import json
from typing import Any

import httpx
import pytest

import reticent
from reticent_server.domain.plan import Release
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.kinds.glm.families import FAMILIES
from reticent_server.kinds.glm.query import GAUSSIAN
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from reticent_server.pipeline.documents import release_body
from reticent_server.pipeline.services import Services
from support.client.replying_server import DATASET
from support.installations.small import Api, Installation, request_body, without_reader

QUERY = {"kind": "linear_regression", "formula": "y ~ x + b"}
MODELS = [
    {"kind": "glm", "family": name, "formula": f"{'b' if name == 'binomial' else 'k'} ~ {right}"}
    | more
    for name in (*FAMILIES, GAUSSIAN)
    for right, more in (
        ("x", {}),
        ("x - 1", {}),
        ("x", {"tuning": "planned"}),
    )
]
"""Each family with and without an intercept. A plan plans maximum likelihood as well."""
TEST = {"kind": "hypothesis_test", "formula": "y ~ x", "hypothesis": ["x = 0"]}


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(without_reader(services), installation.keys["ana"])


def planned(api: Api, query: dict[str, object], **more: object) -> httpx.Response:
    return api.post("/v1/plans", request_body(query) | more)


@pytest.mark.slow
@pytest.mark.parametrize("query", [QUERY, TEST])
def test_a_regression_s_coefficients_are_forecast(api: Api, query: dict[str, object]) -> None:
    forecast = planned(api, query).json()["forecast"]
    assert len(forecast["terms"]) == len(forecast["privacy_to_sampling"])
    assert all(r > 0 for r in forecast["privacy_to_sampling"] if r is not None)
    targets = forecast["epsilon_for"]
    assert [t["privacy_to_sampling"] for t in targets] == [1.0, 0.5]
    assert 0 < targets[0]["epsilon"] < targets[1]["epsilon"] <= 100


@pytest.mark.slow
def test_the_epsilon_of_a_target_reaches_it(api: Api) -> None:
    (found,) = planned(api, QUERY, target=0.5).json()["forecast"]["epsilon_for"]
    privacy = {"epsilon": found["epsilon"]}
    there = planned(api, QUERY, privacy=privacy).json()["forecast"]
    largest = max(r for r in there["privacy_to_sampling"] if r is not None)
    assert largest == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("query", MODELS, ids=lambda q: " ".join(map(str, [*q.values()][1:])))
def test_every_family_has_a_plan(api: Api, query: dict[str, object]) -> None:
    reply = planned(api, query, privacy={"epsilon": 50.0})
    assert reply.status_code == 200, reply.text
    assert reply.json()["precision"]["half_widths"][-1] is None  # without a profile no units
    assert 1 < reply.json()["precision"]["ci_ratios"][-1] < 2


@pytest.mark.parametrize("missing", ["mask", "indicator"])
@pytest.mark.parametrize("main", ["y ~ x + m", "m ~ x"])
def test_main_is_of_the_study_s_own_variables(api: Api, main: str, missing: str) -> None:
    query = {"kind": "study", "variables": ["y", "x"], "main": main, "missing": missing}
    reply = planned(api, query)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_query")
    assert "add it to variables" in reply.json()["detail"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", [0, -1, 1e9, "1", None, True])
def test_a_target_is_a_number_of_some_size(api: Api, target: object) -> None:
    assert planned(api, QUERY, target=target).status_code == (200 if target is None else 422)


def test_a_target_is_for_plans_of_regressions(api: Api) -> None:
    reply = planned(api, {"kind": "count"}, target=1.0)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_query")
    release = api.post("/v1/releases", request_body(QUERY) | {"target": 1.0})
    assert release.status_code == 422


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "term",
    [
        *(
            "poly(x, 0)",
            "poly(x, 11)",
            "poly(x, NaN)",
            "poly(x)",
            "poly(poly(x, 2), 2)",
            "poly(g, 2)",
        ),
        *(
            "bs(x, knots=[1, 0])",
            "bs(x, knots=[NaN])",
            "bs(x, knots=[1e9])",
            "bs(x, knots=[1e999])",
        ),
        *(
            "bs(x, knots=[0], degree=99)",
            f"bs(x, knots=[{','.join(['0'] * 400)}])",
            "bs(x, knots=[",
        ),
    ],
)
def test_a_hostile_basis_is_refused(api: Api, term: str) -> None:
    for path in ("/v1/plans", "/v1/releases"):
        reply = api.post(path, request_body(QUERY | {"formula": f"y ~ {term}"}))
        assert (reply.status_code, reply.json()["code"]) == (422, "invalid_formula")


@pytest.mark.slow
def test_a_basis_is_planned(api: Api) -> None:
    forecast = planned(api, QUERY | {"formula": "y ~ poly(x, 2) + bs(k, knots=[3])"}).json()[
        "forecast"
    ]
    assert forecast["terms"][1:3] == ["poly(x, 2)[1]", "poly(x, 2)[2]"]
    assert len(forecast["terms"]) == 7


@pytest.mark.slow
def test_the_client_shows_the_forecast(api: Api) -> None:
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=DATASET)
        sent.append(request.read())
        return httpx.Response(200, json=planned(api, QUERY, target=3.0).json())

    transport = httpx.MockTransport(answer)
    with reticent.Client("http://test", key="rk", transport=transport) as client:
        plan = client.dataset("people").plan(
            "linear_regression", "y ~ x + b", epsilon=1.0, target=3.0
        )
        assert b'"target":3.0' in sent[-1].replace(b" ", b"")
        with pytest.raises(reticent.InvalidQuery, match="target"):
            client.dataset("people").plan("count", epsilon=1.0, target=float("nan"))
    assert plan.privacy_to_sampling.names == ("Intercept", "x", "b")
    assert list(plan.epsilon_for) == [3.0]
    shown = repr(plan)
    assert "Forecast privacy over sampling standard error: Intercept" in shown
    assert f"epsilon = {plan.epsilon_for[3.0]:g} brings the largest of these to 3" in shown
    assert "\n- " in shown


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "median", "column": "y"},
        {"kind": "quantiles", "column": "y", "probabilities": [0.25, 0.5]},
        {"kind": "iqr", "column": "y"},
        {"kind": "m_estimate", "column": "y", "tuning": 1.5},
    ],
)
def test_what_has_no_interval_promises_none(api: Api, query: dict[str, object]) -> None:
    assert planned(api, query).json()["precision"] is None
    if query["kind"] != "m_estimate":
        assert planned(api, query | {"intervals": True}).json()["precision"]["ci_ratios"][0] > 1


@pytest.mark.parametrize("by", [None, "g"])
def test_hazards_whose_tail_noise_will_hide_promise_no_interval(api: Api, by: str | None) -> None:
    """The noise of the numbers of long scores is public: the reply tells no tail, and says so."""
    query = {"kind": "hazard_regression", "formula": "Surv(k, b) ~ x", "by": by}
    quiet, loud = (planned(api, query, privacy={"epsilon": e}).json() for e in (16.0, 2.0))
    assert loud["precision"]["ci_ratios"] == loud["forecast"]["privacy_to_sampling"] == [None]
    assert any("No intervals are" in note for note in loud["forecast"]["notes"])
    assert 1 < quiet["precision"]["ci_ratios"][0] < 1.2


@pytest.mark.parametrize("status", ["reply", "no_reply", "failed"])
def test_a_release_answers_what_its_plan_answers(services: Services, status: Any) -> None:
    facts = services.catalog.facts("people")
    query = LinearRegression("y ~ x", mechanism="influence")
    plan = planning.plan(facts, query, Privacy(2.0, 1e-6))
    paid = Reservation("r", facts.version_id, plan.cost, "")
    body = json.loads(release_body(plan, paid, Release(status=status, result=None)))
    assert body["answers"] == plan.planned.answers != ""
