# SPDX-License-Identifier: Apache-2.0
"""One load of the vault: locked, all or nothing, and cleaned up after whatever interrupted it.

The rows go into a new table inside one transaction. `publish` commits it; the caller then commits
the catalogue's row, and only that row makes the version visible. A load that is killed between the
two leaves a table that no version refers to: the next load drops it. The lock keeps two loads of
one vault apart, so that neither takes the other's table for such an orphan; it ends with the
process. Table names carry the catalogue's identity: a load never drops another catalogue's tables.
"""

import fcntl
import os
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import (
    DRIVER_ERRORS,
    VaultUrl,
    connected,
    create_vault,
    execute,
    parse_url,
    query,
)
from reticent_server.vault.names import PERSON

WRITE_FAILED = "The vault could not store the rows; nothing was loaded."
BUSY = "Another load of this vault is running; try again when it has ended."
_ADVISORY_LOCK = 0x7265_7469_6365_6E74


class Load:
    """An open load: append blocks, then publish."""

    def __init__(self, connection: Any, vault: VaultUrl, table: str) -> None:
        self._connection = connection
        self._vault = vault
        self.table = table
        self._rows = 0
        self._columns: tuple[StoredColumn, ...] = ()
        self._max_rows = 1
        self._names = ""

    @property
    def vault(self) -> VaultUrl:
        """Where it is loaded."""
        return self._vault

    def create(self, schema: Schema, names: str = "") -> tuple[StoredColumn, ...]:
        """Creates the table with generated column names, which it returns. names: the fingerprint
        of the key under which persons are named, in a column PERSON that every row then has."""
        self._max_rows, self._names = schema.unit.max_rows, names
        self._columns = tuple(
            StoredColumn(c.name, f"v{i}", f"m{i}" if c.may_be_missing else None)
            for i, c in enumerate(schema.columns)
        )
        with _driver_errors():
            execute(self._connection, self._definition())
        return self._columns

    def _definition(self) -> str:
        dialect = self._vault.dialect
        parts = [f"position {dialect.position}"]
        parts += [f"{PERSON} {dialect.person}"] if self._names else []
        for column in self._columns:
            parts.append(f"{column.values} {dialect.value}")
            if column.mask is not None:
                parts.append(f"{column.mask} {dialect.mask}")
        return f"CREATE TABLE {self.table} ({', '.join(parts)})"

    @property
    def rows(self) -> int:
        """Rows stored so far."""
        return self._rows

    def append(self, columns: dict[str, pa.Array], rows: int) -> None:
        """Stores consecutive rows: one array for each stored column."""
        self.append_at(pa.array(range(self._rows, self._rows + rows), pa.int64()), columns)

    def append_at(self, positions: pa.Array, columns: dict[str, pa.Array]) -> None:
        """Stores rows at the given positions."""
        batch = pa.RecordBatch.from_pydict({"position": positions} | columns)
        with _driver_errors(), self._connection.cursor() as cursor:
            cursor.adbc_ingest(self.table, batch, mode="append")
        self._rows += len(positions)

    def publish(self, persons: int | None = None) -> VaultTable:
        """Commits the table; it is still invisible until the catalogue names it. persons: N, where
        rows are theirs."""
        with _driver_errors():
            self._connection.commit()
        places = self._rows if persons is None else persons * self._max_rows
        return VaultTable(self.table, places, self._columns, self._max_rows, self._names)


@contextmanager
def loading(vault_url: str, owner: str, kept: Callable[[], Collection[str]]) -> Iterator[Load]:
    """Opens a load, after dropping the tables of `owner` that are not in `kept()`.

    owner: the catalogue's identity. kept: the tables that its versions refer to. When the block
    raises, the new table is dropped unless `kept()` names it by then. Raises CuratorError.
    """
    vault = parse_url(vault_url)
    create_vault(vault_url)
    prefix = f"reticent_{owner}_"
    with _locked(vault):
        _drop_orphans(vault, prefix, kept())
        try:
            with _open(vault) as connection:
                yield Load(connection, vault, prefix + secrets.token_hex(12))
        except BaseException:
            _drop_orphans(vault, prefix, kept())
            raise


@contextmanager
def _open(vault: VaultUrl) -> Iterator[Any]:
    """A transaction of the vault; driver errors are replaced at opening, not in the caller's
    block."""
    with ExitStack() as stack:
        with _driver_errors():
            connection = stack.enter_context(connected(vault, autocommit=False))
        yield connection


def _drop_orphans(vault: VaultUrl, prefix: str, kept: Collection[str]) -> None:
    with _driver_errors(), connected(vault, autocommit=True) as connection:
        for (table,) in query(connection, vault.dialect.tables):
            if table.startswith(prefix) and table not in kept:
                execute(connection, f"DROP TABLE {table}")


@contextmanager
def _driver_errors() -> Iterator[None]:
    """Replaces a driver's error, whose text may quote rows, by a constant one."""
    try:
        yield
    except DRIVER_ERRORS:
        raise CuratorError(WRITE_FAILED) from None


@contextmanager
def _locked(vault: VaultUrl) -> Iterator[None]:
    """Holds the vault's lock, which a dying process lets go. Raises CuratorError when it is
    taken."""
    with ExitStack() as stack:
        file = vault.file
        if not (_lock_file(file, stack) if file else _lock_database(vault, stack)):
            raise CuratorError(BUSY)
        yield


def _lock_database(vault: VaultUrl, stack: ExitStack) -> bool:
    with _driver_errors():
        connection = stack.enter_context(connected(vault, autocommit=True))
        return bool(query(connection, f"SELECT pg_try_advisory_lock({_ADVISORY_LOCK})")[0][0])


def _lock_file(file: Path, stack: ExitStack) -> bool:
    """Locks a file beside the vault, never the vault's own file (see vault.adbc)."""
    handle = os.open(f"{file}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    stack.callback(os.close, handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
