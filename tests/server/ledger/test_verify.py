# SPDX-License-Identifier: Apache-2.0
"""verify finds a change to any column of any row, names what it is about, and knows old copies."""

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from reticent_server import database
from reticent_server.access.peppers import only
from reticent_server.access.service import Access
from reticent_server.chain.entries import GENESIS
from reticent_server.chain.tables import entries, head
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.roles import STAFF
from reticent_server.ledger import tables
from reticent_server.ledger.service import Fresh, Ledger
from support.databases.migrated import SetClock, migrated
from support.ledger.accounts import ask, open_accounts

TRIGGERS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
UNCHECKED = {
    "ledger_releases": ("lease", "lease_until_ms"),  # of a pending one, as the last row is
    "ledger_head": ("id",),
}
COLUMNS = [
    (table.name, column.name)
    for table in (tables.accounts, tables.releases, entries, head)
    for column in table.columns
    if column.name not in UNCHECKED.get(table.name, ())
]


def fill(ledger: Ledger) -> None:
    """Every action there is, a settled and a pending release, one that a project pays, and one of
    the curator's own.
    """
    open_accounts(ledger)
    for key in ("k", None):
        outcome = ask(ledger, idempotency_key=key)
        assert isinstance(outcome, Fresh)
    ledger.settle(outcome.reservation, "reply", b'{"value":1}')
    budget = {"epsilon": 1.0, "delta": 1e-6, "rule": "basic", "by": "carol"}
    ledger.set_analyst_budget("pr_1", "houses", "people", **budget)
    ask(ledger, project_id="pr_1")
    ask(ledger, analyst_id=None)
    ledger.set_population_cap("people", epsilon=2, delta=1e-6, by="carol")
    ledger.credit("population:people", Amounts(1, 0), reason="test", by="carol")
    Access(ledger._engine, only(b"p" * 32), SetClock()).add_curator("carol", STAFF, by="t")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("ledger")
    with migrated("sqlite", folder) as url:
        engine = database.connect(url)
        fill(Ledger(engine, SetClock(), 600))
        engine.dispose()
        yield folder / "reticent.db"


@pytest.fixture
def tampered(filled: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Runs statements as somebody who owns the file would, then verifies."""

    def tamper(*statements: str, head: str | None = None) -> list[str]:
        copy = shutil.copy(filled, tmp_path / "copy.db")
        with closing(sqlite3.connect(copy)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            triggers = connection.execute(TRIGGERS).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            for statement in statements:
                assert connection.execute(statement).rowcount != 0
            for _, made in triggers:
                connection.execute(made)
            connection.commit()
        engine = database.connect(f"sqlite:///{copy}")
        problems = Ledger(engine, SetClock(), 600).verify(*([head] if head else []))
        engine.dispose()
        return problems

    return tamper


def test_an_untouched_ledger_is_in_order(tampered: Callable[..., list[str]]) -> None:
    assert tampered() == []


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("value", ["X'FF00'", "4.5", "replace(hex(zeroblob(50000)), '0', '[')"])
def test_what_no_ledger_writes_is_found(tampered: Callable[..., list[str]], value: str) -> None:
    """Bytes, fractions and deep nesting in any column: words, and no exception."""
    for table, column in COLUMNS:
        last = f"(SELECT max(rowid) FROM {table} WHERE {column} IS NOT NULL)"
        change = f"UPDATE {table} SET {column} = {value} WHERE rowid = {last}"
        assert tampered(change) != [], (table, column)


@pytest.mark.sample(12)
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_changed_column_is_found(
    tampered: Callable[..., list[str]], table: str, column: str
) -> None:
    last = f"(SELECT max(rowid) FROM {table})"
    changed = f"CASE typeof({column}) WHEN 'integer' THEN {column} + 1 ELSE 'x' END"
    assert tampered(f"UPDATE {table} SET {column} = {changed} WHERE rowid = {last}")


@pytest.mark.parametrize("table", [tables.accounts.name, tables.releases.name])
def test_a_missing_row_is_named(tampered: Callable[..., list[str]], table: str) -> None:
    for problem in tampered(f"DELETE FROM {table} WHERE rowid = 1"):
        assert problem.endswith("is missing.")


def test_a_missing_entry_is_named(tampered: Callable[..., list[str]]) -> None:
    assert "Entries 4 to 4 are missing." in tampered("DELETE FROM ledger_entries WHERE seq = 4")


def test_entries_cut_off_at_the_end_are_found(tampered: Callable[..., list[str]]) -> None:
    problems = tampered("DELETE FROM ledger_entries WHERE seq > 8")
    assert problems[0] == "The last entry is not the one that the head of the chain names."


def test_a_changed_amount_is_named(tampered: Callable[..., list[str]]) -> None:
    statement = "UPDATE ledger_entries SET primary_change = 1 WHERE seq = 3"
    assert tampered(statement)[0] == "Entry 3 does not match its hash."


def test_a_refund_without_an_entry_is_named(tampered: Callable[..., list[str]]) -> None:
    statement = "UPDATE ledger_accounts SET primary_spent = 0 WHERE analyst_id = 'alice'"
    assert tampered(statement) == [
        "The account analyst:alice:houses is not what its entries lead to."
    ]


def test_a_result_that_was_changed_is_named(tampered: Callable[..., list[str]]) -> None:
    (problem,) = tampered("UPDATE ledger_releases SET body = x'7b7d' WHERE body IS NOT NULL")
    assert problem.endswith("is not settled as its entry says.")


def test_a_result_that_was_taken_back_is_named(tampered: Callable[..., list[str]]) -> None:
    statement = "UPDATE ledger_releases SET body = NULL, status = 'pending'"
    (problem,) = tampered(f"{statement} WHERE body IS NOT NULL")
    assert problem.endswith("is not settled as its entry says.")


def test_a_release_that_nobody_paid_for_is_named(tampered: Callable[..., list[str]]) -> None:
    names = ", ".join(c.name for c in tables.releases.columns)
    values = names.replace("id,", "'rel_free',", 1).replace("idempotency_key", "NULL")
    copied = f"INSERT INTO ledger_releases ({names}) SELECT {values} FROM ledger_releases LIMIT 1"
    assert tampered(copied) == ["The release rel_free was never paid for."]


def test_text_that_is_no_json_is_found(tampered: Callable[..., list[str]]) -> None:
    statement = "UPDATE ledger_entries SET detail = '{' WHERE seq = 2"
    assert tampered(statement)[0] == "Entry 2 does not match its hash."


def rewritten(path: Path, change: Callable[[dict[str, object]], None]) -> list[str]:
    """Changes entry 3 and hashes the whole chain again, as a patient owner of the file could."""
    previous, statements = GENESIS, []
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        for found in connection.execute("SELECT * FROM ledger_entries ORDER BY seq"):
            row = dict(found)
            row.pop("hash")
            if row["subject"] is None:
                row.pop("subject")
            row["detail"] = json.loads(row["detail"])
            if row["seq"] == 3:
                change(row)
            text = json.dumps(row, sort_keys=True, separators=(",", ":"))
            previous = hashlib.sha256(bytes.fromhex(previous) + text.encode()).hexdigest()
            statements.append(
                f"UPDATE ledger_entries SET primary_change = {row['primary_change']}, "
                f"detail = '{json.dumps(row['detail'])}', hash = '{previous}' "
                f"WHERE seq = {row['seq']}"
            )
    return [*statements, f"UPDATE ledger_head SET hash = '{previous}'"]


def test_the_chain_is_what_the_documentation_says(
    tampered: Callable[..., list[str]], filled: Path
) -> None:
    assert tampered(*rewritten(filled, lambda row: None)) == []


def test_a_rewritten_chain_still_has_to_fit_accounts_and_releases(
    tampered: Callable[..., list[str]], filled: Path
) -> None:
    problems = tampered(*rewritten(filled, lambda row: row.update(primary_change=1)))
    assert problems[0] == "The account population:people is not what its entries lead to."
    assert problems[1].endswith("was not debited as it should be.")


def test_a_rewritten_chain_that_breaks_a_cap_is_named(
    tampered: Callable[..., list[str]], filled: Path
) -> None:
    problems = tampered(*rewritten(filled, lambda row: row.update(primary_change=10**10)))
    assert problems[0] == "Entry 3 leaves population:people outside its cap."


def test_a_rewritten_chain_without_sense_is_named(
    tampered: Callable[..., list[str]], filled: Path
) -> None:
    problems = tampered(*rewritten(filled, lambda row: row.update(detail={})))
    assert problems[0] == "Entry 3 makes no sense."


def test_an_anchored_head_is_in_the_chain_unless_it_was_rewritten(
    tampered: Callable[..., list[str]], filled: Path
) -> None:
    engine = database.connect(f"sqlite:///{filled}")
    head = Ledger(engine, SetClock(), 600).head()
    engine.dispose()
    assert tampered(head=head) == []
    assert tampered(head=GENESIS) == []
    unchanged_accounts = rewritten(filled, lambda row: row["detail"].update(more=1))  # type: ignore[attr-defined]
    assert any("anchored" in p for p in tampered(*unchanged_accounts, head=head))


def test_a_restored_backup_does_not_have_the_anchored_head(ledger: Ledger) -> None:
    open_accounts(ledger)
    old = ledger.head()
    ask(ledger)
    assert ledger.verify(old) == []
    assert "anchored" in ledger.verify("f" * 64)[0]


def test_every_action_verifies_on_both_databases_and_is_exported(ledger: Ledger) -> None:
    fill(ledger)
    assert ledger.verify() == []
    lines = [json.loads(line) for line in ledger.export()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert lines[-1]["hash"] == ledger.head()
    acts = {"principal.add", "key.add"}
    charges = {"open", "cap", "debit", "credit", "settle"}
    assert {line["action"] for line in lines} == acts | charges
    previous = GENESIS
    for line in lines:
        expected = line.pop("hash")
        text = json.dumps(line, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(bytes.fromhex(previous) + text.encode()).hexdigest()
        assert previous == expected


def test_an_export_holds_no_result_and_no_request(ledger: Ledger) -> None:
    fill(ledger)
    text = "".join(ledger.export())
    for hidden in ("value", "kind", "query", "privacy"):
        assert hidden not in text
