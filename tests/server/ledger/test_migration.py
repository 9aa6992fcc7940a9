# SPDX-License-Identifier: Apache-2.0
import os
from dataclasses import replace
from pathlib import Path
from stat import S_IMODE

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Engine, delete, inspect, text, update
from sqlalchemy.exc import DatabaseError

from reticent_server import database
from reticent_server.chain.tables import entries
from reticent_server.ledger import tables
from reticent_server.ledger.service import Fresh, Ledger
from support.databases.migrated import SetClock
from support.ledger.accounts import TENTH, ask, open_accounts

OURS = {
    name
    for name in database.metadata.tables
    if name.startswith(("access_", "ledger_", "catalog_", "dataset"))
}


def test_the_migrated_tables_are_those_of_the_metadata(engine: Engine) -> None:
    def only_ours(_object: object, name: str, kind: str, *_: object) -> bool:
        return kind != "table" or name in OURS

    with database.reading(engine) as connection:
        options = {"compare_type": True, "include_object": only_ours}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, database.metadata) == []


def test_the_migrated_checks_are_those_of_the_metadata(engine: Engine) -> None:
    """(Alembic does not compare CHECK constraints.)"""
    for name in OURS:
        table = database.metadata.tables[name]
        wanted = {str(c.name) for c in table.constraints if isinstance(c, CheckConstraint)}
        with database.reading(engine) as connection:
            found = {c["name"] for c in inspect(connection).get_check_constraints(name)}
        assert found == wanted


def test_upgrading_twice_keeps_everything(database_url: str, ledger: Ledger) -> None:
    open_accounts(ledger)
    head = ledger.head()
    database.upgrade(database_url)
    assert ledger.head() == head


def test_a_path_with_a_percent_sign_is_upgraded(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / '100%.db'}"
    database.upgrade(url)
    engine = database.connect(url)
    assert Ledger(engine, SetClock(), 600).verify() == []
    engine.dispose()


def test_a_new_file_is_for_its_owner_only(tmp_path: Path) -> None:
    """And so are the files that SQLite puts beside it; an old one keeps its mode."""
    file = tmp_path / "reticent.db"
    before = os.umask(0o022)
    try:
        database.upgrade(f"sqlite:///{file}")
        engine = database.connect(f"sqlite:///{file}")
        with database.reading(engine):
            files = sorted(tmp_path.iterdir())
            assert {S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        assert len(files) == 3
        engine.dispose()
        file.chmod(0o640)
        database.upgrade(f"sqlite:///{file}")
        assert S_IMODE(file.stat().st_mode) == 0o640
    finally:
        os.umask(before)


def test_the_database_itself_refuses_to_change_an_entry(ledger: Ledger, engine: Engine) -> None:
    open_accounts(ledger)
    ask(ledger)
    for change in (update(entries).values(primary_change=0), delete(entries)):
        with pytest.raises(DatabaseError, match="immutable"), database.writing(engine) as c:
            c.execute(change)


def test_the_database_itself_refuses_to_overspend(ledger: Ledger, engine: Engine) -> None:
    open_accounts(ledger)
    for column in (tables.accounts.c.primary_spent, tables.accounts.c.secondary_spent):
        for value in (-1, 10**15):
            with pytest.raises(DatabaseError), database.writing(engine) as connection:
                connection.execute(update(tables.accounts).values({column: value}))


def downgrade(url: str, revision: str) -> None:
    config = Config(attributes={"url": url})
    config.set_main_option("script_location", str(database._migrations()).replace("%", "%%"))
    command.downgrade(config, revision)


def stored(engine: Engine) -> dict[str, list[dict[str, object]]]:
    """Accounts and releases, as every version since 0012 has them."""
    found = {}
    with database.reading(engine) as connection:
        for name in ("ledger_accounts", "ledger_releases"):
            rows = connection.execute(text(f"SELECT * FROM {name}")).mappings()
            kept = [{k: v for k, v in row.items() if k != "gaussian"} for row in rows]
            found[name] = sorted(kept, key=str)
    return found


def test_accounts_and_charges_of_before_the_rule_gdp_are_kept_as_they_were(
    database_url: str, engine: Engine, ledger: Ledger
) -> None:
    """With data of every earlier rule, through the migrations of populations and of gdp."""
    given = {"epsilon": 1.0, "delta": 1e-6, "by": "carol"}
    ledger.set_population_cap("flats", rule="zcdp", **given)
    open_accounts(ledger)
    before_gdp = replace(TENTH, gaussian=0)
    charged = ask(ledger, cost=before_gdp, idempotency_key="k")
    assert isinstance(charged, Fresh)
    ledger.settle(charged.reservation, "reply", b"{}")
    ask(ledger, cost=before_gdp)
    before, head = stored(engine), ledger.head()
    engine.dispose()
    downgrade(database_url, "0012")
    assert "populations" not in inspect(engine).get_table_names()
    with pytest.raises(DatabaseError), database.writing(engine) as connection:
        connection.execute(text("UPDATE ledger_accounts SET rule = 'gdp'"))
    engine.dispose()
    database.upgrade(database_url)
    assert stored(engine) == before
    assert (ledger.head(), ledger.verify()) == (head, [])
    assert isinstance(ask(ledger, cost=before_gdp), Fresh)
    ledger.set_population_cap("cars", rule="gdp", **given)
    assert ledger.verify() == []
