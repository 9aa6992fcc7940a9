# SPDX-License-Identifier: Apache-2.0
"""Who is in which table of a population, and in which wave, is one to everybody outside, byte by
byte.

Two worlds differ in one person's rows anywhere: the person is in the register of visits, in the
table of persons and in a wave of visits, or another has its place, or nobody. The curator does the
same in both. Whatever is free (sizes of tables, waves and links, pages, plans, lists, logs,
metrics, the chain's acts) is the same; what is released is played back, and what each release could
lose is at most what it was charged.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from structlog.testing import capture_logs
from typer.testing import CliRunner

from reticent_server.api.logs import public_fields
from reticent_server.app import create_app
from reticent_server.catalog import populations
from reticent_server.cli import dataset, ledger, population
from support.attacks.recorder import Call, Recorder, recording, total
from support.attacks.transcript import Transcript, counted
from support.databases.migrated import SetClock
from support.installations.bench import Browser
from support.installations.small import Api, Installation, opened
from support.seeds import seeded

PERSONS, M, PLACES = 60, 3, 80
SCHEMAS = {
    "visits": f"""
unit: {{column: id, max_rows: {M}}}
columns:
  day: {{kind: integer, lower: 0, upper: 99}}
  bmi: {{kind: numeric, lower: 10, upper: 60, missing: [""]}}
""",
    "persons": """
unit: {column: id, max_rows: 1}
columns:
  sex: {kind: categorical, levels: ["f", "m"]}
  age: {kind: integer, lower: 0, upper: 120}
""",
}
X, Z = "p7", "zoe"
SETS = ("visits", "persons", "clinic")
OF_PERSONS = {"seen": "count(v)", "age": "max(p.age, none=0)", "old": "any(p.age > 60)"}
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("visits", {"kind": "count", "where": "day > 30"}),
    ("visits", {"kind": "mean", "column": "day"}),
    ("visits", {"kind": "mean", "column": "rows", "persons": {"rows": "count()"}}),
    ("persons", {"kind": "count", "where": "age > 40"}),
    ("persons", {"kind": "mean", "column": "age"}),
    ("persons", {"kind": "histogram", "column": "sex"}),
    ("persons", {"kind": "linear_regression", "formula": "age ~ C(sex)"}),
    ("persons", {"kind": "quantiles", "column": "age", "probabilities": [0.5]}),
    ("clinic", {"kind": "mean", "column": "seen", "persons": OF_PERSONS}),
    ("clinic", {"kind": "linear_regression", "formula": "age ~ seen", "persons": OF_PERSONS}),
    ("clinic", {"kind": "count", "where": "old == 1", "persons": OF_PERSONS}),
)
REFUSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("persons", {"kind": "iqr", "column": "age", "mechanism": "ptr"}),
    ("persons", {"kind": "depth_median", "columns": ["age"]}),
    ("persons", {"kind": "linear_regression", "formula": "age ~ C(sex)", "effects": "person"}),
    ("clinic", {"kind": "mean", "column": "v.day"}),
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.]*(Z|\+00:00)?")


@dataclass(frozen=True)
class World:
    """Who has a place, and whose rows are where. spine: how the population declares its places."""

    spine: str
    visits: tuple[str, ...]
    people: tuple[str, ...]
    wave: tuple[str, ...]


def worlds(spine: str) -> tuple[World, World]:
    """X among them, with rows in every table; and Z with X's place and other rows, or nobody."""
    everybody = tuple(f"p{i}" for i in range(PERSONS))
    some, again = (*everybody[::2], X), ("p2", "p4", X)
    with_x = World(spine, everybody, some, again)
    if (
        spine == "table"
    ):  # the attack as it was made: the sizes were 1,499 or 1,500, and 1,000 or 1,001
        return with_x, replace(with_x, visits=tuple(Z if p == X else p for p in everybody))
    without = World(spine, *(tuple(p for p in t if p != X) for t in (everybody, some, again)))
    return with_x, without


def csv(head: str, persons: Sequence[str], rows: int, seed: int) -> str:
    """A person's rows are drawn from its name, so that they are the same in both worlds."""
    lines = [head]
    for person in persons:
        rng = seeded([seed, *person.encode()])
        for _ in range(1 + int(rng.integers(rows))):
            first = "fm"[int(rng.integers(2))] if "sex" in head else int(rng.integers(100))
            lines.append(f"{person},{first},{int(rng.integers(10, 61))}")
    return "\n".join(lines) + "\n"


program = typer.Typer()
for name, group in (("dataset", dataset.app), ("population", population.app)):
    program.add_typer(group, name=name)
program.add_typer(ledger.app, name="ledger")


@contextmanager
def at(installation: Installation) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in installation.environment.items():
            patch.setenv(name, value)
        patch.chdir(installation.directory)
        yield


def run(line: str) -> str:
    done = CliRunner().invoke(program, line.split())
    assert done.exit_code == 0, done.output
    return done.output


def curator_acts(installation: Installation, world: World) -> None:
    """What the guide shows: both tables of one population, a wave, and a link of them, again after
    the wave.
    """
    place = installation.directory
    for table, text in SCHEMAS.items():
        (place / f"{table}.yaml").write_text(text)
    (place / "visits.csv").write_text(csv("id,day,bmi", world.visits, M, 1))
    (place / "persons.csv").write_text(csv("id,sex,age", tuple(dict.fromkeys(world.people)), 1, 2))
    (place / "wave.csv").write_text(csv("id,day,bmi", world.wave, 1, 3))
    everybody = ["id", *(f"p{i}" for i in range(PERSONS)), Z]
    (place / "register.csv").write_text("\n".join(everybody) + "\n")
    declared = {"capacity": f"--capacity {PLACES}", "register": "--register register.csv"}
    link = "dataset link clinic --table v=visits --table p=persons"
    with at(installation):
        if world.spine in declared:
            run(f"population add clinic --column id {declared[world.spine]}")
        for table in SCHEMAS:
            run(f"dataset load {table} {table}.csv --schema {table}.yaml --population clinic")
        run(link)
        run("dataset append visits wave.csv")
        run(link)
    with opened(installation.settings, SetClock()) as services:
        ana: Any = services.access.authenticate(installation.keys["ana"])
        every: Any = {"epsilon": 1e4, "delta": 0.1, "rule": "zcdp", "by": "t"}
        services.ledger.set_population_cap("clinic", **every)
        for each in SETS:
            services.access.grant(ana.id, each, by="t")
            services.ledger.set_analyst_budget(ana.id, each, "clinic", **every)


@dataclass(frozen=True)
class Session:
    """What was said, and of each release its draws and its charge (ρ)."""

    said: list[str]
    drawn: list[list[Call]]
    charged: list[float]


def body(name: str, query: dict[str, Any]) -> dict[str, Any]:
    return {"dataset": name, "query": query, "privacy": {"epsilon": 2.0, "delta": 1e-6}}


def hold(installation: Installation, before: Session | None) -> Session:
    """The session. before: whose draws are played back."""
    heard, clock, drawn, charged = Transcript(), SetClock(), [], []
    key = installation.keys["ana"]
    with opened(installation.settings, clock) as services, capture_logs() as logged:
        first, api = counted(services, "before"), Api(services, key)
        look(services, api, key, heard)
        for query in (*ASKED, *REFUSED):
            heard.reply(api.post("/v1/plans", body(*query)))
        for query in REFUSED:
            refused = heard.reply(api.post("/v1/releases", body(*query)))
            assert refused.status_code == 422, refused.text
        for i, query in enumerate(ASKED):
            recorder = Recorder(None if before is None else before.drawn[i])
            with recording(recorder):
                reply = heard.reply(api.post("/v1/releases", body(*query))).json()
            assert reply["status"] in {"reply", "no_reply"}, reply
            drawn.append(recorder.calls)
            charged.append(reply["charged"]["rho"])
            clock.sleep(1.0)
        look(services, api, key, heard)
        last, events = counted(services, "after"), list(logged)
    heard.hear(json.dumps({k: v - first.get(k, 0.0) for k, v in sorted(last.items())}))
    for event in events:
        heard.hear(json.dumps(public_fields(None, "", {**event, "level": event["log_level"]})))
    with at(installation):
        for line in ("population list", "population show clinic", "dataset list", "ledger show"):
            heard.hear(_TIME.sub("<time>", run(f"{line} --json")))
    return Session(heard.said, drawn, charged)


def look(services: Any, api: Api, key: str, heard: Transcript) -> None:
    """Everything that is free: over HTTP, and the pages."""
    paths = ["/v1/datasets", "/v1/budget", "/v1/releases", "/healthz", "/openapi.json"]
    paths += [f"/v1/datasets/{each}{more}" for each in SETS for more in ("", "/published")]
    for path in paths:
        heard.reply(api.get(path))
    for each, features in (("visits", {"rows": "count()"}), ("clinic", OF_PERSONS)):
        heard.reply(api.post(f"/v1/datasets/{each}/persons", {"persons": features}))
    browser = Browser(create_app(services), services, httpx.Cookies())
    assert browser.sign_in(key).status_code == 303
    for path in ("/", "/budget", "/releases", *(f"/datasets/{each}" for each in SETS)):
        heard.hear(browser.get(f"/workbench{path}").text)


@pytest.fixture(scope="module", params=["table", "capacity", "register"])
def pair(
    request: pytest.FixtureRequest,
    installation_template: Installation,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Installation]:
    made, tmp_path = [], tmp_path_factory.mktemp(request.param)
    for number, world in enumerate(worlds(request.param)):
        directory = tmp_path / f"world{number}"
        shutil.copytree(installation_template.directory, directory)
        made.append(replace(installation_template, directory=directory))
        curator_acts(made[-1], world)
    return made


@pytest.mark.sample(6)
def test_two_worlds_that_differ_in_one_person_say_the_same(pair: list[Installation]) -> None:
    first = hold(pair[0], None)
    second = hold(pair[1], first)
    assert first.said == second.said
    losses = [total(a, b).rho for a, b in zip(first.drawn, second.drawn, strict=True)]
    assert all(0 <= lost <= rho for lost, rho in zip(losses, first.charged, strict=True))
    assert sum(lost > 0 for lost in losses) >= len(ASKED) // 2  # the person is there, and is seen


@pytest.mark.slow
@pytest.mark.sample(6)
def test_every_size_is_the_declared_one(pair: list[Installation]) -> None:
    """The overlap of two tables (the sum of their sizes less that of the link) and the new persons
    of a wave were exact.
    """
    for installation in pair:
        with opened(installation.settings) as services:
            catalog = services.catalog
            spine = catalog.population("clinic").spine
            assert spine is not None
            assert spine.n in {PERSONS, PLACES, PERSONS + 1}
            versions = [catalog.facts(each) for each in SETS]
            assert [facts.version for facts in versions] == [2, 1, 2]
            assert {facts.n for facts in versions} == {spine.n}


@pytest.mark.slow
def test_the_comparison_sees_who_is_linked(
    installation_template: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without places, where the curator agrees to publish counts, the sizes tell the two worlds
    apart.
    """
    sizes = []
    monkeypatch.setattr(populations, "first_spine", lambda *_: None)
    for number, world in enumerate(worlds("table")):
        own = replace(installation_template, directory=tmp_path / f"world{number}")
        shutil.copytree(installation_template.directory, own.directory)
        with monkeypatch.context() as patch:
            patch.setitem(globals(), "run", agreeing(run))
            curator_acts(own, world)
        with opened(own.settings) as services:
            sizes.append([services.catalog.facts(each).n for each in SETS])
    assert sizes[0][2] != sizes[1][2]
    assert sizes[0][0] != sizes[1][0]


def agreeing(plainly: Any) -> Any:
    """As `run`, by a curator who agrees to publish a count."""
    return lambda line: plainly(f"{line} --publish-count" if line.startswith("dataset") else line)
