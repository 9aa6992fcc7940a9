# SPDX-License-Identifier: Apache-2.0
"""A private PostgreSQL for the tests: started once a process, on a Unix socket in its own folder.

Where there are no PostgreSQL binaries, the tests that need it are skipped, and the end of the run
says so in words that cannot be overlooked (`pytest_terminal_summary`, for tests/conftest.py).
"""

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.processes import memory
from support.processes.waiting import PATIENCE, until

CONNECTIONS = 200
DEFAULT_PORT = 5432
_numbers = count(1)


@cache
def binaries() -> Path | None:
    """The folder of initdb and postgres, else None."""
    found = shutil.which("initdb")
    candidates = [Path(found).resolve().parent] if found else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((c for c in candidates if (c / "postgres").exists()), None)


def new_database(template: str = "template1") -> str:
    """The URL of a new, empty database (or a copy of `template`, the name of one)."""
    socket = _server()
    name = f"test_{next(_numbers)}"
    _administer(socket, f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return f"postgresql://postgres@/{name}?host={socket}"


def database_name(url: str) -> str:
    return url.split("/")[3].partition("?")[0]


def drop_database(url: str) -> None:
    _administer(_server(), f'DROP DATABASE "{database_name(url)}" WITH (FORCE)')


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if binaries() is None:
        terminalreporter.section("PostgreSQL was NOT tested", sep="!", red=True, bold=True)
        terminalreporter.line(
            "No PostgreSQL binaries (initdb, postgres) were found, so every test marked `postgres` "
            "was skipped. Install PostgreSQL before trusting this run for production."
        )


@cache
def _server() -> Path:
    """The socket folder of a running server, which ends with this process."""
    cluster = Cluster()
    atexit.register(cluster.remove)
    return cluster.home


class Cluster:
    """A server with a data folder of its own, which may be stopped, crashed and started again.

    home: the folder of its socket. durable: whether a commit waits for the disk. port: where it
    listens on 127.0.0.1, too, for those who have a password; None: nowhere.
    """

    def __init__(
        self, *, durable: bool = False, connections: int = CONNECTIONS, port: int | None = None
    ) -> None:
        folder = binaries()
        if folder is None:
            pytest.skip("no PostgreSQL binaries")
        self._folder = folder
        chosen = {
            "listen_addresses": "" if port is None else "127.0.0.1",
            "port": port or DEFAULT_PORT,
            "max_connections": connections,
            "fsync": "on" if durable else "off",
        }
        self._settings = [
            part for name, value in chosen.items() for part in ("-c", f"{name}={value}")
        ]
        self._owner = _owner()
        self.home = Path(
            tempfile.mkdtemp(prefix="reticent-pg-", dir="/tmp" if durable else memory.folder())
        )
        if self._owner:
            shutil.chown(self.home, **self._owner)
        self._port = port or DEFAULT_PORT
        subprocess.run(["cp", "-a", _made(folder), self.home / "data"], check=True)
        self.start()

    def _process(self) -> dict[str, Any]:
        return {"cwd": self.home, **self._owner}

    def start(self) -> None:
        """Starts it, after a crash too, and waits until it answers."""
        with (self.home / "log").open("ab") as log:
            self._server = subprocess.Popen(
                [
                    *(str(self._folder / "postgres"), "-D", str(self.home / "data")),
                    *("-k", str(self.home), *self._settings),
                ],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  (one system call, no Python locks)
                **self._process(),
            )
        self._wait()

    def _wait(self) -> None:
        until(self._answers)

    def _answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            if self._server.poll() is not None:
                raise RuntimeError((self.home / "log").read_text()) from None
            return False
        return True

    def stop(self, number: int = signal.SIGINT) -> None:
        """SIGINT ends every session, rolled back; SIGQUIT crashes."""
        self._server.send_signal(number)
        self._server.wait(PATIENCE)

    def execute(self, statement: str) -> None:
        _administer(self.home, statement, self._port)

    def url(self, name: str) -> str:
        return f"postgresql://postgres@/{name}?host={self.home}"

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


@cache
def _made(folder: Path) -> Path:
    """A data folder, made once a process and copied for each server."""
    home = Path(tempfile.mkdtemp(prefix="reticent-pg-", dir=memory.folder()))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    owner = _owner()
    if owner:
        shutil.chown(home, **owner)
    initdb = [str(folder / "initdb"), "-D", str(home / "data"), "-U", "postgres"]
    options = ["--auth-local=trust", "--auth-host=scram-sha-256", "-E", "UTF8", "--locale=C"]
    options += ["--no-sync", "--no-instructions"]
    done = subprocess.run(
        [*initdb, *options], check=False, capture_output=True, text=True, cwd=home, **owner
    )
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return home / "data"


def _owner() -> dict[str, Any]:
    """Whose a server and its files are: PostgreSQL refuses to be root's."""
    return {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}


def _end_with_parent() -> None:
    """Fast shutdown when the parent dies, however it dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGINT)


def _administer(socket: Path, statement: str, port: int = DEFAULT_PORT) -> None:
    given = {"host": str(socket), "port": port, "user": "postgres", "dbname": "postgres"}
    with psycopg.connect(**given) as connection:  # type: ignore[arg-type]
        connection.autocommit = True
        connection.execute(statement)
