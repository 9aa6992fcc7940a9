"""The planned schedule of releases that are answered later, and the threads that keep to it.

Turns are fixed when a release is accepted, from requests and plans alone: when it begins, when it is
shown, how full a queue is, and what progress is reported are functions of public facts. A turn lasts
its planned time even where the computation has ended before. One analyst's releases follow each other;
different analysts' run side by side, on a number of slots that the plans' deadlines have room for.
"""

import heapq
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from math import ceil
from threading import Condition, Lock, Thread

import structlog

from reticent_server.domain.clock import Clock
from reticent_server.errors import QueueFull
from reticent_server.ledger.model import Pending
from reticent_server.settings import Settings

log = structlog.get_logger(__name__)

Job = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Turn:
    """A planned time, in milliseconds since the epoch."""

    start_ms: int
    end_ms: int

    def remaining_ms(self, now_ms: int) -> int:
        return max(0, self.end_ms - now_ms)

    def fraction(self, now_ms: int) -> float:
        """How much of the turn is over, from 0 to 1."""
        length = max(1, self.end_ms - self.start_ms)
        return min(1.0, max(0.0, (now_ms - self.start_ms) / length))


def visible_after_ms(grid_ms: int, deadline_ms: int) -> int:
    """From the beginning of a computation to when it is shown: the deadline, on the time grid."""
    return -(-deadline_ms // grid_ms) * grid_ms if grid_ms else deadline_ms


def turn_of(settings: Settings, pending: Pending, deadline_ms: int) -> Turn:
    """The turn of a release that is charged and not settled: its lease began with it."""
    start = pending.lease_until_ms - 1000 * settings.lease_seconds
    return Turn(start, start + visible_after_ms(settings.reply_grid_ms, deadline_ms))


class Slots:
    """When each of a number of places is free, by plan."""

    def __init__(self, number: int) -> None:
        self._free_ms = [0] * number

    def book(self, earliest_ms: int, duration_ms: int, latest_end_ms: int) -> Turn | None:
        """The first turn from `earliest_ms` on; None, and nothing booked, if it ends too late.

        Of the slots that are free by then the one that was used last, so that one analyst's turns
        follow each other on one slot.
        """
        slot = min(range(len(self._free_ms)), key=lambda k: self._wait(k, earliest_ms))
        start = max(earliest_ms, self._free_ms[slot])
        turn = Turn(start, start + duration_ms)
        if turn.end_ms > latest_end_ms:
            return None
        self._free_ms[slot] = turn.end_ms
        return turn

    def _wait(self, slot: int, earliest_ms: int) -> tuple[int, int]:
        free = self._free_ms[slot]
        return max(0, free - earliest_ms), -free


class ReleaseQueue:
    """Accepts releases to be answered later, and begins each at its turn.

    slots: turns at the same time. limit_seconds: how far ahead one analyst's last turn may end.
    """

    def __init__(self, clock: Clock, *, slots: int, limit_seconds: int) -> None:
        self._clock = clock
        self._slots = Slots(slots)
        self._limit_ms = 1000 * limit_seconds
        self._pool = ThreadPoolExecutor(2 * slots, thread_name_prefix="release")
        self._waiting: list[tuple[int, int, Job]] = []
        self._numbers = count()
        self._changed = Condition()
        self._closed = False
        self._keeper: Thread | None = None
        self.admission = Lock()

    def now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def turn(self, pending: Sequence[Turn], duration_ms: int) -> Turn:
        """A turn after the analyst's `pending` ones. Raises QueueFull; nothing is then booked.

        To be called with `admission` held, together with what makes the release pending.
        """
        now = self.now_ms()
        earliest = max([now, *(turn.end_ms for turn in pending)])
        found = self._slots.book(earliest, duration_ms, now + self._limit_ms)
        if found is None:
            excess = earliest + duration_ms - now - self._limit_ms
            raise QueueFull(self._limit_ms // 1000, max(1, ceil(excess / 1000)))
        return found

    def put(self, start_ms: int, job: Job) -> None:
        """Runs a job at its planned start."""
        with self._changed:
            heapq.heappush(self._waiting, (start_ms, next(self._numbers), job))
            if self._keeper is None:
                self._keeper = Thread(target=self._keep, name="queue", daemon=True)
                self._keeper.start()
            self._changed.notify()

    def close(self) -> None:
        """Begins nothing more; waits for what has begun. What has not is found by recovery."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._pool.shutdown()

    def _keep(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                wait = self._wait_seconds()
                if wait is None or wait > 0:
                    self._changed.wait(wait)
                    continue
                _, _, job = heapq.heappop(self._waiting)
                self._pool.submit(_run, job)

    def _wait_seconds(self) -> float | None:
        if not self._waiting:
            return None
        return (self._waiting[0][0] - self.now_ms()) / 1000


def _run(job: Job) -> None:
    try:
        job()
    except Exception as error:  # noqa: BLE001 - nobody waits; the lease ends, and recovery finds it
        log.error("queued_release_failed", error=type(error).__name__)
