# SPDX-License-Identifier: Apache-2.0
"""Several worker processes on one listening socket, and the parent that keeps them running.

A worker shares nothing with another but the databases: it opens its own, and its cache holds its
part of the memory. One that dies is replaced; what it was computing is recovered when its lease
ends. Where the replacement does not start (the database is away, say), the others go on, and it is
tried again with pauses that double. Workers that do not even start when the server does end it. A
worker whose parent has died ends by itself.
"""

import os
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.synchronize import Event
from threading import Thread
from time import monotonic, sleep
from types import FrameType

from reticent_server.allocator import share_arenas
from reticent_server.api.logs import configure_logging, silence
from reticent_server.app import build_services, create_app
from reticent_server.cli.listening import Tls
from reticent_server.cli.running import GRACE_SECONDS, run
from reticent_server.errors import ReticentError
from reticent_server.events import EventLogger
from reticent_server.pipeline.calibration import keep_pace
from reticent_server.process import keep_to_itself
from reticent_server.settings import Settings

PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
"""Before a worker is replaced; doubled after each that did not start."""

_TICK_SECONDS = 0.25

log = EventLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerJob:
    """What each of the workers does. console: whether the curator's pages are on this port."""

    settings: Settings
    listener: socket.socket
    tls: Tls | None
    workers: int
    console: bool = True


@dataclass(slots=True)
class _Worker:
    """ready: set when it answers. pause: before it is replaced, in seconds; due: when that is over,
    on the clock that never goes back, once it has ended.
    """

    number: int
    process: SpawnProcess
    ready: Event
    pause: float = PAUSE_SECONDS
    due: float | None = None


class Supervisor:
    """Starts the workers, replaces those that die, and ends them all on a signal."""

    def __init__(self, job: WorkerJob) -> None:
        self._job = job
        self._context = get_context("spawn")  # a copy of a process with threads would not be safe
        self._workers = [self._started(number) for number in range(job.workers)]
        self._ending = False

    def run(self, announce: Callable[[], None]) -> int:
        """Until a signal; the exit status. announce: called when every worker answers."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        try:
            if not self._all_ready():
                return 0 if self._ending else 1
            announce()
            return self._kept_running()
        finally:
            self._end_all()

    def _all_ready(self) -> bool:
        for worker in self._workers:
            while not worker.ready.wait(_TICK_SECONDS):
                if self._ending or not worker.process.is_alive():
                    return False
        return True

    def _kept_running(self) -> int:
        while not self._ending:
            wait([worker.process.sentinel for worker in self._workers], _TICK_SECONDS)
            for at, worker in enumerate(self._workers):
                if not self._ending and not worker.process.is_alive():
                    self._workers[at] = self._replaced(worker)
            sleep(_TICK_SECONDS if any(w.due for w in self._workers) else 0)
        return 0

    def _replaced(self, worker: _Worker) -> _Worker:
        """The worker that has ended, until its pause is over; then a new one in its place."""
        if worker.due is None:
            log.error("worker_ended", worker=worker.number, exit_code=worker.process.exitcode)
            if worker.ready.is_set():
                worker.pause = PAUSE_SECONDS
            worker.due = monotonic() + worker.pause
        if monotonic() < worker.due:
            return worker
        try:
            return self._started(worker.number, min(2 * worker.pause, LONGEST_PAUSE_SECONDS))
        except OSError as error:  # no memory, or no room for a process
            log.error("worker_not_started", worker=worker.number, error=type(error).__name__)
            worker.due = monotonic() + LONGEST_PAUSE_SECONDS
            return worker

    def _started(self, number: int, pause: float = PAUSE_SECONDS) -> _Worker:
        ready = self._context.Event()
        process = self._context.Process(
            target=work, args=(self._job, number, ready), name=f"reticent-worker-{number}"
        )
        process.start()
        return _Worker(number, process, ready, pause)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def _end_all(self) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(GRACE_SECONDS + 5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def work(job: WorkerJob, number: int, ready: Event) -> None:
    """One worker: the first of them also finishes what dead processes left behind."""
    keep_to_itself()
    share_arenas()
    configure_logging(job.settings.log_level)
    silence()
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        services = build_services(job.settings)
        application = create_app(services, sweeps=number == 0, console=job.console)
    except ReticentError as error:
        sys.stderr.write(f"reticent: {error.detail}\n")
        sys.exit(1)
    keep_pace(services, job.workers)
    run(application, job.listener, job.tls, ready.set)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
