# SPDX-License-Identifier: Apache-2.0
"""Reads ahead in a thread of its own, a bounded number of batches."""

from collections import deque
from collections.abc import Generator, Iterator
from threading import Condition, Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class _Shelf(Generic[T]):
    """A few items between a reader and a taker, either of whom may end it."""

    def __init__(self, depth: int) -> None:
        self._items: deque[T] = deque()
        self._depth = depth
        self._ended = self._given_up = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def put(self, item: T) -> bool:
        """Waits for a place; False where nobody wants the items any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or len(self._items) < self._depth)
            self._items.append(item)
            self._changed.notify_all()
            return not self._given_up

    def end(self, error: BaseException | None = None) -> None:
        """No further item comes."""
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify_all()

    def take(self) -> list[T]:
        """The next item in a list; an empty one after the last. Raises what ended the reading."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._ended)
            if self._items:
                self._changed.notify_all()
                return [self._items.popleft()]
            if self._error is not None:
                raise self._error
            return []

    def give_up(self) -> None:
        """Nobody takes another item."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()


def prefetched(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """The same items and then the same error; at most `depth` + 2 items are in memory.

    The reading thread ends with the iteration, also with one that is given up.
    """
    shelf: _Shelf[T] = _Shelf(depth)
    reader = Thread(target=_fill, args=(items, shelf), name="reader", daemon=True)
    reader.start()
    try:
        while batch := shelf.take():
            yield batch.pop()
    finally:
        shelf.give_up()
        reader.join()


def _fill(items: Iterator[T], shelf: _Shelf[T]) -> None:
    try:
        for item in items:
            if not shelf.put(item):
                break
    except BaseException as error:  # noqa: BLE001 - raised again where the items are wanted
        shelf.end(error)
    else:
        shelf.end()
