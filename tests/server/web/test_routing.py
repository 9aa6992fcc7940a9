# SPDX-License-Identifier: Apache-2.0
"""Pages take so many threads and no more, so that slow ones keep nobody else waiting."""

import asyncio
from threading import Event, Lock
from types import SimpleNamespace

import httpx
from fastapi import FastAPI, Response

from reticent_server.web.routing import pages_router
from reticent_server.web.site import PAGES_AT_ONCE

WAIT_SECONDS = 60.0
"""For threads to begin; they are let go as soon as they have."""


def test_slow_pages_keep_each_other_waiting_and_nobody_else() -> None:
    let_go, lock = Event(), Lock()
    running, most = 0, 0
    router, application = pages_router("site"), FastAPI()

    @router.get("/slow", response_model=None)
    def slow() -> Response:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        let_go.wait(WAIT_SECONDS)
        with lock:
            running -= 1
        return Response("done")

    @application.get("/other")
    def other() -> str:
        return "answered"

    application.include_router(router)
    application.state.sites = {"site": SimpleNamespace(turns=asyncio.Semaphore(PAGES_AT_ONCE))}

    async def ask() -> list[int]:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as web:
            slow_ones = [
                asyncio.create_task(web.get("/site/slow")) for _ in range(3 * PAGES_AT_ONCE)
            ]
            for _ in range(int(WAIT_SECONDS / 0.05)):
                if running == PAGES_AT_ONCE:
                    break
                await asyncio.sleep(0.05)
            assert (await web.get("/other")).text == '"answered"'
            let_go.set()
            return [(await each).status_code for each in slow_ones]

    assert asyncio.run(ask()) == [200] * (3 * PAGES_AT_ONCE)
    assert most == PAGES_AT_ONCE
