# SPDX-License-Identifier: Apache-2.0
"""Releases that are waited for hold threads of their own: everything else is answered meanwhile."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from reticent_server.api.threads import ReleaseThreads
from reticent_server.domain.plan import Release
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import RateLimited
from reticent_server.pipeline import answer
from reticent_server.pipeline.pace import Pace
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation, opened, request_body

SLOW = 70
SECONDS = 60


@pytest.mark.slow
def test_free_calls_and_other_analysts_are_answered_while_many_fits_run(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ana's 70 releases stand still, more than half of the threads are for, and that half is more
    than the 40 threads of everything else; bob's is computed.
    """
    settings = installation.settings.model_copy(update={"release_threads": 120})
    with opened(settings) as services:
        check_meanwhile(services, installation, monkeypatch)


def check_meanwhile(
    services: Services, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, secret = threading.Event(), services.catalog.facts("secret").version_id

    def execute(_engine: LocalEngine, ready: Any, _reservation: Any) -> Release:
        assert ready.facts.version_id == secret or go.wait(SECONDS)
        return Release(status="no_reply", result=None)

    monkeypatch.setattr(LocalEngine, "execute", execute)
    ana, bob = (Api(services, installation.keys[name]) for name in ("ana", "bob"))
    bob_s = request_body(epsilon=0.01) | {"dataset": "secret"}

    async def scene() -> list[httpx.Response]:
        async with ana.client() as http, bob.client() as other:
            body = request_body(epsilon=0.01)
            slow = [asyncio.create_task(http.post("/v1/releases", json=body)) for _ in range(SLOW)]
            while not services.ledger.releases(services.access.analyst("ana").id):
                await asyncio.sleep(0.01)
            for path in ("/v1/budget", "/v1/datasets", "/v1/releases", "/healthz"):
                assert (await http.get(path)).status_code == 200
            assert (await http.post("/v1/plans", json=body)).status_code == 200
            assert (await other.post("/v1/releases", json=bob_s)).status_code == 201
            assert not any(task.done() for task in slow)
            go.set()
            return await asyncio.gather(*slow)

    try:
        replies = asyncio.run(asyncio.wait_for(scene(), SECONDS))
    finally:
        go.set()
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["id"] for reply in replies}) == SLOW


async def run(threads: ReleaseThreads, owner: str, call: Any) -> Any:
    with threads.place(owner) as place:
        return await place.run(call)


def test_an_owner_has_half_of_the_threads() -> None:
    """Of five, three; the others of the two are someone else's at once; nothing is kept of them."""
    go, running, most = threading.Event(), 0, 0
    lock = threading.Lock()

    def call() -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        assert go.wait(SECONDS)
        with lock:
            running -= 1
        return b"a"

    async def scene() -> None:
        threads = ReleaseThreads(5)
        many = [asyncio.create_task(run(threads, "a", call)) for _ in range(12)]
        while running < 3:
            await asyncio.sleep(0.01)
        assert await run(threads, "b", lambda: b"b") == b"b"
        assert (running, most) == (3, 3)
        go.set()
        assert await asyncio.gather(*many) == [b"a"] * 12
        assert (most, threads._waiting) == (3, {})

    asyncio.run(scene())


def test_only_so_many_wait() -> None:
    """Of one owner: the next is refused at once, another's is not, and later all is as before."""
    go = threading.Event()

    def call() -> bytes:
        assert go.wait(SECONDS)
        return b"a"

    async def scene() -> None:
        threads = ReleaseThreads(4)
        many = [asyncio.create_task(run(threads, "a", call)) for _ in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(RateLimited):
            await run(threads, "a", call)
        assert await run(threads, "b", lambda: b"b") == b"b"
        go.set()
        assert await asyncio.gather(*many) == [b"a"] * 8
        assert await run(threads, "a", call) == b"a"

    asyncio.run(scene())


def test_a_call_that_fails_gives_its_thread_back() -> None:
    def fail() -> bytes:
        raise ZeroDivisionError

    async def scene() -> None:
        threads = ReleaseThreads(1)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await run(threads, "a", fail)
        assert await run(threads, "a", lambda: b"a") == b"a"
        assert threads._waiting == {}

    asyncio.run(scene())


@pytest.mark.parametrize("formula", ["y ~ x", "y ~ nothing"])
def test_a_release_is_let_in_before_it_is_planned_and_counts_until_then(
    services: Services,
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    formula: str,
) -> None:
    """Or until it is refused."""
    seen: list[str] = []

    @asynccontextmanager
    async def arriving(_: Pace) -> AsyncIterator[None]:
        seen.append("in")
        try:
            yield
        finally:
            seen.append("out")

    def noted(name: str) -> Any:
        done = getattr(answer, name)
        return lambda *given: seen.append(name) or done(*given)

    monkeypatch.setattr(Pace, "arriving", arriving)
    for name in ("covered", "prepared", "finished"):
        monkeypatch.setattr(answer, name, noted(name))
    asked = request_body({"kind": "linear_regression", "formula": formula})
    Api(services, installation.keys["ana"]).post("/v1/releases", asked)
    finished = ["finished"] if formula == "y ~ x" else []
    assert seen == ["in", "covered", "prepared", "out", *finished]
