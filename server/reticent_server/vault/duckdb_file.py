# SPDX-License-Identifier: Apache-2.0
"""One table of a DuckDB file, read with nothing else in reach: no other file, no extension, one
thread.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reticent_server.domain.reading import Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock, FileColumn, find_columns, rows_per_block
from reticent_server.vault.extras import library

_CONFIG = {
    "enable_external_access": "false",  # a view of a stranger's file would read others
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "threads": "1",
    "memory_limit": "128MB",  # within what a look may take; larger tables are streamed
}


def duckdb_reading(path: Path, said: Reading) -> Reading:
    """The table that is said, or the only one. Raises CuratorError."""
    names = tables(path)
    if said.sheet is not None and said.sheet in names:
        return said
    if said.sheet is None and len(names) == 1:
        return said.over(Reading(sheet=names[0]))
    told = ", ".join(repr(name) for name in names[:20]) or "none"
    raise CuratorError(f"Say which table of {path.name} is read, as `sheet`: it has {told}.")


def tables(path: Path) -> tuple[str, ...]:
    """The names of a file's tables and views. Raises CuratorError."""
    with _opened(path) as connection:
        return tuple(name for (name,) in connection.execute(_TABLES).fetchall())


_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY 1"


def duckdb_columns(path: Path, reading: Reading) -> list[FileColumn]:
    """The columns of the table. Raises CuratorError."""
    with _opened(path) as connection:
        batches = _query(connection, f"SELECT * FROM {_quoted(reading)} LIMIT 0", 1)  # noqa: S608 - quoted
        schema = batches.schema
        return [FileColumn(field.name) for field in schema]


def duckdb_blocks(
    path: Path, wanted: Sequence[str], reading: Reading, most: int | None = None
) -> Iterator[FileBlock]:
    """The wanted columns with the table's types, in the order in which the file holds the rows.
    Raises CuratorError.
    """
    with _opened(path) as connection:
        table = _quoted(reading)
        total = connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0]  # noqa: S608 - quoted
        size = most or rows_per_block(len(wanted))
        batches = _query(connection, f"SELECT * FROM {table}", size)  # noqa: S608 - quoted
        find_columns(batches.schema.names, wanted, path.name)
        start = 0
        for batch in batches:
            for first in range(0, batch.num_rows, size):
                part = batch.slice(first, size)
                columns = {name: part.column(name) for name in wanted}
                start += part.num_rows
                yield FileBlock(
                    start - part.num_rows, part.num_rows, columns, start / max(1, total)
                )


def _query(connection: Any, sql: str, size: int) -> Any:
    return connection.sql(sql).to_arrow_reader(size)


def _quoted(reading: Reading) -> str:
    """The table's name as an identifier of SQL."""
    return '"' + (reading.sheet or "").replace('"', '""') + '"'


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    duckdb = library("duckdb", "duckdb", "DuckDB files")
    failed = False
    try:
        with duckdb.connect(str(path), read_only=True, config=_CONFIG) as connection:
            yield connection
    except duckdb.OutOfMemoryException:
        raise MemoryError from None
    except duckdb.Error:  # its text may quote cells
        failed = True
    if failed:
        raise CuratorError(
            f"{path.name} cannot be read as DuckDB, or not in the table that is asked for."
        )
