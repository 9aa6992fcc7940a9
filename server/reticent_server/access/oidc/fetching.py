# SPDX-License-Identifier: Apache-2.0
"""Documents of the identity provider: fetched over HTTPS, bounded, and kept for a while."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from socket import SHUT_RDWR
from threading import Lock, Timer
from time import monotonic
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

import httpx

from reticent_server.domain.clock import Clock
from reticent_server.errors import Unavailable
from reticent_server.events import EventLogger

T = TypeVar("T")

TIMEOUT_SECONDS = 5.0
"""For each step of an exchange. Who signs in waits for it; a provider answers in a tenth of
that."""

EXCHANGE_SECONDS = 15.0
"""For a whole exchange: a reply whose headers or body come a byte at a time keeps
no thread longer."""

CONNECTIONS = 8
"""At once, to the provider: forged sign-ins cannot make this server open more."""

MOST_BYTES = 1 << 20
"""Of a reply. Key sets and metadata of the large providers have less than 32 KiB."""

FRESH_SECONDS = 300.0
"""After which a document is fetched again: how long a key that the provider has withdrawn may go
on."""

STALE_SECONDS = 3600.0
"""While the provider does not answer, the last document is used for so long."""

RETRY_SECONDS = 30.0
"""Between two attempts that something unknown or a failure causes: forged tokens cannot cause
more."""

UNREACHABLE = "The identity provider did not answer as it should; try again, or use a key."

_OPENED = {"connection.connect_tcp.complete", "connection.start_tls.complete"}
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}

log = EventLogger(__name__)


class Fetcher:
    """GET and POST of JSON objects; no redirect is followed, so that no other host is asked."""

    def __init__(self) -> None:
        self._client: httpx.Client | None = None
        self._lock = Lock()

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Raises Unavailable."""
        return self._sent("GET", url, headers or {}, "")

    def post(self, url: str, headers: Mapping[str, str], body: str) -> dict[str, Any]:
        """The reply to a form; empty where what was sent is refused (400). Raises Unavailable."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._sent("POST", url, {**headers, **form}, body)

    def close(self) -> None:
        """Ends the connections; the next fetch opens new ones."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _sent(self, method: str, url: str, headers: Mapping[str, str], body: str) -> dict[str, Any]:
        accepted = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        cut = _Cut()
        try:
            with (
                cut,
                self._opened().stream(
                    method, url, headers=accepted, content=body, extensions={"trace": cut.follow}
                ) as response,
            ):
                is_refused = method == "POST" and response.status_code == httpx.codes.BAD_REQUEST
                return {} if is_refused else _object(response)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError) as error:
            log.error("identity_provider_failed", error=type(error).__name__)
            raise Unavailable(UNREACHABLE) from None

    def _opened(self) -> httpx.Client:
        """The client, made at first use: it reads certificates, and most commands never ask."""
        with self._lock:
            if self._client is None:
                limits = httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=0)
                self._client = httpx.Client(timeout=TIMEOUT_SECONDS, limits=limits)
            return self._client


class _Cut:
    """Ends the connection of an exchange that takes longer than EXCHANGE_SECONDS: the limit of a
    step holds for each read, and headers may come in many. Each exchange opens its own connection,
    which httpx's trace shows.
    """

    def __init__(self) -> None:
        self._stream: Any = None
        self._timer = Timer(EXCHANGE_SECONDS, self._end)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def follow(self, event: str, info: Mapping[str, Any]) -> None:
        """Takes the stream of a connection that was opened."""
        if event in _OPENED:
            self._stream = info["return_value"]

    def _end(self) -> None:
        with suppress(OSError):  # it may have ended by itself
            if self._stream is not None:
                self._stream.get_extra_info("socket").shutdown(SHUT_RDWR)


def _object(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of a reply. Raises HTTPError, ValueError, also for a packed one: its length
    says nothing."""
    response.raise_for_status()
    if response.headers.get("content-encoding", "identity") != "identity":
        raise ValueError("packed")
    body, until = b"", monotonic() + EXCHANGE_SECONDS
    for piece in response.iter_raw():
        body += piece
        if len(body) > MOST_BYTES or monotonic() > until:
            raise ValueError("too long")
    document = httpx.Response(200, content=body).json()
    if response.status_code != httpx.codes.OK or not isinstance(document, dict):
        raise ValueError("no object")
    return document


def safe_url(url: object, issuer: str) -> str:
    """The URL if it may be asked: HTTPS, or on this machine where the issuer is. Raises
    Unavailable."""
    if isinstance(url, str) and url.isprintable():
        parts, own = urlsplit(url), urlsplit(issuer)
        is_near = own.hostname in _LOOPBACK and parts.hostname in _LOOPBACK
        if parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and is_near)):
            return url
    log.error("identity_provider_url_refused")
    raise Unavailable(UNREACHABLE)


class Kept(Generic[T]):
    """A document that many threads use, and one of them fetches when it is due."""

    def __init__(self, fetch: Callable[[], T], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = Lock()
        self._value: T | None = None
        self._fetched = self._tried = float("-inf")

    def get(self, *, sooner: bool = False, at_once: bool = False) -> T:
        """The document. sooner: something was not in it, so it may be outdated; at_once: and nobody
        but the provider can have caused that. Raises Unavailable."""
        present = self._usable()
        pause = -1.0 if at_once else RETRY_SECONDS  # none: two within one tick of the clock, too
        due = self._age() > (pause if sooner else FRESH_SECONDS)
        if due and self._lock.acquire(blocking=present is None):
            try:
                self._refresh(pause)
            finally:
                self._lock.release()
            present = self._usable()
        if present is None:
            raise Unavailable(UNREACHABLE)
        return present

    def _refresh(self, pause: float) -> None:
        now = self._clock.monotonic()
        if now - self._tried <= pause:
            return
        self._tried = now
        try:
            self._value = self._fetch()
        except Unavailable:
            return  # the document before is used while it is usable
        self._fetched = now

    def _usable(self) -> T | None:
        return self._value if self._age() <= STALE_SECONDS else None

    def _age(self) -> float:
        return self._clock.monotonic() - self._fetched
