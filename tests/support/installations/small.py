# SPDX-License-Identifier: Apache-2.0
"""A small installation in a directory of its own: databases, secrets, two tables, three analysts.

`people` (400 rows) is granted to ana, `secret` (50 rows) to bob only. It is built once a run and
copied for each test.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from reticent_server.api.curator import make_curator_application
from reticent_server.app import build_services, create_app
from reticent_server.cli.dataset_load import load_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.clock import Clock
from reticent_server.engine.local import LocalEngine
from reticent_server.pipeline.planner import Planner
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings
from reticent_server.vault.ports import Reader
from support.databases import postgresql
from support.processes.forked import Forked, forked, serve
from support.seeds import seeded

SCHEMA = """\
description: Invented people
columns:
  y: {kind: numeric, lower: -10, upper: 10}
  x: {kind: numeric, lower: -5, upper: 5}
  k: {kind: integer, lower: 0, upper: 9}
  g: {kind: categorical, levels: [a, b, c]}
  b: {kind: boolean}
  m: {kind: numeric, lower: 0, upper: 1, missing: [""]}
"""


@dataclass(frozen=True)
class Installation:
    """settings: with absolute paths, replies at once, as often as one likes. keys: by analyst's
    name.

    urls: of the database and the vault; None: SQLite files in the directory.
    """

    directory: Path
    keys: dict[str, str]
    urls: tuple[str, str] | None = None

    @property
    def settings(self) -> Settings:
        files = [f"sqlite:///{self.directory / name}" for name in ("reticent.db", "vault.db")]
        database_url, vault_url = self.urls or files
        return Settings(
            database_url=database_url,
            vault_url=vault_url,
            secrets_file=self.directory / "secrets.json",
            reply_grid_ms=0,
            requests_per_minute=10**9,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Of a child process that is to use this installation."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RETICENT_")}
        names = {
            "database_url",
            "vault_url",
            "secrets_file",
            "reply_grid_ms",
            "requests_per_minute",
        }
        ours = self.settings.model_dump(include=names)
        return kept | {f"RETICENT_{name.upper()}": str(value) for name, value in ours.items()}

    def analyst(self, name: str, *, epsilon: float, delta: float, rule: Any = "basic") -> str:
        """The key of a new analyst with a budget for `people`."""
        with opened(self.settings) as services:
            return _add_analyst(services, name, "people", epsilon, delta, rule)


def build(directory: Path, urls: tuple[str, str] | None = None) -> Installation:
    """Makes the installation in an empty directory, and on empty databases where `urls` names
    them.
    """
    settings = Installation(directory, {}, urls).settings
    prepare(settings)
    (directory / "schema.yaml").write_text(SCHEMA)
    for name, rows in (("people", 400), ("secret", 50)):
        (directory / f"{name}.csv").write_text(_table(rows))
        load_dataset(settings, name, directory / f"{name}.csv", directory / "schema.yaml")
    with opened(settings) as services:
        for name in ("people", "secret"):
            services.ledger.set_population_cap(name, epsilon=1e3, delta=0.01, rule="basic", by="t")
        keys = {
            "ana": _add_analyst(services, "ana", "people", 100, 1e-3, "zcdp"),
            "bob": _add_analyst(services, "bob", "secret", 100, 1e-3, "zcdp"),
            "eve": services.access.add_analyst("eve", by="t")[1],
        }
    return Installation(directory, keys, urls)


@contextmanager
def copied(template: Installation, directory: Path) -> Iterator[Installation]:
    """A copy of its own. On PostgreSQL the vault is shared, as nothing in it is ever changed."""
    shutil.copytree(template.directory, directory)
    if template.urls is None:
        yield replace(template, directory=directory)
        return
    database_url, vault_url = template.urls
    own = postgresql.new_database(postgresql.database_name(database_url))
    yield replace(template, directory=directory, urls=(own, vault_url))
    postgresql.drop_database(own)


def _table(rows: int) -> str:
    rng = seeded(5)
    x, e = rng.normal(size=(2, rows))
    lines = ["y,x,k,g,b,m"]
    for i in range(rows):
        cells = (f"{1 + 2 * x[i] + e[i]:.3f}", f"{x[i]:.3f}", i % 10, "abc"[i % 3], i % 2)
        lines.append(",".join(map(str, cells)) + ("," if i % 7 == 0 else ",0.5"))
    return "\n".join(lines) + "\n"


def _add_analyst(
    services: Services, name: str, dataset: str, epsilon: float, delta: float, rule: Any
) -> str:
    analyst_id, key = services.access.add_analyst(name, by="t")
    services.ledger.set_analyst_budget(
        analyst_id, dataset, dataset, epsilon=epsilon, delta=delta, rule=rule, by="t"
    )
    services.access.grant(analyst_id, dataset, by="t")
    return key


@contextmanager
def opened(settings: Settings, clock: Clock | None = None) -> Iterator[Services]:
    """Services that are closed at the end. Plans are made in this process: one for planning imports
    the server for two seconds first, and gives the same ones
    (tests/server/pipeline/test_planner.py).
    """
    made = build_services(settings, clock)
    services = replace(made, planner=Planner(0, settings.plan_seconds, settings.plan_megabytes))
    try:
        yield services
    finally:
        services.engine.close()
        services.catalog._engine.dispose()


def without_reader(services: Services) -> Services:
    """The same services, in which opening private rows is an error that no test survives."""

    def refuse(_version_id: str) -> Reader:
        raise SystemExit("a private row was asked for")

    blind = LocalEngine(refuse, services.ledger, cache_bytes=0, threads=1, block_rows=1)
    return replace(services, engine=blind)


@dataclass(frozen=True)
class Api:
    """Requests to an application in this process, without a network."""

    services: Services
    key: str | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_app", create_app(self.services))

    def client(self) -> httpx.AsyncClient:
        headers = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        transport = httpx.ASGITransport(self._app)  # type: ignore[attr-defined]
        return httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers)

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def one() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, **options)

        return asyncio.run(one())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.send("POST", path, json=body, **options)


def request_body(query: dict[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    """A request about `people`; a count at ε = 0.5 unless told otherwise."""
    asked = query or {"kind": "count"}
    return {"dataset": "people", "query": asked, "privacy": privacy or {"epsilon": 0.5}}


def curators_port(services: Services, path: str, key: str | None) -> httpx.Response:
    """A GET of the curator's port, in this process."""

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(make_curator_application(services))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


@contextmanager
def serving(installation: Installation, *arguments: str, **settings: Any) -> Iterator["Server"]:
    """`reticent serve` in a child process, which is killed at the end."""
    changed = {f"RETICENT_{name.upper()}": str(value) for name, value in settings.items()}
    log = installation.directory / "serve.log"
    start = _started if "--workers" in arguments else _forked
    process = start(["serve", "--port", "0", *arguments], installation.environment | changed, log)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        url = next((word for word in line.split() if word.startswith("http")), "")
        assert url, log.read_text()
        yield Server(process, url)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _forked(arguments: list[str], environment: dict[str, str], log: Path) -> Forked:
    return forked(serve, [arguments], environment, log)


def _started(
    arguments: list[str], environment: dict[str, str], log: Path
) -> "subprocess.Popen[str]":
    """A new interpreter: metrics of several processes are decided upon by the first import."""
    with log.open("ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "reticent_server.cli", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
        )


@dataclass(frozen=True)
class Server:
    """A running `reticent serve`."""

    process: "subprocess.Popen[str] | Forked"
    url: str

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and waits; the exit status."""
        self.process.send_signal(number)
        return self.process.wait(120)
