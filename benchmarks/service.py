# SPDX-License-Identifier: Apache-2.0
"""The service: charges on both databases against the same SQL run by hand, and free requests a
second.

`python -m benchmarks service` prints both and one JSON line; `python -m benchmarks.service 40` is a
short run. The statements of reserve + settle are recorded with their parameters on one copy of a
database, and run again by hand, with psycopg or sqlite3, on another: nothing else, so the ratio
says what the ledger's own work costs. The two take turns on a PostgreSQL that is started for it,
and on a file of SQLite: with fsync, as they are used, and without (SQLite: in memory that has the
form of a disk), where nothing hides that work.

BENCH_PARTS  which of postgresql, sqlite, requests (all)
"""

import asyncio
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
from sqlalchemy import event

from reticent_server import database
from reticent_server.domain.clock import SystemClock
from reticent_server.domain.cost import PrivacyCost
from reticent_server.ledger.service import Ledger
from support.databases.postgresql import Cluster
from support.installations.small import build, serving
from support.ledger.accounts import LEASE_SECONDS, ask, open_accounts

CHARGES, TURNS, WARMING = 300, 5, 10
CONNECTIONS, REQUESTS = 16, 3000
COST = PrivacyCost(epsilon=10, delta=10, rho=10, rho_delta=10)
BODY = b'{"id": "' + b"x" * 1500 + b'"}'
Script = list[list[tuple[str, object]]]


PARTS = os.environ.get("BENCH_PARTS", "postgresql,sqlite,requests").split(",")
MEMORY = Path("/dev/shm")


def main() -> None:
    charges = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else CHARGES
    found = {}
    if "postgresql" in PARTS:
        found |= charging(charges)
    if "sqlite" in PARTS:
        found |= charging_sqlite(charges)
    if "requests" in PARTS:
        found |= asking(REQUESTS * charges // CHARGES)
    for key, value in found.items():
        print(f"{key:44} {value:.3f}")
    print(json.dumps({"benchmark": "service", "charges": charges} | found))


def charging(charges: int) -> dict[str, float]:
    """Medians over TURNS turns of `charges` reserve + settle each."""
    found = {}
    for name, durable in (("", True), ("_without_fsync", False)):
        with running(durable=durable) as cluster:
            turns = [turn(lambda k: copy_of(cluster, k), charges) for _ in range(TURNS)]
        found |= figures(charges, turns, name)
    return found


def charging_sqlite(charges: int) -> dict[str, float]:
    """The same on SQLite."""
    found = {}
    for name, place in (("_sqlite", None), ("_sqlite_without_fsync", MEMORY)):
        with tempfile.TemporaryDirectory(dir=place) as folder:
            template = Path(folder) / "template.db"
            database.upgrade(f"sqlite:///{template}")
            with opened(f"sqlite:///{template}") as (ledger, _):
                open_accounts(ledger, rule="basic")
            turns = [turn(partial(file_copy, template), charges) for _ in range(TURNS)]
        found |= figures(charges, turns, name)
    return found


def file_copy(template: Path, name: str) -> str:
    copy = template.with_name(f"{name}.db")
    for ending in ("", "-wal", "-shm"):
        Path(f"{copy}{ending}").unlink(missing_ok=True)
    shutil.copy(template, copy)
    return f"sqlite:///{copy}"


def figures(charges: int, turns, name: str) -> dict[str, float]:
    ours, hand = np.array(turns).T
    return {
        f"charges_a_second{name}": float(charges / np.median(ours)),
        f"charges_by_hand_a_second{name}": float(charges / np.median(hand)),
        f"charges_to_sql_by_hand{name}": float(np.median(hand / ours)),
    }


@contextmanager
def running(*, durable: bool) -> Iterator[Cluster]:
    """A PostgreSQL with the database `template`, in which accounts are open."""
    cluster = Cluster(durable=durable)
    try:
        cluster.execute("CREATE DATABASE template")
        database.upgrade(cluster.url("template"))
        with opened(cluster.url("template")) as (ledger, _):
            open_accounts(ledger, rule="basic")
        yield cluster
    finally:
        cluster.remove()


@contextmanager
def opened(url: str):
    engine = database.connect(url)
    yield Ledger(engine, SystemClock(), LEASE_SECONDS), engine
    engine.dispose()


def turn(copy: Callable[[str], str], charges: int) -> tuple[float, float]:
    """Seconds of `charges` charges by the ledger, and of the same SQL by hand. copy: makes one of
    the template.
    """
    script = recorded(copy("recorded"), WARMING + charges)
    with opened(copy("ours")) as (ledger, _):
        charge(ledger, WARMING)
        start = time.perf_counter()
        charge(ledger, charges)
        ours = time.perf_counter() - start
        assert len(ledger.releases("alice", 10**6)) == WARMING + charges
    return ours, by_hand(copy("hand"), script)


def copy_of(cluster: Cluster, name: str) -> str:
    cluster.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    cluster.execute(f"CREATE DATABASE {name} TEMPLATE template")
    return cluster.url(name)


def charge(ledger: Ledger, times: int) -> None:
    for _ in range(times):
        ledger.settle(ask(ledger, cost=COST).reservation, "reply", BODY)


def recorded(url: str, charges: int) -> Script:
    """The statements of that many charges, with their parameters, by transaction."""
    script: Script = [[]]
    with opened(url) as (ledger, engine):

        def note(_connection, _cursor, statement, parameters, _context, _many) -> None:
            if not statement.startswith(("BEGIN", "PRAGMA")):
                script[-1].append((statement, parameters))

        event.listen(engine, "before_cursor_execute", note)
        event.listen(engine, "commit", lambda _: script.append([]))
        charge(ledger, charges)
    assert len(script) == 2 * charges + 1
    return script[:-1]


def by_hand(url: str, script: Script) -> float:
    """Seconds of the script, but for its first charges: both sides prepare their statements
    there.
    """
    with closing(connected(url)) as connection, closing(connection.cursor()) as cursor:
        run(connection, cursor, script[: 2 * WARMING])
        start = time.perf_counter()
        run(connection, cursor, script[2 * WARMING :])
        seconds = time.perf_counter() - start
        cursor.execute("SELECT count(*) FROM ledger_releases WHERE status = 'reply'")
        assert 2 * cursor.fetchone()[0] == len(script)
    return seconds


def connected(url: str):
    """As the ledger connects: it commits to the disk, and SQLite begins as a writer."""
    if not url.startswith("sqlite"):
        return psycopg.connect(url.replace("+psycopg", ""))
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level="IMMEDIATE")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def run(connection, cursor, script: Script) -> None:
    for transaction in script:
        for statement, parameters in transaction:
            many = isinstance(parameters, list)
            (cursor.executemany if many else cursor.execute)(statement, parameters)
            if cursor.description is not None:
                cursor.fetchall()
        connection.commit()


def asking(requests: int) -> dict[str, float]:
    """GET /v1/budget a second, from one worker on SQLite, over kept connections; the best of
    three.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "installation").mkdir()
        installation = build(Path(folder) / "installation")
        with serving(installation, log_level="info") as server:
            rates = [
                asyncio.run(rate(server.url, installation.keys["ana"], requests)) for _ in range(3)
            ]
    return {"budgets_a_second": max(rates)}


async def rate(url: str, key: str, requests: int) -> float:
    host, port = url.removeprefix("http://").split(":")
    head = (
        f"GET /v1/budget HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    )
    each = max(1, requests // CONNECTIONS)
    start = time.perf_counter()
    await asyncio.gather(*(asked(host, int(port), head, each) for _ in range(CONNECTIONS)))
    return CONNECTIONS * each / (time.perf_counter() - start)


async def asked(host: str, port: int, head: bytes, times: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    for _ in range(times):
        writer.write(head)
        reply = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert reply.startswith(b"http/1.1 200"), reply
        await reader.readexactly(int(reply.partition(b"content-length:")[2].split(b"\r\n")[0]))
    writer.close()
    await writer.wait_closed()


if __name__ == "__main__":
    main()
