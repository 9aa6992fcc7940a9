# SPDX-License-Identifier: Apache-2.0
"""Projects from the client to the ledger, over the real application."""

from typing import Any

import httpx
import pytest

import reticent
from reticent_server.pipeline import projects
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation

BODY: dict[str, Any] = {
    "name": "trial",
    "purpose": "Do drugs help?",
    "budgets": [{"dataset": "people", "epsilon": 3.0, "delta": 1e-5}],
    "plan": [{"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.5}}],
}


class Through(httpx.BaseTransport):
    """The client's requests, to an application in this process."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        headers = {k: v for k, v in request.headers.items() if k != "host"}
        path = request.url.raw_path.decode()
        content = request.read()
        reply = self.api.send(request.method, path, content=content, headers=headers)
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)


@pytest.fixture
def clients(services: Services, installation: Installation) -> dict[str, reticent.Client]:
    def client(key: str) -> reticent.Client:
        transport = Through(Api(services, None))
        return reticent.Client("http://test", key, transport=transport, progress=False)

    return {name: client(key) for name, key in installation.keys.items()}


@pytest.mark.slow
def test_an_analyst_asks_for_a_project_and_uses_it(
    services: Services, clients: dict[str, reticent.Client]
) -> None:
    eve, bob, ana = (clients[name] for name in ("eve", "bob", "ana"))
    asked = eve.request_project(
        "trial",
        purpose="Do drugs help?",
        budgets={"people": (3.0, 1e-5)},
        plan=[reticent.planned("people", "mean", "y", where="x > 0", epsilon=0.5)],
        members=["bob"],
    )
    assert (asked.status, asked.plan[0]["query"]["where"]) == ("pending", "x > 0")
    assert [one.id for one in eve.requests()] == [asked.id]
    assert bob.requests() == eve.projects() == []
    request = services.requests.one(asked.id)
    wish, shares = projects.wish(services, request), projects.shares_of(request)
    projects.approve(services, request, wish, shares, reason="", by="console:bert")
    assert [one.status for one in eve.requests()] == ["approved"]
    (project,) = bob.projects()
    assert (project.members, project.datasets, project.live) == (("bob", "eve"), ("people",), True)
    assert [ds.name for ds in eve.datasets()] == ["people"]
    eve.dataset("people").count(epsilon=0.5)
    bob.dataset("people", project="trial").count(epsilon=0.5)
    (account,) = eve.budget()
    assert (account.project, account.dataset) == ("trial", "people")
    assert account.spent.epsilon > 0
    assert len(eve.releases()) == len(bob.releases()) == 1
    assert ana.projects() == []
    assert [account.project for account in ana.budget()] == [None]
    with pytest.raises(reticent.NotFound):
        ana.dataset("people", project="trial").count(epsilon=0.5)
    with pytest.raises(reticent.NotFound):
        clients["bob"].dataset("people", project="other").plan("count", epsilon=0.5)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "changed",
    [
        {"name": ""},
        {"name": "a b"},
        {"purpose": ""},
        {"purpose": "a\x00b"},
        {"purpose": "x" * 2001},
        {"members": ["x"] * 21},
        {"ends_on": "tomorrow"},
        {"budgets": []},
        {"budgets": [{"dataset": "people", "epsilon": 0.0, "delta": 0.0}]},
        {"budgets": [{"dataset": "people", "epsilon": 1.0, "delta": 1.0}]},
        {"plan": [{"dataset": "people", "query": {"kind": "poem"}, "privacy": {"epsilon": 1}}]},
        {"plan": BODY["plan"] * 51},
        {"boss": True},
    ],
)
def test_what_is_no_request_is_refused(
    services: Services, installation: Installation, changed: dict[str, Any]
) -> None:
    api = Api(services, installation.keys["eve"])
    reply = api.post("/v1/requests", BODY | changed)
    assert (reply.status_code, reply.json()["code"]) in {
        (422, "invalid_request"),
        (422, "invalid_query"),
        (422, "invalid_privacy"),
    }
    assert services.requests.all() == ()


def test_too_many_requests_are_a_conflict(services: Services, installation: Installation) -> None:
    api = Api(services, installation.keys["eve"])
    statuses = [api.post("/v1/requests", BODY).status_code for _ in range(11)]
    assert statuses == [201] * 10 + [409]
    assert len(api.get("/v1/requests").json()["requests"]) == 10
