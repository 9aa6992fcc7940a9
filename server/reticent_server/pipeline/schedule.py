# SPDX-License-Identifier: Apache-2.0
"""The planned schedule of releases that are answered later, and the threads that keep to it.

When a release begins, when it is shown, how full a queue is, and what progress is reported follow
from requests, plans, cancellations and the clock alone. A fair queue (pipeline.fair_queue) says
whose turn it is; a turn that begins is fixed in the ledger.

Turns are kept by the clock that never goes back. The time of day, which may be set anew at any
moment, is what the ledger and readers are told, and nothing waits for it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition, Event, Lock, Thread, Timer

from reticent_server.domain.clock import Clock
from reticent_server.domain.reservation import Reservation
from reticent_server.events import EventLogger
from reticent_server.ledger.model import Pending
from reticent_server.pipeline.fair_queue import FairQueue, Waiting

log = EventLogger(__name__)

THREADS_PER_SLOT = 2
"""So that a computation that overruns its turn (which is counted) does not keep the next one
waiting."""

STOP_SECONDS = 30.0
"""After which a server that stops waits for no deadline any more: the lease of a release that is
not shown by then is given up, and the next server computes it."""

Computation = Callable[[], object]


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """When a turn began by plan. ms: since the epoch, by the time of day as it is now; seconds: on
    the clock that never goes back."""

    ms: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Turn:
    """A planned time, in milliseconds since the epoch."""

    start_ms: int
    end_ms: int

    def remaining_ms(self, now_ms: int) -> int:
        """Milliseconds until the turn ends, 0 afterwards. now_ms: since the epoch."""
        return max(0, self.end_ms - now_ms)

    def fraction(self, now_ms: int) -> float:
        """How much of the turn is over, from 0 to 1."""
        length = max(1, self.end_ms - self.start_ms)
        return min(1.0, max(0.0, (now_ms - self.start_ms) / length))


def visible_after_ms(grid_ms: int, deadline_ms: int) -> int:
    """From the beginning of a computation to when it is shown: the deadline, on the time grid."""
    return -(-deadline_ms // grid_ms) * grid_ms if grid_ms else deadline_ms


def turn_of(pending: Pending, now_ms: int) -> Turn:
    """The turn of a release that is charged and not settled. A queued one's has not begun, so it
    lies ahead even where it was expected earlier; one that has begun has, whatever the time of day
    was then."""
    later = max if pending.queued else min
    start = later(pending.start_ms, now_ms)
    return Turn(start, start + pending.duration_ms)


@dataclass(frozen=True, slots=True)
class Job:
    """What is done at a turn. reservation: under a queued lease.

    begin: given the planned start, takes the release for computing and gives the computation; None
    where there is nothing to compute (it was cancelled).
    """

    reservation: Reservation
    begin: Callable[[PlannedStart], Computation | None]


class ReleaseQueue:
    """Begins each release at its turn, in threads of its own.

    slots: turns at the same time. keep: prolongs the leases of those that wait, every
    `keep_seconds`. admission: held from looking how long a queue is until one more is charged.
    ended: set when nothing waits for its deadline any more.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        slots: int,
        keep: Callable[[Sequence[Reservation]], None],
        keep_seconds: float,
    ) -> None:
        self._clock = clock
        self._fair = FairQueue(slots)
        self._jobs: dict[str, Job] = {}
        self._keep = keep
        self._keep_ms = int(1000 * keep_seconds)
        self._kept_ms = 0
        self._pool = ThreadPoolExecutor(THREADS_PER_SLOT * slots, thread_name_prefix="release")
        self._changed = Condition()
        self._closed = False
        self._keeper: Thread | None = None
        self.admission = Lock()
        self.ended = Event()

    def now_ms(self) -> int:
        """The injected clock's time of day, in milliseconds since the epoch."""
        return int(self._clock.now().timestamp() * 1000)

    def _ticks(self) -> int:
        """Milliseconds that never go back."""
        return int(self._clock.monotonic() * 1000)

    def expected_start_ms(self, owner: str, own_ms: int) -> int:
        """When a new release of the owner would begin, after `own_ms` of its own planned time."""
        with self._changed:
            return self.now_ms() + self._fair.expected_wait_ms(owner, own_ms, self._ticks())

    def put(self, owner: str, duration_ms: int, job: Job) -> None:
        """At the end of the owner's queue."""
        waiting = Waiting(job.reservation.id, owner, duration_ms, self._ticks())
        with self._changed:
            if self._keeper is None:
                self._kept_ms = waiting.since_ms
                self._keeper = Thread(target=self._run, name="queue", daemon=True)
                self._keeper.start()
            self._jobs[waiting.id] = job
            self._fair.add(waiting)
            self._changed.notify()

    def drop(self, release_id: str) -> None:
        """Frees the turn of a release that was cancelled. (One in another process is found to be
        cancelled when its turn comes, and its turn is free at once.)"""
        with self._changed:
            if self._fair.drop(release_id):
                self._jobs.pop(release_id, None)
                self._changed.notify()

    def close(self) -> Sequence[Reservation]:
        """Begins nothing more, prolongs no lease more, and waits for what has begun, for its
        deadlines STOP_SECONDS at most; the reservations of what has not begun, whose leases the
        caller can give up."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._keeper is not None:
            self._keeper.join()
        limit = Timer(STOP_SECONDS, self.ended.set)
        limit.daemon = True
        limit.start()
        self._pool.shutdown(cancel_futures=True)
        limit.cancel()
        self.ended.set()
        with self._changed:
            return [job.reservation for job in self._jobs.values()]

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                if not self._begin_turn():
                    self._changed.wait(self._idle_seconds())
                held = self._to_keep()
            self._prolong(held)

    def _begin_turn(self) -> bool:
        turn = self._fair.begin(self._ticks())
        if turn is not None:
            self._pool.submit(self._at_turn, *turn)
        return turn is not None

    def _at_turn(self, waiting: Waiting, start: int) -> None:
        try:
            planned = PlannedStart(self.now_ms() - self._ticks() + start, start / 1000)
            computation = self._jobs[waiting.id].begin(planned)
        except Exception as error:  # noqa: BLE001 - nobody waits; the lease ends, and recovery finds it
            log.error("queued_release_failed", error=type(error).__name__)
            computation = None
        with self._changed:
            self._jobs.pop(waiting.id, None)
            if computation is None:
                self._fair.skip(waiting, self._ticks())
                self._changed.notify()
        if computation is not None:
            _compute(computation)

    def _idle_seconds(self) -> float | None:
        """Until the next turn can begin, or leases are to be prolonged; None: until something
        comes."""
        if not self._jobs:
            return None
        due = self._kept_ms + self._keep_ms
        begin = self._fair.next_begin_ms()
        return max(0, min(due, due if begin is None else begin) - self._ticks()) / 1000

    def _to_keep(self) -> Sequence[Reservation]:
        now = self._ticks()
        if now < self._kept_ms + self._keep_ms:
            return ()
        self._kept_ms = now
        return [job.reservation for job in self._jobs.values()]

    def _prolong(self, held: Sequence[Reservation]) -> None:
        try:
            self._keep(held)
        except Exception as error:  # noqa: BLE001 - tried again; where leases end, recovery queues anew
            log.warning("leases_not_kept", error=type(error).__name__)


def _compute(computation: Computation) -> None:
    try:
        computation()
    except Exception as error:  # noqa: BLE001 - nobody waits; the lease ends, and recovery finds it
        log.error("queued_release_failed", error=type(error).__name__)
