# SPDX-License-Identifier: Apache-2.0
"""Migrated, empty databases for tests that run on SQLite and on PostgreSQL, and a clock to set."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url

from reticent_server import database
from support.databases import postgresql

BACKENDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.time.timestamp()

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@contextmanager
def migrated(backend: str, folder: Path) -> Iterator[str]:
    """The URL of a new database with all tables; SQLite's file is in `folder`."""
    if backend == "sqlite":
        shutil.copy(_sqlite_template(), folder / "reticent.db")
        yield f"sqlite:///{folder / 'reticent.db'}"
        return
    url = postgresql.new_database(_postgres_template())
    yield url
    postgresql.drop_database(url)


@contextmanager
def copied(url: str, folder: Path) -> Iterator[str]:
    """The URL of a copy of a database that nobody uses now; SQLite's file is in `folder`."""
    if url.startswith("sqlite:///"):
        shutil.copy(url.removeprefix("sqlite:///"), folder / "reticent.db")
        yield f"sqlite:///{folder / 'reticent.db'}"
        return
    copy = postgresql.new_database(postgresql.database_name(url))
    yield copy
    postgresql.drop_database(copy)


def lasting(backend: str) -> str:
    """The URL of a new database with all tables that is there until the process ends, to be
    copied.
    """
    if backend == "sqlite":
        return f"sqlite:///{shutil.copy(_sqlite_template(), _folder() / 'lasting.db')}"
    return postgresql.new_database(_postgres_template())


@cache
def _sqlite_template() -> Path:
    path = _folder() / "template.db"
    database.upgrade(f"sqlite:///{path}")
    return path


def upgraded(url: str) -> None:
    """In place of database.upgrade: a new SQLite file is a copy of one, in 1 ms in place of 60."""
    file = Path(make_url(url).database or "")
    if url.startswith("sqlite:") and file.parent.is_dir() and not file.exists():
        shutil.copy(_sqlite_template(), file)
    else:
        database.upgrade(url)


def _folder() -> Path:
    """A new folder, removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="reticent-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _postgres_template() -> str:
    url = postgresql.new_database()
    database.upgrade(url)
    return postgresql.database_name(url)


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with migrated(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = database.connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()
