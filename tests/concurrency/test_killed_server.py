"""kill −9 of a serving process at every step: no release without its debit, none lost, none twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from threading import Event, Thread

import pytest

from support.installations.both_backends import installation
from support.installations.small import Installation
from support.ledger.retrying_clients import Client, audit, clients
from support.processes import killable_server as child

__all__ = ["installation"]


@dataclass
class Lives:
    """The child that serves again and again."""

    process: "subprocess.Popen[str]"

    def heard(self, expected: str) -> int:
        assert self.process.stdout is not None
        word, number = self.process.stdout.readline().split() or ("nothing: it has ended", 0)
        assert word == expected
        return int(number)

    def begin(self, point: str, nth: int = 1) -> int:
        """The process id of a new life."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{point} {nth}\n")
        self.process.stdin.flush()
        return self.heard("up")


@contextmanager
def lives(installation: Installation) -> Iterator[Lives]:
    environment = installation.environment | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "RETICENT_LEASE_SECONDS": "1",
    }
    with (installation.directory / "lives.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", child.__name__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield Lives(process)
    finally:
        process.kill()
        process.communicate()


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
    """How often it was killed: at each point in turn, the first, second or third time it comes there."""
    for number, point in zip(range(times), cycle(points), strict=False):
        server.begin(point, 1 + number % 3)
        assert server.heard("down") == -signal.SIGKILL, point
    return times


POINTS = [*child.BEFORE, *child.AFTER, *child.QUEUED]


def test_killed_at_every_step(installation: Installation) -> None:
    """Once: at every other step on SQLite, and at those between on PostgreSQL. (In the audit, at all on both.)"""
    points = POINTS[installation.urls is not None :: 2]
    asking = clients(installation, later=2)
    check(installation, len(points), points, asking)
    audit(installation, asking)


@pytest.mark.audit
def test_killed_two_hundred_times(installation: Installation) -> None:
    """Two servers on one database, on each of the two databases."""
    asking = clients(installation, later=4)
    check(installation, 200, POINTS, asking, servers=2)
    audit(installation, asking)
