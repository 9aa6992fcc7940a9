# SPDX-License-Identifier: Apache-2.0
"""ASGI middleware: a limit on bodies, constant headers, a public log line, no exception text."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import cast

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from reticent_server.api.problems import problem, unexpected
from reticent_server.domain.clock import Clock
from reticent_server.events import EventLogger
from reticent_server.pipeline import metrics
from reticent_server.web.cookies import MOST_BYTES, take_cookies

access_log = EventLogger("reticent.access")
log = EventLogger(__name__)

FORGOTTEN = 16
"""How many times the limit on bodies is read of one that is too large."""

METHODS = metrics.LABELS["method"]
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
LEADING = frozenset({b"location", b"hx-redirect"})
"""Headers whose value is where a browser or a client goes next."""


class Edge:
    """Outermost: logs and counts (method, route template, status), puts the root path before the
    paths to which replies lead, and lets no exception out.

    No times in the log: when a reply was ready could depend on private cells. An exception's class
    and no more is logged; the engine lets none out that comes from a computation.
    """

    def __init__(self, app: ASGIApp, clock: Clock, root_path: str) -> None:
        self._app = app
        self._clock = clock
        self._base = root_path.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = self._clock.monotonic()
        status, release = 0, None

        async def sending(message: Message) -> None:
            nonlocal status, release
            if message["type"] == "http.response.start":
                status, release = message["status"], _release_id(message)
                headers = _below(self._base, message.get("headers", ()))
                message = {**message, "headers": _with_constant(headers)}
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - the last door; the text stays inside
            log.error("unexpected_error", error=type(error).__name__, route=_template(scope))
            if not status:
                await unexpected()(scope, receive, sending)
        method = scope["method"] if scope["method"] in METHODS else "other"
        metrics.answered(method, _template(scope), status, self._clock.monotonic() - started)
        access_log.info(
            "request", method=method, route=_template(scope), status=status, release=release
        )


class CookieLimit:
    """Takes cookies out of heads (web.cookies), and answers 431 where they are too long."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not take_cookies(scope):
            await _last(431, "cookies_too_large", "Cookies too large", _COOKIES)(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)


_COOKIES = (
    f"Cookies may have at most {MOST_BYTES} bytes: delete those of this host in your browser, then "
    "ask again."
)


class BodyLimit:
    """Reads a body of at most `limit` bytes in at most `seconds` before the application runs.

    Else 413 or 408, after which the connection is closed. Of a body that is too large the rest is
    read and forgotten for a while: who is still sending when a connection closes may miss the
    reply. longer: other limits by path, or by the beginning of one that ends in "/"; None: the
    application reads the body as it comes, within limits of its own.
    """

    def __init__(
        self,
        app: ASGIApp,
        limit: int,
        seconds: float,
        longer: Mapping[str, int | None] = MappingProxyType({}),
    ) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds
        self._longer = longer

    def _limit_of(self, path: str) -> int | None:
        if path in self._longer:
            return self._longer[path]
        parts = (self._longer[at] for at in self._longer if at[-1] == "/" and path.startswith(at))
        return next(parts, self._limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _has_two_lengths(scope):
            await _last(400, "two_lengths", "Two lengths", _TWO_LENGTHS)(scope, receive, send)
            return
        limit = self._limit_of(scope["path"])
        if limit is None:
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await _body(receive, limit)
        except TimeoutError:
            detail = f"A body must arrive within {self._seconds:g} seconds."
            await _last(408, "too_slow", "Body too slow", detail)(scope, receive, send)
            return
        if body is None:
            detail = f"A body may have at most {limit} bytes."
            await _last(413, "too_large", "Body too large", detail)(scope, receive, send)
            return
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Message:
            return first.pop() if first else await receive()

        await self._app(scope, replayed, send)


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body, or None where it is too large. A caller who has left sends what came."""
    body, length = bytearray(), 0
    while True:
        message = await receive()
        part = cast(bytes, message.get("body", b""))
        length += len(part)
        if length <= limit:
            body += part
        if length > FORGOTTEN * limit:
            return None
        if not message.get("more_body", False):
            return bytes(body) if length <= limit else None


_TWO_LENGTHS = "A body has a Content-Length or a Transfer-Encoding, not both."


def _has_two_lengths(scope: Scope) -> bool:
    """Whether others on the way may have read another length of the body, and so another next
    request (RFC 9112, 6.1: such a connection is closed after the reply).
    """
    names = {name for name, _ in scope["headers"]}
    return {b"content-length", b"transfer-encoding"} <= names


def _last(status: int, code: str, title: str, detail: str) -> Response:
    """A problem after which the connection is closed, whatever else the caller sends."""
    return problem(status, code, title, detail, headers={"Connection": "close"})


def _below(base: bytes, headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """A reply's headers, with `base` before each path of this server to which one leads."""
    for name, value in headers:
        leads = name.lower() in LEADING and value.startswith(b"/")
        yield name, base + value if leads else value


def _with_constant(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """A reply's headers and the constant ones that it does not set itself, as the console's pages
    do.
    """
    own = list(headers)
    present = {name.lower() for name, _ in own}
    return own + [header for header in HEADERS if header[0] not in present]


def _template(scope: Scope) -> str:
    """The route's template, such as /v1/releases/{release_id}: never the path as it was sent."""
    return getattr(scope.get("route"), "path", "unknown")


def _release_id(start: Message) -> str | None:
    """The id of a release just made, from the reply's Location (which redirections have, too)."""
    headers: dict[bytes, bytes] = dict(start.get("headers", ()))
    path, _, made = headers.get(b"location", b"").decode("latin-1").rpartition("/")
    return made if path == "/v1/releases" else None
