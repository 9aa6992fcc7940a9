# SPDX-License-Identifier: Apache-2.0
"""Backups as the operations guide says: for their owner only, and restored they are as they
were.
"""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import delete
from sqlalchemy.exc import DatabaseError

from reticent_server.access.service import Access
from reticent_server.catalog.repository import Catalog
from reticent_server.chain.tables import entries
from reticent_server.database import connect, is_current, writing
from reticent_server.ledger.service import Ledger
from support.databases import postgresql
from support.databases.migrated import SetClock, clock, migrated
from support.documents.code_blocks import ROOT
from support.installations.curator_acts import PEPPER, World, make_world
from support.ledger.accounts import LEASE_SECONDS, ask, open_accounts

__all__ = ["clock"]

GUIDE = (ROOT / "docs/operations.md").read_text("utf-8")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@contextmanager
def filled(url: str, clock: SetClock) -> Iterator[tuple[World, str]]:
    """Rows in every table, a charge, and the head."""
    engine = connect(url)
    world = make_world(engine, clock)
    open_accounts(world.ledger)
    ask(world.ledger)
    yield world, world.ledger.head()
    engine.dispose()


def check(url: str, world: World, head: str, clock: SetClock) -> None:
    """Everything is there, in order, and goes on."""
    engine = connect(url)
    ledger = Ledger(engine, clock, LEASE_SECONDS)
    assert is_current(engine)
    assert ledger.verify(head) == []
    assert Access(engine, PEPPER, clock).authenticate(world.keys["ana"]) is not None
    assert Catalog(engine, clock).facts("houses").version_id == world.version_id
    with pytest.raises(DatabaseError, match="immutable"), writing(engine) as connection:
        connection.execute(delete(entries))
    ask(ledger)
    assert ledger.verify(head) == []
    engine.dispose()


@pytest.mark.slow
def test_a_copy_of_sqlite_while_it_is_used(tmp_path: Path, clock: SetClock) -> None:
    with migrated("sqlite", tmp_path) as url, filled(url, clock) as (world, head):
        copy = tmp_path / "reticent-backup.db"
        statement = f"VACUUM INTO '{copy}'"
        assert "VACUUM INTO 'reticent-backup.db'" in GUIDE
        with umask(0o077), closing(sqlite3.connect(tmp_path / "reticent.db")) as connection:
            connection.execute(statement)
        assert copy.stat().st_mode & 0o777 == 0o600
        check(f"sqlite:///{copy}", world, head, clock)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_dump_of_postgresql_and_its_restore(tmp_path: Path, clock: SetClock) -> None:
    programs = postgresql.binaries()
    if programs is None:
        pytest.skip("no PostgreSQL binaries")
    dump = tmp_path / "ledger.dump"
    with migrated("postgresql", tmp_path) as url, filled(url, clock) as (world, head):
        commands = (
            (url, "pg_dump --format custom --file ledger.dump {url}", 0o600),
            (postgresql.new_database(), RESTORE, None),
        )
        for target, command, mode in commands:
            assert command.replace("{url}", '"$RETICENT_DATABASE_URL"') in GUIDE
            words = command.replace("{url}", target).split()
            with umask(0o077):
                subprocess.run([programs / words[0], *words[1:]], cwd=tmp_path, check=True)
            assert mode is None or dump.stat().st_mode & 0o777 == mode
        check(target, world, head, clock)
        postgresql.drop_database(target)


RESTORE = "pg_restore --exit-on-error --dbname {url} ledger.dump"
