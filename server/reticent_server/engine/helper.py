# SPDX-License-Identifier: Apache-2.0
"""A process that maps blocks for a thread of the server, so that threads do not wait for one
interpreter.

Python lets one thread of a process run at a time, and hands over between any two calls of numpy;
with blocks as small as the processor's cache wants them, two threads then are no faster than one. A
thread therefore sends the numbers of its rows to a process of its own, which has the cached columns
mapped into its memory, read only, and sends exact integer sums back. They are the thread's own bit
for bit; a helper that is lost, or not ready, or cannot do something, is done without.

It talks to nobody else, gets none of the server's settings, writes nothing, and ends with the
server.
"""

import os
import pickle
import socket
import weakref
from collections.abc import Sequence
from multiprocessing.connection import Connection
from threading import Lock
from typing import Any

from reticent_server.domain.steps import SumStep
from reticent_server.engine.helper_process import FAILED, MOST_FILES, READY, UNABLE, Message, Order
from reticent_server.engine.pieces import Arrays, RowSlice
from reticent_server.engine.shared_memory import File, file_of, numbers
from reticent_server.process import child, ended

FAILURE = "a block could not be computed"
"""All that is said of a map that failed."""
_MODULE = "reticent_server.engine.helper_process"


class Helper:
    """One process, for one thread. It is started by the first call, and used from when it is
    ready."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = child(_MODULE, theirs)
        self._socket = ours
        self._line = Connection(os.dup(ours.fileno()))
        self._ready = self.lost = False
        self._busy = Lock()
        self._known: set[int] = set()
        self._pass = -1
        self._end = weakref.finalize(self, ended, self._process, self._line, ours)

    def sums(self, number: int, step: SumStep, pieces: Sequence[RowSlice]) -> list[Any] | None:
        """The step's integer sums of the pieces; None where the thread must add them up by itself.

        number: of the pass, whose step and arrays are the same every time. Raises RuntimeError,
        with a constant text, where the map fails.
        """
        arrays = pieces[0].arrays
        files = _files(arrays)
        whole = all(piece.arrays is arrays and piece.records is None for piece in pieces)
        if files is None or not whole or not self._is_ready():
            return None
        try:
            with self._busy:
                reply = self._asked(number, step, pieces, files)
        except (OSError, EOFError):
            self.lost = True
            return None
        except Exception:  # noqa: BLE001 - a step that does not pickle
            return None
        if reply == FAILED:
            raise RuntimeError(FAILURE)
        return None if reply == UNABLE else pickle.loads(reply)  # noqa: S301 - our own process

    def tidy(self) -> None:
        """Lets the process give up columns that the server has given up."""
        if not self._busy.acquire(blocking=False):
            return  # it is told with the next rows
        try:
            self._give_up()
        finally:
            self._busy.release()

    def _give_up(self) -> None:
        gone = self._known - numbers()
        if gone and not self.lost:
            try:
                self._line.send_bytes(pickle.dumps(Message([], sorted(gone), None, [])))
            except OSError:
                self.lost = True
            self._known -= gone
            self._pass = -1

    def close(self) -> None:
        """Ends the process; a sum that it was asked for counts as lost."""
        self.lost = True
        self._end()

    def _is_ready(self) -> bool:
        if not self._ready and not self.lost:
            try:
                self._ready = self._line.poll(0) and self._line.recv_bytes() == READY
            except (OSError, EOFError):
                self.lost = True
        return self._ready and not self.lost

    def _asked(
        self, number: int, step: SumStep, pieces: Sequence[RowSlice], files: dict[int, File]
    ) -> bytes:
        gone = self._known - numbers()
        known = number == self._pass and not gone
        order = None if known else pickle.dumps(_order(step, pieces[0].arrays, files))
        new = [file for file in files.values() if file.number not in self._known]
        message = Message(
            files=[(file.number, file.kind, file.rows) for file in new],
            gone=sorted(gone),
            order=order,
            rows=[(piece.start, piece.low, piece.high) for piece in pieces],
        )
        self._line.send_bytes(pickle.dumps(message))
        for k in range(0, len(new), MOST_FILES):
            some = [file.descriptor for file in new[k : k + MOST_FILES]]
            socket.send_fds(self._socket, [b"f"], some)
        self._known = (self._known - gone) | {file.number for file in new}
        self._pass = number
        return self._line.recv_bytes()


def _files(arrays: Arrays) -> dict[int, File] | None:
    """The files of all arrays, by the arrays' ids; None where one is not in a file."""
    everything = (*arrays.columns.values(), *arrays.missing.values(), *arrays.marks)
    files = {id(array): file for array in everything if (file := file_of(array)) is not None}
    return files if all(id(array) in files for array in everything) else None


def _order(step: SumStep, arrays: Arrays, files: dict[int, File]) -> Order:
    return Order(
        step=step,
        columns={name: files[id(values)].number for name, values in arrays.columns.items()},
        missing={name: files[id(mask)].number for name, mask in arrays.missing.items()},
        marks=tuple(files[id(marks)].number for marks in arrays.marks),
        ends=arrays.ends,
    )
