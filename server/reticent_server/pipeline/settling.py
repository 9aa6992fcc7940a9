# SPDX-License-Identifier: Apache-2.0
"""Storing answers through a database that is away for a moment: nothing that was paid for is
stranded.

An answer that is computed and cannot be stored is tried again, for as long as a caller waits, and
then in the background until its lease has ended. So is the giving up of a lease. A retry right
after the database is back finds the answer. (Of a process that dies meanwhile, the lease ends by
itself.)
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread

from reticent_server.domain.clock import Clock
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import Unavailable
from reticent_server.events import EventLogger
from reticent_server.ledger.service import Ledger, Undecided

log = EventLogger(__name__)

PATIENCE_SECONDS = 10.0
"""How long a caller waits for an answer to be stored, beyond its deadline: longer than a restart of
a database usually takes, shorter than callers' own limits."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 1.0
"""Pauses double, so that a database that comes back is not overrun by those who wait."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Something to be tried again. until: seconds on the clock that never goes back."""

    attempt: Callable[[], object]
    until: float


class Settler:
    """Settles, and gives up leases, of one process's reservations.

    seconds: how long a reservation's lease lasts; after it another process may compute it.
    """

    def __init__(self, ledger: Ledger, clock: Clock, seconds: float) -> None:
        self._ledger = ledger
        self._clock = clock
        self._seconds = seconds
        self._tasks: list[_Task] = []
        self._changed = Condition()
        self._closed = False
        self._thread: Thread | None = None

    def settle(self, reservation: Reservation, status: str, body: bytes) -> bytes:
        """Stores the answer, or gives the one that was stored first. Raises Unavailable where the
        database stays away for PATIENCE_SECONDS; it is then stored as soon as it is back."""
        attempt = partial(self._ledger.settle, reservation, status, body)
        end, pause = self._clock.monotonic() + PATIENCE_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            try:
                return attempt()
            except Unavailable:
                if self._clock.monotonic() + pause > end:
                    self._later(attempt)
                    raise
            self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    def give_up(self, *leases: str) -> None:
        """Ends leases, now or as soon as the database is back; raises nothing of the database's."""
        attempt = partial(self._ledger.give_up, *leases)
        try:
            attempt()
        except Unavailable:
            self._later(attempt)

    @contextmanager
    def giving_up_undecided(self) -> Iterator[None]:
        """Gives up, in a while, what the block may have got without knowing: it raises
        Undecided."""
        try:
            yield
        except Undecided as error:
            self._later(partial(self._ledger.give_up, *error.leases))
            raise

    def close(self) -> None:
        """A last attempt at what is left."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        self._try_all()

    def _later(self, attempt: Callable[[], object]) -> None:
        log.warning("settling_postponed")
        with self._changed:
            self._tasks.append(_Task(attempt, self._clock.monotonic() + self._seconds))
            if self._thread is None:
                self._thread = Thread(target=self._run, name="settling", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tasks or self._closed)
                if self._closed:
                    return
                self._changed.wait(LONGEST_PAUSE_SECONDS / 2)
            self._try_all()

    def _try_all(self) -> None:
        """In the order in which they came, until one finds the database away."""
        with self._changed:
            now = self._clock.monotonic()
            self._tasks = [task for task in self._tasks if task.until > now]
            tasks = list(self._tasks)
        for task in tasks:
            try:
                task.attempt()
            except Unavailable:
                return
            except Exception as error:  # noqa: BLE001 - the lease ends, and recovery finds it
                log.error("settling_failed", error=type(error).__name__)
            with self._changed:
                self._tasks.remove(task)
