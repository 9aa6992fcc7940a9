# SPDX-License-Identifier: Apache-2.0
"""The one SQLAlchemy engine of catalogue, access and ledger, its transactions and its migrations.

SQLite: WAL, synchronous=FULL, foreign keys on, and every transaction of ours starts with
BEGIN IMMEDIATE, so that two writers wait for each other instead of failing at commit.
PostgreSQL: psycopg 3; writers in READ COMMITTED (the ledger relies on conditional updates, which
hold on both), readers in REPEATABLE READ, so that both give a reader one consistent view.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, ref

from sqlalchemy import Connection, Engine, MetaData, create_engine, event, make_url, text
from sqlalchemy.exc import (
    DatabaseError,
    DisconnectionError,
    InterfaceError,
    InternalError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import ConnectionPoolEntry

from reticent_server.errors import CuratorError, Damaged, Unavailable
from reticent_server.events import EventLogger

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

BUSY_TIMEOUT_MS = 30_000
_BUSY_PAUSE = 0.01  # seconds between two tries to switch a new file's journal
CONNECT_SECONDS = 10
POOL = 40
"""Connections of a process that was told no number: as many as it has threads that may ask."""

IDLE_SECONDS = 1.0

# A writer that stands still or whose machine has died keeps the locks of its transaction, the
# ledger's head among them, until PostgreSQL ends its session: by default after two hours.
_POSTGRES_OPTIONS = " ".join(
    f"-c {setting}"
    for setting in (
        f"lock_timeout={BUSY_TIMEOUT_MS}",
        "idle_in_transaction_session_timeout=120000",
        "tcp_keepalives_idle=30",
        "tcp_keepalives_interval=10",
        "tcp_keepalives_count=3",
    )
)

# SQLite lets writers poll for its lock, which starves some of them for seconds; the threads of one
# process queue here instead, so that only processes poll.
_queues: WeakKeyDictionary[Engine, Lock] = WeakKeyDictionary()

_made: ContextVar[list[Engine] | None] = ContextVar("made", default=None)


POSTGRES_SCHEMES = ("postgresql", "postgresql+psycopg", "postgres")
"""The last is an older name, which providers of databases still write."""


def connect(url: str, connections: int = POOL) -> Engine:
    """An engine for `url`: sqlite:///…, or a PostgreSQL database by any of its schemes.

    At most `connections` are open; who wants one more waits. They are pooled: dispose() the engine
    when done with it. Raises CuratorError for another scheme.
    """
    scheme, _, rest = url.partition("://")
    if scheme in POSTGRES_SCHEMES:
        url = f"postgresql+psycopg://{rest}"
    elif scheme != "sqlite":
        raise CuratorError("RETICENT_DATABASE_URL must be sqlite:///FILE or postgresql://….")
    sizes: dict[str, Any] = {"pool_size": connections, "max_overflow": 0, "hide_parameters": True}
    if not url.startswith("sqlite"):
        given = {"connect_timeout": CONNECT_SECONDS, "options": _POSTGRES_OPTIONS}
        engine = create_engine(url, connect_args=given, **sizes)
        event.listen(engine, "checkout", partial(_ping, engine))
        event.listen(engine, "checkin", _note_use)
        return _noted(engine)
    engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_MS / 1e3}, **sizes)
    _queues[engine] = Lock()
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return _noted(engine)


def _noted(engine: Engine) -> Engine:
    event.listen(engine, "connect", partial(_note_pool, engine))
    event.listen(engine, "checkin", partial(_close_if_disposed, engine))
    made = _made.get()
    if made is not None:
        made.append(engine)
    return engine


@contextmanager
def disposing() -> Iterator[None]:
    """Disposes the engines that the block has made, when it ends: a command's connections end with
    it."""
    engines: list[Engine] = []
    token = _made.set(engines)
    try:
        yield
    finally:
        _made.reset(token)
        for engine in engines:
            engine.dispose()


@contextmanager
def disposed_on_failure(engine: Engine) -> Iterator[None]:
    """Closes an engine's connections where the block, which was to hand it on, fails."""
    try:
        yield
    except BaseException:
        engine.dispose()
        raise


def _note_pool(engine: Engine, _connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["pool"] = ref(engine.pool)


def _close_if_disposed(engine: Engine, _connection: Any, record: ConnectionPoolEntry) -> None:
    """dispose() leaves a connection that is in use to the pool it came from, which nobody has any
    more: it is closed when it comes back.
    """
    if record.info["pool"]() is not engine.pool:
        record.close()


def _ping(engine: Engine, connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """Asks a connection that has been idle whether it is alive; the pool replaces one that is not.

    (SQLAlchemy's own pre-ping asks every time, which is a seventh of the round trips of a charge.)
    """
    if time.monotonic() - record.info.get("used", -IDLE_SECONDS) < IDLE_SECONDS:
        return
    try:
        engine.dialect.do_ping(connection)
    except engine.dialect.loaded_dbapi.Error as error:
        raise DisconnectionError from error


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # SQLAlchemy's own BEGIN is emitted by _begin_immediate
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
    _write_ahead(cursor)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _write_ahead(cursor: Any) -> None:
    """The journal of a new file becomes WAL. SQLite's own waiting does not cover this switch: of
    two processes that open a new file at once, one is told at once that it is busy (the low byte of
    the code; the rest says why)."""
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_BUSY_PAUSE)
        else:
            return


def _begin_immediate(connection: Connection) -> None:
    mode = "DEFERRED" if connection.get_execution_options().get("read_only") else "IMMEDIATE"
    connection.exec_driver_sql(f"BEGIN {mode}")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A read-only transaction: a consistent view, no write lock.

    Raises Unavailable when the database cannot be reached.
    """
    options: dict[str, Any] = {"read_only": True}
    if engine.dialect.name == "postgresql":
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with (
        _unavailable_when_down(),
        engine.connect() as connection,
        connection.execution_options(**options).begin(),
    ):
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A write transaction: committed when the block ends, rolled back on any exception.

    Raises Unavailable when the database cannot be reached, is full, or stays locked. It may then
    have committed all the same (the connection was lost while committing): ask again to know.
    """
    with _unavailable_when_down(), _queue(engine), engine.begin() as connection:
        yield connection


@contextmanager
def _queue(engine: Engine) -> Iterator[None]:
    lock = _queues.get(engine)
    if lock is None:
        yield
        return
    if not lock.acquire(timeout=BUSY_TIMEOUT_MS / 1e3):
        raise PoolTimeout("too many writers")
    try:
        yield
    finally:
        lock.release()


_AWAY = "The database did not answer; nothing is lost, try again."
_READ_ONLY = (
    "The database takes no writes, so nothing was changed. Its curator: look for a file or a "
    "folder that the server may "
    "not write, or a PostgreSQL that is a standby."
)
_FULL = "The database has no room left, so nothing was changed. Its curator: make room on its disk."
_SQLITE_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_TEXT = "Could not decode to UTF-8"
"""How Python's sqlite3 begins to say that a text is none; it has no code for that."""

_POSTGRES_DAMAGED = ("XX001", "XX002")
"""Corrupted data, a corrupted index (PostgreSQL, appendix A)."""

_WORDS = {
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    "25006": _READ_ONLY,
    sqlite3.SQLITE_FULL: _FULL,
    "53100": _FULL,
}
"""By SQLite's code, or PostgreSQL's SQLSTATE."""

log = EventLogger(__name__)


@contextmanager
def _unavailable_when_down() -> Iterator[None]:
    """Raises Unavailable, or Damaged, with constant words in place of the driver's."""
    try:
        yield
    except (OperationalError, InterfaceError, InternalError, PoolTimeout) as error:
        raise _unavailable(error, getattr(error, "orig", None)) from error
    except (DatabaseError, sqlite3.DatabaseError) as error:
        failure = _unavailable(error, getattr(error, "orig", error))
        if not isinstance(failure, Damaged):
            raise
        raise failure from error


def _damaged() -> Damaged:
    log.error("database_damaged_restore_the_backup_then_verify")
    return Damaged()


def _unavailable(error: Exception, cause: object) -> Unavailable:
    code: int | str | None = None
    if isinstance(cause, sqlite3.Error):
        if str(cause).startswith(_NO_TEXT):
            return _damaged()
        # the low byte; the rest says where
        code = (getattr(cause, "sqlite_errorcode", None) or 0) & 0xFF
    elif not isinstance(error, PoolTimeout):
        code = getattr(cause, "sqlstate", None)
    if code in (*_SQLITE_DAMAGED, *_POSTGRES_DAMAGED):
        return _damaged()
    return Unavailable(_WORDS.get(code or 0, _AWAY))


_NEWER = (
    "The database was made by a newer version of Reticent, which this one cannot upgrade: install "
    "that version, or restore a backup from before."
)


def upgrade(url: str, revision: str = "head") -> None:
    """Creates the tables at `url`, or brings them to a revision, the newest, in one transaction.
    Raises CuratorError for a database of a newer version.

    A new SQLite file is readable by its owner only: every analyst's answers are in it.
    """
    from alembic import command  # noqa: PLC0415  (0.15 s that only `init` and tests need)
    from alembic.config import Config  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    config = Config(attributes={"url": url})
    config.set_main_option("script_location", str(_migrations()).replace("%", "%%"))
    _make_private_file(url)
    with _unavailable_when_down():
        try:
            command.upgrade(config, revision)
        except CommandError:  # a revision that is not among those of this version
            raise CuratorError(_NEWER) from None


def _make_private_file(url: str) -> None:
    """The empty SQLite file of `url`, with mode 0600; one that is there keeps its mode."""
    parsed = make_url(url)
    file = parsed.database or ":memory:"
    if parsed.get_backend_name() != "sqlite" or file.startswith((":memory:", "file:")):
        return
    with suppress(OSError):  # there already; or it cannot be made, as opening it will say
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def is_current(engine: Engine) -> bool:
    """Whether the tables are at the newest revision that this code knows."""
    newest = max(path.stem[:4] for path in _migrations().glob("versions/[0-9]*.py"))
    with reading(engine) as connection:
        versions = (
            connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
        )
    return list(versions) == [newest]


def _migrations() -> Path:
    """The migrations inside an installed wheel, else those of the repository."""
    package = Path(__file__).resolve().parent
    shipped = package / "_migrations"
    return shipped if shipped.is_dir() else package.parents[1] / "migrations"
