# SPDX-License-Identifier: Apache-2.0
"""The one door to the vault's database: ADBC connections, and what differs between databases.

Everything on the vault goes through ADBC, also creating and dropping tables. ADBC brings its own
SQLite library, and POSIX locks belong to a process: if two libraries had one file open, closing a
handle of the one would drop the locks of the other. So no other library may open the vault's file.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from urllib.parse import quote

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
import adbc_driver_sqlite.dbapi
import pyarrow as pa

from reticent_server.errors import CuratorError, SourceAway, Unavailable

DRIVER_ERRORS = (adbc_driver_manager.Error, pa.ArrowException, OSError)
"""What reading or writing can raise; the text may quote cells and must never travel on."""

_NO_RIGHT = "42501"
"""PostgreSQL's SQLSTATE for insufficient privileges."""

BUSY_TIMEOUT_MS = 30_000
BATCH_ROWS = 1 << 16
_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgresql+psycopg://", "postgres://")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a database calls its types, and where it lists its tables."""

    name: str
    position: str
    value: str
    mask: str
    person: str
    tables: str
    batch_option: tuple[str, str]


SQLITE = Dialect(
    name="sqlite",
    position="INTEGER PRIMARY KEY",
    value="REAL NOT NULL",
    mask="INTEGER NOT NULL",
    person="INTEGER NOT NULL",
    tables="SELECT name FROM sqlite_master WHERE type = 'table'",
    batch_option=("adbc.sqlite.query.batch_rows", str(BATCH_ROWS)),
)
POSTGRES = Dialect(
    name="postgresql",
    position="BIGINT PRIMARY KEY",
    value="DOUBLE PRECISION NOT NULL",
    mask="BOOLEAN NOT NULL",
    person="BIGINT NOT NULL",
    tables="SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()",
    batch_option=("adbc.postgresql.batch_size_hint_bytes", str(BATCH_ROWS * 80)),
)


@dataclass(frozen=True, slots=True)
class VaultUrl:
    """A parsed RETICENT_VAULT_URL. `file` is the SQLite file, None for PostgreSQL."""

    dialect: Dialect
    uri: str
    file: Path | None = None

    def __repr__(self) -> str:
        return f"<vault url: {self.dialect.name}>"


def parse_url(url: str) -> VaultUrl:
    """sqlite:///relative, sqlite:////absolute, or postgresql://…. Raises CuratorError."""
    if url.startswith(_SQLITE) and url != _SQLITE and ":memory:" not in url:
        file = Path(url.removeprefix(_SQLITE)).absolute()
        return VaultUrl(SQLITE, f"file:{quote(str(file))}?mode=rw", file)
    for prefix in _POSTGRES:
        if url.startswith(prefix):
            return VaultUrl(POSTGRES, "postgresql://" + url.removeprefix(prefix))
    raise CuratorError("RETICENT_VAULT_URL must be sqlite:///FILE or postgresql://….")


def refuse_shared_file(database_url: str, vault_url: str) -> None:
    """Raises CuratorError when catalogue and vault would be one SQLite file (see above)."""
    file = parse_url(vault_url).file
    if file is None or not database_url.startswith("sqlite"):
        return
    other = Path(database_url.partition(":///")[2].partition("?")[0].removeprefix("file:"))
    linked = other.exists() and file.exists() and other.samefile(file)
    if linked or other.resolve() == file.resolve():
        raise CuratorError("RETICENT_VAULT_URL and RETICENT_DATABASE_URL must be different files.")


def create_vault(url: str) -> None:
    """Makes the vault's SQLite file, readable by its owner only; in PostgreSQL, checks the door.

    Raises CuratorError when the vault cannot be opened.
    """
    vault = parse_url(url)
    if vault.file is not None:
        try:
            os.close(os.open(vault.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise CuratorError(f"The vault's file cannot be made: {error.strerror}.") from None
    try:
        with connected(vault, autocommit=True) as connection:
            if vault.dialect is SQLITE:  # readers go on while a load writes
                query(connection, "PRAGMA journal_mode=WAL")
    except DRIVER_ERRORS:
        raise CuratorError("The vault at RETICENT_VAULT_URL cannot be opened.") from None


@contextmanager
def connected(vault: VaultUrl, *, autocommit: bool) -> Iterator[Any]:
    """An ADBC connection; without autocommit its work is lost unless it is committed."""
    module = adbc_driver_sqlite if vault.dialect is SQLITE else adbc_driver_postgresql
    with closing(module.dbapi.connect(vault.uri, autocommit=autocommit)) as connection:
        if vault.dialect is SQLITE:
            query(connection, f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        yield connection


def execute(connection: Any, sql: str) -> None:
    """Runs a statement that returns nothing."""
    with connection.cursor() as cursor:
        cursor.execute(sql)


def ask(vault: VaultUrl) -> None:
    """Raises Unavailable where the vault does not answer."""
    failed = False
    try:
        with connected(vault, autocommit=True) as connection:
            query(connection, "SELECT 1")
    except DRIVER_ERRORS:
        failed = True
    if failed:  # outside the handler: no driver text is kept as context
        raise Unavailable("The vault does not answer.")


def probe(vault: VaultUrl, sql: str, settings: Sequence[str] = ()) -> None:
    """Runs a query that returns no row. Raises SourceAway, whose cause says what is wrong with the
    database or the table."""
    cause = "no_answer"
    try:
        with connected(vault, autocommit=True) as connection:
            for statement in settings:
                execute(connection, statement)
            query(connection, "SELECT 1")
            cause = "no_such_table"
            query(connection, sql)
            return
    except DRIVER_ERRORS as error:
        if getattr(error, "sqlstate", None) == _NO_RIGHT:
            cause = "no_right_to_read"
    raise SourceAway(cause)  # outside the handler: no driver text is kept as context


def postgres_facts(vault: VaultUrl, sql: str) -> list[tuple[Any, ...]]:
    """What a PostgreSQL says of itself. Raises CuratorError where it does not answer."""
    try:
        with connected(vault, autocommit=True) as connection:
            return query(connection, sql)
    except DRIVER_ERRORS:
        raise CuratorError("The vault at RETICENT_VAULT_URL cannot be opened.") from None


def query(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    """All rows of a small query."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


class Permits:
    """So many connections at once; who waits for one too long is told that the vault does not
    answer."""

    def __init__(self, number: int) -> None:
        self._free = BoundedSemaphore(number)

    def __enter__(self) -> None:
        if not self._free.acquire(timeout=BUSY_TIMEOUT_MS / 1000):
            raise TimeoutError("too many readers")

    def __exit__(self, *_: object) -> None:
        self._free.release()


def stream(
    vault: VaultUrl,
    sql: str,
    settings: Sequence[str] = (),
    permits: AbstractContextManager[None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The record batches of a query, on a connection of its own, after the statements
    `settings`."""
    with (
        permits or nullcontext(),
        connected(vault, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        for statement in settings:
            execute(connection, statement)
        option, value = vault.dialect.batch_option
        cursor.adbc_statement.set_options(**{option: value})
        cursor.execute(sql)
        yield from cursor.fetch_record_batch()
