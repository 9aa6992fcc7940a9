# SPDX-License-Identifier: Apache-2.0
"""Rows of other tables, as the chain speaks of them: a subject, and a digest of the content.

The digest is SHA-256 of the canonical JSON of the columns that are not null. So it is the same on
both databases and after a restore, and a column that is added later changes no digest while it is
null.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from sqlalchemy import JSON, Boolean, Connection, RowMapping, Select, Table, select, type_coerce
from sqlalchemy.types import NullType

from reticent_server.chain.entries import canonical_json, digest
from reticent_server.chain.tables import chained_tables, noun_of

Key = Sequence[str | int]
_PAGE = 1000


def subject_of(table: Table, key: Key) -> str:
    """How entries name a row: "grant:an_…:houses"."""
    return ":".join([noun_of(table), *map(str, key)])


def row_digest(table: Table, row: Mapping[str, Any] | RowMapping) -> str:
    """The digest of a row that has (at least) the columns of the table, typed or as stored.

    Raises ValueError for what JSON cannot hold, which no program of ours writes.
    """
    columns = ((c.name, _plain(c.type, row[c.name])) for c in table.columns)
    return digest(canonical_json({name: value for name, value in columns if value is not None}))


def _plain(kind: object, value: Any) -> Any:
    """A stored value in the one form that both databases and SQLAlchemy's types lead to."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(kind, JSON) and isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return {"unreadable": value}
    if isinstance(kind, Boolean) and value in (0, 1):
        return bool(value)
    return value


def stored_digest(connection: Connection, table: Table, key: Key) -> str | None:
    """The digest of the row as it is now, in this transaction; None where there is none."""
    columns = zip(table.primary_key.columns, key, strict=True)
    query = as_stored(table).where(*(column == value for column, value in columns))
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else row_digest(table, row)


def stored_rows(connection: Connection) -> Iterator[tuple[str, str | None]]:
    """(subject, digest) of every row of every chained table; digest None: not what we ever
    write."""
    for table in chained_tables():
        key = [column.name for column in table.primary_key.columns]
        query = as_stored(table)
        with connection.execute(query, execution_options={"yield_per": _PAGE}) as rows:
            for row in rows.mappings():
                yield subject_of(table, [row[name] for name in key]), _digest(table, row)


def _digest(table: Table, row: RowMapping) -> str | None:
    try:
        return row_digest(table, row)
    except (ValueError, TypeError, RecursionError):
        return None


def as_stored(table: Table) -> Select[Any]:
    """All columns without SQLAlchemy's types, which fail on values that they do not know."""
    columns = [type_coerce(c, NullType()).label(c.name) for c in table.columns]
    return cast(Select[Any], select(*columns))
