# SPDX-License-Identifier: Apache-2.0
"""Every column of every table: a change is named by `ledger verify`, or it is listed here with the
reason why it cannot matter.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Boolean, Connection, Engine, Integer, LargeBinary, Table, text
from sqlalchemy.types import JSON

from reticent_server import app  # noqa: F401 - every module that declares a table
from reticent_server.chain import guards
from reticent_server.database import connect, is_current, metadata, upgrade
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.ledger.service import Fresh, Ledger, problems_in
from support.databases.migrated import BACKENDS, SetClock
from support.installations.curator_acts import inhabited, owners, reopened
from support.ledger.accounts import ask, open_accounts

LEASE = (
    "of a release that is being computed it passes from process to process and is no entry: "
    "whoever changes it has it "
    "computed again, and the first answer that is stored is the one that counts; once settled, "
    "it is checked"
)
RATE = (
    "how often somebody may ask in the window of a minute that the row is about, and never what "
    "is answered or charged; "
    "a window that ends later than one can has ended"
)
FORM = (
    "a form that was sent: without its row it can be sent again by whoever sent it, from the "
    "same session, and what it does "
    "then is in the chain a second time"
)
CANNOT_MATTER: dict[tuple[str, str], str] = {
    ("ledger_releases", "lease"): LEASE,
    ("ledger_releases", "lease_until_ms"): LEASE,
    ("ledger_head", "id"): "nothing reads it; the table has one row",
    **{("access_rates", column): RATE for column in ("id", "hits", "until_ms")},
    **{("access_form_tokens", column): FORM for column in ("id", "until_ms")},
}
"""(table, column): why a change of it is not named. Of releases: while they are pending."""

SPARE = """INSERT INTO access_rates (id, hits, until_ms) VALUES ('k', 1, 1)"""
TOKEN = """INSERT INTO access_form_tokens (id, until_ms) VALUES ('t', 1)"""


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with inhabited(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def ledger(engine: Engine, clock: SetClock) -> Ledger:
    """A row of every table; a release that waits, one that has begun after waiting, one that never
    waited, one that is settled, one that was cancelled.
    """
    made = reopened(engine, clock).ledger
    open_accounts(made)
    outcomes = [ask(made, idempotency_key=f"k{i}", start_ms=s) for i, s in enumerate(STARTS)]
    _, begun, _, settled, cancelled = [
        each.reservation for each in outcomes if isinstance(each, Fresh)
    ]
    assert made.begin(begun, 70_000) is not None
    made.settle(settled, "reply", b'{"value":1}')
    made.cancel("alice", cancelled.id, lambda _: b'{"status":"cancelled"}')
    with engine.begin() as connection:
        connection.execute(text(SPARE))
        connection.execute(text(TOKEN))
    return made


STARTS = (50_000, 60_000, None, None, 80_000)
"""Of releases, in ms since the epoch; None: at once."""


def other(table: Table, name: str) -> str:
    """SQL of another value of the column's type."""
    match table.c[name].type:
        case Boolean():
            return f'NOT "{name}"'
        case Integer():
            return f'coalesce("{name}", 0) + 1000'
        case JSON():
            return "'[1]'"
        case LargeBinary():
            return "x'7b7d'"
        case _:
            return "'x'"


def changed(connection: Connection, table: Table, name: str, row: dict[str, object]) -> bool:
    """Whether verify names a change of the column in that row."""
    keys = [column.name for column in table.primary_key.columns]
    at = " AND ".join(f'"{key}" = :{key}' for key in keys)
    value = other(table, name)
    if isinstance(table.c[name].type, LargeBinary) and connection.dialect.name == "postgresql":
        value = "convert_to('x', 'UTF8')"
    nested = connection.begin_nested()
    statement = text(f'UPDATE {table.name} SET "{name}" = {value} WHERE {at}')
    assert connection.execute(statement, {key: row[key] for key in keys}).rowcount == 1
    is_named = problems_in(connection) != []
    nested.rollback()
    return is_named


@pytest.mark.slow
@pytest.mark.sample(4)
def test_every_column_of_every_table_is_named_or_cannot_matter(
    ledger: Ledger, engine: Engine
) -> None:
    unnamed = set()
    with owners(engine) as connection:
        assert problems_in(connection) == []
        for table in metadata.sorted_tables:
            rows = connection.execute(table.select().limit(12)).mappings().all()
            assert rows, f"no row of {table.name} to change"
            for row in rows:
                columns = [c.name for c in table.columns]
                unnamed |= {
                    (table.name, name)
                    for name in columns
                    if not changed(connection, table, name, dict(row))
                }
        assert problems_in(connection) == []
    assert unnamed - BEGUN == CANNOT_MATTER.keys()


BEGUN = {("ledger_releases", "start_ms")}
"""Of a release that had to wait and is being computed now, until its settlement says it; in all
other states it is checked, as the next test shows.
"""


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["start_ms", "duration_ms", "lease", "lease_until_ms"])
def test_when_a_reply_is_shown_is_under_the_chain(
    ledger: Ledger, engine: Engine, name: str
) -> None:
    """By state of the release: (waiting, begun after waiting, begun at once, settled,
    cancelled).
    """
    expected = {
        "start_ms": [True, False, True, True, True],
        "duration_ms": [True] * 5,
        "lease": [False, False, False, True, True],
        "lease_until_ms": [False, False, False, True, True],
    }
    table = metadata.tables["ledger_releases"]
    with owners(engine) as connection:
        rows = {
            row["idempotency_key"]: dict(row)
            for row in connection.execute(table.select()).mappings().all()
        }
        named = [changed(connection, table, name, rows[f"k{i}"]) for i in range(5)]
    assert named == expected[name]


def test_a_computation_that_has_begun_cannot_be_made_to_look_as_if_it_waited(
    ledger: Ledger, engine: Engine
) -> None:
    """It could be cancelled then, and its cost given back."""
    with owners(engine) as connection:
        at_once = "UPDATE ledger_releases SET lease = 'queued-x' WHERE idempotency_key = 'k2'"
        begun = "UPDATE ledger_releases SET lease = 'queued-x' WHERE idempotency_key = 'k1'"
        for statement in (at_once, begun):
            nested = connection.begin_nested()
            connection.execute(text(statement))
            (problem,) = problems_in(connection)
            assert problem.endswith("has not the times or the lease that its entries say.")
            nested.rollback()


_FUNCTION = (
    "CREATE OR REPLACE FUNCTION {}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; "
    "END $$"
)
_TRIGGER = "CREATE TRIGGER {} BEFORE UPDATE ON {} {} EXECUTE FUNCTION {}()"
_ENTRIES = "ledger_entries_immutable"
CHANGES: dict[str, list[list[str]]] = {
    "sqlite": [
        ["DROP TRIGGER ledger_entries_no_update"],
        ["DROP TRIGGER ledger_entries_no_delete"],
        [
            "DROP TRIGGER ledger_entries_no_update",
            (
                "CREATE TRIGGER ledger_entries_no_update BEFORE UPDATE ON ledger_entries BEGIN "
                "SELECT 1; END"
            ),
        ],
        ["CREATE TRIGGER cheap AFTER UPDATE ON ledger_accounts BEGIN SELECT 1; END"],
    ],
    "postgresql": [
        [f"DROP TRIGGER {_ENTRIES} ON ledger_entries"],
        [f"ALTER TABLE ledger_entries DISABLE TRIGGER {_ENTRIES}"],
        [f"ALTER TABLE ledger_entries ENABLE REPLICA TRIGGER {_ENTRIES}"],
        [_FUNCTION.format(_ENTRIES)],
        [
            f"DROP TRIGGER {_ENTRIES} ON ledger_entries",
            _TRIGGER.format(_ENTRIES, "ledger_entries", "", _ENTRIES),
        ],
        [
            _FUNCTION.format("cheap"),
            _TRIGGER.format("cheap", "ledger_accounts", "FOR EACH ROW", "cheap"),
        ],
        ["CREATE RULE cheap AS ON UPDATE TO ledger_accounts DO INSTEAD NOTHING"],
    ],
}
"""What somebody would do to write entries anew, or to have others' writes changed, by database."""


def test_triggers_that_are_gone_or_changed_are_named(ledger: Ledger, engine: Engine) -> None:
    assert ledger.verify() == []
    for statements in CHANGES[engine.dialect.name]:
        with engine.connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
            assert [p for p in guards.problems(connection) if "trigger" in p], statements
            connection.rollback()
    assert ledger.verify() == []


def _droppings(connection: Connection) -> list[list[str]]:
    """Each constraint of each table, dropped alone; and what hides a table's rows."""
    hidden = [
        "ALTER TABLE ledger_releases RENAME TO hidden",
        "CREATE VIEW ledger_releases AS SELECT * FROM hidden",
    ]
    copied = [hidden[0], "CREATE TABLE ledger_releases AS SELECT * FROM hidden"]
    if connection.dialect.name == "sqlite":
        indexes = connection.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%UNIQUE%'"
        )
        return [hidden, copied, *([f"DROP INDEX {name}"] for name in indexes.scalars())]
    constraints = connection.exec_driver_sql(
        "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype IN "
        "('p', 'u', 'f', 'c') AND conrelid::regclass::text <> 'alembic_version' "
        "AND connamespace = current_schema()::regnamespace"
    ).all()
    assert len(constraints) > len(metadata.tables)
    return [
        hidden,
        copied,
        *([f'ALTER TABLE {t} DROP CONSTRAINT "{name}" CASCADE'] for t, name in constraints),
        ["CREATE POLICY few ON ledger_releases USING (true)"],
        ["ALTER TABLE ledger_releases ENABLE ROW LEVEL SECURITY"],
        [
            "CREATE FUNCTION cheap() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
            "CREATE EVENT TRIGGER cheap ON ddl_command_end EXECUTE FUNCTION cheap()",
        ],
    ]


def test_keys_and_checks_that_are_gone_are_named(ledger: Ledger, engine: Engine) -> None:
    """Without the idempotency key's uniqueness twelve requests were charged ten times."""
    with engine.connect() as connection:
        droppings = _droppings(connection)
        connection.rollback()
        for statements in droppings:
            for statement in statements:
                connection.exec_driver_sql(statement)
            assert guards.schema_problems(connection), statements
            connection.rollback()
    assert ledger.verify() == []


def test_a_table_with_a_view_in_its_place_is_named_by_verify(
    ledger: Ledger, engine: Engine
) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE access_identities RENAME TO hidden")
    said = ledger.verify()
    assert any(each.startswith("The table access_identities is missing") for each in said)
    assert "not checked" in said[-1]


def test_a_ledger_without_its_head_says_so(ledger: Ledger, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM ledger_head")
    assert "head" in " ".join(ledger.verify())
    with pytest.raises(Unavailable, match="lost the row that names its last entry"):
        ledger.set_population_cap("people", epsilon=1.0, delta=1e-6, by="t")


def test_init_does_not_take_a_newer_database(engine: Engine, database_url: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(CuratorError, match="made by a newer version"):
        upgrade(database_url)


def test_verify_looks_for_triggers(ledger: Ledger, engine: Engine) -> None:
    dropped = (
        "ledger_entries_no_update"
        if engine.dialect.name == "sqlite"
        else "ledger_entries_immutable"
    )
    on = "" if engine.dialect.name == "sqlite" else " ON ledger_entries"
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TRIGGER {dropped}{on}")
    assert ledger.verify() == [f"The trigger {dropped} is missing."]


def test_another_revision_is_not_opened(engine: Engine, database_url: str) -> None:
    """The one table that is not ours."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    again = connect(database_url)
    assert not is_current(again)
    again.dispose()
