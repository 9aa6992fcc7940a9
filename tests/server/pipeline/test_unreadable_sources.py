# SPDX-License-Identifier: Apache-2.0
"""Nothing is charged for a data set whose rows cannot be read now; the curator is told which and
why, and nobody else is."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from reticent_server.cli import dataset as dataset_command
from reticent_server.cli.dataset_register import SourcePlace, register_dataset
from reticent_server.pipeline import metrics
from reticent_server.pipeline.recovery import unreadable
from reticent_server.vault.adbc import connected, execute, parse_url
from support.installations.small import Api, Installation, opened, request_body
from support.tables.sources import new_url, rows, write_parquet, write_sql

SCHEMA = "columns:\n  y: {kind: numeric, lower: -40, upper: 40}\n"


def register(installation: Installation, name: str, place: SourcePlace) -> None:
    schema = installation.directory / "registered.yaml"
    schema.write_text(SCHEMA)
    register_dataset(installation.settings, name, place, schema)


@contextmanager
def renamed(path: Path) -> Iterator[None]:
    moved = path.with_name(f"{path.name}.away")
    path.rename(moved)
    yield
    moved.rename(path)


@contextmanager
def renamed_table(url: str, table: str) -> Iterator[None]:
    with connected(parse_url(url), autocommit=True) as connection:
        execute(connection, f"ALTER TABLE {table} RENAME TO elsewhere")
    yield
    with connected(parse_url(url), autocommit=True) as connection:
        execute(connection, f"ALTER TABLE elsewhere RENAME TO {table}")


def place_of(kind: str, installation: Installation) -> tuple[str, Any, str]:
    """(data set, a context in which it is away, the cause that the log says)."""
    folder = installation.directory
    if kind == "a vault's table":
        with opened(installation.settings) as services:
            source = services.catalog.source(services.catalog.facts("people").version_id)
        table = source.table  # type: ignore[union-attr]
        return "people", renamed_table(installation.settings.vault_url, table), "no_such_table"
    if kind == "parquet":
        files = write_parquet(folder / "files", rows(60))
        register(installation, "d", SourcePlace(parquet=str(files)))
        return "d", renamed(files / "part-1.parquet"), "no_such_file"
    url = write_sql(new_url(kind.partition(" ")[0], folder), rows(60))
    register(installation, "d", SourcePlace(url=url, table="people"))
    if kind == "sqlite file":
        return "d", renamed(folder / "external.db"), "no_answer"
    return "d", renamed_table(url, "people"), "no_such_table"


@pytest.mark.parametrize(
    "kind",
    [
        "a vault's table",
        "parquet",
        "sqlite file",
        "sqlite table",
        pytest.param("postgresql table", marks=pytest.mark.postgres),
    ],
)
def test_what_cannot_be_read_is_not_charged_and_is_answered_when_it_is_back(
    kind: str, installation: Installation
) -> None:
    name, away, cause = place_of(kind, installation)
    if name == "d":
        with opened(installation.settings) as services:
            services.ledger.set_population_cap("d", epsilon=10, delta=1e-3, by="t")
            ana = services.access.analyst("ana")
            services.ledger.set_analyst_budget(ana.id, "d", "d", epsilon=5, delta=1e-4, by="t")
            services.access.grant(ana.id, "d", by="t")
    body = request_body({"kind": "mean", "column": "y"}) | {"dataset": name}
    with away, opened(installation.settings) as services:
        api = Api(services, installation.keys["ana"])
        before = services.ledger.all_balances()
        with capture_logs() as logs:
            now = api.post("/v1/releases", body)
            later = api.post("/v1/releases", body, headers={"Prefer": "respond-async"})
            found = unreadable(services, {})
        assert [reply.status_code for reply in (now, later)] == [503, 503]
        assert now.json()["code"] == "unavailable"
        assert now.json()["detail"].endswith("nothing was charged.")
        assert services.ledger.all_balances() == before
        said = {"event": "dataset_unreadable", "dataset": name, "cause": cause}
        lines = [line for line in logs if line["event"] == "dataset_unreadable"]
        assert [{key: line[key] for key in said} for line in lines] == [said] * 3
        assert found == {name: cause}
        assert unreadable(services, found) == found, "and is not said again"
        assert metrics.UNREADABLE._value.get() == 1
        assert cause not in now.text
    with opened(installation.settings) as services:
        reply = Api(services, installation.keys["ana"]).post("/v1/releases", body)
        assert (reply.status_code, reply.json()["status"]) == (201, "reply")
        assert unreadable(services, {name: cause}) == {}
        assert metrics.UNREADABLE._value.get() == 0


def check(installation: Installation, *arguments: str, status: int) -> Any:
    done = CliRunner(env=installation.environment).invoke(
        dataset_command.app, [*arguments, "--json"]
    )
    assert done.exit_code == status, done.output
    return json.loads(done.stdout)


def test_the_curator_is_told_what_has_changed_since_a_table_was_registered(
    installation: Installation,
) -> None:
    url = write_sql(new_url("sqlite", installation.directory), rows(60))
    register(installation, "d", SourcePlace(url=url, table="people"))
    unchanged = check(installation, "check", "d", status=0)
    assert (unchanged["recorded_rows"], unchanged["rows_now"]) == (60, 60)
    assert (unchanged["differences"], unchanged["bad_cells"]) == ([], {})
    with closing(sqlite3.connect(installation.directory / "external.db")) as external, external:
        external.execute("INSERT INTO people SELECT id + 100, y, x, k, b, g, m FROM people")
        external.execute("UPDATE people SET y = NULL WHERE id < 5")
    changed = check(installation, "check", "d", status=1)
    assert (changed["recorded_rows"], changed["rows_now"]) == (60, 120)
    assert changed["bad_cells"] == {"y": 5}
    assert "more rows than were registered" in changed["differences"][0]
    (installation.directory / "external.db").unlink()
    gone = check(installation, "check", "d", status=1)
    assert gone["readable"] == "its database does not answer"
    listed = {row["dataset"]: row["readable"] for row in check(installation, "list", status=0)}
    assert listed == {"d": gone["readable"], "people": True, "secret": True}


def test_a_table_of_the_vault_is_as_it_was_loaded(installation: Installation) -> None:
    found = check(installation, "check", "people", status=0)
    assert (found["rows_now"], found["differences"]) == (400, [])
