# SPDX-License-Identifier: Apache-2.0
"""Alembic's environment: runs on the database that `database.upgrade` names."""

from alembic import context
from sqlalchemy import text

from reticent_server import database

UPGRADE_LOCK = 7_218_450_011


def run() -> None:
    """Runs the migrations in one transaction; of two upgrades at once, the second waits."""
    engine = database.connect(context.config.attributes["url"])
    try:
        with database.writing(engine) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(
                    text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK}
                )
            context.configure(connection=connection, transactional_ddl=True)
            with context.begin_transaction():
                context.run_migrations()
    finally:
        engine.dispose()


run()
