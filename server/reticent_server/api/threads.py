"""The threads of releases that are waited for: a number of their own.

A release holds its thread until its deadline. On the threads that answer everything else, a few dozen
long fits would keep every free call waiting; here they keep only each other waiting, and one analyst's
at most half of the threads, so that other analysts' begin all the same. Who waits for a thread is
charged nothing yet; threads become free on the deadlines that plans fixed.
"""

from collections.abc import Callable
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")


class ReleaseThreads:
    """`number` threads, of which one owner has at most half (rounded up)."""

    def __init__(self, number: int) -> None:
        self._all = CapacityLimiter(number)
        self._half = -(-number // 2)
        self._waiting: dict[str, tuple[CapacityLimiter, int]] = {}

    async def run(self, owner: str, call: Callable[[], T]) -> T:
        """What the call returns, from a thread, in the order of asking."""
        own = self._joined(owner)
        try:
            async with own:
                return await to_thread.run_sync(call, limiter=self._all)
        finally:
            self._left(owner)

    def _joined(self, owner: str) -> CapacityLimiter:
        own, present = self._waiting.get(owner) or (CapacityLimiter(self._half), 0)
        self._waiting[owner] = own, present + 1
        return own

    def _left(self, owner: str) -> None:
        own, present = self._waiting.pop(owner)
        if present > 1:
            self._waiting[owner] = own, present - 1


_THREADS: RunVar[ReleaseThreads] = RunVar("release_threads")


def release_threads(number: int) -> ReleaseThreads:
    """Those of the running event loop."""
    try:
        return _THREADS.get()
    except LookupError:
        _THREADS.set(ReleaseThreads(number))
        return _THREADS.get()
