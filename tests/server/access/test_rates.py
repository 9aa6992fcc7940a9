# SPDX-License-Identifier: Apache-2.0
"""One limit a key, whoever counts: at most so many a window over all processes, at few writes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, event

from reticent_server import database
from reticent_server.access.rates import SHARES, DatabaseStorage, RateLimits
from support.databases.migrated import SetClock

Processes = Callable[[int], list[RateLimits]]


@pytest.fixture
def processes(database_url: str, clock: SetClock) -> Iterator[Processes]:
    """Several processes' limiters of 60 a minute, each with an engine of its own."""
    engines: list[Engine] = []

    def make(count: int) -> list[RateLimits]:
        engines.extend(database.connect(database_url) for _ in range(count))
        return [RateLimits(engine, clock, 60) for engine in engines]

    yield make
    for engine in engines:
        engine.dispose()


def allowed(limits: list[RateLimits], tries: int, key: str = "k") -> int:
    return sum(limits[i % len(limits)].wait(key) == 0 for i in range(tries))


def test_one_process_allows_the_limit_and_says_how_long_to_wait(
    processes: Processes, clock: SetClock
) -> None:
    (one,) = processes(1)
    assert allowed([one], 100) == 60
    clock.sleep(15)
    assert one.wait("k") == 45
    assert one.wait("another") == 0
    clock.sleep(45)
    assert allowed([one], 100) == 60


def test_a_clock_that_is_set_back_locks_nobody_out(processes: Processes, clock: SetClock) -> None:
    """A day's window in the memory of one process, and in the table for the other."""
    one, other = processes(2)
    clock.sleep(24 * 3600)
    assert allowed([one], 100) == 60
    clock.sleep(-24 * 3600)
    assert (one.wait("k"), other.wait("k")) == (0, 0)
    assert allowed([one, other], 100) <= 60
    clock.sleep(-1)  # clocks of two machines differ a little: it is still the same window
    assert other.wait("k") > 0


def test_processes_share_a_window(processes: Processes, clock: SetClock) -> None:
    many = processes(5)
    assert allowed(many, 200) == 60
    clock.sleep(60)
    # A process that has handed out one only keeps what is left of its share: no other gets it.
    assert many[0].wait("k") == 0
    assert allowed(many[1:], 200) == 60 - 60 // SHARES


def test_threads_of_processes_race_for_a_window(processes: Processes) -> None:
    many, threads = processes(2), 8
    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(lambda i: many[i % 2].wait("k") == 0, range(160)))
    # Never more than the limit; what a thread has left of its last share, nobody else may have got.
    assert 60 - threads * (60 // SHARES) <= sum(answers) <= 60


def test_a_request_seldom_writes(engine: Engine, clock: SetClock) -> None:
    """Of 600 a minute 20 do; of those that are refused none."""
    limits = RateLimits(engine, clock, 600)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *a: statements.append(a[2]))
    assert allowed([limits], 600) == 600
    assert sum("INSERT" in statement for statement in statements) == SHARES
    assert limits.wait("k") > 0
    before = len(statements)
    assert allowed([limits], 50) == 0
    assert len(statements) == before


def test_the_storage_is_one_for_the_library(engine: Engine, clock: SetClock) -> None:
    storage = DatabaseStorage(engine, clock)
    assert storage.check()
    assert (storage.get("a"), storage.get_expiry("a")) == (0, 0.0)
    assert [storage.incr("a", 10, 2), storage.incr("a", 10), storage.incr("b", 10)] == [2, 3, 1]
    assert storage.get_expiry("a") == clock.now().timestamp() + 10
    storage.clear("a")
    assert (storage.get("a"), storage.get("b")) == (0, 1)
    clock.sleep(10)
    assert storage.get("b") == 0
    storage.reset()
    assert storage.get_expiry("b") == 0.0
