# SPDX-License-Identifier: Apache-2.0
"""Who does free work when: plans, forecasts, previews and simulations, on a few threads of their
own.

What is free costs nobody a budget, so that one caller could ask for all of a server. Here a few
pieces are worked on at a time, and one of each owner's. Of several owners who wait, the one begins
who has had the least processor time since they began to wait (start-time fair queueing: Goyal, Vin
& Cheng 1997), however many pieces each has sent. What an owner may have waiting is limited, and
what all may; the next is refused at once and told when to come again. Who hangs up is forgotten:
what waits is dropped, and what is worked on ends at its next checkpoint (domain.patience). Those
whose pieces take long leave one slot to the others, who then need not wait for the end of one.

It keeps no thread busy with waiting, and is used by one event loop.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi import Request

from reticent_server.domain.patience import Patience
from reticent_server.errors import CallerLeft, RateLimited
from reticent_server.pipeline import metrics
from reticent_server.settings import Settings

ALL = 64
"""Pieces of all owners that may wait, each with a body of 64 KB at most; beyond it an owner has
one."""

_USUAL_SECONDS = 0.05
"""A piece before any has been measured: a plan of a regression on a few terms."""

_NEWEST = 0.2
"""Weight of the newest piece in the mean by which Retry-After is told."""

_LONG_SECONDS = 0.3
"""Of a piece after which its owner is one of those whose pieces take long; half of it is remembered
after each."""

_LONGEST_WAIT = 30
"""Seconds of Retry-After at most: the client's longest pause."""

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Turn:
    """A piece of work of an owner; `comes` when it is its turn. bounded: whether it counts among
    those that may wait."""

    owner: str
    bounded: bool
    comes: asyncio.Future[None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class FreeWork:
    """`slots` pieces at a time, one of an owner's, each for `seconds` of processor time at most;
    `own` of one owner's wait."""

    def __init__(self, slots: int, own: int, seconds: float) -> None:
        self._slots = slots
        self._own = own
        self._seconds = seconds
        self._threads = CapacityLimiter(slots)
        self._running: set[str] = set()
        self._queues: dict[str, deque[_Turn]] = {}
        # The time that each owner has had, on the queue's scale, and that of who began last.
        self._served: dict[str, float] = {}
        self._level = 0.0
        self._usual = _USUAL_SECONDS
        self._long: dict[str, float] = {}

    async def run(
        self,
        owner: str,
        request: Request | None,
        call: Callable[[], T],
        *,
        bounded: bool = True,
    ) -> T:
        """What the call returns, from a thread, at the owner's turn.

        request: whose caller may hang up. bounded: whether it is refused where too many wait; not,
        where how many wait is limited elsewhere. Raises RateLimited, CallerLeft, and InvalidQuery
        for what takes too long.
        """
        patience = Patience(self._seconds)
        turn = self._joined(owner, bounded=bounded)
        gone = asyncio.ensure_future(_gone(request))
        try:
            await _first(turn, gone)
            gone.add_done_callback(lambda _: patience.leave())
            return await to_thread.run_sync(partial(_within, patience, call), limiter=self._threads)
        except CallerLeft:
            metrics.FREE_WORK_REFUSED.labels("left").inc()
            raise
        finally:
            gone.cancel()
            self._leave(turn, patience.spent)

    @property
    def waiting(self) -> int:
        """Pieces whose turn has not come."""
        return sum(map(len, self._queues.values()))

    def _counted(self, owner: str) -> int:
        return sum(turn.bounded for turn in self._queues.get(owner, ()))

    def _joined(self, owner: str, *, bounded: bool) -> _Turn:
        own = self._counted(owner)
        if bounded and (own >= self._own or (own and sum(map(self._counted, self._queues)) >= ALL)):
            metrics.FREE_WORK_REFUSED.labels("full").inc()
            wait = ceil((own + 1) * self._usual * max(1.0, len(self._queues) / self._slots))
            raise RateLimited(
                "Too many of your plans and pages wait; ask again when one is answered.",
                min(wait, _LONGEST_WAIT),
            )
        turn = _Turn(owner, bounded)
        self._queues.setdefault(owner, deque()).append(turn)
        metrics.FREE_WORK_WAITING.inc()
        self._begin()
        return turn

    def _begin(self) -> None:
        """Gives free slots to those whose turn it is."""
        while len(self._running) < self._slots:
            ready = [owner for owner in self._queues if self._may_begin(owner)]
            owner = min(ready, key=self._had, default=None)
            if owner is None:
                return
            turn = self._queues[owner][0]
            self._level = self._served[owner] = self._had(owner)
            self._running.add(owner)
            self._taken_out(turn)
            turn.comes.set_result(None)

    def _may_begin(self, owner: str) -> bool:
        if owner in self._running:
            return False
        long = sum(self._takes_long(other) for other in self._running)
        return not self._takes_long(owner) or long < max(1, self._slots - 1)

    def _takes_long(self, owner: str) -> bool:
        return self._long.get(owner, 0.0) > _LONG_SECONDS

    def _had(self, owner: str) -> float:
        return max(self._level, self._served.get(owner, 0.0))

    def _taken_out(self, turn: _Turn) -> None:
        queue = self._queues[turn.owner]
        with suppress(ValueError):
            queue.remove(turn)
            metrics.FREE_WORK_WAITING.dec()
        if not queue:
            del self._queues[turn.owner]

    def _leave(self, turn: _Turn, seconds: float) -> None:
        """After its work, or before: whoever waits has a turn the sooner."""
        if not turn.comes.done():
            self._taken_out(turn)
            return
        self._running.discard(turn.owner)
        self._served[turn.owner] = self._served.get(turn.owner, self._level) + seconds
        self._usual += _NEWEST * (seconds - self._usual)
        self._long[turn.owner] = max(seconds, self._long.get(turn.owner, 0.0) / 2)
        self._begin()
        if not self._queues and not self._running:
            self._served, self._level = {}, 0.0


async def _first(turn: _Turn, gone: asyncio.Future[None]) -> None:
    """Until its turn comes. Raises CallerLeft where the caller hangs up before."""
    await asyncio.wait({turn.comes, gone}, return_when=asyncio.FIRST_COMPLETED)
    if not turn.comes.done():
        raise CallerLeft("The caller has hung up.")


def _within(patience: Patience, call: Callable[[], T]) -> T:
    with patience.limits():
        return call()


async def _gone(request: Request | None) -> None:
    """Ends when the caller has hung up; the body has been read before."""
    if request is None:
        await asyncio.get_running_loop().create_future()
        return
    while (await request.receive())["type"] != "http.disconnect":
        pass


_WORK: RunVar[FreeWork] = RunVar("free_work")


def free_work(settings: Settings) -> FreeWork:
    """That of the running event loop."""
    try:
        return _WORK.get()
    except LookupError:
        _WORK.set(FreeWork(settings.plan_slots, settings.plan_queue, settings.plan_seconds))
        return _WORK.get()
