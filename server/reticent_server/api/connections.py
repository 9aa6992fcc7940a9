# SPDX-License-Identifier: Apache-2.0
"""Connections: what is refused of a request before anything else reads it.

uvicorn closes a connection that is idle after a reply; it waits without end for the first request
of one, and for the rest of a head that has begun. It takes heads of any length that arrive at once,
and bodies in chunks of one byte, each of which costs the event loop as much as a large one. h11
reads the blanks before a header's value in a time that grows with their square. Header lines that
are folded are refused: a proxy in front may have read them as others do not (RFC 9112, 5.2).
"""

import asyncio
from http import HTTPStatus
from typing import Any, ClassVar

import h11
from fastapi import Response
from h11._receivebuffer import ReceiveBuffer, blank_line_regex  # h11 has no option for it
from uvicorn.protocols.http.h11_impl import H11Protocol

from reticent_server.api.problems import problem

MOST_HEAD_BYTES = 16 * 1024
"""Of a request's line and headers, and of a body's trailer; nginx and Apache take as much or
less."""

MOST_HEADERS = 128
"""Lines of a head. Browsers behind two proxies send thirty."""

FEW_CHUNKS = 1024
LEAST_CHUNK_BYTES = 64
"""Mean of a body's chunks, framing included, once there are more than a few: h11 takes 7 μs for
each."""


class _Heads(ReceiveBuffer):
    """What has come of a connection. What it refuses is no request. is_too_long: why."""

    def __init__(self) -> None:
        super().__init__()
        self.is_too_long = False
        self._taken = self._chunks = 0

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """The lines of a head or trailer, without the blanks around values, which are no part of
        them. Called by h11. Raises LocalProtocolError, which h11 turns into one of the caller's.
        """
        if len(self) > MOST_HEAD_BYTES and not self._ends_soon():
            self._refuse_length("a head that is too long")
        lines = super().maybe_extract_lines()
        if lines is None:
            return None
        if len(lines) > MOST_HEADERS:
            self._refuse_length("too many headers")
        if any(line.startswith((b" ", b"\t")) for line in lines):
            raise h11.LocalProtocolError("a folded header line")
        self._taken = self._chunks = 0
        return [_without_blanks(line) for line in lines]

    def maybe_extract_next_line(self) -> bytearray | None:
        """The line before a chunk. Called by h11. Raises LocalProtocolError."""
        line = super().maybe_extract_next_line()
        self._chunks += line is not None
        if self._chunks > FEW_CHUNKS and self._taken < LEAST_CHUNK_BYTES * self._chunks:
            raise h11.LocalProtocolError("too many small chunks")
        return line

    def _extract(self, count: int) -> bytearray:
        self._taken += count
        return super()._extract(count)

    def _ends_soon(self) -> bool:
        is_empty = self._data.startswith((b"\n", b"\r\n"))
        return is_empty or blank_line_regex.search(self._data, 0, MOST_HEAD_BYTES) is not None

    def _refuse_length(self, why: str) -> None:
        self.is_too_long = True
        raise h11.LocalProtocolError(why)


def _without_blanks(line: bytearray) -> bytearray:
    name, colon, value = line.partition(b":")
    return name + colon + value.strip(b" \t")


class Connection(H11Protocol):
    """The head of a request must arrive within `seconds` of its first byte; the first request's,
    within `seconds` of the connection."""

    seconds: ClassVar[float]
    _head: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._heads = self.conn._receive_buffer = _Heads()  # noqa: SLF001

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Called by the event loop."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        else:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._forget()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """The reply to what is no request, unless another one has begun; the connection ends."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            reply = _TOO_LONG if self._heads.is_too_long else _UNREADABLE
            reason = HTTPStatus(reply.status_code).phrase.encode()
            headers = [*reply.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=reply.status_code, headers=headers, reason=reason),
                h11.Data(data=bytes(reply.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _await_head(self) -> None:
        """From now, unless a head is awaited already: further bytes of it gain no time."""
        if self._head is None:
            self._head = self.loop.call_later(self.seconds, self.transport.close)

    def _forget(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


_TOO_LONG: Response = problem(
    431,
    "head_too_large",
    "Head too large",
    f"A request's line and headers may have at most {MOST_HEAD_BYTES} bytes and {MOST_HEADERS} "
    "lines: ask with fewer or shorter fields, or send them in a body.",
)
_UNREADABLE: Response = problem(
    400, "not_http", "No request", "This is no HTTP request that can be read in one way only."
)


def connections(seconds: float) -> type[Connection]:
    """The connections of a server that waits so long for a head."""
    return type("Connection", (Connection,), {"seconds": seconds})
