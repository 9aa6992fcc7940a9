# SPDX-License-Identifier: Apache-2.0
"""Looks at an external table when it is registered: its columns, their forms, its order and
size."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import Form, TableColumn
from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import DRIVER_ERRORS, SQLITE, VaultUrl, query
from reticent_server.vault.sql_source import column_sql, opened, quoted, table_name

_NUMBERS = frozenset({"int2", "int4", "int8", "float4", "float8"})
_DATES = frozenset({"date", "timestamp", "timestamptz"})
_NEEDS_ORDER = (
    "The table has no key that orders its rows without telling about them; give --order with one "
    "or "
    "more columns that name each row and that the schema does not declare."
)


@dataclass(frozen=True, slots=True)
class Probed:
    """columns: the wanted ones. rows: how many there are now, for a progress bar."""

    order: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    rows: int


class _Table(Protocol):
    def names(self) -> list[str]:
        """Its columns; none where there is no such table."""
        ...

    def key(self) -> list[str] | None:
        """The columns that order its rows where none are given; [] for the rowid, None for none."""
        ...

    def forms(self, wanted: Sequence[str], texts: Collection[str]) -> list[Form]:
        """How the wanted columns are read; `texts`: those whose cells are texts. CuratorError."""
        ...


def probe(
    place: VaultUrl, table: str, order: Sequence[str], wanted: Sequence[str], schema: Schema
) -> Probed:
    """The table as it is now. Raises CuratorError, whose text holds no URL and no cell."""
    name = table_name(place.dialect, table)
    texts = {n for n in wanted if _is_text(schema, n)}
    try:
        with opened(place) as connection:
            sqlite = place.dialect is SQLITE
            look: _Table = _Sqlite(connection, table) if sqlite else _Postgres(connection, name)
            _check_names(look.names(), wanted, order, schema)
            order = order or _own_order(look, schema)
            forms = look.forms(wanted, texts)
            rows = _rows(connection, name, order)
    except DRIVER_ERRORS:
        message = "The database at --url cannot be read; check the URL and the role's rights."
        raise CuratorError(message) from None
    return Probed(tuple(order), tuple(map(TableColumn, wanted, forms)), rows)


def _is_text(schema: Schema, name: str) -> bool:
    """Levels are texts, and so is a unit's name where it is no declared column."""
    columns = schema.read_from(name)
    return not columns or any(column.reads_texts or column.is_date for column in columns)


def _check_names(
    names: Sequence[str], wanted: Sequence[str], order: Sequence[str], schema: Schema
) -> None:
    if not names:
        raise CuratorError("There is no such table at --url, or the role cannot see it.")
    for name in (*wanted, *order):
        if name not in names:
            raise CuratorError(f"The table has no column {name!r}.")
    for name in order:
        if schema.read_from(name):
            raise CuratorError(
                f"--order {name}: a declared column is private, so it cannot order the rows; give "
                "a key that only names them."
            )


def _own_order(look: _Table, schema: Schema) -> list[str]:
    """The table's own key. Raises CuratorError where there is none, or where it is private."""
    key = look.key()
    if key is None or any(schema.read_from(name) for name in key):
        raise CuratorError(_NEEDS_ORDER)
    return key


def _rows(connection: Any, name: str, order: Sequence[str]) -> int:
    """Number of rows. Raises CuratorError where the order columns do not name each of them."""
    rows = int(query(connection, f"SELECT count(*) FROM {name}")[0][0])  # noqa: S608
    if order:
        keys = ", ".join(map(column_sql, order))
        present = " AND ".join(f"{column_sql(key)} IS NOT NULL" for key in order)
        distinct = f"SELECT DISTINCT {keys} FROM {name} AS t WHERE {present}"  # noqa: S608
        named = int(query(connection, f"SELECT count(*) FROM ({distinct}) AS k")[0][0])  # noqa: S608
        if named != rows:
            raise CuratorError("The --order columns do not name each row once; give a key.")
    return rows


class _Sqlite:
    """A table or view of SQLite, where a type belongs to each cell and not to a column."""

    def __init__(self, connection: Any, table: str) -> None:
        self._connection = connection
        self._table = table

    def names(self) -> list[str]:
        """The names of the table's columns."""
        sql = f"SELECT name FROM pragma_table_info('{self._table}')"  # noqa: S608 - a plain name
        return [name for (name,) in query(self._connection, sql)]

    def key(self) -> list[str] | None:
        """The rowid, which an update leaves as it is, or the column that is the rowid."""
        listed = f"SELECT type, wr FROM pragma_table_list('{self._table}') WHERE schema = 'main'"  # noqa: S608
        (kind, without_rowid), *_ = query(self._connection, listed)
        if kind != "table" or without_rowid:
            return None
        keyed = f"SELECT name FROM pragma_table_info('{self._table}') WHERE pk > 0"  # noqa: S608
        keys = [name for (name,) in query(self._connection, keyed)]
        hidden = any(name.lower() == "rowid" for name in self.names())
        return keys if len(keys) == 1 else None if hidden else []

    def forms(self, wanted: Sequence[str], texts: Collection[str]) -> list[Form]:
        """How the wanted columns are to be read, by all of their cells. Raises CuratorError."""
        kinds = ("text", "real", "blob")
        tests = [f"max(typeof({column_sql(name)}) = '{k}')" for name in wanted for k in kinds]
        sql = f"SELECT {', '.join(tests)} FROM {quoted(self._table)} AS t"  # noqa: S608
        (row,) = query(self._connection, sql)
        return [
            _sqlite_form(name, *map(bool, row[3 * i : 3 * i + 3]), as_text=name in texts)
            for i, name in enumerate(wanted)
        ]


def _sqlite_form(name: str, text: bool, real: bool, blob: bool, *, as_text: bool) -> Form:
    if blob:
        raise CuratorError(f"Column {name} holds BLOBs, which cannot be read.")
    if text and real and not as_text:
        raise CuratorError(f"Column {name} holds texts and numbers; cast it in a view.")
    return Form.TEXT if text or as_text else Form.NUMBER


class _Postgres:
    """A table or view of PostgreSQL. name: quoted, and plain."""

    def __init__(self, connection: Any, name: str) -> None:
        self._connection = connection
        self._relation = f"to_regclass('{name}')"

    def names(self) -> list[str]:
        """The names of the table's columns."""
        return list(self._types())

    def key(self) -> list[str] | None:
        """The primary key. (The order of storage changes with every update of a row.)"""
        sql = (
            "SELECT a.attname::text FROM pg_index i JOIN pg_attribute a "  # noqa: S608
            "ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) "
            f"WHERE i.indisprimary AND i.indrelid = {self._relation}"
        )
        return [name for (name,) in query(self._connection, sql)] or None

    def forms(self, wanted: Sequence[str], texts: Collection[str]) -> list[Form]:
        """How the wanted columns are to be read, by their types. Raises CuratorError."""
        types = self._types()
        return [_postgres_form(name, *types[name], as_text=name in texts) for name in wanted]

    def _types(self) -> dict[str, tuple[str, str]]:
        """(name, category) of each column's type, of a domain's base."""
        sql = (
            "SELECT a.attname::text, b.typname::text, b.typcategory::text FROM pg_attribute a "  # noqa: S608
            "JOIN pg_type t ON t.oid = a.atttypid "
            "JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END "
            f"WHERE a.attrelid = {self._relation} AND a.attnum > 0 AND NOT a.attisdropped"
        )
        return {name: (kind, category) for name, kind, category in query(self._connection, sql)}


def _postgres_form(name: str, kind: str, category: str, *, as_text: bool) -> Form:
    floating = kind in {"float4", "float8"}  # whole ones are written as integers by vault.cells
    if category in {"S", "E"} or kind == "uuid" or (as_text and kind in _DATES):
        return Form.TEXT
    if kind in _NUMBERS:
        return Form.TEXT if as_text and not floating else Form.NUMBER
    if kind == "numeric":
        return Form.TEXT if as_text else Form.DECIMAL
    if kind == "bool":
        return Form.TEXT if as_text else Form.BOOLEAN
    raise CuratorError(f"Column {name} has type {kind}, which cannot be read; cast it in a view.")
