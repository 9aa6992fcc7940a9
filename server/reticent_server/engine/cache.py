# SPDX-License-Identifier: Apache-2.0
"""A byte-limited cache of encoded columns, keyed by data set version and column."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Condition
from typing import Any

from reticent_server.domain.private import Private

Key = tuple[str, str]
Columns = dict[str, Any]
Load = Callable[[list[str]], Columns]


class ColumnCache:
    """Least recently used columns go first; those that a pass holds stay.

    The arrays never exceed the limit: room is made before a column is read, and a pass for which
    there is none must read its rows as a stream.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._sizes: dict[Key, int] = {}
        self._kept: OrderedDict[Key, Private[Any]] = OrderedDict()
        self._reading: set[Key] = set()
        self._guests: set[Key] = set()
        self._holders: Counter[Key] = Counter()
        self._changed = Condition()

    @contextmanager
    def hold(
        self, version_id: str, sizes: Mapping[str, int], load: Load, *, evict: bool = True
    ) -> Iterator[Columns | None]:
        """The named arrays while the block runs, or None where there is no room for them.

        sizes: bytes by column, which are public. load: reads the columns that are absent. A column
        is read by one caller while those who also want it wait; callers of other columns do not.
        evict: whether columns that nobody holds make room; those of a caller who wants none go
        first.
        """
        wanted = {(version_id, name): size for name, size in sizes.items()}
        if not self._claim(wanted, evict=evict):
            yield None
            return
        try:
            yield self._filled(wanted, load)
        finally:
            self._let_go(wanted)

    def has(self, version_id: str, names: Iterable[str]) -> bool:
        """Whether all of the columns are here."""
        with self._changed:
            return all((version_id, name) in self._kept for name in names)

    def forget(self, ending: str) -> None:
        """Gives up columns that nobody will ask for again: of versions whose id ends so."""
        with self._changed:
            for key in [k for k in self._kept if k[0].endswith(ending) and not self._holders[k]]:
                del self._kept[key], self._sizes[key]

    def _claim(self, wanted: Mapping[Key, int], *, evict: bool) -> bool:
        """Makes room for the columns that are absent, and holds all of them."""
        with self._changed:
            missing = sum(size for key, size in wanted.items() if key not in self._sizes)
            free = self._limit - sum(self._sizes.values())
            spare = [k for k in self._kept if evict and not self._holders[k] and k not in wanted]
            spare.sort(key=lambda k: k not in self._guests)
            if missing > free + sum(self._sizes[k] for k in spare):
                return False
            while missing > free:
                oldest = spare.pop(0)
                free += self._sizes.pop(oldest)
                del self._kept[oldest]
            self._guests.intersection_update(self._sizes)
            self._guests.update(() if evict else wanted)
            self._sizes.update(wanted)
            self._holders.update(wanted.keys())
            return True

    def _filled(self, wanted: Mapping[Key, int], load: Load) -> Columns:
        while True:
            with self._changed:
                absent = [key for key in wanted if key not in self._kept]
                if not absent:
                    return {key[1]: self._touch(key) for key in wanted}
                mine = [key for key in absent if key not in self._reading]
                if not mine:
                    self._changed.wait()
                    continue
                self._reading.update(mine)
            self._read(mine, load)

    def _read(self, keys: list[Key], load: Load) -> None:
        try:
            arrays = load([name for _, name in keys])
            with self._changed:
                for key in keys:
                    arrays[key[1]].flags.writeable = False
                    self._kept[key] = Private(arrays[key[1]])
        finally:
            with self._changed:
                self._reading.difference_update(keys)
                self._changed.notify_all()

    def _touch(self, key: Key) -> Any:
        self._kept.move_to_end(key)
        return self._kept[key].unwrap()

    def _let_go(self, held: Mapping[Key, int]) -> None:
        """Ends a hold; the room of columns that could not be read is given up with the last one."""
        with self._changed:
            self._holders.subtract(held.keys())
            for key in held:
                if not self._holders[key]:
                    del self._holders[key]
                    if key not in self._kept:
                        self._sizes.pop(key, None)
