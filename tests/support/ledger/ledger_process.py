# SPDX-License-Identifier: Apache-2.0
"""A process of its own that uses the ledger: `race URL THREADS`, `die URL POINT`, `upgrade URL`.

race prints "ready", waits until somebody opens and closes GATE (a named pipe), then spends a tenth
from every thread at once, and prints how many were answered. die kills itself (SIGKILL) at a named
point of a reservation with the key "k".
"""

import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from sqlalchemy import event

from reticent_server import database
from reticent_server.chain import repository as chain
from reticent_server.errors import BudgetExhausted
from reticent_server.ledger import repository
from reticent_server.ledger.service import Fresh, Ledger
from support.databases.migrated import SetClock
from support.ledger.accounts import LEASE_SECONDS, ask, whole_caps


def race(ledger: Ledger, threads: int) -> int:
    """How many of the threads' tenths were answered."""
    barrier = Barrier(threads)

    def spend(_: int) -> bool:
        barrier.wait()
        try:
            return isinstance(ask(ledger), Fresh)
        except BudgetExhausted:
            return False

    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(spend, range(threads)))


def _die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def dying(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        _die()

    return dying


def die(ledger: Ledger, point: str) -> None:
    """Points, in order: debited, chained, committing, reserved, settling, settled."""
    if point == "debited":
        repository.spend = _die_after(repository.spend)
    if point == "chained":
        chain.append = _die_after(chain.append)
    if point == "committing":
        event.listen(ledger._engine, "commit", _die)
    outcome = ask(ledger, idempotency_key="k")
    assert isinstance(outcome, Fresh)
    if point == "reserved":
        _die()
    if point == "settling":
        repository.settle = _die_after(repository.settle)
    ledger.settle(outcome.reservation, "reply", b"by the child")
    _die()


def main(command: str, url: str, *arguments: str) -> None:
    if command == "upgrade":
        database.upgrade(url)
        return
    ledger = Ledger(database.connect(url), SetClock(), LEASE_SECONDS, whole_caps)
    if command == "die":
        die(ledger, *arguments)
    print("ready", flush=True)
    threads, gate = arguments
    Path(gate).read_text()
    print(race(ledger, int(threads)), flush=True)
