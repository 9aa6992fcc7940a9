import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

import support_ledger_child
from reticent_server.ledger.service import Ledger
from support_databases import SetClock, clock, database_url, engine
from support_ledger import LEASE_SECONDS, whole_caps
from support_processes import forked

__all__ = ["clock", "database_url", "engine"]

Child = Callable[..., "subprocess.Popen[str]"]
Status = Callable[[], int]


@pytest.fixture
def ledger(engine: Engine, clock: SetClock) -> Ledger:
    return Ledger(engine, clock, LEASE_SECONDS, whole_caps)


@pytest.fixture
def child() -> Child:
    """Starts support_ledger_child.py with the arguments given."""

    def start(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, support_ledger_child.__file__, *arguments],
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
        process = forked(support_ledger_child.main, arguments, dict(os.environ), log)
        process.stdout.close()
        return lambda: process.wait(60)

    return begin
