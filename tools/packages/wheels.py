# SPDX-License-Identifier: Apache-2.0
"""Each wheel in an empty environment, alone and with each of its extras, by what a curator or an
analyst does with it.
"""

import json
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.packages import files, people
from tools.packages.environments import ROOT, Environment, build_wheels, environment

INSTALLERS = 2  # installations at a time: an installation waits for the disk half of its time
STOP_SECONDS = 60  # for a server to end after SIGTERM
FOLDERS = {"reticent": "client", "reticent-server": "server"}
STATIC = (
    "/workbench/static/workbench.js",
    "/workbench/static/workbench.css",
    "/verify/static/pages.css",
)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs. url: for analysts. console: for curators. key: ada's."""

    url: str
    console: str
    key: str


def extras(name: str) -> list[str]:
    """Those that the metadata of a distribution of this repository name."""
    text = (ROOT / FOLDERS[name] / "pyproject.toml").read_text("utf-8")
    return list(tomllib.loads(text)["project"]["optional-dependencies"])


def load(server: Environment, suffix: str = "csv") -> str:
    """init → load → budget → analyst, in the environment's own directory; ada's key."""
    people.write(server.home)
    if suffix != "csv":
        files.write(server.home / "people.csv", suffix)
    server.run(["reticent", "init"])
    words = people.commands(server.home, f"people.{suffix}")
    *_, said = [server.run(["reticent", *each]) for each in words]
    assert "people" in server.run(["reticent", "budget", "show"])
    return str(json.loads(said)["key"])


@contextmanager
def serving(server: Environment, key: str, **given: str) -> Iterator[Served]:
    """`reticent serve` in the environment's directory, on ports that are free."""
    words = ["reticent", "serve", "--port", "0", "--curator-port", "0", "--json"]
    with subprocess.Popen(
        words, cwd=server.home, env=server.variables | given, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            places = json.loads(process.stdout.readline())
            yield Served(places["url"], places["console"], key)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)


def dask(server: Environment) -> None:
    """A fit by a cluster of the server's own, of a folder of Parquet files."""
    key = load(server)
    server.program("parquet", str(server.home))
    files = ["--parquet", str(server.home / "parts"), "--schema", "people.yaml"]
    server.run(["reticent", "dataset", "register", "people", *files])
    for part in ("scheduler", "worker"):
        server.run(["dask", part, "--help"])
    with serving(server, key, RETICENT_ENGINE="dask") as served:
        server.program("asked", served.url, RETICENT_KEY=served.key)


def demo(server: Environment) -> None:
    server.run(["reticent", "demo"])


def word(server: Environment) -> None:
    server.program("with_export")


def loading(suffix: str) -> Callable[[Environment], None]:
    """A table of a file that the extra reads."""

    def loaded(server: Environment) -> None:
        load(server, suffix)

    return loaded


OF_SERVER: Mapping[str, Callable[[Environment], None]] = {
    "dask": dask,
    "demo": demo,
    "duckdb": loading("duckdb"),
    "files": loading("dta"),
    "stats": loading("dta"),
    "word": word,
    "xlsx": loading("xlsx"),
}
"""What is done with each extra of the server. Those of the client have a program each,
`with_<extra>.py`.
"""


def walk(place: Path, wheels: Mapping[str, Path], say: Callable[[str], None]) -> None:
    """All environments; the server's alone serves all clients."""
    assert set(OF_SERVER) == set(extras("reticent-server")), "an extra that nobody tries"
    wanted = [
        (name, extra) for name in ("reticent-server", "reticent") for extra in ["", *extras(name)]
    ]
    with ThreadPoolExecutor(INSTALLERS) as pool:
        made = {each: pool.submit(environment, place, wheels, *each) for each in wanted}
        alone = made["reticent-server", ""].result()
        with serving(alone, load(alone)) as served:
            console = served.console.removesuffix("/console")
            alone.program("asked", served.url, *STATIC, RETICENT_KEY=served.key)
            alone.program("reached", f"{console}/console/sign-in")
            say("reticent-server alone: init, load, budget, analyst, serve, a fit over HTTP")
            for name, extra in wanted[1:]:
                _try(made[name, extra].result(), name, extra, served)
                say(f"{name}[{extra}]" if extra else f"{name} alone: connects and fits")


def _try(installed: Environment, name: str, extra: str, served: Served) -> None:
    if name == "reticent-server":
        OF_SERVER[extra](installed)
    else:
        program = f"with_{extra}" if extra else "fitted"
        installed.program(program, served.url, RETICENT_KEY=served.key)


def run(place: Path, say: Callable[[str], None]) -> None:
    """Builds both wheels once, and walks."""
    walk(place, build_wheels(place / "wheels"), say)
