# SPDX-License-Identifier: Apache-2.0
"""A table or view of an external SQLite or PostgreSQL database, read where it is.

Every column is read through an expression that no row can make fail: a cell that does not fit
becomes ±∞ or a marker, which vault.cells takes for what it is, and the driver meets one type from
the first row to the last. (An error of one row would otherwise decide about the others, and about
the status of the reply.) That does not reach into a view: its own expressions must not fail on any
row.

The order is that of a key: columns that name the rows and are not declared. Two neighbouring tables
have the same keys, so a record's position is the same in both, and a private value never orders the
rows. In PostgreSQL the order of storage will not do: an update moves a row behind all others.
Connections only read.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from reticent_server.domain.source import Form, SqlTable, TableColumn
from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import (
    POSTGRES,
    SQLITE,
    Dialect,
    Permits,
    VaultUrl,
    connected,
    execute,
    parse_url,
    probe,
    stream,
)
from reticent_server.vault.registered import SourcePart

_NULL_TEXT = "\x01null"
_PART = r"[A-Za-z_][A-Za-z0-9_$]{0,62}"
_TABLE = {SQLITE: re.compile(_PART), POSTGRES: re.compile(rf"({_PART}\.)?{_PART}")}
_SETTINGS = {
    SQLITE: ("PRAGMA query_only = ON",),
    POSTGRES: (
        "SET default_transaction_read_only = on",
        "SET extra_float_digits = 1",
        "SET datestyle = 'ISO'",
        "SET timezone = 'UTC'",
    ),
}
_EXPRESSIONS = {
    (SQLITE, Form.NUMBER): (  # every number is less than any text or BLOB
        "CASE WHEN {0} < '' THEN {0} * 1.0 WHEN {0} IS NULL THEN -9e999 ELSE 9e999 END"
    ),
    (SQLITE, Form.TEXT): (
        "CASE typeof({0}) WHEN 'text' THEN {0} WHEN 'integer' THEN CAST({0} AS TEXT) "
        "WHEN 'real' THEN CASE WHEN {0} = CAST({0} AS INTEGER) "
        "THEN CAST(CAST({0} AS INTEGER) AS TEXT) ELSE CAST({0} AS TEXT) END "
        "WHEN 'null' THEN char(1) || 'null' ELSE char(1) || 'bad' END"
    ),
    (POSTGRES, Form.NUMBER): "{0}::double precision",
    (POSTGRES, Form.DECIMAL): (
        "CASE WHEN abs({0}) < 1e-300 THEN 0 WHEN abs({0}) < 1e300 THEN {0}::double precision "
        "WHEN {0} IS NOT NULL THEN 'Infinity'::double precision END"
    ),
    (POSTGRES, Form.BOOLEAN): "{0}::integer::double precision",
    (POSTGRES, Form.TEXT): "{0}::text",
}


def source_url(url: str) -> VaultUrl:
    """A read-only place. Raises CuratorError, which does not repeat the URL."""
    try:
        place = parse_url(url)
    except CuratorError:
        raise CuratorError("--url must be sqlite:///FILE or postgresql://….") from None
    if place.file is None:
        return place
    return replace(place, uri=place.uri.removesuffix("?mode=rw") + "?mode=ro")


def table_name(dialect: Dialect, table: str) -> str:
    """The quoted name. Raises CuratorError for what is not a plain name."""
    if not _TABLE[dialect].fullmatch(table):
        raise CuratorError("--table must be a plain name, or schema.name in PostgreSQL.")
    return ".".join(map(quoted, table.split(".")))


def quoted(name: str) -> str:
    """An identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def column_sql(name: str) -> str:
    """A column of the table `t`. SQLite takes an absent name in quotes alone for a text."""
    return f"t.{quoted(name)}"


@contextmanager
def opened(place: VaultUrl) -> Iterator[Any]:
    """A connection that only reads."""
    with connected(place, autocommit=True) as connection:
        for statement in _SETTINGS[place.dialect]:
            execute(connection, statement)
        yield connection


def sql_pieces(url: str, source: SqlTable, permits: Permits | None = None) -> list[SourcePart]:
    """All rows as one piece. permits: how many passes hold a connection at once."""
    place = source_url(url)
    known = {column.name: column for column in source.columns}

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = [known[name] for name in columns]
        return read_table(
            place, source.table, source.order, wanted, limit=source.n, permits=permits
        )

    return [SourcePart(source.n, read)]


def probe_rows(url: str, source: SqlTable) -> None:
    """Asks the database for no row of a registered table. Raises SourceAway."""
    place = source_url(url)
    sql = _select(place.dialect, source.table, source.order, source.columns, 0)
    probe(place, sql, _SETTINGS[place.dialect])


def read_table(
    place: VaultUrl,
    table: str,
    order: Sequence[str],
    columns: Sequence[TableColumn],
    *,
    limit: int | None = None,
    permits: Permits | None = None,
) -> Iterator[pa.RecordBatch]:
    """The cells under the declared names, in the order of the key (SQLite: none is the rowid)."""
    sql = _select(place.dialect, table, order, columns, limit)
    for batch in stream(place, sql, _SETTINGS[place.dialect], permits):
        cells = [batch.column(i) for i in range(len(columns))]
        if place.dialect is SQLITE:
            cells = [_with_nulls(c, column.form) for c, column in zip(cells, columns, strict=True)]
        yield pa.RecordBatch.from_arrays(cells, names=[c.name for c in columns])


def _select(
    dialect: Dialect,
    table: str,
    order: Sequence[str],
    columns: Sequence[TableColumn],
    limit: int | None,
) -> str:
    values = [
        f"{_EXPRESSIONS[dialect, c.form].format(column_sql(c.name))} AS c{i}"
        for i, c in enumerate(columns)
    ]
    keys = [column_sql(name) for name in order] or (["t.rowid"] if dialect is SQLITE else [])
    sql = f"SELECT {', '.join(values)} FROM {table_name(dialect, table)} AS t"  # noqa: S608
    sql += f" ORDER BY {', '.join(keys)}" if keys else ""
    return sql if limit is None else f"{sql} LIMIT {limit}"


def _with_nulls(cells: pa.Array, form: Form) -> pa.Array:
    """SQLite's cells with nulls where the expression has put a mark for one."""
    null = _NULL_TEXT if form is Form.TEXT else float("-inf")
    return pc.if_else(pc.equal(cells, null), None, cells)
