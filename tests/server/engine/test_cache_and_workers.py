# SPDX-License-Identifier: Apache-2.0
"""The cache's limit and its waiting, reading ahead, and threads shared between passes."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Never

import numpy as np
import pytest

from reticent_server.domain.steps import CountSum, SumStep
from reticent_server.engine.cache import ColumnCache
from reticent_server.engine.pieces import Arrays, RowSlice
from reticent_server.engine.prefetch import prefetched
from reticent_server.engine.workers import TURN_BLOCKS, Workers
from support.processes.waiting import PATIENCE, until


class Columns:
    """Loads arrays of 8 numbers, and says which were loaded."""

    def __init__(self) -> None:
        self.loaded = []

    def __call__(self, names: Any) -> dict[Any, Any]:
        self.loaded.append(sorted(names))
        return {name: np.full(8, float(ord(name))) for name in names}


def held(cache: Any, names: Any, load: Any, version: str = "v") -> Any:
    with cache.hold(version, dict.fromkeys(names, 64), load) as arrays:
        return None if arrays is None else {k: v[0] for k, v in arrays.items()}


def test_least_recently_used_columns_go_first() -> None:
    cache, load = ColumnCache(3 * 64), Columns()
    for names in ("ab", "c", "a", "d", "ac", "b"):
        assert held(cache, names, load) == {name: float(ord(name)) for name in names}
    assert load.loaded == [["a", "b"], ["c"], ["d"], ["b"]]


def test_columns_of_a_pass_are_not_dropped_and_others_stream_meanwhile() -> None:
    cache, load = ColumnCache(2 * 64), Columns()
    with cache.hold("v", {"a": 64, "b": 64}, load) as arrays:
        assert held(cache, "c", load) is None
        assert held(cache, "a", load) == {"a": 97.0}
        assert arrays["b"][0] == 98.0
    assert held(cache, "c", load) == {"c": 99.0}
    assert held(cache, "abc", load) is None


def test_versions_have_columns_of_their_own() -> None:
    cache, load = ColumnCache(1 << 10), Columns()
    held(cache, "a", load, "v1")
    held(cache, "a", load, "v2")
    assert load.loaded == [["a"], ["a"]]


def test_a_column_is_read_once_for_all_who_want_it_and_others_need_not_wait() -> None:
    cache, load = ColumnCache(1 << 10), Columns()
    started, go_on = threading.Event(), threading.Event()

    def slow(names: Any) -> Any:
        started.set()
        assert go_on.wait(PATIENCE)
        return load(names)

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(held, cache, "ab", slow)
        assert started.wait(PATIENCE)
        second = pool.submit(held, cache, "bc", load)
        assert pool.submit(held, cache, "d", load).result(PATIENCE) == {"d": 100.0}
        go_on.set()
        assert first.result(PATIENCE) == {"a": 97.0, "b": 98.0}
        assert second.result(PATIENCE) == {"b": 98.0, "c": 99.0}
    assert sorted(load.loaded) == [["a", "b"], ["c"], ["d"]]


def test_a_failed_reading_frees_its_room_and_is_tried_again() -> None:
    cache, load = ColumnCache(2 * 64), Columns()

    def fails(_names: Any) -> Never:
        raise OSError("unreadable")

    with pytest.raises(OSError, match="unreadable"), cache.hold("v", {"a": 64, "b": 64}, fails):
        pass
    assert held(cache, "cd", load) == {"c": 99.0, "d": 100.0}
    assert held(cache, "ab", load) == {"a": 97.0, "b": 98.0}


def test_reading_ahead_is_bounded_and_keeps_order_and_error() -> None:
    taken, read = 0, 0

    def items() -> Iterator[Any]:
        nonlocal read
        for k in range(50):
            read += 1
            assert read - taken <= 4
            yield k
        raise KeyError("at the end")

    ahead = prefetched(items(), 2)
    for k in range(50):
        assert next(ahead) == k
        taken += 1
    with pytest.raises(KeyError):
        next(ahead)


def test_reading_ends_with_an_iteration_that_is_given_up() -> None:
    before = threading.active_count()
    closed = threading.Event()

    def endless() -> Iterator[Any]:
        try:
            while True:
                yield 0
        finally:
            closed.set()

    items = prefetched(endless(), 2)
    assert next(items) == 0
    items.close()
    assert closed.wait(PATIENCE)
    assert threading.active_count() == before


def blocks(number: Any, seen: Any = lambda _: None) -> Iterator[Any]:
    for k in range(number):
        seen(k)
        yield RowSlice(Arrays({"x": np.zeros(1)}, {}), k, 0, 1)


@dataclass(frozen=True)
class Counting:
    waits: threading.Event | None = None
    starts: threading.Event | None = None

    def __call__(self, block: Any) -> tuple[Any]:
        if self.starts is not None:
            self.starts.set()
        if self.waits is not None:
            assert self.waits.wait(PATIENCE)
        return (block.columns["x"],)


def counting(**more: Any) -> SumStep:
    return SumStep("count", (CountSum(1, 10**9),), Counting(**more))


def test_a_short_pass_goes_through_beside_a_long_one() -> None:
    workers = Workers(1)
    short_done, started = threading.Event(), threading.Event()
    long = TURN_BLOCKS + 1

    def waits(k: Any) -> None:
        if k == long - 1:  # in the long pass's second turn, which the short pass precedes
            assert short_done.wait(PATIENCE)

    with ThreadPoolExecutor(2) as caller:
        go_on = threading.Event()
        step = counting(waits=go_on, starts=started)
        first = caller.submit(workers.totals, step, blocks(long, waits))
        assert started.wait(PATIENCE)
        short = caller.submit(workers.totals, counting(), blocks(3))
        until(lambda: len(workers._waiting) == 1)
        go_on.set()
        assert short.result(PATIENCE)[0].tolist() == [3]
        short_done.set()
        assert first.result(PATIENCE)[0].tolist() == [long]
    workers.close()


def test_what_is_due_first_is_worked_on_first_whatever_came_first() -> None:
    """Three passes come while the only thread is busy; those that are due at the same time follow
    each other in turn.
    """
    workers, order = Workers(1), []
    go_on, started = threading.Event(), threading.Event()

    def asked(name: str, due: float) -> Any:
        pieces = blocks(3, lambda k: order.append(name) if k == 0 else None)
        return workers.totals(counting(), pieces, due=due)

    with ThreadPoolExecutor(4) as caller:
        first = caller.submit(
            workers.totals, counting(waits=go_on, starts=started), blocks(1), due=9.0
        )
        assert started.wait(PATIENCE)
        others = []
        for name, due in (("late", 3.0), ("soon", 1.0), ("soon too", 1.0)):
            others.append(caller.submit(asked, name, due))
            until(lambda: len(workers._waiting) == len(others))
        go_on.set()
        for future in (first, *others):
            future.result(PATIENCE)
    assert order == ["soon", "soon too", "late"]
    workers.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_failing_pass_ends_with_its_error_and_gives_its_blocks_back(threads: int) -> None:
    workers = Workers(threads)
    closed = threading.Event()

    def failing() -> Iterator[Any]:
        try:
            yield from blocks(40)
            raise OSError("unreadable")
        finally:
            closed.set()

    with pytest.raises(OSError, match="unreadable") as caught:
        workers.totals(counting(), failing())
    assert closed.is_set()
    frames = [f.name for f in caught.traceback]
    assert "failing" not in frames
    assert workers.totals(counting(), blocks(5))[0].tolist() == [5]
    workers.close()
