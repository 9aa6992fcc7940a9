# SPDX-License-Identifier: Apache-2.0
"""What keeps entries as they are inside the database itself, as the migrations made it: triggers
that refuse a change, keys and checks. Without the uniqueness of an idempotency key, requests at the
same time are charged several times.

Whoever owns the database can drop them, make triggers, rules and policies that change what others
write or read, or put a view in a table's place; here it is seen.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import (
    CheckConstraint,
    Connection,
    Inspector,
    Table,
    UniqueConstraint,
    bindparam,
    inspect,
    text,
)

from reticent_server.database import metadata

_SQLITE: Mapping[str, str] = {
    f"ledger_entries_no_{change.lower()}": (
        f"CREATE TRIGGER ledger_entries_no_{change.lower()} BEFORE {change} ON ledger_entries "
        "BEGIN SELECT RAISE(ABORT, 'ledger entries are immutable'); END"
    )
    for change in ("UPDATE", "DELETE")
}

_REFUSES = "BEGIN RAISE EXCEPTION 'ledger entries are immutable'; END"
_BEFORE_ALL = "ledger_entries/58/O//t/"
"""Table, type, state, columns, whether there is no condition, arguments. 58: before (2) DELETE (8),
UPDATE (16) and TRUNCATE (32), once a statement (src/include/catalog/pg_trigger.h); O: fires always
but for replication."""

_POSTGRES: Mapping[str, str] = {"ledger_entries_immutable": f"{_BEFORE_ALL} {_REFUSES}"}

_SQLITE_TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
_POSTGRES_TRIGGERS = """
SELECT t.tgname, concat_ws('/', c.relname, t.tgtype, t.tgenabled, t.tgattr::text, t.tgqual IS NULL,
  encode(t.tgargs, 'hex') || ' ' || p.prosrc)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal AND c.relname IN :tables
  AND c.relnamespace = current_schema()::regnamespace
UNION ALL
SELECT rulename, definition FROM pg_rules
WHERE tablename IN :tables AND schemaname = current_schema()
"""


_POSTGRES_STRANGE = """
SELECT 'row security of the table', c.relname FROM pg_class c
WHERE c.relrowsecurity AND c.relname IN :tables
  AND c.relnamespace = current_schema()::regnamespace
UNION ALL
SELECT 'policy', policyname FROM pg_policies
WHERE tablename IN :tables AND schemaname = current_schema()
UNION ALL
SELECT 'event trigger', e.evtname FROM pg_event_trigger e
WHERE e.evtenabled <> 'D' AND NOT EXISTS (
  SELECT FROM pg_depend d WHERE d.objid = e.oid AND d.deptype = 'e')
"""


@dataclass(frozen=True, slots=True)
class Guard:
    """A trigger, or a rule of PostgreSQL, as the database has it."""

    name: str
    definition: str


def problems(connection: Connection) -> list[str]:
    """What is wrong with the database's triggers, in sentences."""
    sqlite = connection.dialect.name == "sqlite"
    expected = _SQLITE if sqlite else _POSTGRES
    present = _sqlite(connection) if sqlite else _postgres(connection)
    words = {guard.name: guard.definition for guard in present}
    missing = [f"The trigger {name} is missing." for name in sorted(expected.keys() - words.keys())]
    strange = [
        f"The trigger {name} is not one of this program's, or was changed."
        for name, definition in sorted(words.items())
        if expected.get(name) != definition
    ]
    return missing + strange


def schema_problems(connection: Connection) -> list[str]:
    """What the tables lack of what the migrations made, in sentences: the tables themselves, their
    columns, primary, unique and foreign keys and checks; and policies that hide rows.
    """
    seen = inspect(connection)
    present = set(seen.get_table_names())
    found = []
    for name, table in sorted(metadata.tables.items()):
        if name not in present:
            found.append(f"The table {name} is missing, or something else stands in its place.")
            continue
        lacking = sorted(_declared(table) - _present(seen, name))
        found += [f"The table {name} lacks {what}." for what in lacking]
    return found + (_policies(connection) if connection.dialect.name == "postgresql" else [])


def is_readable(connection: Connection) -> bool:
    """Whether every table, or what stands in its place, has every column."""
    seen = inspect(connection)
    present = {*seen.get_table_names(), *seen.get_view_names()}
    return all(
        name in present
        and {column.name for column in table.columns}
        <= {column["name"] for column in seen.get_columns(name)}
        for name, table in metadata.tables.items()
    )


def _declared(table: Table) -> set[str]:
    columns = {f"the column {column.name}" for column in table.columns}
    unique = [c.columns for c in table.constraints if isinstance(c, UniqueConstraint)]
    unique += [index.columns for index in table.indexes if index.unique]
    keys = {_words("the unique key", (c.name for c in each)) for each in unique}
    foreign = {
        _words("the foreign key", key.column_keys, f" to {key.referred_table.name}")
        for key in table.foreign_key_constraints
    }
    checks = {f"the check {c.name}" for c in table.constraints if isinstance(c, CheckConstraint)}
    primary = _words("the primary key", (column.name for column in table.primary_key.columns))
    return {*columns, *keys, *foreign, *checks, primary}


def _present(seen: Inspector, name: str) -> set[str]:
    columns = {f"the column {column['name']}" for column in seen.get_columns(name)}
    indexes = [each["column_names"] for each in seen.get_indexes(name) if each["unique"]]
    keys = {_words("the unique key", map(str, columns)) for columns in indexes}
    for each in seen.get_unique_constraints(name):
        keys.add(_words("the unique key", each["column_names"]))
    foreign = {
        _words("the foreign key", key["constrained_columns"], f" to {key['referred_table']}")
        for key in seen.get_foreign_keys(name)
    }
    checks = {f"the check {each['name']}" for each in seen.get_check_constraints(name)}
    primary = seen.get_pk_constraint(name)["constrained_columns"]
    return {*columns, *keys, *foreign, *checks, _words("the primary key", primary)}


def _words(what: str, columns: Iterable[str], more: str = "") -> str:
    return f"{what} ({', '.join(columns)}){more}"


def _policies(connection: Connection) -> list[str]:
    """Of row security, and triggers of the whole database, of which migrations make none."""
    query = text(_POSTGRES_STRANGE).bindparams(bindparam("tables", expanding=True))
    rows = connection.execute(query, {"tables": sorted(metadata.tables)}).all()
    return [f"The {what} {name} is not one of this program's." for what, name in sorted(rows)]


def _sqlite(connection: Connection) -> Sequence[Guard]:
    rows = connection.execute(text(_SQLITE_TRIGGERS)).all()
    return [Guard(name, " ".join(str(sql).split())) for name, sql in rows]


def _postgres(connection: Connection) -> Sequence[Guard]:
    query = text(_POSTGRES_TRIGGERS).bindparams(bindparam("tables", expanding=True))
    rows = connection.execute(query, {"tables": sorted(metadata.tables)}).all()
    return [Guard(name, " ".join(str(definition).split())) for name, definition in rows]
