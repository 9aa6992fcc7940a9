# SPDX-License-Identifier: Apache-2.0
"""Replies of an identity provider that was broken into: packed, endless, slow, or leading
elsewhere.
"""

import gzip
from collections.abc import Iterator

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
