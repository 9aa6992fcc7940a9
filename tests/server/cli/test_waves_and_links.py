# SPDX-License-Identifier: Apache-2.0
"""`dataset append` and `dataset link`: persons are found again by their names, from the command
line to the answers.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from reticent_server.cli import dataset, population
from reticent_server.cli.dataset_link import link_datasets
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.init import init
from reticent_server.domain.query import Privacy
from reticent_server.engine.persons import view_reader
from reticent_server.engine.sources import Sources
from reticent_server.kinds.registry import stored_query
from reticent_server.opening import open_catalog
from reticent_server.pipeline import planning
from reticent_server.settings import Settings
from reticent_server.vault.adbc import Permits
from support.installations.small import Api, Installation, copied, opened

VISITS = """
unit: {column: id, max_rows: 3}
columns:
  day: {kind: integer, lower: 0, upper: 99}
  bmi: {kind: numeric, lower: 10, upper: 60, missing: [""]}
"""
PEOPLE = """
unit: {column: id, max_rows: 1}
columns:
  sex: {kind: categorical, levels: ["f", "m"]}
  age: {kind: integer, lower: 0, upper: 120}
"""
ROWS = "columns:\n  x: {kind: integer, lower: 0, upper: 9}\n"

program = typer.Typer()
program.command()(init)
program.add_typer(dataset.app, name="dataset")
program.add_typer(population.app, name="population")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith("RETICENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    for name, text in (("visits", VISITS), ("people", PEOPLE), ("rows", ROWS)):
        (tmp_path / f"{name}.yaml").write_text(text)
    run("init")
    return tmp_path


def run(*arguments: str, status: int = 0) -> str:
    done = CliRunner().invoke(program, list(arguments))
    assert done.exit_code == status, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stdout + done.stderr


def load(name: str, text: str, schema: str, *more: str) -> Any:
    Path(f"{name}.csv").write_text(text)
    return json.loads(
        run("dataset", "load", name, f"{name}.csv", "--schema", f"{schema}.yaml", "--json", *more)
    )


def append(name: str, text: str, *more: str, status: int = 0) -> Any:
    Path("wave.csv").write_text(text)
    out = run(
        "dataset",
        "append",
        name,
        "wave.csv",
        *more,
        *(["--json"] if not status else []),
        status=status,
    )
    return out if status else json.loads(out)


def view(name: str, **features: str) -> list[dict[str, Any]]:
    """The rows of a view of the current version, sorted: places of persons are nobody's
    business.
    """
    settings = Settings()
    with open_catalog(settings) as catalog:
        facts = catalog.facts(name)
        query = stored_query({"kind": "count", "persons": features})
        ready = planning.plan(facts, query, Privacy(1.0, 1e-6))
        assert ready.view is not None
        sources = Sources(
            settings.vault_url,
            catalog.source,
            lambda v: catalog.facts_of(v).schema,
            str,
            Permits(4),
        )
        reader = view_reader(sources.reader(facts.version_id), ready.view, facts.n)
        (batch,) = (found.unwrap() for found in reader.batches(tuple(features)))
    return sorted(batch.to_pylist(), key=lambda row: json.dumps(row, sort_keys=True))


def places(name: str, capacity: int) -> None:
    """Declares a number of places, which persons take as they come."""
    run("population", "add", name, "--column", "id", "--capacity", str(capacity))


def register(name: str, *persons: str) -> None:
    """Declares a population's persons."""
    Path("register.csv").write_text("\n".join(["id", *persons]) + "\n")
    run("population", "add", name, "--column", "id", "--register", "register.csv")


FIRST = "id,day,bmi\nann,3,20\nbob,1,30\nann,1,21\n"


@pytest.mark.slow
def test_a_wave_joins_the_rows_of_the_same_persons(folder: Path) -> None:
    places("visits", 3)
    assert load("visits", FIRST, "visits")["n"] == 3
    appended = append("visits", "id,day,bmi\nbob,5,33\n cy ,4,40\n")
    assert (appended["n"], appended["version"], appended["left_out"]) == (3, 2, 0)
    found = view("visits", rows="count()", last="last(bmi, by=day, none=10)")
    assert found == [
        {"rows": 2.0, "last": 20.0},
        {"rows": 2.0, "last": 33.0},
        {"rows": 1.0, "last": 40.0},
    ]


@pytest.mark.slow
def test_both_orders_of_two_waves_give_the_same_persons(folder: Path) -> None:
    second, third = "id,day,bmi\nbob,5,33\ndi,6,50\n", "id,day,bmi\nann,9,22\ndi,7,\n"
    reason = ("--overlap-reason", "a test")
    for name in "abc":
        places(name, 3)
    load("a", FIRST, "visits", *reason)
    load("b", FIRST, "visits", *reason)
    load("c", FIRST + second.partition("\n")[2] + third.partition("\n")[2], "visits", *reason)
    for name, waves in (("a", (second, third)), ("b", (third, second))):
        for wave in waves:
            append(name, wave)
    features = {"n": "count()", "s": "sum(bmi)", "l": "last(bmi, by=day, none=10)"}
    assert view("a", **features) == view("b", **features) == view("c", **features)
    assert len(view("a", **features)) == 3


@pytest.mark.slow
def test_rows_beyond_max_rows_are_left_out_or_refused(folder: Path) -> None:
    load("visits", FIRST, "visits")
    wave = "id,day,bmi\nann,5,33\nann,0,34\n"
    assert "1 rows are more than the 3" in append("visits", wave, "--strict", status=1)
    assert append("visits", wave)["left_out"] == 1
    assert {"rows": 3.0, "last": 20.0} in view(
        "visits", rows="count()", last="last(bmi, by=day, none=10)"
    )


def test_a_version_keeps_its_rows_and_its_budget(folder: Path) -> None:
    """What was released stays valid for its version: its table is there, as it was, and the
    population is one.
    """
    load("visits", FIRST, "visits", "--population", "clinic")
    with open_catalog(Settings()) as catalog:
        before = catalog.facts("visits")
    append("visits", "id,day,bmi\nbob,5,33\n")
    with open_catalog(Settings()) as catalog:
        after = catalog.facts("visits")
        assert catalog.facts_of(before.version_id) == before
        assert (after.population, after.version, after.schema) == ("clinic", 2, before.schema)
        old, new = catalog.source(before.version_id), catalog.source(after.version_id)
        assert {old.table, new.table} <= catalog.vault_tables()  # type: ignore[union-attr]
        query = stored_query({"kind": "count", "persons": {"v": "count()"}})
        assert planning.plan(after, query, Privacy(1.0)).facts.version == 2
        vault = Settings().vault_url
        sources = Sources(vault, catalog.source, lambda _: after.schema, str, Permits(4))
        reader = sources.reader(before.version_id)
        assert reader.n == 2 * 3
        batches = [batch.unwrap().to_pydict() for batch in reader.batches(("day",))]
        assert sum(not absent for b in batches for absent in b[":missing"]) == 3


@pytest.mark.slow
def test_rows_of_nobody_are_appended_as_they_come(folder: Path) -> None:
    load("rows", "x\n1\n2\n", "rows")
    assert append("rows", "x\n3\n99\n")["clipped"] == {"x": 1}
    with open_catalog(Settings()) as catalog:
        facts = catalog.facts("rows")
        assert facts.n == 4
        vault = Settings().vault_url
        sources = Sources(vault, catalog.source, lambda _: facts.schema, str, Permits(4))
        reader = sources.reader(facts.version_id)
        rows = [batch.unwrap().to_pydict()["x"] for batch in reader.batches(("x",))]
    assert [x for batch in rows for x in batch] == [1.0, 2.0, 3.0, 9.0]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("wave", "problem"),
    [
        ("id,sex,age\ndi,f,3\nann,m,4\n", "row 2 (line 3), column id: the unit has a row already"),
        ("id,sex,age\ndi,x,3\n", "column sex"),
        ("id,sex,age\n", "has no rows"),
        ("id,sex\ndi,f\n", "no column 'age'"),
    ],
)
def test_a_bad_wave_changes_nothing(folder: Path, wave: str, problem: str) -> None:
    load("people", "id,sex,age\nann,f,30\n", "people")
    assert problem in " ".join(append("people", wave, status=1).split())
    with open_catalog(Settings()) as catalog:
        assert catalog.facts("people").version == 1
    assert view("people", age="max(age, none=0)") == [{"age": 30.0}]


@pytest.mark.slow
def test_persons_named_under_another_key_are_not_taken_for_the_same(folder: Path) -> None:
    load("visits", FIRST, "visits")
    secrets = json.loads((folder / "reticent-secrets.json").read_text())
    assert len(secrets["persons"]) == 64
    (folder / "reticent-secrets.json").write_text(json.dumps(secrets | {"persons": "ab" * 32}))
    assert "named under another key" in " ".join(append("visits", FIRST, status=1).split())


def linked(folder: Path) -> None:
    register("clinic", "ann", "bob", "di", "eve")
    load("visits", FIRST + "eve,2,55\n", "visits", "--population", "clinic")
    load("people", "id,sex,age\ndi,m,70\nann,f,30\nbob,m,40\n", "people", "--population", "clinic")
    out = run("dataset", "link", "clinic", "--table", "v=visits", "--table", "p=people", "--json")
    assert json.loads(out)["n"] == 4


@pytest.mark.slow
def test_linked_tables_give_one_row_for_each_person(folder: Path) -> None:
    linked(folder)
    found = view(
        "clinic",
        visits="count(v)",
        bmi="last(v.bmi, by=v.day)",
        sex='first(p.sex, by=p.age, none="f")',
        age="max(p.age, none=0)",
    )
    assert found == sorted(
        [
            {"visits": 2.0, "bmi": 20.0, "bmi:missing": False, "sex": 0.0, "age": 30.0},
            {"visits": 1.0, "bmi": 30.0, "bmi:missing": False, "sex": 1.0, "age": 40.0},
            {"visits": 0.0, "bmi": 0.0, "bmi:missing": True, "sex": 1.0, "age": 70.0},
            {"visits": 1.0, "bmi": 55.0, "bmi:missing": False, "sex": 0.0, "age": 0.0},
        ],
        key=lambda row: json.dumps(row, sort_keys=True),
    )


@pytest.mark.slow
def test_a_link_reads_the_versions_that_it_was_made_of(folder: Path) -> None:
    linked(folder)
    assert append("visits", "id,day,bmi\nzoe,1,20\neve,7,44\n")["outside"] == 1
    assert sum(row["visits"] for row in view("clinic", visits="count(v)")) == 4
    shown = json.loads(run("dataset", "show", "clinic", "--json"))["linked"]
    assert shown[0] == {"table": "v", "dataset": "visits", "version": 1}
    assert "Linked tables" in run("dataset", "show", "clinic")
    run("dataset", "link", "clinic", "--table", "v=visits", "--table", "p=people")
    assert sum(row["visits"] for row in view("clinic", visits="count(v)")) == 5
    with open_catalog(Settings()) as catalog:
        assert (catalog.facts("clinic").version, catalog.facts("clinic").population) == (
            2,
            "clinic",
        )


@pytest.mark.slow
@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        (("v=visits",), "Give 2 to 16 tables"),
        (("v=visits", "v=people"), "Give each table once"),
        (("v=visits", "1=people"), "Give 2 to 16 tables"),
        (("v=visits", "people"), "Give each table once"),
        (("v=visits", "r=rows"), "rows cannot be linked"),
        (("v=visits", "o=others"), "the same --population"),
        (("v=visits", "n=nobody"), "No such data set"),
        (("v=visits", "c=clinic"), "clinic cannot be linked"),
    ],
)
def test_what_cannot_be_linked(folder: Path, tables: tuple[str, ...], problem: str) -> None:
    linked(folder)
    load("rows", "x\n1\n", "rows")
    load("others", "id,day,bmi\nzoe,3,20\n", "visits")
    arguments = [word for table in tables for word in ("--table", table)]
    assert problem in " ".join(run("dataset", "link", "new", *arguments, status=1).split())
    assert "are appended to" in " ".join(append("clinic", FIRST, status=1).split())


@pytest.mark.slow
def test_a_link_is_asked_about_features_only_and_in_one_population(
    installation_template: Installation, tmp_path: Path
) -> None:
    with copied(installation_template, tmp_path / "links") as own:
        ids = "\n".join(f"{i},{i % 9},{20 + i % 30}" for i in range(300) for _ in range(1 + i % 3))
        Path("v.csv").write_text("id,day,bmi\n" + ids + "\n")
        Path("p.csv").write_text(
            "id,sex,age\n" + "\n".join(f"{i},{'fm'[i % 2]},{i % 90}" for i in range(350))
        )
        load_dataset(
            own.settings, "persons", Path("p.csv"), Path("people.yaml"), population="clinic"
        )
        load_dataset(
            own.settings, "visits", Path("v.csv"), Path("visits.yaml"), population="clinic"
        )
        link_datasets(own.settings, "clinic", {"v": "visits", "p": "persons"})
        with opened(own.settings) as services:
            ana = services.access.authenticate(own.keys["ana"])
            assert ana is not None
            services.access.grant(ana.id, "clinic", by="t")
            budget: Any = {"epsilon": 100, "delta": 1e-3, "rule": "zcdp", "by": "t"}
            services.ledger.set_population_cap("clinic", **budget)
            services.ledger.set_analyst_budget(ana.id, "clinic", "clinic", **budget)
            api = Api(services, own.keys["ana"])
            shown = api.get("/v1/datasets/clinic").json()
            assert (shown["n"], shown["tables"]) == (350, {"v": 3, "p": 1})
            query: dict[str, Any] = {"kind": "mean", "column": "visits"}
            asked = {"dataset": "clinic", "query": query, "privacy": {"epsilon": 20.0}}
            refusal = api.post("/v1/releases", asked)
            assert refusal.status_code == 422
            assert "links several tables" in refusal.json()["detail"]
            query["persons"] = {"visits": "count(v)", "sex": 'first(p.sex, by=p.age, none="f")'}
            reply = api.post("/v1/releases", asked).json()
            assert reply["result"]["value"] == pytest.approx(600 / 350, abs=0.1)
            assert "at most 3" in reply["guarantee"]["statement"]
            query["by"] = "sex"
            assert api.post("/v1/releases", asked).json()["status"] == "reply"


@pytest.mark.slow
def test_secrets_that_cannot_be_written_must_have_the_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads((folder / "reticent-secrets.json").read_text())
    assert "persons" not in document
    monkeypatch.setenv("RETICENT_SECRETS_JSON", json.dumps(document))
    Path("visits.csv").write_text(FIRST)
    arguments = ("dataset", "load", "visits", "visits.csv", "--schema", "visits.yaml")
    assert "64 random hexadecimal digits" in " ".join(run(*arguments, status=1).split())
    monkeypatch.setenv("RETICENT_SECRETS_JSON", json.dumps(document | {"persons": "ab" * 32}))
    run(*arguments)
    assert append("visits", "id,day,bmi\nann,1,20\n")["n"] == 2
