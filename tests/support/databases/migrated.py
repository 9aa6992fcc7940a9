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
from sqlalchemy import Engine

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


@cache
def _sqlite_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="reticent-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "template.db"
    database.upgrade(f"sqlite:///{path}")
    return path


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
