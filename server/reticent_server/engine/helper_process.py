# SPDX-License-Identifier: Apache-2.0
"""What a helper process does (engine.helper): the sums of rows of mapped columns, or a constant
status.

An exception's text may depend on a private cell: none leaves, and nothing is written.
"""

import os
import pickle
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from threadpoolctl import threadpool_limits

from reticent_server.allocator import keep_pages
from reticent_server.domain.scratch import ReusedScratch
from reticent_server.domain.steps import SumStep
from reticent_server.engine.block_sums import added, block_sums
from reticent_server.engine.pieces import Arrays, RowSlice
from reticent_server.engine.shared_memory import mapped
from reticent_server.process import keep_to_itself

READY, FAILED, UNABLE = b"ready", b"failed", b"unable"
MOST_FILES = 128  # descriptors in one message: Linux takes 253


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What a pass does with which arrays, by number."""

    step: SumStep
    columns: Mapping[str, int]
    missing: Mapping[str, int]
    marks: tuple[int, ...]
    ends: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """files: (number, kind, rows) of arrays whose descriptors follow. gone: those to give up.

    order: the pickled Order of a pass, which comes with its first rows. rows: (start, low, high);
    for none there is no answer.
    """

    files: list[tuple[int, str, int]]
    gone: list[int]
    order: bytes | None
    rows: list[tuple[int, int, int]]


class Work:
    """The mapped arrays, and the pass that was asked for last."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        self._scratch = ReusedScratch()
        self._order: tuple[SumStep, Arrays] | None = None

    def take(self, message: Message, descriptors: list[int]) -> None:
        """Maps what is new; gives up what is gone."""
        if message.order is not None or message.gone:
            self._order = None
        for number in message.gone:
            self._held.pop(number, None)
        for (number, kind, rows), descriptor in zip(message.files, descriptors, strict=True):
            self._held[number] = mapped(descriptor, kind, rows)
        if message.order is not None:
            try:
                order: Order = pickle.loads(message.order)  # noqa: S301 - from the server
            except Exception:  # noqa: BLE001 - a map that this process cannot import
                return
            self._order = order.step, self._arrays(order)

    def _arrays(self, order: Order) -> Arrays:
        return Arrays(
            columns={name: self._held[k] for name, k in order.columns.items()},
            missing={name: self._held[k] for name, k in order.missing.items()},
            marks=tuple(self._held[k] for k in order.marks),
            ends=order.ends,
        )

    def reply(self, rows: list[tuple[int, int, int]]) -> bytes:
        """The pickled sums of the present order over (start, low, high) rows, or UNABLE or
        FAILED."""
        if self._order is None:
            return UNABLE
        step, arrays = self._order
        try:
            sums: list[Any] | None = None
            for start, low, high in rows:
                block = RowSlice(arrays, start, low, high).block(self._scratch)
                sums = added(sums, block_sums(step, block))
        except Exception:  # noqa: BLE001 - its text may depend on a private cell
            return FAILED
        return pickle.dumps(sums)


def serve(line: Connection, ours: socket.socket) -> None:
    """Answers until the server hangs up."""
    work = Work()
    line.send_bytes(READY)
    while True:
        message: Message = pickle.loads(line.recv_bytes())  # noqa: S301 - from the server
        work.take(message, _received(ours, len(message.files)))
        if message.rows:
            line.send_bytes(work.reply(message.rows))


def _received(ours: socket.socket, number: int) -> list[int]:
    descriptors: list[int] = []
    while len(descriptors) < number:
        descriptors += socket.recv_fds(ours, 1, MOST_FILES)[1]
    return descriptors


def main() -> None:
    """Serves the parent until it hangs up. The first argument is the socket's descriptor."""
    keep_to_itself()
    keep_pages()
    threadpool_limits(1)
    ours = socket.socket(fileno=int(sys.argv[1]))
    with suppress(EOFError, OSError):
        serve(Connection(os.dup(ours.fileno())), ours)


if __name__ == "__main__":
    main()
