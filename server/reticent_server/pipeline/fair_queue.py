# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is: a fair queue of releases that are answered later, on a number of slots.

A turn lasts its planned time, even where the computation ends before. One owner has one turn at a
time; of several owners who wait, the one begins who has had the least planned time since they began
to wait (start-time fair queueing: Goyal, Vin & Cheng 1997). Everything follows from arrivals,
cancellations, planned times and the clock: nothing that is computed can change it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """A release that waits for its turn. since_ms: when it began to, by the queue's clock."""

    id: str
    owner: str
    duration_ms: int
    since_ms: int


@dataclass(slots=True)
class _Slot:
    """When a slot is free, and whose turn it has been."""

    free_ms: int = 0
    waiting: Waiting | None = None


class FairQueue:
    """No threads and no clock of its own: callers say what the time is, in milliseconds
    that never go back."""

    def __init__(self, slots: int) -> None:
        self._slots = [_Slot() for _ in range(slots)]
        self._queues: dict[str, deque[Waiting]] = {}
        # The planned time that each owner has had, on the queue's scale, and that of who began
        # last.
        self._served: dict[str, int] = {}
        self._level = 0

    def add(self, waiting: Waiting) -> None:
        """At the end of its owner's queue."""
        self._queues.setdefault(waiting.owner, deque()).append(waiting)

    def drop(self, release_id: str) -> bool:
        """Takes a release out, whose turn has not begun; whether it was there."""
        for owner, queue in self._queues.items():
            kept = deque(w for w in queue if w.id != release_id)
            if len(kept) < len(queue):
                self._replace(owner, kept)
                return True
        return False

    def begin(self, now_ms: int) -> tuple[Waiting, int] | None:
        """The release whose turn it is, and when the turn began by plan; None: nobody's now."""
        slot = min(self._slots, key=lambda s: s.free_ms)
        owner = self._next_owner(now_ms)
        if owner is None or slot.free_ms > now_ms:
            return None
        queue = self._queues[owner]
        waiting = queue.popleft()
        start = max(waiting.since_ms, slot.free_ms, self._until(owner))
        self._level = max(self._level, self._served.get(owner, 0))
        self._served[owner] = self._level + waiting.duration_ms
        slot.free_ms, slot.waiting = start + waiting.duration_ms, waiting
        self._replace(owner, queue)
        return waiting, start

    def skip(self, waiting: Waiting, now_ms: int) -> None:
        """Gives back a turn that has just begun, as there is nothing to compute: it was
        cancelled."""
        for slot in self._slots:
            if slot.waiting is waiting:
                slot.free_ms, slot.waiting = now_ms, None
                if waiting.owner in self._served:
                    self._served[waiting.owner] -= waiting.duration_ms

    def next_begin_ms(self) -> int | None:
        """When somebody's turn can begin, at the earliest; None: nobody waits."""
        if not self._queues:
            return None
        first_owner = min(map(self._until, self._queues))
        return max(first_owner, min(slot.free_ms for slot in self._slots))

    def expected_wait_ms(self, owner: str, own_ms: int, now_ms: int) -> int:
        """How long a new release of the owner would wait, were nobody to come or to cancel.

        own_ms: the planned time of the owner's that comes before it. The owner gets a slot's time,
        or an equal share of all slots' where more owners wait than there are slots.
        """
        active = {
            slot.waiting.owner for slot in self._slots if slot.waiting and slot.free_ms > now_ms
        }
        crowd = len(active | set(self._queues) | {owner})
        free_ms = min(slot.free_ms for slot in self._slots)
        return max(free_ms - now_ms, own_ms * max(crowd, len(self._slots)) // len(self._slots), 0)

    def __iter__(self) -> Iterator[Waiting]:
        """All that wait."""
        for queue in self._queues.values():
            yield from queue

    def _next_owner(self, now_ms: int) -> str | None:
        """Of those whose last turn is over, the one who has had the least; then who waits
        longest."""
        ready = [owner for owner in self._queues if self._until(owner) <= now_ms]
        return min(ready, key=self._rank, default=None)

    def _rank(self, owner: str) -> tuple[int, int, str]:
        return max(self._level, self._served.get(owner, 0)), self._queues[owner][0].since_ms, owner

    def _until(self, owner: str) -> int:
        """When the owner's turn is over; 0 for one who has none."""
        own = (s.free_ms for s in self._slots if s.waiting and s.waiting.owner == owner)
        return max(own, default=0)

    def _replace(self, owner: str, queue: deque[Waiting]) -> None:
        """Forgets an owner for whom nothing waits; and what everybody has had, when nobody
        waits."""
        self._queues[owner] = queue
        if not queue:
            del self._queues[owner]
        if not self._queues:
            self._served, self._level = {}, 0
