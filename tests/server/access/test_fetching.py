# SPDX-License-Identifier: Apache-2.0
"""Replies of an identity provider that was broken into: packed, endless, slow, or leading
elsewhere.
"""

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx
import pytest

from reticent_server.access.oidc import fetching
from reticent_server.access.oidc.fetching import MOST_BYTES, Fetcher
from reticent_server.errors import Unavailable

GOOD = b'{"issuer": "https://id.example"}'


def fetched(
    monkeypatch: pytest.MonkeyPatch, reply: httpx.Response, asked: list[httpx.Request] | None = None
) -> dict[str, object]:
    """What the fetcher makes of a reply. asked: gets what was sent."""

    def answer(request: httpx.Request) -> httpx.Response:
        (asked if asked is not None else []).append(request)
        return reply

    fetcher = Fetcher()
    monkeypatch.setattr(
        fetcher, "_client", httpx.Client(transport=httpx.MockTransport(answer), timeout=1)
    )
    try:
        return fetcher.get("https://id.example/a")
    finally:
        fetcher.close()


def test_a_plain_reply_is_asked_for_and_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[httpx.Request] = []
    reply = httpx.Response(200, content=iter([GOOD]))
    assert fetched(monkeypatch, reply, asked) == {"issuer": "https://id.example"}
    assert asked[0].headers["accept-encoding"] == "identity"


def test_a_packed_reply_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = httpx.Response(
        200, headers={"content-encoding": "gzip"}, content=iter([gzip.compress(GOOD)])
    )
    with pytest.raises(Unavailable):
        fetched(monkeypatch, packed)


def test_an_endless_reply_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def endless() -> Iterator[bytes]:
        while True:
            read.append(1)
            yield b" " * 65_536

    with pytest.raises(Unavailable):
        fetched(monkeypatch, httpx.Response(200, content=endless()))
    assert len(read) <= MOST_BYTES // 65_536 + 1


def test_a_slow_reply_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte at a time, each within the limit of a step: the clock moves by a second with each."""
    seconds = iter(range(1000))
    monkeypatch.setattr(fetching, "monotonic", lambda: float(next(seconds)))
    with pytest.raises(Unavailable):
        fetched(monkeypatch, httpx.Response(200, content=iter([b" "] * 20 + [GOOD])))


@pytest.mark.parametrize(
    "place",
    ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1:1/", "file:///etc/passwd"],
)
def test_no_redirection_is_followed(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    asked: list[httpx.Request] = []
    with pytest.raises(Unavailable):
        fetched(monkeypatch, httpx.Response(302, headers={"location": place}), asked)
    assert [str(request.url) for request in asked] == ["https://id.example/a"]


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
MOST_SENT = 1600  # pieces: 100 megabytes of the large ones; the slow ones take over 3 seconds
ENOUGH = 16 * MOST_BYTES  # bytes: more than sockets keep between the two ends


@contextmanager
def broken_provider(
    head: bytes, piece: bytes, pause: float = 0.0, end: bytes = b""
) -> Iterator[tuple[str, list[int]]]:
    """The address of a server that says `head`, `piece` until its caller leaves, and at last `end`;
    and the bytes that were taken from it."""
    sent, ended = [0], threading.Event()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(head)
            while sent[0] < MOST_SENT * len(piece) and not ended.wait(pause):
                connection.sendall(piece)
                sent[0] += len(piece)
            connection.sendall(end)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/keys", sent
        finally:
            ended.set()
            thread.join()


def refused(url: str) -> None:
    fetcher = Fetcher()
    try:
        with pytest.raises(Unavailable):
            fetcher.get(url)
    finally:
        fetcher.close()


@pytest.mark.parametrize("length", [b"Content-Length: 100000000\r\n\r\n", b"\r\n"])
def test_a_key_set_of_100_megabytes_or_without_end_is_left(length: bytes) -> None:
    with broken_provider(HEAD + length, b" " * 65_536) as (url, sent):
        refused(url)
    assert sent[0] <= ENOUGH


@pytest.mark.parametrize(
    ("head", "piece", "end"),
    [
        (HEAD + b"\r\n", b" ", b"{}"),
        (HEAD + b"X-Long: ", b"a", b"\r\n\r\n{}"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"\r\n{}"),
    ],
    ids=["body", "headers", "interim replies"],
)
def test_a_reply_that_never_stops_coming_is_cut(
    monkeypatch: pytest.MonkeyPatch, head: bytes, piece: bytes, end: bytes
) -> None:
    """Each piece comes within the limit of a step, and there are few bytes: time alone ends it."""
    monkeypatch.setattr(fetching, "EXCHANGE_SECONDS", 0.2)
    with broken_provider(head, piece, pause=0.002, end=end) as (url, _):
        refused(url)
