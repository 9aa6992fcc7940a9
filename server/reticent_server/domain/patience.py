# SPDX-License-Identifier: Apache-2.0
"""How long work that is charged to nobody may take, and whether anybody still waits for it.

Planning reads public facts alone, so its time tells nothing: it may be measured and cut short. Its
loops call `checkpoint`, which does nothing where no limit is set, as in a computation on private
cells. What counts is the processor time of the thread, so that a busy machine refuses nothing that
an idle one plans.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import thread_time

from reticent_server.errors import CallerLeft, InvalidQuery


class Patience:
    """seconds: of processor time that the work may take. has_left: whether nobody waits for it,
    beside who says so by `leave`. spent: what it has taken, once it has ended, here and in other
    processes (`elsewhere`)."""

    def __init__(self, seconds: float, has_left: Callable[[], bool] = lambda: False) -> None:
        self._seconds = seconds
        self._has_left = has_left
        self._begun = 0.0
        self._left = False
        self.elsewhere = self.spent = 0.0

    def leave(self) -> None:
        """Nobody waits for it any more. Called from any thread."""
        self._left = True

    def check(self) -> None:
        """Raises CallerLeft, or InvalidQuery where the work has taken too long."""
        if self._left or self._has_left():
            raise CallerLeft("The caller has hung up.")
        if thread_time() - self._begun > self._seconds:
            raise InvalidQuery(
                f"This takes more than {self._seconds:g} s to plan: ask with fewer terms, "
                "levels, groups or curves."
            )

    @contextmanager
    def limits(self) -> Iterator[None]:
        """The work of the block, in this thread, is held to it."""
        self._begun = thread_time()
        token = _CURRENT.set(self)
        try:
            self.check()
            yield
        finally:
            _CURRENT.reset(token)
            self.spent = thread_time() - self._begun + self.elsewhere


_CURRENT: ContextVar[Patience | None] = ContextVar("patience", default=None)


def checkpoint() -> None:
    """Where a loop may end early. Raises CallerLeft or InvalidQuery where the patience of this work
    has ended."""
    current = _CURRENT.get()
    if current is not None:
        current.check()


def took(seconds: float) -> None:
    """Another process has worked for so long on the current work of this thread."""
    current = _CURRENT.get()
    if current is not None:
        current.elsewhere += seconds
