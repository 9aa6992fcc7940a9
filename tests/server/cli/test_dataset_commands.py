# SPDX-License-Identifier: Apache-2.0
"""The curator's `init` and `dataset` commands, as the curator types them."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
import xlsxwriter
from structlog.testing import capture_logs
from typer.testing import CliRunner

from reticent_server.catalog.schema_file import read_schema
from reticent_server.cli import dataset
from reticent_server.cli.init import init
from reticent_server.errors import CuratorError
from reticent_server.opening import open_ledger
from reticent_server.settings import Settings
from support.databases.vaults import Vault, csv_file
from support.tables.files import GERMAN

SCHEMA = """
description: Houses [sold]
columns:
  price: {kind: numeric, lower: 0, upper: 100}
  grade: {kind: categorical, levels: ["a", "b"], missing: ["", "NA"]}
"""
ROWS = "price,grade,secret\n10,a,s\n200,b,s\n-1,,s\n40,a,s\n"

program = typer.Typer()
program.command()(init)
program.add_typer(dataset.app, name="dataset")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with a private file and its schema, and no settings."""
    for name in [n for n in os.environ if n.startswith("RETICENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path, ROWS)
    (tmp_path / "s.yaml").write_text(SCHEMA)
    return tmp_path


def run(*arguments: str, status: int = 0, typed: str | None = None) -> tuple[str, str]:
    done = CliRunner().invoke(program, list(arguments), input=typed)
    assert done.exit_code == status, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.stdout, done.stderr


def run_json(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json")[0])


def load(name: str = "houses", *more: str) -> Any:
    return run_json("dataset", "load", name, "rows.csv", "--schema", "s.yaml", *more)


def test_init_makes_everything_once(folder: Path) -> None:
    first = run_json("init")
    assert [row["state"] for row in first] == ["ready", "ready", "written"]
    load()
    written = (folder / "reticent-secrets.json").read_bytes()
    assert [row["state"] for row in run_json("init")] == ["ready", "ready", "kept"]
    assert (folder / "reticent-secrets.json").read_bytes() == written
    assert len(run_json("dataset", "list")) == 1


def test_init_refuses_one_file_for_both(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("RETICENT_VAULT_URL", "sqlite:///reticent.db")
    assert "must be different files" in run("init", status=1)[1]
    assert not (folder / "reticent.db").exists()
    assert "must be" in run("dataset", "load", "a", "rows.csv", "--schema", "s.yaml", status=1)[1]


def test_before_init_the_commands_say_what_to_do() -> None:
    for command in (
        ("load", "houses", "rows.csv", "--schema", "s.yaml"),
        ("list",),
        ("show", "houses"),
        ("retire", "houses", "--yes"),
    ):
        assert "run `reticent init` first" in run("dataset", *command, status=1)[1]


def test_load_counts_what_it_clips_for_the_curator() -> None:
    run("init")
    assert load() == {
        "dataset": "houses",
        "population": "houses",
        "version": 1,
        "n": 4,
        "columns": 2,
        "profile": False,
        "clipped": {"price": 2, "grade": 0},
    }
    tables, _ = run("dataset", "load", "houses", "rows.csv", "--schema", "s.yaml")
    before, _, after = tables.partition("Loaded")
    assert "Analysts will be told of each column" in before
    assert all(word in before for word in ("price", "grade", "a, b", "'NA'"))
    assert "values clipped" in after
    assert "price" in after
    assert "grade" not in after


@pytest.mark.slow
def test_load_refuses_with_row_and_column_and_changes_nothing(folder: Path) -> None:
    run("init")
    load()
    before = Vault("sqlite:///reticent-vault.db").stored_tables()
    csv_file(folder, "price,grade\n1,a\n2,c\n", "bad.csv")
    arguments = ("dataset", "load", "houses", "bad.csv", "--schema", "s.yaml")
    assert run(*arguments, status=1)[1].splitlines()[-1] == (
        "reticent: In row 2 (line 3), column grade: 'c' is not one of the declared levels."
    )
    strict = ("dataset", "load", "houses", "rows.csv", "--schema", "s.yaml", "--strict")
    assert "In row 2 (line 3), column price: '200' is outside" in run(*strict, status=1)[1]
    assert Vault("sqlite:///reticent-vault.db").stored_tables() == before
    assert run_json("dataset", "show", "houses")["version"] == 1


@pytest.mark.slow
def test_loading_again_keeps_the_population() -> None:
    run("init")
    load("houses", "--population", "people")
    again = load()
    assert (again["version"], again["population"]) == (2, "people")
    refused = ("dataset", "load", "houses", "rows.csv", "--schema", "s.yaml", "--population", "x")
    assert "belongs to population people for ever" in run(*refused, status=1)[1]
    assert load("flats", "--population", "people")["population"] == "people"
    assert [r["dataset"] for r in run_json("dataset", "list")] == ["flats", "houses"]


@pytest.mark.slow
def test_show_tells_what_is_public_and_nothing_else() -> None:
    run("init")
    load()
    shown = run_json("dataset", "show", "houses")
    assert shown["n"] == 4
    assert shown["schema"]["columns"][1]["levels"] == ["a", "b"]
    assert shown["default_delta"] == 1e-6
    tables, _ = run("dataset", "show", "houses")
    assert "Houses [sold]" in tables
    assert "categorical" in tables
    assert "clipped" not in tables
    assert "No such data set" in run("dataset", "show", "absent", status=1)[1]


@pytest.mark.slow
def test_policy_changes_only_what_is_given() -> None:
    run("init")
    load()
    run("dataset", "policy", "houses", "--max-epsilon", "0.5")
    changed = run_json("dataset", "policy", "houses", "--default-delta", "1e-7")
    kept = {"tiers": ["unconditional"], "max_epsilon": 0.5, "second_person": False}
    assert changed == [kept | {"protocol_required": False, "default_delta": 1e-7}]
    tiers = ("--tier", "conditional", "--tier", "unconditional")
    assert run_json("dataset", "policy", "houses", *tiers)[0]["tiers"] == [
        "unconditional",
        "conditional",
    ]
    for bad in (
        ("--max-epsilon", "nan"),
        ("--max-epsilon", "inf"),
        ("--max-epsilon", "0"),
        ("--default-delta", "1"),
        ("--default-delta", "nan"),
        ("--default-delta", "0"),
        ("--tier", "none"),
    ):
        assert "must be" in run("dataset", "policy", "houses", *bad, status=1)[1]
    assert run_json("dataset", "show", "houses")["policy"]["default_delta"] == 1e-7


@pytest.mark.slow
def test_retire_asks_first_and_a_new_load_revives() -> None:
    run("init")
    load("houses", "--population", "people")
    run("dataset", "retire", "houses", typed="n\n", status=1)
    assert len(run_json("dataset", "list")) == 1
    run("dataset", "retire", "houses", typed="y\n")
    assert run_json("dataset", "list") == []
    assert "No such data set" in run("dataset", "retire", "houses", "--yes", status=1)[1]
    again = load()
    assert (again["version"], again["population"]) == (2, "people")


@pytest.mark.slow
def test_profile_is_released_once_and_shown(folder: Path) -> None:
    csv_file(folder, "price,grade\n" + "".join(f"{i % 100},a\n" for i in range(2000)))
    run("init")
    load("houses", "--population", "people")
    with closing(open_ledger(Settings())) as ledger:
        ledger.set_population_cap("people", epsilon=10, delta=1e-5, by="test")
    with capture_logs():  # by default structlog prints to standard output
        released = run_json("dataset", "profile", "houses", "--epsilon", "2")
    assert released["status"] == "reply"
    profile = run_json("dataset", "show", "houses")["profile"]
    assert profile["release_id"] == released["id"]
    assert abs(profile["columns"]["price"]["quantiles"][9] - 50) < 10
    assert "a: " in run("dataset", "show", "houses")[0]
    assert "has a profile" in run("dataset", "profile", "houses", "--epsilon", "2", status=1)[1]


def test_a_draft_leaves_bounds_and_levels_to_the_curator(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent_server.intake.looking.in_cell", directly)
    csv_file(folder, "k,x,Total $,sex,yes,ok\n1,0.5,1,m,NA,no\n2,,2,f,3.25,yes\n", "d.csv")
    text, told = run("dataset", "schema", "d.csv")
    assert 'k: {kind: numeric, lower: , upper: , missing: ["", "NA",' in text
    assert 'x: {kind: numeric, lower: , upper: , missing: ["", "NA",' in text
    assert 'Total: {kind: numeric, from: "Total $", lower: , upper: , missing:' in text
    assert "sex: {kind: categorical, levels: [], missing:" in text
    assert '"yes": {kind: numeric' in text
    assert "ok: {kind: boolean, missing:" in text
    assert "whole numbers" in told
    assert "whole numbers" not in text
    assert not any(cell in text.split("columns:\n")[1] for cell in ("0.5", "3.25", "m,", "f]"))
    (folder / "draft.yaml").write_text(text)
    open_places = (
        "Fill in lower and upper of k, x, Total, yes, and levels of sex. They are published"
    )
    with pytest.raises(CuratorError, match=open_places):
        read_schema(folder / "draft.yaml")
    _, told = run("dataset", "load", "d", "d.csv", "--schema", "draft.yaml", status=1)
    assert open_places in told
    assert "delete the columns that analysts do not need" in told
    columns = {"k": [1], "x": [0.5], "g": ["u"], "b": [True], "t": [pa.scalar(1, pa.time32("s"))]}
    pq.write_table(pa.table(columns), folder / "d.parquet")
    drafted = run_json("dataset", "schema", "d.parquet")["schema"]
    for line in ("k: {kind: numeric", "x: {kind: numeric", "g: {kind: cat", "b: {kind: boolean,"):
        assert line in drafted
    assert "# t: its type cannot be loaded" in drafted


KILLED = """
import os, signal, sys
from pathlib import Path
from reticent_server.catalog.repository import Catalog
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.settings import Settings

Catalog.add_version = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
load_dataset(Settings(), "houses", Path("rows.csv"), Path("s.yaml"))
"""


@pytest.mark.slow
def test_a_load_killed_before_the_catalogue_row_is_invisible_and_cleaned_up(folder: Path) -> None:
    run("init")
    load()
    paths = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-c", KILLED]
    died = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False, timeout=600)
    assert died.returncode == -9
    vault = Vault("sqlite:///reticent-vault.db")
    assert len(vault.stored_tables()) == 2
    assert run_json("dataset", "show", "houses")["version"] == 1
    assert load()["version"] == 2
    assert len(vault.stored_tables()) == 2


def test_a_catalogue_that_refuses_the_version_leaves_no_table(folder: Path) -> None:
    run("init")
    with sqlite3.connect(folder / "reticent.db") as connection:
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON dataset_versions "
            "BEGIN SELECT RAISE(ABORT, 'refused'); END"
        )
    connection.close()
    done = run("dataset", "load", "houses", "rows.csv", "--schema", "s.yaml", status=1)
    assert "reticent: " in done[1]
    assert Vault("sqlite:///reticent-vault.db").stored_tables() == set()
    assert run_json("dataset", "list") == []


@pytest.mark.slow
def test_rows_of_persons_are_loaded_with_their_number_hidden_and_not_registered(
    folder: Path,
) -> None:
    run("init")
    (folder / "s.yaml").write_text("unit: {column: secret, max_rows: 3}\n" + SCHEMA)
    shown = load()
    assert (shown["n"], shown["left_out"]) == (1, 1), "four rows of one person, of which three stay"
    text, _ = run("dataset", "load", "houses", "rows.csv", "--schema", "s.yaml")
    assert "Rows left out (private: for the curator only): 1, beyond the 3 of a secret." in text
    strict = run("dataset", "load", "h", "rows.csv", "--schema", "s.yaml", "--strict", status=1)
    assert "has more than 3 rows" in strict[1] or "is outside" in strict[1]
    pq.write_table(pa.table({"price": [1.0]}), folder / "one.parquet")
    refused = run(
        *("dataset", "register", "p", "--parquet", str(folder), "--schema", "s.yaml"), status=1
    )
    assert "use `reticent dataset load`" in refused[1].replace("\n", " ")


def directly(order: Callable[[], bytes], limits: object, file: str) -> bytes:
    """In the place of a cell: its process has tests of its own."""
    return order()


def test_a_german_file_in_one_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reticent_server.intake.looking.in_cell", directly)
    (folder / "g.csv").write_bytes(GERMAN.encode("cp1252"))
    drafted, told = run("dataset", "schema", "g.csv", "--out", "g.yaml")
    assert drafted == ""
    assert "encoding windows-1252, separator semicolon" in told
    assert "decimal comma, thousands point, header 3" in told
    assert "1.234,5" in told  # the first rows, for the curator alone
    written = (folder / "g.yaml").read_text("utf-8")
    assert "1.234,5" not in written
    assert "exists" in run("dataset", "schema", "g.csv", "--out", "g.yaml", status=1)[1]
    lines = [line for line in written.splitlines() if "levels" not in line or line[:1] == "#"]
    text = "\n".join(lines).replace(
        '"%d.%m.%Y", lower: , upper: ', '"%d.%m.%Y", lower: 2000-01-01, upper: 2030-01-01'
    )
    (folder / "g.yaml").write_text(text.replace("lower: , upper: ", "lower: 0, upper: 100000"))
    run("init")
    assert run_json("dataset", "load", "g", "g.csv", "--schema", "g.yaml")["n"] == 3
    wrong = run(
        "dataset", "load", "g", "g.csv", "--schema", "g.yaml", "--read", "decimal=point", status=1
    )
    assert "column Grosse: '1,75' is not a finite number" in wrong[1]
    wrong = run("dataset", "schema", "g.csv", "--read", "colour=red", status=1)
    assert "--read: the key 'colour' is not known" in wrong[1]


def test_a_sheet_is_loaded_in_a_cell(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def cell(order: Callable[[], bytes], limits: object, file: str) -> bytes:
        asked.append(file)
        return order()

    monkeypatch.setattr("reticent_server.intake.apart.in_cell", cell)
    with xlsxwriter.Workbook("rows.xlsx") as book:
        sheet = book.add_worksheet()
        for k, line in enumerate(ROWS.splitlines()):
            sheet.write_row(k, 0, line.split(","), None)
    run("init")
    assert run_json("dataset", "load", "houses", "rows.xlsx", "--schema", "s.yaml")["n"] == 4
    assert asked == ["rows.xlsx"]
