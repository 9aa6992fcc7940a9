# SPDX-License-Identifier: Apache-2.0
"""What a connection hands on to h11, which reads some texts in a time that grows with their square,
and what it refuses before."""

import h11
import pytest

from reticent_server.api.connections import (
    FEW_CHUNKS,
    LEAST_CHUNK_BYTES,
    MOST_HEAD_BYTES,
    MOST_HEADERS,
    _Heads,
)

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


def lines_of(text: bytes) -> list[bytes]:
    heads = _Heads()
    heads += text
    return [bytes(line) for line in heads.maybe_extract_lines() or ()]


def outcome(*parts: bytes) -> tuple[bytes, bool]:
    """The body that comes of the parts, and whether something was refused."""
    connection = h11.Connection(h11.SERVER)
    connection._receive_buffer = _Heads()
    body = b""
    for part in parts:
        connection.receive_data(part)
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError:
                return body, True
            if isinstance(event, h11.Data):
                body += event.data
            elif not isinstance(event, h11.Request):
                break
    return body, False


def test_blanks_around_values_do_not_reach_h11() -> None:
    """It reads `n` of them before what is no value in n² steps."""
    for blank in (b" ", b"\t", b" \t"):
        blanks = blank * 1000
        lines = lines_of(GET + b"A:" + blanks + b"b" + blank + b"c" + blanks + b"\r\nB:\0\r\n\r\n")
        assert lines[2:] == [b"A:b" + blank + b"c", b"B:\0"]
        assert lines_of(GET + b"A:" + blanks + b"\0\r\n\r\n")[2:] == [b"A:\0"]


@pytest.mark.parametrize("pieces", [1, 7, 4096])
def test_the_longest_head_is_taken_and_a_longer_one_refused(pieces: int) -> None:
    for more in (0, 1):
        length = MOST_HEAD_BYTES - len(GET) - len(b"A: \r\n\r\n") + more
        text = GET + b"A: " + b"a" * length + b"\r\n\r\n"
        step = -(-len(text) // pieces)
        parts = [text[at : at + step] for at in range(0, len(text), step)]
        assert outcome(*parts) == (b"", bool(more))


def test_many_headers_are_refused() -> None:
    for number in (MOST_HEADERS - 2, MOST_HEADERS - 1):
        refused = number > MOST_HEADERS - 2
        assert outcome(GET + b"A: b\r\n" * number + b"\r\n") == (b"", refused)
        body = POST + b"1\r\na\r\n0\r\n" + b"A: b\r\n" * (number + 2) + b"\r\n"
        assert outcome(body) == (b"a", refused)


def test_many_small_chunks_are_refused_and_many_large_ones_are_not() -> None:
    small = b"1\r\na\r\n"
    assert outcome(POST, *[small] * (FEW_CHUNKS - 1)) == (b"a" * (FEW_CHUNKS - 1), False)
    body, refused = outcome(POST + small * 10 * FEW_CHUNKS)
    assert refused
    assert len(body) <= FEW_CHUNKS
    large = b"40\r\n" + b"a" * LEAST_CHUNK_BYTES + b"\r\n"
    body, refused = outcome(POST + large * 3 * FEW_CHUNKS)
    assert (len(body), refused) == (3 * FEW_CHUNKS * LEAST_CHUNK_BYTES, False)


def test_what_follows_the_last_chunk_may_be_long() -> None:
    """A next request, whose body comes with it."""
    after = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n" + b"b" * 30000
    assert outcome(POST + b"1\r\na\r\n0\r\n\r\n" + after) == (b"a", False)
