# SPDX-License-Identifier: Apache-2.0
"""`reticent dataset register`, and a query of what it registered; the URL is nowhere to be seen."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest
import typer
from structlog.testing import capture_logs
from typer.testing import CliRunner

from reticent_server.access.secret_places import SecretsFile, add_source, source_url
from reticent_server.access.secrets import create_secrets, load_secrets
from reticent_server.cli import dataset
from reticent_server.cli.init import init
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.domain.roles import ANALYST
from reticent_server.errors import CuratorError
from reticent_server.kinds.mean.kind import Mean
from reticent_server.pipeline.answer import answer
from reticent_server.pipeline.ask import Ask
from reticent_server.settings import Settings
from support.installations.small import _add_analyst, opened
from support.tables.object_storage import KEY_ID, SECRET, object_storage
from support.tables.sources import new_url, rows, write_parquet, write_sql

SCHEMA = """
columns:
  y: {kind: numeric, lower: -40, upper: 40}
  m: {kind: numeric, lower: 0, upper: 1, missing: [""]}
"""
program = typer.Typer()
program.command()(init)
program.add_typer(dataset.app, name="dataset")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with a schema, after `reticent init`."""
    for name in [n for n in os.environ if n.startswith("RETICENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(SCHEMA)
    run("init")
    return tmp_path


def run(*arguments: str, status: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(program, list(arguments))
    assert done.exit_code == status, done.output
    return done.stdout, done.stderr


def place(kind: str, folder: Path) -> list[str]:
    if kind == "parquet":
        return ["--parquet", str(write_parquet(folder / "files", rows(300)))]
    return ["--url", write_sql(new_url(kind, folder), rows(300)), "--table", "people"]


def mean(settings: Settings) -> dict[str, Any]:
    """An analyst's query of the data set d."""
    with opened(settings) as services:
        services.ledger.set_population_cap("d", epsilon=100, delta=1e-3, rule="basic", by="t")
        _add_analyst(services, "ana", "d", 50, 1e-4, "basic")
        ana = services.access.analyst("ana")
        ask = Ask("d", Mean("y"), Privacy(5.0, 1e-6))
        body = answer(services, Principal(ana.id, ana.name, ANALYST), ask)
    found: dict[str, Any] = json.loads(body)
    return found


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(
    "kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres), "parquet"]
)
def test_registered_rows_are_answered_from_where_they_are(kind: str, folder: Path) -> None:
    arguments = ["register", "d", "--schema", "s.yaml", "--json", *place(kind, folder)]
    shown = json.loads(run("dataset", *arguments)[0])
    assert (shown["dataset"], shown["n"], shown["version"]) == ("d", 300, 1)
    assert shown["clipped"]["m"] > 50
    release = mean(Settings(reply_grid_ms=0))
    assert release["status"] == "reply"
    truth = sum(row[1] for row in rows(300)) / 300
    assert abs(release["result"]["value"] - truth) < 1.0
    again = json.loads(run("dataset", *arguments)[0]) if kind == "parquet" else shown
    assert again["version"] == (2 if kind == "parquet" else 1)


def test_clipped_values_are_shown_and_relative_paths_are_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sql(new_url("sqlite", folder), rows(300))
    monkeypatch.setenv("RETICENT_SOURCE_URL", "sqlite:///external.db")
    out, _ = run("dataset", "register", "d", "--schema", "s.yaml", "--table", "people")
    assert "Registered" in out
    assert "values clipped" in out
    (kept,) = load_secrets(folder / "reticent-secrets.json").sources.values()
    assert kept == f"sqlite:///{folder / 'external.db'}"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_password_is_kept_in_the_secrets_file_and_shown_nowhere(folder: Path) -> None:
    url = write_sql(new_url("postgresql", folder), rows(30))
    url = url.replace("postgres@", "postgres:hush%40hush@")
    with capture_logs() as logs:
        shown = run(
            "dataset", "register", "d", "--schema", "s.yaml", "--url", url, "--table", "people"
        )
        listed = run("dataset", "show", "d", "--json")
    assert "hush" in (folder / "reticent-secrets.json").read_text()
    assert b"hush" not in (folder / "reticent.db").read_bytes()
    assert "hush" not in repr((shown, listed, logs))
    wrong = url.replace("/test_", "/absent_")
    refused = run(
        "dataset",
        "register",
        "e",
        "--schema",
        "s.yaml",
        "--url",
        wrong,
        "--table",
        "people",
        status=1,
    )
    assert "hush" not in repr(refused)
    assert "check the URL" in refused[1]


@pytest.mark.slow
def test_objects_are_registered_and_answered_and_nothing_shows_the_credentials(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_parquet(folder / "files", rows(300))
    with object_storage() as storage, capture_logs() as logs:
        monkeypatch.setenv("RETICENT_S3_ENDPOINT", storage.store.endpoint)
        monkeypatch.setenv("RETICENT_S3_REGION", "us-east-1")
        address = storage.put(files)
        arguments = ("register", "d", "--schema", "s.yaml", "--json", "--parquet")
        shown = run("dataset", *arguments, address)
        released = mean(Settings(reply_grid_ms=0))
        refused = run("dataset", *arguments, address + "?key=hush", status=1)
        listed = run("dataset", "show", "d", "--json")
    assert json.loads(shown[0])["n"] == 300
    truth = sum(row[1] for row in rows(300)) / 300
    assert abs(released["result"]["value"] - truth) < 1.0
    said = repr((shown, refused, listed, logs, released)) + str(
        (folder / "reticent.db").read_bytes()
    )
    assert "hush" not in said
    assert SECRET not in said
    assert KEY_ID not in said


@pytest.mark.slow
def test_objects_of_several_rows_a_person_are_refused_as_files_are(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order of persons is made where a table is loaded: objects and files have another."""
    files = write_parquet(folder / "files", rows(30))
    unit = "unit: {column: id, max_rows: 3}"
    (folder / "p.yaml").write_text(f"{unit}\n{SCHEMA}")
    with object_storage() as storage:
        monkeypatch.setenv("RETICENT_S3_ENDPOINT", storage.store.endpoint)
        monkeypatch.setenv("RETICENT_S3_REGION", "us-east-1")
        for place in (str(files), storage.put(files)):
            given = ("--schema", "p.yaml", "--parquet", place)
            _, error = run("dataset", "register", "d", *given, status=1)
            assert "in the order of persons: use `reticent dataset load`" in error
    assert json.loads(run("dataset", "list", "--json")[0]) == []


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Give either"),
        (["--url", "sqlite:///x.db"], "Give either"),
        (["--parquet", "files", "--table", "people"], "Give either"),
        (["--parquet", "files", "--order", "id"], "Give either"),
        (["--parquet", "absent"], "is not a directory"),
        (["--parquet", "s3://key:hush@b/x"], "without credentials"),
        (["--url", "mysql://hush@h/d", "--table", "people"], "--url must be"),
        (["--url", "sqlite:///absent.db", "--table", "people"], "cannot be read"),
        (["--url", "sqlite:///reticent.db", "--table", "datasets"], "RETICENT_DATABASE_URL"),
    ],
)
def test_what_cannot_be_registered_leaves_no_trace(
    options: list[str], words: str, folder: Path
) -> None:
    _, error = run("dataset", "register", "d", "--schema", "s.yaml", *options, status=1)
    assert words in error
    assert "hush" not in error
    assert json.loads(run("dataset", "list", "--json")[0]) == []
    assert not load_secrets(folder / "reticent-secrets.json").sources
    assert not (folder / "absent.db").exists()


def test_urls_are_added_to_the_secrets_by_several_at_once(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    peppers, place = create_secrets(path).peppers, SecretsFile(path)
    urls = [f"postgresql://u:p{k}@h/d" for k in range(20)]
    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(lambda url: add_source(place, url), urls))
    assert [source_url(place, name) for name in names] == urls
    assert add_source(place, urls[3]) == names[3]
    assert load_secrets(path).peppers == peppers
    assert S_IMODE(path.stat().st_mode) == 0o600
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".secrets")]
    assert "p3" not in repr(load_secrets(path))
    with pytest.raises(CuratorError, match="lack the URL"):
        source_url(place, "absent")


def test_derived_columns_are_for_tables_that_are_loaded(folder: Path) -> None:
    (folder / "derived.yaml").write_text(SCHEMA + '\nderive: {twice: "2 * y"}\n')
    arguments = ("dataset", "register", "d", *place("parquet", folder), "--schema", "derived.yaml")
    _, told = run(*arguments, status=1)
    assert "Derived columns are computed when a table is loaded" in told
