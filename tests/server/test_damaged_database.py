# SPDX-License-Identifier: Apache-2.0
"""A database that is damaged, read-only or full: one line that says what to do, and no word of the
database's.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import structlog
from sqlalchemy.exc import IntegrityError, InternalError

from reticent_server import database
from reticent_server.cli import main
from reticent_server.domain.clock import SystemClock
from reticent_server.errors import Damaged, Unavailable
from reticent_server.ledger.service import Ledger
from reticent_server.pipeline.readiness import Readiness
from support.databases.migrated import SetClock, migrated
from support.installations.small import Api, Installation, opened
from support.ledger.accounts import LEASE_SECONDS, ask, open_accounts

ADVICE = "restore the last backup"
PAGE = 4096
"""Bytes of a page of SQLite's, by default."""


def damage(file: Path, table: str) -> None:
    """Writes over the first page of a table."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)
        ).fetchone()[0]
    with file.open("r+b") as raw:
        raw.seek((page - 1) * PAGE)
        raw.write(b"\xff" * PAGE)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if not line.startswith("{")]  # but for the log's own
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize("table", ["ledger_entries", "ledger_head", None])
def test_commands_say_what_to_do(
    table: str | None,
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """table None: a file that is no database at all."""
    file = installation.directory / "reticent.db"
    if table is None:
        file.write_bytes(b"not a database" * 1000)
    else:
        damage(file, table)
    for name, value in installation.environment.items():
        monkeypatch.setenv(name, value)
    asked = ["verify", "head"] if table == "ledger_head" else ["verify", "export", "show"]
    for arguments in (("ledger", each) for each in asked):
        line = said(capsys, *arguments)
        assert ADVICE in line
        assert "malformed" not in line
    if table is None:
        assert ADVICE in said(capsys, "init")


def test_a_text_of_the_database_that_is_no_text_is_damage(
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = installation.directory / "reticent.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE catalog_identity SET identity = CAST(x'ff41' AS TEXT)")
        connection.commit()
    for name, value in installation.environment.items():
        monkeypatch.setenv(name, value)
    assert ADVICE in said(capsys, "ledger", "verify")


def test_a_server_says_so_when_it_is_asked_whether_it_is_ready(installation: Installation) -> None:
    damage(installation.directory / "reticent.db", "ledger_head")
    with opened(installation.settings) as services:
        readiness = Readiness(SystemClock(), {"database": services.ledger.head})
        with pytest.raises(Damaged, match=ADVICE):
            readiness.away()
        readiness.close()
        api = Api(services, installation.keys["ana"])
        answered = api.get("/readyz")
        assert (answered.status_code, answered.json()["code"]) == (503, "unavailable")
        assert ADVICE in answered.json()["detail"]


def failed(code: str) -> Exception:
    """What SQLAlchemy raises for a SQLSTATE of PostgreSQL."""
    return InternalError("SELECT 1", {}, psycopg.errors.lookup(code)("words of a row"))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("XX001", ADVICE),
        ("XX002", ADVICE),
        ("XX000", "did not answer"),
        ("25006", "takes no writes"),
        ("53100", "no room left"),
        ("57P01", "did not answer"),
    ],
)
def test_what_postgresql_says_is_said_in_our_words(code: str, words: str) -> None:
    with pytest.raises(Unavailable, match=words) as caught, database._unavailable_when_down():
        raise failed(code)
    assert isinstance(caught.value, Damaged) == (words == ADVICE)
    assert "words of a row" not in caught.value.detail


def test_an_entry_that_is_there_already_is_no_damage() -> None:
    wrong = IntegrityError("INSERT", {}, SimpleNamespace(sqlstate="23505"))  # type: ignore[arg-type]
    with pytest.raises(IntegrityError), database._unavailable_when_down():
        raise wrong


def test_a_read_only_database_is_read_and_not_written(tmp_path: Path, clock: SetClock) -> None:
    """Also a file of somebody else's, or a folder mounted so: nothing is charged, and reading goes
    on.
    """
    with migrated("sqlite", tmp_path) as url:
        engine = database.connect(url)
        ledger = Ledger(engine, clock, LEASE_SECONDS)
        open_accounts(ledger)
        one = Ledger(_only(url), clock, LEASE_SECONDS)
        with pytest.raises(Unavailable, match="takes no writes"):
            ask(one)
        assert one.verify() == []
        assert one.balances("alice")[0].spent.primary == 0
        one.close()
        engine.dispose()


def _only(url: str) -> database.Engine:
    """An engine all of whose connections refuse to write."""
    engine = database.connect(url)
    database.event.listen(engine, "connect", lambda c, _: c.execute("PRAGMA query_only = ON"))
    return engine


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """A command sends the log to what standard error is at the time."""
    yield
    structlog.reset_defaults()
