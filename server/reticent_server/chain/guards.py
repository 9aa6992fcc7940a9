# SPDX-License-Identifier: Apache-2.0
"""What keeps entries as they are inside the database itself: triggers that refuse a change, as the
migrations made them.

Whoever owns the database can drop them, or make triggers and rules that change what others write;
here it is seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, text

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


def _sqlite(connection: Connection) -> Sequence[Guard]:
    rows = connection.execute(text(_SQLITE_TRIGGERS)).all()
    return [Guard(name, " ".join(str(sql).split())) for name, sql in rows]


def _postgres(connection: Connection) -> Sequence[Guard]:
    query = text(_POSTGRES_TRIGGERS).bindparams(bindparam("tables", expanding=True))
    rows = connection.execute(query, {"tables": sorted(metadata.tables)}).all()
    return [Guard(name, " ".join(str(definition).split())) for name, definition in rows]
