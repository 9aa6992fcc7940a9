# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from importlib import import_module

import pytest
import structlog

from support.databases.migrated import upgraded


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """A command sends the log to the standard error of its test, which is closed afterwards."""
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def _tables_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """`reticent init` of a new SQLite file; that migrations make the same tables is tested where
    they are (tests/server/ledger/test_migration.py).
    """
    monkeypatch.setattr(import_module("reticent_server.cli.init"), "upgrade", upgraded)
