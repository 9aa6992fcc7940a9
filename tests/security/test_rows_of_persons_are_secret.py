# SPDX-License-Identifier: Apache-2.0
"""Two tables of the same persons with other rows, and other numbers of them, are one to everybody
outside, byte by byte.

The same session is held with both: all routes of analysts, the workbench, the curator's list of
data sets, metrics and the log. In the second session the mechanisms release again what they
released in the first, and the clock is one that stands still but for planned waits: whatever still
differs has come around the mechanisms. Ids and tokens, which are drawn, are compared by the order
in which they first appear.
"""

import html
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import numpy as np
import pytest
import typer
from structlog.testing import capture_logs
from typer.testing import CliRunner

from reticent_server.api.logs import public_fields
from reticent_server.app import create_app
from reticent_server.cli import budget, dataset, ledger
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.kinds.registry import by_name
from reticent_server.pipeline import browse
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from reticent_server.workbench.controls import controls, texts
from support.attacks.tape import Tape
from support.attacks.transcript import Transcript, counted
from support.databases.migrated import SetClock
from support.installations.bench import Browser
from support.installations.small import SCHEMA, Api, Installation, opened
from support.kinds.examples import QUERIES
from support.processes.waiting import until
from support.seeds import seeded

PERSONS, M = 60, 5
PANEL = SCHEMA.replace("columns:", f"unit: {{column: id, max_rows: {M}}}\ncolumns:")
LENGTHS = (np.ones(PERSONS, int), 2 + np.arange(PERSONS) % (M + 2))
"""Rows by person: one each; two to m, and more than m, which a load leaves out."""

ASKED: tuple[dict[str, Any], ...] = (
    {"kind": "count", "where": "k > 3"},
    {"kind": "count", "per": "any"},
    {"kind": "mean", "column": "y"},
    {"kind": "sum", "column": "x", "by": "g"},
    {"kind": "histogram", "column": "k"},
    {"kind": "quantiles", "column": "y", "probabilities": [0.5]},
    {"kind": "linear_regression", "formula": "y ~ x"},
    {"kind": "linear_regression", "formula": "y ~ x", "effects": "person"},
    {"kind": "study", "variables": ["y", "x"], "main": "y ~ x", "effects": "person"},
    {"kind": "glm", "formula": "b ~ x", "family": "binomial"},
    {"kind": "mean", "column": "visits", "persons": {"visits": "count()"}},
)
"""What is released; every kind is planned."""

BAD: tuple[dict[str, Any], ...] = (
    {"kind": "mean", "column": "rows"},
    {"kind": "t_test", "column": "y", "group": "b"},
    {"kind": "linear_regression", "formula": "y ~ ("},
    {"kind": "histogram", "column": "y"},
)


_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.]*(Z|\+00:00)?")


def rows(lengths: np.ndarray, seed: int) -> str:
    rng, lines = seeded(seed), []
    for person, length in enumerate(lengths):
        for _ in range(length):
            x, e, u = rng.normal(), rng.normal(), rng.random()
            cells = f"{x + e:.3f},{x:.3f},{rng.integers(10)},{rng.choice(list('abc'))}"
            lines.append(f"p{person},{cells},{rng.integers(2)},{u:.3f}")
    rng.shuffle(lines)
    return "\n".join(["id,y,x,k,g,b,m", *lines]) + "\n"


@dataclass(frozen=True)
class Register:
    """An installation with one table of persons. lengths, seed: of its rows."""

    installation: Installation
    lengths: np.ndarray
    seed: int

    def copied(self, directory: Path) -> "Register":
        shutil.copytree(self.installation.directory, directory)
        return replace(self, installation=replace(self.installation, directory=directory))

    def load(self) -> None:
        place = self.installation.directory
        (place / "panel.yaml").write_text(PANEL)
        (place / "panel.csv").write_text(rows(self.lengths, self.seed))
        load_dataset(self.installation.settings, "panel", place / "panel.csv", place / "panel.yaml")


@pytest.fixture(scope="module")
def registers(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> list[Register]:
    made = []
    for seed, lengths in enumerate(LENGTHS):
        directory = tmp_path_factory.mktemp("registers") / "own"
        shutil.copytree(installation_template.directory, directory)
        own = replace(installation_template, directory=directory)
        made.append(Register(own, lengths, seed))
        made[-1].load()
        with opened(own.settings, SetClock()) as services:
            ana: Any = services.access.authenticate(own.keys["ana"])
            every: Any = {"epsilon": 1e4, "delta": 0.1, "rule": "zcdp", "by": "t"}
            services.access.grant(ana.id, "panel", by="t")
            services.ledger.set_population_cap("panel", **every)
            services.ledger.set_analyst_budget(ana.id, "panel", "panel", **every)
    return made


def hold(register: Register, planned: Sequence[dict[str, Any]]) -> Transcript:
    """The session. planned: besides what is released, the questions that are planned over HTTP and
    in the workbench.
    """
    heard = Transcript()
    clock = SetClock()
    with opened(register.installation.settings, clock) as services, capture_logs() as logged:
        before = counted(services, "before")
        heard.hear(json.dumps(release_profile(services, "panel", epsilon=5.0)))
        key = register.installation.keys["ana"]
        ask_over_http(Api(services, key), clock, planned, heard)
        look_at_the_workbench(services, key, planned, heard)
        after, events = counted(services, "after"), list(logged)
        ask_later(Api(services, key), heard)
    more = {name: after[name] - before.get(name, 0.0) for name in sorted(after)}
    heard.hear(json.dumps({name: change for name, change in more.items() if change}))
    for event in events:
        heard.hear(json.dumps(public_fields(None, "", {**event, "level": event["log_level"]})))
    return heard


def body(query: dict[str, Any]) -> dict[str, Any]:
    return {"dataset": "panel", "query": query, "privacy": {"epsilon": 2.0, "delta": 1e-6}}


def ask_over_http(
    api: Api, clock: SetClock, planned: Sequence[dict[str, Any]], heard: Transcript
) -> None:
    for path in (
        "/v1/datasets",
        "/v1/datasets/panel",
        "/v1/budget",
        "/v1/datasets/panel/published",
    ):
        heard.reply(api.get(path))
    heard.reply(api.post("/v1/datasets/panel/persons", {"persons": {"visits": "count()"}}))
    for query in (*planned, *ASKED, *BAD):
        heard.reply(api.post("/v1/plans", body(query)))
    for query in BAD:
        heard.reply(api.post("/v1/releases", body(query)))
    for query in ASKED:
        release = heard.reply(api.post("/v1/releases", body(query)))
        assert release.json()["status"] in {"reply", "no_reply"}, release.text
        heard.reply(api.get(f"/v1/releases/{release.json()['id']}"))
        clock.sleep(1.0)  # so that lists have one order
    for path in ("/v1/releases", "/v1/budget", "/v1/releases/rel_0", "/healthz", "/readyz"):
        heard.reply(api.get(path))


def ask_later(api: Api, heard: Transcript) -> None:
    """Pending, with its progress; then answered."""
    headers = {"Prefer": "respond-async"}
    release = heard.reply(api.post("/v1/releases", body(ASKED[0]), headers=headers))
    assert release.json()["progress"]["remaining_ms"] > 0
    path = release.headers["location"]
    until(lambda: api.get(path).json()["status"] != "pending")
    heard.reply(api.get(path))


def look_at_the_workbench(
    services: Services, key: str, planned: Sequence[dict[str, Any]], heard: Transcript
) -> None:
    browser = Browser(create_app(services), services, httpx.Cookies())
    assert browser.sign_in(key).status_code == 303
    page = "/workbench/datasets/panel"
    for path in ("/workbench/", page, "/workbench/budget"):
        heard.hear(browser.get(path).text)
    for query in (*planned, *(asked for asked in ASKED if "persons" not in asked)):
        fields = texts(controls(by_name()[query["kind"]]), query)
        form = urlencode({"kind": query["kind"], "epsilon": "1", **fields})
        heard.hear(browser.get(f"{page}?{form}").text)
    history = browser.get("/workbench/releases").text
    heard.hear(history)
    for path in dict.fromkeys(re.findall(r"/workbench/releases/rel_[A-Za-z0-9_-]+", history)):
        heard.hear(browser.get(html.unescape(path)).text)
        heard.hear(browser.get(f"{path}/export/csv").text)


@pytest.mark.parametrize("planned", [0, pytest.param(len(QUERIES), marks=pytest.mark.audit)])
def test_whatever_is_said_of_two_registers_is_the_same(
    registers: list[Register], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planned: int
) -> None:
    """planned: how many of the kinds' examples are planned, too
    (tests/server/pipeline/test_number_of_rows.py has the plans).
    """
    tape = Tape(monkeypatch)
    more = list(QUERIES.values())[:planned]
    first = hold(registers[0].copied(tmp_path / "first"), more).said
    tape.rewind()
    second = hold(registers[1].copied(tmp_path / "second"), more).said
    assert tape.left == 0
    assert len(first) > planned + 4 * len(ASKED)
    assert first == second


@pytest.mark.slow
def test_the_curator_s_lists_are_the_same(
    registers: list[Register], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a curator shows to analysts, or puts into a paper."""
    program = typer.Typer()
    for name, group in (("dataset", dataset.app), ("budget", budget.app), ("ledger", ledger.app)):
        program.add_typer(group, name=name)
    shown = []
    for register in registers:
        for name, value in register.installation.environment.items():
            monkeypatch.setenv(name, value)
        heard = Transcript()
        for line in ("dataset list", "dataset show panel", "budget show", "ledger show"):
            for form in ((), ("--json",)):
                done = CliRunner().invoke(program, [*line.split(), *form])
                assert done.exit_code == 0, done.output
                heard.hear(_TIME.sub("<time>", done.output))  # a load is at the time it is
        shown.append(heard.said)
    assert shown[0] == shown[1]


def test_the_comparison_sees_a_number_of_rows(
    registers: list[Register], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a data set's page tells it, what is said differs."""
    said = []
    for register in registers:
        rows_kept = int(np.minimum(register.lengths, M).sum())
        monkeypatch.setattr(browse, "dataset_json", lambda facts, n=rows_kept: {"n": facts.n * n})
        heard = Transcript()
        with opened(register.installation.settings, SetClock()) as services:
            api = Api(services, register.installation.keys["ana"])
            heard.reply(api.get("/v1/datasets/panel"))
        said.append(heard.said)
    assert said[0] != said[1]
