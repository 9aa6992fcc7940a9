# SPDX-License-Identifier: Apache-2.0
"""Answers over HTTP: one charge, the same bytes for ever, and never more than the budget."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from reticent_server.api import replies
from reticent_server.pipeline.services import Services
from support.installations.both_backends import installation
from support.installations.small import Api, Installation, request_body, without_reader

__all__ = ["installation"]

FIT = {"kind": "linear_regression", "formula": "y ~ x + C(g) + b"}


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "query",
    [{"kind": "count", "where": 'g == "a"'}, {"kind": "mean", "column": "m"}, FIT],
    ids=["count", "mean", "fit"],
)
def test_a_release_is_what_its_plan_said_and_stays_what_it_was(
    api: Api, query: dict[str, Any]
) -> None:
    body = request_body(query, epsilon=8.0)
    plan = replies.PlanReply.model_validate(api.post("/v1/plans", body).json())
    made = api.post("/v1/releases", body)
    release = replies.ReleaseReply.model_validate(made.json())
    assert (made.status_code, release.status) == (201, "reply")
    assert (release.charged, release.guarantee) == (plan.cost, plan.guarantee)
    assert release.query["kind"] == query["kind"]
    assert made.headers["location"] == f"/v1/releases/{release.id}"
    blind = Api(without_reader(api.services), api.key)
    for _ in range(2):
        assert blind.get(made.headers["location"]).content == made.content
    assert made.content in blind.get("/v1/releases").content


@pytest.mark.sample(4)
def test_the_fit_is_near_the_truth(api: Api) -> None:
    result = api.post("/v1/releases", request_body(FIT, epsilon=50, delta=1e-4)).json()["result"]
    at = result["terms"].index("x")
    assert abs(result["coefficients"][at] - 2.0) < 6 * result["standard_errors"][at] < 1.0


def test_the_same_key_is_one_charge_and_the_same_bytes(api: Api) -> None:
    headers = {"Idempotency-Key": "one"}
    first = api.post("/v1/releases", request_body(), headers=headers)
    charged = api.get("/v1/budget").content
    again = api.post("/v1/releases", request_body(), headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert api.get("/v1/budget").content == charged
    for other in (request_body(epsilon=0.6), request_body({"kind": "mean", "column": "y"})):
        conflict = api.post("/v1/releases", other, headers=headers)
        assert (conflict.status_code, conflict.json()["code"]) == (409, "idempotency_conflict")
    assert api.get("/v1/budget").content == charged


@pytest.mark.sample(4)
@pytest.mark.parametrize("prefer", ["", "respond-async"], ids=["waiting", "later"])
def test_a_retry_after_a_change_of_the_policy_is_the_same_bytes(api: Api, prefer: str) -> None:
    """It was charged; a refusal would say that it was not."""
    headers = {"Idempotency-Key": "one"}
    first = api.post("/v1/releases", request_body(), headers=headers)
    facts = api.services.catalog.facts("people")
    api.services.catalog.set_policy("people", replace(facts.policy, max_epsilon=0.1), by="t")
    head = api.services.ledger.head()
    again = api.post("/v1/releases", request_body(), headers=headers | {"Prefer": prefer})
    assert (again.status_code, again.content) == (201, first.content)
    for other in (headers, {"Idempotency-Key": "two"}, {}):
        body = request_body(epsilon=0.6 if other is headers else 0.5)
        refused = api.post("/v1/releases", body, headers=other | {"Prefer": prefer})
        assert (refused.status_code, refused.json()["code"]) == (403, "policy")
    assert api.services.ledger.head() == head


def test_numbers_that_mean_the_same_are_the_same_request(api: Api) -> None:
    headers = {"Idempotency-Key": "one"}
    first = api.post("/v1/releases", request_body(epsilon=1), headers=headers)
    again = api.post("/v1/releases", request_body(epsilon=1.0, delta=None), headers=headers)
    assert first.content == again.content


def test_without_a_key_every_request_is_charged(api: Api) -> None:
    ids = {api.post("/v1/releases", request_body()).json()["id"] for _ in range(2)}
    assert len(ids) == 2


@pytest.mark.sample(4)
def test_a_key_belongs_to_its_analyst(api: Api, installation: Installation) -> None:
    other = Api(api.services, installation.analyst("cas", epsilon=1, delta=1e-5))
    headers = {"Idempotency-Key": "one"}
    first, second = (a.post("/v1/releases", request_body(), headers=headers) for a in (api, other))
    assert first.json()["id"] != second.json()["id"]
    assert other.get(first.headers["location"]).status_code == 404
    assert first.json()["id"] not in other.get("/v1/releases").text


@pytest.mark.sample(4)
@pytest.mark.slow
def test_24_racing_requests_against_a_budget_of_10(
    services: Services, installation: Installation
) -> None:
    key = installation.analyst("cas", epsilon=1.0, delta=1e-3)
    api = Api(services, key)

    async def race() -> list[httpx.Response]:
        async with api.client() as client:
            body = request_body(epsilon=0.1)
            return await asyncio.gather(
                *(client.post("/v1/releases", json=body) for _ in range(24))
            )

    answered = asyncio.run(race())
    assert sorted(r.status_code for r in answered) == [201] * 10 + [403] * 14
    refusals = [r.json() for r in answered if r.status_code == 403]
    assert {refusal["code"] for refusal in refusals} == {"budget_exhausted"}
    assert refusals[-1]["remaining"]["epsilon"] == 0.0
    (account,) = api.get("/v1/budget").json()["accounts"]
    assert (account["spent"]["epsilon"], account["remaining"]["epsilon"]) == (1.0, 0.0)
    assert services.ledger.verify() == []


@pytest.mark.sample(4)
def test_racing_requests_with_one_key_are_one_charge(api: Api) -> None:
    async def race() -> list[httpx.Response]:
        async with api.client() as client:
            headers = {"Idempotency-Key": "one"}
            posts = (
                client.post("/v1/releases", json=request_body(), headers=headers)
                for _ in "12345678"
            )
            return await asyncio.gather(*posts)

    answered = asyncio.run(race())
    assert {r.status_code for r in answered} == {201}
    assert len({r.content for r in answered}) == 1
    assert len(api.get("/v1/releases").json()["releases"]) == 1


@pytest.mark.sample(4)
def test_pages_of_releases(api: Api) -> None:
    made = [api.post("/v1/releases", request_body(epsilon=0.01)).json()["id"] for _ in range(5)]
    found, offset = [], 0
    while offset is not None:
        page = api.get(f"/v1/releases?limit=2&offset={offset}").json()
        replies.ReleasesReply.model_validate(page)
        found += [release["id"] for release in page["releases"]]
        offset = page["next_offset"]
    assert sorted(found) == sorted(made)


@pytest.mark.sample(4)
@pytest.mark.slow
def test_the_budget_of_both_rules(api: Api, installation: Installation) -> None:
    basic = Api(api.services, installation.analyst("cas", epsilon=1, delta=1e-5))
    for one in (api, basic):
        one.post("/v1/releases", request_body(epsilon=0.5, delta=1e-6))
    budget = replies.BudgetReply.model_validate(basic.get("/v1/budget").json())
    assert budget.accounts[0].model_dump(exclude_none=True) == {
        "dataset": "people",
        "rule": "basic",
        "total": {"epsilon": 1.0, "delta": 1e-5},
        "spent": {"epsilon": 0.5, "delta": 1e-6},
        "remaining": {"epsilon": 0.5, "delta": 9e-6},
    }
    (account,) = replies.BudgetReply.model_validate(api.get("/v1/budget").json()).accounts
    assert account.rule == "zcdp"
    rho = [amounts.rho or 0.0 for amounts in (account.spent, account.remaining, account.total)]
    assert rho[0] > 0
    assert rho[0] + rho[1] == pytest.approx(rho[2], abs=1e-12)
    # At δ′ = 9·10⁻⁴ the ρ of (0.5, 10⁻⁶) implies less than 0.5.
    assert 0.2 < account.spent.epsilon < 0.5
    assert 99 < account.remaining.epsilon < 100


@pytest.mark.sample(4)
def test_only_granted_data_sets_are_listed(api: Api, installation: Installation) -> None:
    def names(who: str) -> list[str]:
        found = Api(api.services, installation.keys[who]).get("/v1/datasets").json()
        return [d.name for d in replies.DatasetsReply.model_validate(found).datasets]

    assert {who: names(who) for who in installation.keys} == {
        "ana": ["people"],
        "bob": ["secret"],
        "eve": [],
    }
    shown = api.get("/v1/datasets/people")
    assert [shown.json()] == api.get("/v1/datasets").json()["datasets"]
    assert (shown.json()["n"], shown.json()["profile"]) == (400, None)
    columns = shown.json()["schema"]["columns"]
    assert list(columns) == ["y", "x", "k", "g", "b", "m"]
    assert columns["g"]["levels"] == ["a", "b", "c"]
    assert columns["m"] == {
        "kind": "numeric",
        "lower": 0,
        "upper": 1,
        "levels": None,
        "ordered": False,
        "missing": [""],
        "date": False,
        "derived": None,
        "role": None,
        "label": None,
    }


@pytest.mark.sample(4)
def test_keys(api: Api) -> None:
    good = api.key or ""
    refusals = []
    for key in (
        None,
        "",
        "x",
        good[:-1],
        good + "x",
        good.swapcase(),
        "rk_" + "0" * 16 + good[19:],
    ):
        reply = Api(api.services, key).get("/v1/datasets")
        assert reply.status_code == 401
        assert reply.headers["www-authenticate"] == "Bearer"
        refusals.append(reply.content)
    basic = Api(api.services, None).get("/v1/budget", headers={"Authorization": f"Basic {good}"})
    assert {*refusals} == {basic.content}
    # The key is looked at before the body.
    broken = Api(api.services, None).send(
        "POST", "/v1/plans", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert broken.status_code == 401
    api.services.access.revoke("ana", by="t")
    assert api.get("/v1/datasets").status_code == 401


def test_health_needs_no_key(services: Services) -> None:
    assert json.loads(Api(services, None).get("/healthz").content) == {"status": "ok"}
