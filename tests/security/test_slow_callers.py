# SPDX-License-Identifier: Apache-2.0
"""Callers without a key who send slowly, too much, or nothing: over the wire, and closed in the
end.
"""

import gzip
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from support.installations.small import Installation, Server, serving

POST = b"POST /v1/releases HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
CLOSED_AFTER = 1.0
EARLY = 0.1  # seconds: an event loop counts its timers from a clock that it has read before
MARGIN = 60.0  # seconds: of a machine that is busy with other things


@pytest.fixture(scope="module")
def hasty(installation_template: Installation) -> Iterator[Server]:
    """One for all tests: nobody here has a key, so nothing is written."""
    with serving(installation_template, max_body_seconds=1) as server:
        yield server


@pytest.fixture(scope="module")
def patient(installation_template: Installation) -> Iterator[Server]:
    """Where time is no reason for cutting off."""
    with serving(installation_template, max_body_seconds=600) as server:
        yield server


def said(server: Server, begin: bytes, drip: bytes = b"") -> tuple[bytes, float]:
    """What the server says until it closes the connection, and when that is, in seconds.

    begin: sent at once. drip: sent again and again.
    """
    host, port = server.url.removeprefix("http://").split(":")
    found, started = b"", time.monotonic()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(begin)
        connection.settimeout(0.2)
        while time.monotonic() < started + MARGIN:
            try:
                part = connection.recv(1 << 16)
            except TimeoutError:
                try:
                    connection.sendall(drip)
                except OSError:
                    break
                continue
            except ConnectionResetError:
                break
            if not part:
                break
            found += part
        else:
            raise AssertionError("it is open still")
    return found, time.monotonic() - started


@pytest.mark.slow
def test_a_body_that_drips_is_cut_off(hasty: Server) -> None:
    for drip in (b"", b" "):
        reply, seconds = said(hasty, POST + b"Content-Length: 60000\r\n\r\n{", drip)
        assert reply.startswith(b"HTTP/1.1 408 ")
        assert b'"too_slow"' in reply
        assert seconds >= CLOSED_AFTER - EARLY


def test_a_body_without_end_is_cut_off(patient: Server) -> None:
    """Of any declared length, or of none."""
    megabyte = b" " * (1 << 20)
    reply, _ = said(patient, POST + b"Content-Length: 999999999999\r\n\r\n" + 2 * megabyte)
    assert reply == b"" or reply.startswith(b"HTTP/1.1 413 ")
    chunk = b"10000\r\n" + b" " * (1 << 16) + b"\r\n"
    chunked = POST + b"Transfer-Encoding: chunked\r\n\r\n" + 2 * chunk + b"0\r\n\r\n"
    reply, _ = said(patient, chunked)
    assert reply.startswith(b"HTTP/1.1 413 ")
    assert b'"too_large"' in reply


def test_who_sends_somewhat_too_much_is_told(patient: Server) -> None:
    for length in (1 << 16) + 1, 1 << 19:
        reply = httpx.post(f"{patient.url}/v1/releases", content=b" " * length, timeout=60)
        assert (reply.status_code, reply.json()["code"]) == (413, "too_large")
        assert reply.headers["connection"] == "close"


@pytest.mark.slow
@pytest.mark.parametrize(
    "begin",
    [b"", b"GET /healthz HTT", GET, GET + b"\r\n" + GET],
    ids=["nothing", "half a line", "half a head", "half a second head"],
)
def test_a_head_that_does_not_come_is_not_waited_for(hasty: Server, begin: bytes) -> None:
    for drip in (b"", b"A: b\r\n" if begin.endswith(b"\r\n") else b"x" * bool(begin)):
        if not drip and begin.count(b"GET") == 2:
            continue  # idle after a reply: uvicorn's own limit, of 5 seconds
        reply, seconds = said(hasty, begin, drip)
        assert reply.count(b"HTTP/1.1 200") == begin.count(b"\r\n\r\n")
        assert seconds >= CLOSED_AFTER - EARLY


def test_a_head_without_end_is_cut_off(patient: Server) -> None:
    for begin in (GET + b"A: " + b"a" * (1 << 20), GET + b"a: b\r\n" * (1 << 17)):
        try:
            reply, _ = said(patient, begin)
        except ConnectionError:
            continue
        assert b" 200 " not in reply


@pytest.mark.slow
def test_a_connection_in_use_stays(hasty: Server) -> None:
    """Requests one after the other, for longer than a head may take. (A machine that stands still
    for a second makes a head late; not twenty times.)"""

    def stays() -> bool:
        with httpx.Client(base_url=hasty.url, timeout=60) as http:
            try:
                for _ in range(6):
                    assert http.get("/healthz").status_code == 200
                    time.sleep(0.3)
            except httpx.TransportError:
                return False
        return True

    assert any(stays() for _ in range(20))


@pytest.mark.parametrize("order", [1, -1])
def test_a_body_of_two_lengths_is_refused_and_nothing_after_it_is_read(
    patient: Server, order: int
) -> None:
    """What others on the way took for a part of the body would else be a request of its own."""
    lengths = [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"][::order]
    hidden = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    found, seconds = said(patient, POST + b"".join(lengths) + b"\r\n" + hidden)
    assert found.count(b"HTTP/1.1 ") == 1
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"two_lengths"' in found
    assert seconds < MARGIN


@pytest.mark.parametrize("blank", [b" ", b"\t"])
def test_a_folded_header_line_is_refused_and_nothing_after_it_is_read(
    patient: Server, blank: bytes
) -> None:
    """A proxy that reads it as a line of its own would see another head than this server does."""
    folded = b"X-Forwarded: a\r\n" + blank + b"Content-Length: 5\r\n"
    hidden = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    found, seconds = said(patient, GET + folded + b"\r\n" + hidden)
    assert found.count(b"HTTP/1.1 ") == 1
    assert found.startswith(b"HTTP/1.1 400 ")
    assert seconds < MARGIN


def test_a_folded_line_of_a_trailer_is_refused(patient: Server) -> None:
    chunked = POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX: a\r\n b\r\n\r\n"
    found, _ = said(patient, chunked)
    assert found.startswith(b"HTTP/1.1 400 ") or not found


def test_a_compressed_body_is_not_unpacked(patient: Server) -> None:
    """64 KB of gzip can hold 64 MB: a body is read as it comes, and this one is no JSON."""
    packed = gzip.compress(b'{"dataset": "' + b"a" * (1 << 20) + b'"}')
    with httpx.Client(base_url=patient.url) as http:
        sent = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        answered = http.post("/v1/releases", content=packed, headers=sent)
    assert answered.status_code == 401


@pytest.mark.parametrize(
    ("rest", "code"),
    [
        (b"A: " + b"a" * (1 << 14) + b"\r\n\r\n", b"head_too_large"),
        (b"A: b\r\n" * 200 + b"\r\n", b"head_too_large"),
        (b'Cookie: a="' + b'\\"' * 2100 + b'"\r\n\r\n', b"cookies_too_large"),
        ((b"Cookie: a=" + b"b" * 1000 + b"\r\n") * 5 + b"\r\n", b"cookies_too_large"),
    ],
    ids=["long", "many", "a long cookie", "many cookies"],
)
@pytest.mark.parametrize("path", [b"/healthz", b"/console/", b"/v1/budget", b"/nothing"])
def test_a_head_that_is_too_large_is_refused_with_a_word(
    patient: Server, path: bytes, rest: bytes, code: bytes
) -> None:
    found, _ = said(patient, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + rest)
    assert found.startswith(b"HTTP/1.1 431 ")
    assert b'"code":"' + code + b'"' in found
    assert found.count(b"HTTP/1.1 ") == 1


def test_blanks_before_no_value_are_read_at_once(patient: Server) -> None:
    """h11 alone would take two seconds of the event loop for each of these."""
    found, _ = said(patient, GET + b"A:" + b" " * 16_000 + b"\0\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"not_http"' in found


def test_many_small_chunks_are_refused(patient: Server) -> None:
    found, _ = said(patient, POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n \r\n" * 20_000)
    assert found.startswith(b"HTTP/1.1 400 ") or not found
