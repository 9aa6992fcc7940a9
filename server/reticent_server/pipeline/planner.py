# SPDX-License-Identifier: Apache-2.0
"""Where plans are made: in this process, or in processes that do nothing else.

Python lets one thread of a process run at a time, and hands over between any two calls of numpy:
two threads that plan designs of hundreds of columns would slow every reply of the server down, and
each other. The first piece of planning that takes long therefore starts processes for planning
(planner_process), and as soon as one is ready it gets all of it. What they get and give is public.
They are niced, so that fits and reads come first, and the system limits their time and memory: a
question beyond it is refused, and the process replaced. Whoever asks waits until one is ready and
free.
"""

import pickle
import socket
import subprocess
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from threading import Lock
from time import sleep, thread_time
from typing import Any, TypeVar

from reticent_server.domain.patience import checkpoint, took
from reticent_server.errors import CallerLeft, InvalidQuery
from reticent_server.events import EventLogger
from reticent_server.pipeline.planner_process import READY, STOP, Done, PlanningOrder
from reticent_server.process import child, ended

_MODULE = "reticent_server.pipeline.planner_process"

DEAR_SECONDS = 0.1
"""Processor time of a piece from which processes are worth it: plans of usual regressions take a
tenth of it."""

_LOOK_SECONDS = 0.05
"""Between two looks whether a caller still waits: so long is a process busy for nobody."""

_LOST = (
    "This takes too much time or memory to plan: ask with fewer terms, levels, groups or curves."
)

T = TypeVar("T")

log = EventLogger(__name__)


class Planner:
    """`number` processes at most, each for one piece of at most `seconds` of processor time and
    `megabytes` at a time."""

    def __init__(self, number: int, seconds: float, megabytes: int) -> None:
        self._number = number
        self._limits = seconds, megabytes
        self._lock = Lock()
        self._idle: list[_Process] = []
        self._present = 0
        self._closed = False

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """What a function of a module returns for arguments that pickle; raises what it raises, and
        InvalidQuery."""
        process = self._taken()
        if process is None:
            return self._here(function, arguments)
        try:
            result, error, seconds, _ = process.asked(
                PlanningOrder(function, arguments, self._limits[0])
            )
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
        """Starts the processes that are not there; those for which the system has no room now, with
        the next piece that takes long."""
        with self._lock:
            while self._present < self._number and not self._closed:
                try:
                    process = _Process(self._limits[1])
                except OSError as error:
                    log.warning("no_planning_process", error=type(error).__name__)
                    return
                self._idle.append(process)
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
        """A process that is ready, when there is one; None where there are none."""
        while self._present:
            with self._lock:
                lost = [
                    process for process in self._idle if not process.is_ready() and process.lost
                ]
                ready = [process for process in self._idle if process.is_ready()]
                if ready:
                    self._idle.remove(ready[0])
                    return ready[0]
                for process in lost:  # at its start: another one would be, too
                    self._idle.remove(process)
                    self._present -= 1
            for process in lost:
                process.close()
            checkpoint()
            sleep(_LOOK_SECONDS)
        return None

    def _back(self, process: "_Process") -> None:
        with self._lock:
            if not (process.lost or self._closed):
                self._idle.append(process)
                return
            self._present -= 1
        process.close()
        self.start()


class _Process:
    """One process, for one piece at a time."""

    def __init__(self, megabytes: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as failed:
            failed.enter_context(ours)
            self._process: subprocess.Popen[bytes] = child(_MODULE, theirs, str(megabytes))
            failed.pop_all()
        self._line = Connection(ours.detach())
        self._ready = self.lost = False
        self.close = weakref.finalize(self, ended, self._process, self._line)

    def is_ready(self) -> bool:
        """Whether the process has said that it can plan."""
        if not self._ready and not self.lost:
            try:
                self._ready = self._line.poll(0) and self._line.recv_bytes() == READY
            except (OSError, EOFError):
                self.lost = True
        return self._ready

    def asked(self, order: PlanningOrder) -> Done:
        """The answer. Raises OSError or EOFError where the process has gone.

        One whose answer was not read to its end, for whatever reason, is lost: the next order would
        get that answer. So is one that has had no memory left, or an error that nobody has
        foreseen, which may be the same by another name: a module whose import that has cut short
        fails whoever comes next.
        """
        self.lost = True
        self._line.send_bytes(pickle.dumps(order))
        self._await()
        done: Done = pickle.loads(self._line.recv_bytes())  # noqa: S301 - our own process
        self.lost = done[-1]
        return done

    def _await(self) -> None:
        """Until there is an answer; whom nobody waits for any more is told to stop, once."""
        try:
            while not self._line.poll(_LOOK_SECONDS):
                checkpoint()
        except (CallerLeft, InvalidQuery):  # of the caller, and of this thread's own patience
            self._line.send_bytes(STOP)
