import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from sqlalchemy import Engine

import support_ledger_child
from reticent_server.ledger.service import Ledger
from support_databases import SetClock, clock, database_url, engine
from support_ledger import LEASE_SECONDS, whole_caps

__all__ = ["clock", "database_url", "engine"]

Child = Callable[..., "subprocess.Popen[str]"]


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
