# SPDX-License-Identifier: Apache-2.0
"""Where there is a curator's port, the console is there, and no path of the other leads to it."""

import asyncio

import httpx
import pytest

from reticent_server.app import create_app, create_curator_app
from reticent_server.domain.roles import STAFF
from reticent_server.pipeline.services import Services


def status(application: object, path: str, **headers: str) -> int:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(application)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(get()).status_code


@pytest.mark.sample(4)
@pytest.mark.parametrize("path", ["/console", "/console/", "/console/sign-in", "/console/ledger"])
def test_the_console_is_on_one_port(services: Services, path: str) -> None:
    there = 200 if path == "/console/sign-in" else 303
    assert status(create_app(services), path) == there
    assert status(create_curator_app(services), path) == there
    assert status(create_app(services, console=False), path) == 404


def test_a_key_in_a_header_opens_no_page(services: Services) -> None:
    """A page is for sessions only: what a browser sends by itself is never enough."""
    key = services.access.add_curator("carol", STAFF, by="t")
    headers = {"Authorization": f"Bearer {key}"}
    assert status(create_curator_app(services), "/metrics", **headers) == 200
    assert status(create_curator_app(services), "/console/", **headers) == 303
