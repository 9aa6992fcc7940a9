# SPDX-License-Identifier: Apache-2.0
"""The workbench over a copied installation, by bare requests, with a curator's text that would take
over a page.
"""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from reticent_server.app import create_app
from reticent_server.pipeline.services import Services
from support.installations.small import Installation, copied, opened


@dataclass
class Browser:
    """A client with cookies, as a browser has them, at an application that runs in this process."""

    application: Any
    services: Services
    cookies: httpx.Cookies

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self._send("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self._send("POST", path, **options)

    def form_token(self, path: str) -> str:
        found = re.search(r'name="form_token" value="([0-9a-f]{96})"', self.get(path).text)
        assert found
        return found[1]

    def sign_in(self, key: str) -> httpx.Response:
        token = self.form_token("/workbench/sign-in")
        return self.post("/workbench/sign-in", data={"form_token": token, "key": key})

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.application)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", cookies=self.cookies
            ) as client:
                reply = await client.request(method, path, **options)
                self.cookies = client.cookies
                return reply

        return asyncio.run(send())


@dataclass
class Bench:
    """keys: by analyst's name."""

    services: Services
    keys: dict[str, str]
    application: Any

    def browser(self, name: str = "") -> Browser:
        browser = Browser(self.application, self.services, httpx.Cookies())
        if name:
            assert browser.sign_in(self.keys[name]).status_code == 303
        return browser


@pytest.fixture
def bench(installation_template: Installation, tmp_path: Path) -> Iterator[Bench]:
    with (
        copied(installation_template, tmp_path / "bench") as installation,
        opened(installation.settings) as services,
    ):
        yield Bench(services, installation.keys, create_app(services))
