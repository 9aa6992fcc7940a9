# SPDX-License-Identifier: Apache-2.0
"""A flood of free work over HTTP: everything else is answered, what is too much is refused, what
nobody waits for is forgotten.

Work is held by events, so that nothing depends on how fast the machine is.
"""

import asyncio
import json
import re
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from reticent_server.app import create_app
from reticent_server.errors import BudgetExhausted
from reticent_server.kinds import registry
from reticent_server.pipeline.planner import Planner
from reticent_server.pipeline.services import Services
from reticent_server.web.free_work import free_work
from support.installations.small import Api, Installation, opened, request_body

SECONDS = 60
READS = ("/v1/budget", "/v1/datasets", "/v1/datasets/people", "/v1/releases", "/v1/projects")


class Gate:
    """Every plan stands still until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.begun = threading.Event(), 0
        run = Planner.run

        def held(planner: Planner, function: Any, *arguments: Any) -> Any:
            self.begun += 1
            assert self.go.wait(SECONDS)
            return run(planner, function, *arguments)

        monkeypatch.setattr(Planner, "run", held)

    async def has_begun(self, number: int) -> None:
        async with asyncio.timeout(SECONDS):
            while self.begun < number:
                await asyncio.sleep(0.001)


async def one_waits(services: Services) -> None:
    """For its turn, in the queue of this event loop."""
    async with asyncio.timeout(SECONDS):
        while free_work(services.settings).waiting < 1:
            await asyncio.sleep(0.001)


@contextmanager
def limited(installation: Installation, **changed: Any) -> Iterator[Services]:
    settings = {"plan_slots": 2, "plan_queue": 1} | changed
    with opened(installation.settings.model_copy(update=settings)) as services:
        yield services


def test_others_are_answered_while_plans_take_all_turns(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ana's first plan is worked on and her second waits; her third, and every other sort of free
    work, is refused at once.
    """
    gate = Gate(monkeypatch)
    with limited(installation) as services:
        ana, bob = (Api(services, installation.keys[name]) for name in ("ana", "bob"))

        async def scene() -> None:
            async with ana.client() as http, bob.client() as other:
                body = request_body()
                tasks = [asyncio.create_task(http.post("/v1/plans", json=body)) for _ in range(2)]
                await gate.has_begun(1)
                await one_waits(services)
                for path, sent in (
                    ("/v1/plans", body),
                    ("/v1/datasets/people/persons", {"persons": {"a": "count(x)"}}),
                ):
                    refused = await http.post(path, json=sent)
                    assert refused.status_code == 429
                    assert refused.headers["content-type"] == "application/problem+json"
                    assert refused.json()["code"] == "rate_limited"
                    assert int(refused.headers["retry-after"]) >= 1
                bobs = request_body() | {"dataset": "secret"}
                tasks.append(asyncio.create_task(other.post("/v1/plans", json=bobs)))
                await gate.has_begun(2)
                for path in READS:
                    assert (await http.get(path)).status_code == 200, path
                for path in ("/healthz", "/readyz"):
                    assert (await other.get(path)).status_code == 200
                assert gate.begun == 2
                gate.go.set()
                replies = await asyncio.gather(*tasks)
                assert [reply.status_code for reply in replies] == [200, 200, 200]
                assert (await http.post("/v1/plans", json=body)).status_code == 200

        try:
            asyncio.run(asyncio.wait_for(scene(), SECONDS))
        finally:
            gate.go.set()


def test_a_release_waits_for_its_turn_and_is_not_refused(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that is waited for nor one that is answered later; each is charged once it is
    planned, and not before.
    """
    gate = Gate(monkeypatch)
    with limited(installation) as services:
        ana = Api(services, installation.keys["ana"])

        async def scene() -> None:
            async with ana.client() as http:
                sent: list[dict[str, str]] = [{}, {"Prefer": "respond-async"}, {}]
                tasks = [
                    asyncio.create_task(
                        http.post("/v1/releases", json=request_body(epsilon=0.01), headers=headers)
                    )
                    for headers in sent
                ]
                await gate.has_begun(1)
                for _ in range(20):
                    await asyncio.sleep(0.001)
                assert (await http.get("/v1/releases")).json()["releases"] == []
                gate.go.set()
                replies = await asyncio.gather(*tasks)
                assert [reply.status_code for reply in replies] == [201, 202, 201]

        try:
            asyncio.run(asyncio.wait_for(scene(), SECONDS))
        finally:
            gate.go.set()


def test_who_has_hung_up_is_forgotten(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan, a release that is charged nothing, and a plan that is worked on: it ends, and the
    next one begins.
    """
    gate = Gate(monkeypatch)
    with limited(installation) as services:
        application = create_app(services)
        key = installation.keys["ana"]
        body = request_body(epsilon=0.01)

        async def scene() -> None:
            running = Abandoned(application, "/v1/plans", key, body)
            await gate.has_begun(1)
            waiting = [
                Abandoned(application, path, key, body) for path in ("/v1/plans", "/v1/releases")
            ]
            await one_waits(services)
            for each in waiting:
                await each.hang_up()
                assert each.status == 499
            assert gate.begun == 1
            running.left.set()
            for _ in range(50):  # turns of the event loop, in which the server hears of it
                await asyncio.sleep(0)
            gate.go.set()
            await running.task
            assert running.status == 499
            async with Api(services, key).client() as http:
                assert (await http.post("/v1/plans", json=body)).status_code == 200
                assert (await http.get("/v1/releases")).json()["releases"] == []

        try:
            asyncio.run(asyncio.wait_for(scene(), SECONDS))
        finally:
            gate.go.set()


class Abandoned:
    """A request whose caller hangs up."""

    def __init__(self, application: Any, path: str, key: str, body: Any) -> None:
        self.left, self.status, self._body = asyncio.Event(), 0, json.dumps(body).encode()
        headers = [
            (b"host", b"test"),
            (b"authorization", f"Bearer {key}".encode()),
            (b"content-type", b"application/json"),
            (b"content-length", str(len(self._body)).encode()),
        ]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": headers,
            "scheme": "http",
            "server": ("test", 80),
            "client": ("127.0.0.1", 1),
        }
        self._sent = False
        self.task = asyncio.ensure_future(application(scope, self._receive, self._send))

    async def hang_up(self) -> None:
        self.left.set()
        await self.task

    async def _receive(self) -> dict[str, Any]:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]


def test_pages_take_turns_too(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question in a page's address is worked on while another one is held: it waits; a page
    without one does not.
    """
    gate = Gate(monkeypatch)
    with limited(installation) as services:
        application = create_app(services)

        async def scene() -> None:
            transport = httpx.ASGITransport(application)
            client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
            async with client as http, Api(services, installation.keys["ana"]).client() as api:
                await signed_in(http, installation.keys["ana"])
                asked = "/workbench/datasets/people?kind=count&epsilon=1"
                tasks = [
                    asyncio.create_task(api.post("/v1/plans", json=request_body())),
                    asyncio.create_task(http.get(asked)),
                ]
                await gate.has_begun(1)
                await one_waits(services)
                refused = await http.get(asked)
                assert refused.status_code == 429
                assert int(refused.headers["retry-after"]) >= 1
                assert (await http.get("/workbench/datasets/people")).status_code == 200
                gate.go.set()
                replies = await asyncio.gather(*tasks)
                assert [reply.status_code for reply in replies] == [200, 200]

        try:
            asyncio.run(asyncio.wait_for(scene(), SECONDS))
        finally:
            gate.go.set()


async def signed_in(http: httpx.AsyncClient, key: str) -> None:
    page = (await http.get("/workbench/sign-in")).text
    token = re.search(r'name="form_token" value="([0-9a-f]{96})"', page)
    assert token is not None
    form = {"form_token": token[1], "key": key}
    assert (await http.post("/workbench/sign-in", data=form)).status_code == 303


def test_what_the_budget_cannot_cover_is_not_planned(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the rule zcdp (ana's ε = 100), and basic; the words are those of a charge that fails. A
    retry of an answered one is neither.
    """
    basic = installation.analyst("cy", epsilon=1, delta=1e-6)
    with limited(installation) as services:
        for key, left, dear in ((installation.keys["ana"], 99.0, 99.0), (basic, 1.0, 1.0)):
            api = Api(services, key)
            headers = {"Idempotency-Key": "first"}
            first = api.post("/v1/releases", request_body(epsilon=left), headers=headers)
            assert first.status_code == 201
            with monkeypatch.context() as patched:
                patched.setattr(registry, "plan", _unplanned)
                for prefer in ({}, {"Prefer": "respond-async"}):
                    body = request_body(epsilon=dear)
                    refused = api.post("/v1/releases", body, headers=prefer)
                    assert (refused.status_code, refused.json()["code"]) == (
                        403,
                        BudgetExhausted.code,
                    )
                    assert refused.json()["remaining"]
                again = api.post("/v1/releases", request_body(epsilon=left), headers=headers)
                assert (again.status_code, again.content) == (201, first.content)


def test_nobody_without_an_account_is_planned_for(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with limited(installation) as services:
        services.access.grant(services.access.analyst("eve").id, "people", by="t")
        monkeypatch.setattr(registry, "plan", _unplanned)
        refused = Api(services, installation.keys["eve"]).post("/v1/releases", request_body())
        assert (refused.status_code, refused.json()["code"]) == (403, "budget_exhausted")
        assert "No budget is set" in refused.json()["detail"]


def _unplanned(*_: Any) -> None:
    raise AssertionError("planned for nothing")
