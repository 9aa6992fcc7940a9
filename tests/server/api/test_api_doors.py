# SPDX-License-Identifier: Apache-2.0
"""Who comes in by which door: roles, the curator's port, rates, other web pages, slow bodies."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from reticent_server.app import create_app
from reticent_server.domain.roles import STAFF
from reticent_server.errors import Unavailable
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation, curators_port, opened, request_body

ANALYST_ROUTES = [
    ("GET", "/v1/datasets"),
    ("GET", "/v1/datasets/people"),
    ("GET", "/v1/budget"),
    ("POST", "/v1/plans"),
    ("POST", "/v1/releases"),
    ("GET", "/v1/releases"),
    ("GET", "/v1/releases/rel_x"),
]


@pytest.fixture
def api(services: Services, installation: Installation) -> Api:
    return Api(services, installation.keys["ana"])


@contextmanager
def changed(installation: Installation, **settings: Any) -> Iterator[Services]:
    with opened(installation.settings.model_copy(update=settings)) as services:
        yield services


def test_two_keys_are_none(api: Api, installation: Installation) -> None:
    """A proxy on the way could have checked the other one."""
    for second in (api.key, installation.keys["bob"], "x"):
        keys = [("Authorization", f"Bearer {key}") for key in (api.key, second)]
        for headers in (keys, keys[::-1]):
            reply = Api(api.services, None).get("/v1/budget", headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (401, "unauthorized")


@pytest.mark.sample(4)
@pytest.mark.parametrize(("method", "path"), ANALYST_ROUTES)
def test_a_curator_s_key_asks_nothing_about_rows(
    services: Services, method: str, path: str
) -> None:
    key = services.access.add_curator("cura", STAFF, by="t")
    body = request_body() if method == "POST" else None
    reply = Api(services, key).send(method, path, json=body)
    assert (reply.status_code, reply.json()["code"]) == (403, "wrong_role")
    assert services.ledger.releases(None) == ()


def test_metrics_are_for_curators_on_their_own_port(api: Api) -> None:
    services, key = api.services, api.services.access.add_curator("cura", STAFF, by="t")
    assert Api(services, key).get("/metrics").status_code == 404
    assert curators_port(services, "/metrics", None).status_code == 401
    refused = curators_port(services, "/metrics", api.key)
    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_role")
    assert curators_port(services, "/v1/budget", key).status_code == 404
    assert curators_port(services, "/openapi.json", key).status_code == 404
    services.access.revoke("cura", by="t")
    assert curators_port(services, "/metrics", key).status_code == 401


def test_metrics_count_replies_releases_and_caps(api: Api) -> None:
    key = api.services.access.add_curator("cura", STAFF, by="t")

    def numbers() -> dict[str, float]:
        text = curators_port(api.services, "/metrics", key).text
        lines = (line.rpartition(" ") for line in text.splitlines() if line[0] != "#")
        return {name: float(value) for name, _, value in lines}

    before = numbers()
    api.post("/v1/releases", request_body(epsilon=10.0))
    api.get("/v1/releases/rel_who")
    after = numbers()
    grown = {name for name in after if after[name] != before.get(name, 0.0)}
    made = 'reticent_requests_total{method="POST",route="/v1/releases",status="201"}'
    missed = 'reticent_requests_total{method="GET",route="/v1/releases/{release_id}",status="404"}'
    assert {made, missed, 'reticent_releases_total{outcome="reply"}'} <= grown
    assert before['reticent_cap_spent_ratio{population="people"}'] == 0.0
    assert after['reticent_cap_spent_ratio{population="people"}'] == pytest.approx(0.01)
    assert before["reticent_releases_waiting"] == after["reticent_releases_waiting"] == 0
    assert not any("created" in name for name in after)


def test_metrics_count_what_waits(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent_server.pipeline.schedule.ReleaseQueue.put", lambda *_: None)
    key = api.services.access.add_curator("cura", STAFF, by="t")
    body = request_body(epsilon=1.0)
    later = {"Prefer": "respond-async", "Idempotency-Key": "later"}
    assert api.post("/v1/releases", body, headers=later).status_code == 202
    assert "reticent_releases_waiting 1.0" in curators_port(api.services, "/metrics", key).text


def test_metrics_of_a_ledger_that_is_away_are_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = api.services.access.add_curator("cura", STAFF, by="t")

    def away(*_: Any) -> Any:
        raise Unavailable("The database did not answer; nothing is lost, try again.")

    monkeypatch.setattr(type(api.services.ledger), "all_balances", away)
    assert curators_port(api.services, "/metrics", key).status_code == 503


@pytest.mark.slow
def test_a_key_that_asks_too_often_waits(installation: Installation) -> None:
    """Whatever it asks; other keys go on; nothing is charged."""
    with changed(installation, requests_per_minute=40) as services:
        api = Api(services, installation.keys["ana"])
        head = services.ledger.head()
        statuses = [api.get("/v1/budget").status_code for _ in range(45)]
        assert statuses == [200] * 40 + [429] * 5
        refused = api.post("/v1/releases", request_body())
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert services.ledger.head() == head
        assert Api(services, installation.keys["bob"]).get("/v1/budget").status_code == 200
        assert api.get("/healthz").status_code == 200


def test_other_web_pages_ask_only_where_that_is_set(installation: Installation, api: Api) -> None:
    origin = {"Origin": "https://page.example"}
    preflight = origin | {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "Authorization",
    }
    assert api.send("OPTIONS", "/v1/plans", headers=preflight).status_code == 405
    assert "access-control-allow-origin" not in api.get("/v1/budget", headers=origin).headers
    with changed(installation, cors_origins="https://page.example https://b.example:1") as services:
        allowed = Api(services, api.key)
        reply = allowed.get("/v1/budget", headers=origin)
        assert reply.headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in reply.headers
        assert allowed.send("OPTIONS", "/v1/plans", headers=preflight).status_code == 200
        other = allowed.get("/v1/budget", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


def test_a_body_that_does_not_come_is_not_waited_for(
    installation: Installation,
) -> None:
    sent: list[Any] = []
    headers = [(b"authorization", b"Bearer " + installation.keys["ana"].encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/plans", "headers": headers}
    scope |= {"query_string": b"", "http_version": "1.1", "scheme": "http", "root_path": ""}

    async def never() -> Any:
        await asyncio.sleep(3600)

    async def send(message: Any) -> None:
        sent.append(message)

    with changed(installation, max_body_seconds=0.05) as services:
        waited = asyncio.wait_for(create_app(services)(scope, never, send), 20)
        asyncio.run(waited)
    assert sent[0]["status"] == 408
    assert b"too_slow" in sent[1]["body"]


def test_a_tier_that_is_not_allowed_is_refused(api: Api) -> None:
    facts = api.services.catalog.facts("people")
    api.services.catalog.set_policy("people", replace(facts.policy, tiers=("conditional",)), by="t")
    for path in ("/v1/plans", "/v1/releases"):
        reply = api.post(path, request_body())
        assert (reply.status_code, reply.json()["code"]) == (403, "policy")
    assert api.get("/v1/releases").json()["releases"] == []


def test_the_largest_epsilon_is_held_to_the_last_digit(api: Api) -> None:
    facts = api.services.catalog.facts("people")
    policy = replace(facts.policy, max_epsilon=0.3, default_delta=1e-9)
    api.services.catalog.set_policy("people", policy, by="t")
    assert api.post("/v1/plans", request_body(epsilon=0.1 + 0.2)).status_code == 403
    granted = api.post("/v1/plans", request_body(epsilon=0.3))
    assert granted.json()["cost"]["delta"] == 1e-9
