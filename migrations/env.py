# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment: runs on the database that `database.upgrade` names."""

from typing import Any

from alembic import context
from sqlalchemy import Connection, Engine, event, text

from reticent_server import database

UPGRADE_LOCK = 7_218_450_011


def run() -> None:
    """Runs the migrations in one transaction; of two upgrades at once, the second waits."""
    engine = database.connect(context.config.attributes["url"])
    _tables_may_be_made_anew(engine)
    try:
        with database.writing(engine) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK}
                )
            context.configure(connection=connection, transactional_ddl=True)
            with context.begin_transaction():
                context.run_migrations()
            _check_references(connection)
    finally:
        engine.dispose()


def _tables_may_be_made_anew(engine: Engine) -> None:
    """SQLite changes a constraint by a new table in the old one's place. What refers to the old one
    would not let it go, and a transaction cannot turn that off.
    """
    if engine.dialect.name != "sqlite":
        return

    @event.listens_for(engine, "connect")
    def unchecked(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA foreign_keys=OFF")


def _check_references(connection: Connection) -> None:
    """Raises where a row refers to none, which undoes the migrations."""
    if connection.dialect.name != "sqlite":
        return
    if connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
        raise RuntimeError("a migration would leave rows that refer to none")


run()
