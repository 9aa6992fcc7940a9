# SPDX-License-Identifier: Apache-2.0
"""Where plans are made: in this process, or in processes that do nothing else.

Python lets one thread of a process run at a time, and hands over between any two calls of numpy: two threads that plan designs of
hundreds of columns would slow every reply of the server down, and each other. The first piece of planning that takes long therefore
starts processes for planning (planner_process), and as soon as one is ready it gets all of it. What they get and give is public. They are
niced, so that fits and reads come first, and the system limits their time and memory: a question beyond it is refused, and the
process replaced. Until one is ready, and where none is free, a piece is worked on by the thread that asks.
"""

import pickle
import socket
import subprocess
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Lock
from time import thread_time
from typing import Any, TypeVar

from reticent_server.domain.patience import checkpoint, took
from reticent_server.errors import CallerLeft, InvalidQuery
from reticent_server.pipeline.planner_process import READY, STOP, Done, Order
from reticent_server.process import child, ended

_MODULE = "reticent_server.pipeline.planner_process"

DEAR_SECONDS = 0.1
"""Processor time of a piece from which processes are worth it: plans of usual regressions take a tenth of it."""

_LOOK_SECONDS = 0.05
"""Between two looks whether a caller still waits: so long is a process busy for nobody."""

_LOST = (
    "This takes too much time or memory to plan: ask with fewer terms, levels, groups or curves."
)

T = TypeVar("T")


class Planner:
    """`number` processes at most, each for one piece of at most `seconds` of processor time and `megabytes` at a time."""

    def __init__(self, number: int, seconds: float, megabytes: int) -> None:
        self._number = number
        self._limits = seconds, megabytes
        self._lock = Lock()
        self._idle: list[_Process] = []
        self._present = 0
        self._closed = False

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function of a module returns for arguments that pickle; raises what it raises, and InvalidQuery."""
        process = self._taken()
        if process is None:
            return self._here(function, arguments)
        try:
            result, error, seconds = process.asked(Order(function, arguments, self._limits[0]))
        except (OSError, EOFError):
            raise InvalidQuery(_LOST) from None
        finally:
            self._back(process)
        took(seconds)
        if error is not None:
            raise error
        answer: T = result
        return answer

    def start(self) -> None:
        """Starts the processes that are not there; they are used from when they are ready."""
        with self._lock:
            while self._present < self._number and not self._closed:
                self._idle.append(_Process(self._limits[1]))
                self._present += 1

    def close(self) -> None:
        """Ends those that are idle; those at work end with their piece."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()

    def _here(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        begun = thread_time()
        try:
            return function(*arguments)
        finally:
            if thread_time() - begun > DEAR_SECONDS:
                self.start()

    def _taken(self) -> "_Process | None":
        with self._lock:
            for place, process in enumerate(self._idle):
                if process.is_ready():
                    return self._idle.pop(place)
        return None

    def _back(self, process: "_Process") -> None:
        with self._lock:
            if process.lost:
                self._present -= 1
            elif not self._closed:
                self._idle.append(process)
                return
        process.close()


class _Process:
    """One process, for one piece at a time."""

    def __init__(self, megabytes: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process: subprocess.Popen[bytes] = child(_MODULE, theirs, str(megabytes))
        self._line = Connection(ours.detach())
        self._ready = self.lost = False
        self.close = weakref.finalize(self, ended, self._process, self._line)

    def is_ready(self) -> bool:
        if not self._ready:
            try:
                self._ready = self._line.poll(0) and self._line.recv_bytes() == READY
            except (OSError, EOFError):
                self.lost = True
        return self._ready

    def asked(self, order: Order) -> Done:
        """The answer. Raises OSError or EOFError where the process has gone, and CallerLeft."""
        try:
            self._line.send_bytes(pickle.dumps(order))
            self._await()
            done: Done = pickle.loads(self._line.recv_bytes())  # noqa: S301 - our own process
        except (OSError, EOFError):
            self.lost = True
            raise
        return done

    def _await(self) -> None:
        """Until there is an answer; whom nobody waits for any more is told to stop, once."""
        try:
            while not self._line.poll(_LOOK_SECONDS):
                checkpoint()
        except CallerLeft:
            self._line.send_bytes(STOP)
