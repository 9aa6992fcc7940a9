# SPDX-License-Identifier: Apache-2.0
"""kill −9 of a serving process at every step: no release without its debit, none lost, none
twice.
"""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from secrets import token_hex
from threading import Event, Thread
from typing import TextIO

import pytest

from support.installations.both_backends import installation
from support.installations.small import Installation
from support.ledger.retrying_clients import Client, audit, clients
from support.processes import killable_server as child
from support.processes.forked import Forked, forked

__all__ = ["installation"]


@dataclass
class Lives:
    """The process that serves again and again, and the file of what it is told."""

    process: Forked
    orders: TextIO

    def heard(self, expected: str) -> int:
        word, number = self.process.stdout.readline().split() or ("nothing: it has ended", 0)
        assert word == expected
        return int(number)

    def begin(self, point: str, nth: int = 1) -> int:
        """The process id of a new life."""
        self.orders.write(f"{point} {nth}\n")
        self.orders.flush()
        return self.heard("up")


@contextmanager
def lives(installation: Installation) -> Iterator[Lives]:
    environment = installation.environment | {"RETICENT_LEASE_SECONDS": "1"}
    name = f"lives-{token_hex(4)}"
    pipe = installation.directory / name
    os.mkfifo(pipe)
    log = installation.directory / f"{name}.log"
    process = forked(child.main, (str(pipe),), environment, log)
    with open(os.open(pipe, os.O_RDWR), "w", encoding="utf-8") as orders:  # noqa: PTH123 - a descriptor
        try:
            yield Lives(process, orders)
        finally:
            process.kill()
            process.wait(60)
            process.stdout.close()


def check(
    installation: Installation,
    killed: int,
    points: list[str],
    clients: list[Client],
    servers: int = 1,
) -> None:
    """Kills at each point in turn while clients ask; then everybody asks again in peace.

    servers: on the same database, each killed its part of the times; a client asks one of them.
    """
    ended = Event()
    with ExitStack() as stack:
        alive = [stack.enter_context(lives(installation)) for _ in range(servers)]
        urls = [f"http://127.0.0.1:{server.heard('at')}" for server in alive]
        asking = [
            Thread(target=client.run, args=(urls[number % servers], ended))
            for number, client in enumerate(clients)
        ]
        for thread in asking:
            thread.start()
        with ThreadPoolExecutor(servers) as pool:
            mine = [points[number::servers] or points for number in range(servers)]
            kills = pool.map(kill, alive, [killed // servers] * servers, mine)
            assert sum(kills) == killed
        calm = [server.begin("calm") for server in alive]
        ended.set()
        for thread in asking:
            thread.join()
        for server, process in zip(alive, calm, strict=True):
            os.kill(process, signal.SIGTERM)
            assert server.heard("down") == 0


def kill(server: Lives, times: int, points: list[str]) -> int:
    """How often it was killed: at each point in turn, the first, second or third time it comes
    there.
    """
    for number, point in zip(range(times), cycle(points), strict=False):
        server.begin(point, 1 + number % 3)
        assert server.heard("down") == -signal.SIGKILL, point
    return times


POINTS = [*child.BEFORE, *child.AFTER, *child.QUEUED]


@pytest.mark.slow
@pytest.mark.sample(4)
def test_killed_before_during_and_after_a_charge(installation: Installation) -> None:
    """Once: at every fourth step on SQLite, and at those between on PostgreSQL. (In the audit, at
    all on both.)
    """
    points = POINTS[2 * (installation.urls is not None) :: 4]
    asking = clients(installation, later=2)
    check(installation, len(points), points, asking)
    audit(installation, asking)


@pytest.mark.audit
def test_killed_two_hundred_times(installation: Installation) -> None:
    """Two servers on one database, on each of the two databases."""
    asking = clients(installation, later=4)
    check(installation, 200, POINTS, asking, servers=2)
    audit(installation, asking)
