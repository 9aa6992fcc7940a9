# SPDX-License-Identifier: Apache-2.0
"""Cookies of a request, read by the pages that need one and by nothing else.

The web framework parses all cookies of every request with the standard library's function, which
before Python 3.11.10 and 3.12.6 takes a time that grows with the square of a quoted value
(CVE-2024-7592). The header is therefore taken out of the head before the framework sees it.
"""

import http.cookies
import sys

from fastapi import Request
from starlette.types import Scope

MOST_BYTES = 4096
"""Of all cookies of a request. This server's own have less than 3 KB."""

_KEPT = "reticent.cookies"


def take_cookies(scope: Scope) -> bool:
    """Takes the cookies out of a request's head, for `cookie`; whether they are as short as they
    must be."""
    found = [value for name, value in scope["headers"] if name == b"cookie"]
    if found:
        scope["headers"] = [field for field in scope["headers"] if field[0] != b"cookie"]
    scope[_KEPT] = b"; ".join(found)
    return len(scope[_KEPT]) <= MOST_BYTES


def cookie(request: Request, name: str) -> str | None:
    """The value of a cookie, as it was set; None where it was not sent. Of several, the last."""
    given = None
    for pair in request.scope.get(_KEPT, b"").decode("latin-1").split(";"):
        key, _, value = pair.partition("=")
        if key.strip() == name:
            given = value.strip().strip('"')
    return given


def reads_cookies_slowly() -> bool:
    """Whether this Python's own parser of cookies has that fault: its version has it, and whoever
    packed it has not mended it."""
    version = sys.version_info[:3]
    is_old = version < (3, 11, 10) or (3, 12) <= version < (3, 12, 6)
    return is_old and not hasattr(http.cookies, "_unquote_sub")
