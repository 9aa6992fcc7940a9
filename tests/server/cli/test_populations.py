# SPDX-License-Identifier: Apache-2.0
"""Populations as a curator makes them: places, units, persons of two of them, the second person,
and earlier versions' data.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer
from sqlalchemy import delete
from typer.testing import CliRunner

from reticent_server.catalog import populations as catalog_populations
from reticent_server.catalog.tables import populations
from reticent_server.certificate.installation import populations as certified_populations
from reticent_server.chain.rows import as_stored, row_digest
from reticent_server.chain.tables import entries
from reticent_server.cli import dataset, ledger, population
from reticent_server.cli.init import init
from reticent_server.database import connect, reading, writing
from reticent_server.domain.roles import STAFF
from reticent_server.opening import open_books, open_catalog
from reticent_server.settings import Settings
from reticent_server.vault import ingest
from reticent_server.vault.names import file_mark
from support.tables.sources import new_url, rows, write_sql

VISITS = "unit: {column: id, max_rows: 3}\ncolumns:\n  day: {kind: integer, lower: 0, upper: 99}\n"
PEOPLE = "unit: {column: id, max_rows: 1}\ncolumns:\n  age: {kind: integer, lower: 0, upper: 99}\n"
ROWS = "columns:\n  day: {kind: integer, lower: 0, upper: 99}\n"
FIRST = "id,day\nann,3\nbob,1\nann,1\n"

program = typer.Typer()
program.command()(init)
for name, group in (("dataset", dataset.app), ("population", population.app)):
    program.add_typer(group, name=name)
program.add_typer(ledger.app, name="ledger")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith("RETICENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    for name, text in (("visits", VISITS), ("people", PEOPLE), ("rows", ROWS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    run("init")
    return tmp_path


def run(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(program, list(arguments))
    assert done.exit_code == status, done.output
    return " ".join((done.stdout + done.stderr).split()) if status else done.stdout


def load(name: str, text: str, schema: str, *more: str, status: int = 0) -> Any:
    Path(f"{name}.csv").write_text(text)
    arguments = ("dataset", "load", name, f"{name}.csv", "--schema", f"{schema}.yaml")
    out = run(*arguments, *more, *(() if status else ("--json",)), status=status)
    return out if status else json.loads(out)


def shown(name: str) -> Any:
    return json.loads(run("population", "show", name, "--json"))


def actions() -> list[str]:
    return [json.loads(line)["action"] for line in run("ledger", "export").splitlines()]


def forget_populations() -> None:
    """As a database of an earlier version: its chain and its tables say nothing of populations."""
    engine = connect(Settings().database_url)
    with writing(engine) as connection:
        connection.execute(delete(populations))
    engine.dispose()


@pytest.mark.slow
def test_the_first_table_makes_a_population_of_its_persons(folder: Path) -> None:
    assert load("visits", FIRST, "visits")["n"] == 2
    assert shown("visits") == {
        "population": "visits",
        "unit": "id",
        "places": 2,
        "spine": "the persons of visits",
        "datasets": "visits",
        "second_person": False,
        "overlap_reason": None,
    }
    assert actions() == ["catalogue.add", "population.add", "dataset.load", "version.add"]
    people = load("people", "id,age\nbob,40\ncy,50\n", "people", "--population", "visits")
    assert (people["n"], people["outside"]) == (2, 1)
    with open_catalog(Settings()) as catalog:
        assert catalog.facts("people").schema.unit.gaps
    assert "ok" in run("ledger", "verify", "--json")


@pytest.mark.slow
def test_a_table_that_gives_the_places_stays_complete(folder: Path) -> None:
    load("people", "id,age\nann,30\nbob,40\n", "people")
    assert load("people", "id,age\nbob,41\nann,31\ncy,9\n", "people")["outside"] == 1
    with open_catalog(Settings()) as catalog:
        assert not catalog.facts("people").schema.unit.gaps
    refused = load("people", "id,age\nbob,41\n", "people", status=1)
    assert "1 of the population's 2 persons have no row" in refused
    assert "has no rows of persons" in load(
        "more", "id,age\ncy,1\n", "people", "--population", "people", status=1
    )


@pytest.mark.slow
def test_a_capacity_is_filled_and_widened(folder: Path) -> None:
    run("population", "add", "c", "--column", "id", "--capacity", "3")
    assert load("people", "id,age\nann,30\nbob,40\n", "people", "--population", "c")["n"] == 3
    assert load("visits", FIRST + "cy,3\n", "visits", "--population", "c")["n"] == 3
    Path("wave.csv").write_text("id,day\ndi,4\n")
    assert "has 4 persons, and 3 places" in run("dataset", "append", "visits", "wave.csv", status=1)
    assert "larger number than the 3" in run(
        "population", "widen", "c", "--capacity", "3", status=1
    )
    run("population", "widen", "c", "--capacity", "5")
    run("dataset", "append", "visits", "wave.csv")
    run("dataset", "link", "both", "--table", "v=visits", "--table", "p=people")
    with open_catalog(Settings()) as catalog:
        assert [catalog.facts(n).n for n in ("people", "visits", "both")] == [3, 5, 5]
    assert "population.places" in actions()
    assert "a declared capacity" in run("population", "list")


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("schema", "text"), [("visits", FIRST), ("people", "id,age\ncy,1\nbob,2\n"), ("rows", FIRST)]
)
def test_persons_or_a_file_of_another_population_need_a_reason(
    folder: Path, schema: str, text: str
) -> None:
    """Loading the same people under another name gave them a second cap."""
    load("visits", FIRST, "visits")
    refused = load("again", text, schema, status=1)
    assert "in population visits, too" in refused
    assert "second budget" in refused
    with open_catalog(Settings()) as catalog:
        assert [facts.name for facts in catalog.list()] == ["visits"]
    load("again", text, schema, "--overlap-reason", "another study, by its own board")
    assert shown("again")["overlap_reason"] == "another study, by its own board"
    load("again", text, schema)  # the reason stands
    assert "1 to 950 characters" in load("third", text, schema, "--overlap-reason", " ", status=1)


def test_no_reader_of_the_ledger_learns_that_somebody_is_in_two_populations(folder: Path) -> None:
    """A reason is asked for only then: its presence changes no entry, and no digest can be tried.
    The certificate's facts do not have it either.
    """
    load("visits", FIRST, "visits")
    for name, reason in (("apart", ()), ("both", ("--overlap-reason", "their own board"))):
        text = FIRST if reason else "id,day\nzoe,3\n"
        load(name, text, "visits", *reason)
        load(name, text, "visits", *reason)
    lines = [json.loads(line) for line in run("ledger", "export").splitlines()]
    told = {
        name: [
            (line["action"], sorted(line["detail"]))
            for line in lines
            if name in f"{line['subject']}:{line['detail'].get('dataset')}".split(":")
        ]
        for name in ("apart", "both")
    }
    assert told["apart"] == told["both"]
    assert len(told["both"]) == 6
    engine = connect(Settings().database_url)
    with reading(engine) as connection:
        (row,) = connection.execute(as_stored(populations).where(populations.c.name == "both"))
        subject, known = "population:both", dict(row._mapping)
    engine.dispose()
    last = [line["detail"]["row_sha256"] for line in lines if line.get("subject") == subject][-1]
    assert last == row_digest(populations, known)
    guesses = (None, "their own board")
    assert last not in {row_digest(populations, known | {"separate": guess}) for guess in guesses}
    certified = certified_populations(open_books(Settings()))
    assert "their own board" not in json.dumps(certified, default=str)


@pytest.mark.slow
def test_the_same_rows_are_found_again_and_a_retired_data_set_counts(folder: Path) -> None:
    load("rows", FIRST, "rows")
    run("dataset", "retire", "rows", "--yes")
    assert "The same file is in population rows" in load("again", FIRST, "rows", status=1)
    load("again", FIRST + "cy,4\n", "rows")


@pytest.mark.slow
def test_a_register_is_compared_as_well(folder: Path) -> None:
    Path("register.csv").write_text("id\nann\nbob\n")
    run("population", "add", "first", "--column", "id", "--register", "register.csv")
    assert "second budget" in load("visits", FIRST, "visits", status=1)
    again = ("population", "add", "second", "--column", "id", "--register", "register.csv")
    assert "second budget" in run(*again, status=1)
    assert load("visits", FIRST, "visits", "--population", "first")["n"] == 2


@pytest.mark.slow
def test_one_cap_is_of_one_unit(folder: Path) -> None:
    load("visits", FIRST, "visits")
    refused = load("rows", "day\n1\n", "rows", "--population", "visits", status=1)
    assert "protects all rows with one id, and rows would protect single rows" in refused
    load("rows", "day\n1\n", "rows")
    assert "protects single rows" in load(
        "people", "id,age\nzoe,1\n", "people", "--population", "rows", status=1
    )


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--capacity", "3"), "Give --column"),
        (("--column", "id", "--capacity", "0"), "1 to 1073741824 places"),
        (("--column", "id", "--capacity", "3", "--table", "v"), "Give one of"),
        (("--column", "id", "--table", "visits"), "is not a data set of population new"),
        (("--column", "id", "--register", "none.csv"), "none.csv"),
    ],
)
def test_what_is_no_population(folder: Path, arguments: tuple[str, ...], problem: str) -> None:
    load("visits", FIRST, "visits")
    assert problem in run("population", "add", "new", *arguments, status=1)
    assert "There is no such population" in run("population", "show", "new", status=1)
    assert "already" in run("population", "add", "visits", "--table", "visits", status=1)


@pytest.mark.slow
def test_without_places_what_would_be_published_is_said_and_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of tables that earlier versions have loaded: then their places are declared."""
    with monkeypatch.context() as patch:
        patch.setattr(catalog_populations, "first_spine", lambda *_: None)
        load("visits", FIRST, "visits")
    people = "id,age\nbob,40\n"
    whose = ("--population", "visits")
    assert "would publish n = 1" in load("people", people, "people", *whose, status=1)
    load("people", people, "people", *whose, "--publish-count")
    engine = connect(Settings().database_url)
    with writing(engine) as connection:  # what an earlier version's chain and table hold
        connection.execute(populations.delete())
        connection.exec_driver_sql("DROP TRIGGER IF EXISTS ledger_entries_no_delete")
        connection.exec_driver_sql("DROP TRIGGER IF EXISTS ledger_entries_no_update")
        connection.execute(
            entries.update()
            .where(entries.c.subject == "population:visits")
            .values(subject="catalogue:0")
        )
    engine.dispose()
    assert shown("visits")["spine"] == "not declared"
    Path("wave.csv").write_text("id,day\ncy,4\n")
    link = ("dataset", "link", "both", "--table", "v=visits", "--table", "p=people")
    assert "would publish n = 2" in run(*link, status=1)
    assert "would publish n = 3" in run("dataset", "append", "visits", "wave.csv", status=1)
    run(*link, "--publish-count")
    run("population", "add", "visits", "--table", "visits")
    run("dataset", "append", "visits", "wave.csv")
    run(*link)
    with open_catalog(Settings()) as catalog:
        assert [catalog.facts(n).n for n in ("visits", "people", "both")] == [2, 1, 2]


@pytest.mark.slow
def test_a_new_population_needs_the_second_person_where_any_has_the_rule(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another name skipped the second person that the first asks for."""
    load("visits", FIRST, "visits")
    run("dataset", "policy", "visits", "--second-person")
    (folder / "carol").write_text(open_books(Settings()).access.add_curator("carol", STAFF, by="t"))
    monkeypatch.setenv("RETICENT_KEY_FILE", str(folder / "carol"))
    other = "id,day\nzoe,3\n"
    assert "ap_" in load("again", other, "visits", status=1)
    assert "ap_" in run("population", "add", "new", "--column", "id", "--capacity", "9", status=1)
    assert "ap_" in run("population", "widen", "visits", "--capacity", "9", status=1)
    assert len(open_books(Settings()).approvals.all()) == 3
    with open_catalog(Settings()) as catalog:
        assert [each.name for each in catalog.populations()] == ["visits"]


@pytest.mark.slow
def test_an_edited_population_is_not_used(folder: Path) -> None:
    load("visits", FIRST, "visits")
    forget_populations()
    assert "not as its ledger says" in load("visits", FIRST, "visits", status=1)
    verified = json.loads(run("ledger", "verify", "--json", status=1).replace("'", "'") or "{}")
    assert not verified["ok"]


SECRETS = Path("reticent-secrets.json")


def test_lost_secrets_are_not_renewed_in_silence(folder: Path) -> None:
    """The same file in another population was refused, and is refused without the secrets, too."""
    same = "day\n3\n1\n"
    load("first", same, "rows")
    assert "The same file is in population first" in load("second", same, "rows", status=1)
    SECRETS.unlink()
    refused = run("init", status=1)
    assert "Restore the file from its backup" in refused
    assert not SECRETS.exists(), "nothing is half done"
    assert run("init", "--renew-secrets", " ", status=1) == refused
    run("init", "--renew-secrets", "the disk burnt")
    assert actions()[-1] == "secrets.renew"
    for changed in (same, "day\n3\n2\n"):
        told = load("second", changed, "rows", status=1)
        assert "under another key, and so may be the same, are in population first" in told
    load("first", same, "rows")  # another version of the data set frees no budget
    load("second", "day\n9\n", "rows", "--overlap-reason", "other people")
    told = load("third", "day\n8\n", "rows", status=1)
    assert "may be the same" in told, "each new population needs a reason"
    again = load("second", "day\n7\n", "rows", status=1)
    assert "may be the same" in again, "and so does each of its tables"
    assert "ok" in run("ledger", "verify", "--json")


def test_a_file_marked_by_an_earlier_version_may_be_any_once_the_secrets_are_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mark had no fingerprint of its key; the same file was known all the same."""
    monkeypatch.setattr(ingest, "file_mark", lambda path, key: file_mark(path, key)[17:])
    load("first", "day\n3\n1\n", "rows")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert "The same file is" in load("second", "day\n3\n1\n", "rows", status=1)
    SECRETS.unlink()
    run("init", "--renew-secrets", "lost")
    assert "may be the same" in load("third", "day\n4\n", "rows", status=1)


def test_registered_tables_may_be_the_same_once_their_urls_are_lost(folder: Path) -> None:
    (folder / "rows.yaml").write_text("columns:\n  x: {kind: numeric, lower: -3, upper: 3}\n")
    url = write_sql(new_url("sqlite", folder), rows(30))
    given = ("--schema", "rows.yaml", "--url", url, "--table", "people")
    run("dataset", "register", "first", *given)
    SECRETS.unlink()
    run("init", "--renew-secrets", "lost")
    told = run("dataset", "register", "second", *given, status=1)
    assert "may be this one, are in population first" in told
    run("dataset", "register", "second", *given, "--overlap-reason", "another hospital's")


def test_places_are_declared_anew_where_the_vault_is_lost_and_the_budget_stays(
    folder: Path,
) -> None:
    places = ("population", "add", "clinic", "--column", "id", "--capacity", "9")
    run(*places)
    load("visits", FIRST, "visits", "--population", "clinic")
    books = open_books(Settings())
    before = books.ledger.set_population_cap("clinic", epsilon=3, delta=1e-6, by="t")
    books.ledger.close()
    for ending in ("", "-wal", "-shm"):
        (folder / f"reticent-vault.db{ending}").unlink(missing_ok=True)
    run("init")
    refused = load("visits", FIRST, "visits", status=1)
    assert "population renew" in refused
    assert "no such population" in run(
        "population", "renew", "other", "--reason", "r", "--capacity", "5", status=1
    )
    run("population", "renew", "clinic", "--reason", "the vault is lost", "--capacity", "5")
    assert load("visits", FIRST, "visits")["version"] == 2
    assert (shown("clinic")["places"], shown("clinic")["unit"]) == (5, "id")
    assert "population.renew" in actions()
    books = open_books(Settings())
    assert books.ledger.population_balance("clinic") == before
    books.ledger.close()
    assert "ok" in run("ledger", "verify", "--json")
