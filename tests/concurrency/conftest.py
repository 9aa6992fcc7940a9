import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from reticent_server.ledger.service import Ledger
from support.databases.migrated import SetClock, clock, database_url, engine
from support.ledger import ledger_process
from support.ledger.accounts import LEASE_SECONDS, whole_caps
from support.processes.forked import forked

__all__ = ["clock", "database_url", "engine"]

Child = Callable[..., "subprocess.Popen[str]"]
Status = Callable[[], int]


@pytest.fixture
def ledger(engine: Engine, clock: SetClock) -> Ledger:
    return Ledger(engine, clock, LEASE_SECONDS, whole_caps)


@pytest.fixture
def child() -> Child:
    """Starts support.ledger.ledger_process with the arguments given."""

    def start(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", ledger_process.__name__, *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def begun(tmp_path: Path) -> Callable[..., Status]:
    """As `child`, for what needs no standard input: a process whose exit status is waited for by calling
    what is returned."""

    def begin(*arguments: str) -> Status:
        log = tmp_path / "child.log"
        process = forked(ledger_process.main, arguments, dict(os.environ), log)
        process.stdout.close()
        return lambda: process.wait(60)

    return begin
