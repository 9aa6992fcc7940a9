# SPDX-License-Identifier: Apache-2.0
import os
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

Status = Callable[[], int]


@pytest.fixture
def ledger(engine: Engine, clock: SetClock) -> Ledger:
    return Ledger(engine, clock, LEASE_SECONDS, whole_caps)


@pytest.fixture
def begun(tmp_path: Path) -> Callable[..., Status]:
    """Starts a process that uses the ledger; calling what is returned waits for its exit status."""

    def begin(*arguments: str) -> Status:
        log = tmp_path / "child.log"
        process = forked(ledger_process.main, arguments, dict(os.environ), log)
        process.stdout.close()
        return lambda: process.wait(60)

    return begin
