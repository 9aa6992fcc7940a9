# SPDX-License-Identifier: Apache-2.0
"""Cookies: which are read, by whom, and what they are when they have come."""

import http.cookies
from typing import Any

import pytest
from fastapi import Request

from reticent_server.pipeline.services import Services
from reticent_server.web.cookies import MOST_BYTES, cookie, take_cookies
from support.installations.small import Api

HOSTILE = 'a="' + '\\"' * 2000 + '"'


def request_with(*values: str) -> tuple[Request, bool]:
    headers = [(b"host", b"x")] + [(b"cookie", value.encode("latin-1")) for value in values]
    scope: dict[str, Any] = {"type": "http", "headers": headers}
    short = take_cookies(scope)
    return Request(scope), short


def test_nothing_but_the_page_that_asks_reads_cookies(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework reads them for every route, by a function that is quadratic."""

    def read(_text: str) -> str:
        raise AssertionError("the standard library has read a cookie")

    monkeypatch.setattr(http.cookies, "_unquote", read)
    api = Api(services, None)
    for path in ("/healthz", "/v1/budget", "/console/", "/workbench/sign-in", "/verify", "/no"):
        assert len(HOSTILE) < MOST_BYTES
        reply = api.get(path, headers={"Cookie": HOSTILE})
        assert reply.status_code in {200, 303, 401, 404}


def test_cookies_are_found_as_they_were_set() -> None:
    request, short = request_with('a=1; b = 2;c="x/y"', "d=a=b; empty=; a=3")
    assert short
    found = {name: cookie(request, name) for name in ("a", "b", "c", "d", "empty", "none")}
    expected = {"a": "3", "b": "2", "c": "x/y", "d": "a=b", "empty": "", "none": None}
    assert found == expected
    assert request.cookies == {}
    assert "cookie" not in request.headers


@pytest.mark.parametrize("parts", [1, 2])
def test_long_cookies_are_too_long(parts: int) -> None:
    for more in (0, 1):
        length = (MOST_BYTES - 2 * (parts - 1)) // parts
        values = ["a" * length] * (parts - 1) + ["a" * (length + more)]
        assert request_with(*values)[1] is not bool(more)
