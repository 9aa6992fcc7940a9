# SPDX-License-Identifier: Apache-2.0
"""The threads of releases that are waited for, and those of reads: numbers of their own.

A release holds its thread until its deadline. On the threads that answer everything else, a few
dozen long fits would keep every free call waiting; here they keep only each other waiting, and one
analyst's at most half of the threads, so that other analysts' begin all the same. Who waits for a
thread is charged nothing yet; threads become free on the deadlines that plans fixed. How many may
wait is limited, too, so that one analyst cannot take every connection that the process may hold.
Before it is charged, a release is planned at its owner's turn among all free work (web.free_work),
and holds a place, but no thread.

Reads and probes (keys, accounts, data sets, stored releases, readiness) take milliseconds each:
nothing that takes longer has one of their threads, so none of it can keep them waiting.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from reticent_server.errors import RateLimited

FULL = 4
READS = 40
"""Threads of reads: as many as the library has by default for everything; none is held for longer
than a database takes.
"""

T = TypeVar("T")


class ReleaseThreads:
    """`number` threads, of which one owner has at most half (rounded up), and three times as many
    wait.
    """

    def __init__(self, number: int) -> None:
        self._all = CapacityLimiter(number)
        self._half = -(-number // 2)
        self._waiting: dict[str, tuple[CapacityLimiter, int]] = {}

    @contextmanager
    def place(self, owner: str) -> Iterator["ReleasePlace"]:
        """One of the owner's places, for the time of a release. Raises RateLimited."""
        own = self._joined(owner)
        try:
            yield ReleasePlace(own, self._all)
        finally:
            self._left(owner)

    def _joined(self, owner: str) -> CapacityLimiter:
        own, present = self._waiting.get(owner) or (CapacityLimiter(self._half), 0)
        if present >= FULL * self._half:
            raise RateLimited("Too many of your releases wait; ask again when one is answered.", 1)
        self._waiting[owner] = own, present + 1
        return own

    def _left(self, owner: str) -> None:
        own, present = self._waiting.pop(owner)
        if present > 1:
            self._waiting[owner] = own, present - 1


class ReleasePlace:
    """The place of a release that is waited for; its thread comes in the order of asking."""

    def __init__(self, own: CapacityLimiter, everybodys: CapacityLimiter) -> None:
        self._own = own
        self._all = everybodys

    async def run(self, call: Callable[[], T]) -> T:
        """What the call returns, from a thread."""
        async with self._own:
            return await to_thread.run_sync(call, limiter=self._all)


_THREADS: RunVar[ReleaseThreads] = RunVar("release_threads")


def release_threads(number: int) -> ReleaseThreads:
    """Those of the running event loop."""
    try:
        return _THREADS.get()
    except LookupError:
        _THREADS.set(ReleaseThreads(number))
        return _THREADS.get()


PROVIDER = 8
"""Threads of what asks the identity provider, as many as its connections: a token may have to wait
for it until an exchange is cut off, and holders of keys must not wait behind forged ones."""

_READS: RunVar[CapacityLimiter] = RunVar("reads")
_PROVIDER: RunVar[CapacityLimiter] = RunVar("provider")


async def read(call: Callable[[], T]) -> T:
    """What the call returns, from a thread of the running event loop's reads."""
    return await to_thread.run_sync(call, limiter=_limiter(_READS, READS))


async def ask_provider(call: Callable[[], T]) -> T:
    """What the call returns, from one of the threads that may wait for the identity provider."""
    return await to_thread.run_sync(call, limiter=_limiter(_PROVIDER, PROVIDER))


def _limiter(kept: RunVar[CapacityLimiter], number: int) -> CapacityLimiter:
    """That of the running event loop."""
    try:
        return kept.get()
    except LookupError:
        kept.set(CapacityLimiter(number))
        return kept.get()
