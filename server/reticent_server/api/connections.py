# SPDX-License-Identifier: Apache-2.0
"""Connections on which no request comes are closed, so that silence takes no place of others'
requests.

uvicorn closes a connection that is idle after a reply; it waits without end for the first request
of one, and for the rest of a head that has begun. Header lines that are folded are refused: a proxy
in front may have read them as others do not (RFC 9112, 5.2).
"""

import asyncio
from typing import Any, ClassVar

import h11
from h11._receivebuffer import ReceiveBuffer  # h11 has no option for it
from uvicorn.protocols.http.h11_impl import H11Protocol


class _Heads(ReceiveBuffer):
    """What has come of a connection; a head or a trailer with a folded line is no request."""

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Called by h11. Raises LocalProtocolError, which h11 turns into one of the caller's:
        status 400.
        """
        lines = super().maybe_extract_lines()
        if any(line.startswith((b" ", b"\t")) for line in lines or ()):
            raise h11.LocalProtocolError("a folded header line")
        return lines


class Connection(H11Protocol):
    """The head of a request must arrive within `seconds` of its first byte; the first request's,
    within `seconds` of the connection. h11 holds at most 64 KB of a head."""

    seconds: ClassVar[float]
    _head: asyncio.TimerHandle | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.conn._receive_buffer = _Heads()  # noqa: SLF001

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

    def _await_head(self) -> None:
        """From now, unless a head is awaited already: further bytes of it gain no time."""
        if self._head is None:
            self._head = self.loop.call_later(self.seconds, self.transport.close)

    def _forget(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


def connections(seconds: float) -> type[Connection]:
    """The connections of a server that waits so long for a head."""
    return type("Connection", (Connection,), {"seconds": seconds})
