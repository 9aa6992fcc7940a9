# SPDX-License-Identifier: Apache-2.0
"""`reticent serve` as a process: start, end, crash, restart."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from reticent_server.app import build_services
from reticent_server.domain.query import Privacy
from reticent_server.errors import CuratorError
from reticent_server.kinds.count.kind import Count
from reticent_server.ledger.model import Charge
from reticent_server.pipeline import planning
from reticent_server.pipeline.ask import Ask
from support.installations.small import Installation, Server, opened, request_body, serving
from support.processes.forked import command, forked

POST = {"headers": {"Idempotency-Key": "one"}, "timeout": 30.0}


@dataclass(frozen=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


def reticent(directory: Path, environment: dict[str, str], *arguments: str) -> Ended:
    """A command, in a process of its own."""
    log = directory / "command.log"
    log.unlink(missing_ok=True)
    process = forked(command, [str(directory), list(arguments)], environment, log)
    with process.stdout as told:
        stdout = told.read()
    return Ended(process.wait(300), stdout, log.read_text())


def post(server: Server, key: str, **options: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} | options.pop("headers", {})
    return httpx.post(
        f"{server.url}/v1/releases",
        json=request_body(),
        headers=headers,
        **({"timeout": 60} | options),
    )


@pytest.mark.slow
def test_it_serves_says_so_and_ends_cleanly(installation: Installation) -> None:
    path = installation.directory / "serve.log"
    before = path.stat().st_size if path.exists() else 0
    with serving(installation) as server:
        assert server.url.startswith("http://127.0.0.1:")
        reply = post(server, installation.keys["ana"], **POST)
        assert reply.status_code == 201
        assert "server" not in reply.headers
        assert server.end(signal.SIGTERM) == 0
    log = path.read_text()[before:]
    assert "RETICENT_REPLY_GRID_MS=0" in log
    lines = [json.loads(text) for text in log.splitlines() if text.startswith("{")]
    assert [(line["route"], line["status"]) for line in lines] == [("/v1/releases", 201)], log
    assert installation.keys["ana"] not in log
    assert "people" not in log


@pytest.mark.audit
def test_a_line_of_json_says_where_it_serves(installation: Installation) -> None:
    words = [sys.executable, "-m", "reticent_server.cli", "serve", "--port", "0", "--json"]
    process = subprocess.Popen(
        words,
        cwd=installation.directory,
        env=installation.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert httpx.get(f"{told['url']}/healthz", timeout=60).status_code == 200
        assert (told["process"], told["metrics"]) == (process.pid, None)
        assert told["console"] == f"{told['url']}/console"
    finally:
        process.terminate()
        process.communicate(timeout=300)


@pytest.mark.slow
def test_killed_in_mid_work_and_restarted_nothing_is_lost(installation: Installation) -> None:
    """The reply is due in 20 s; the process is killed once the charge is committed. Its lease would
    last for an hour: the next server sees that its holder is gone.
    """
    key = installation.keys["ana"]
    with opened(installation.settings) as services:
        ana = services.access.authenticate(key)
        assert ana is not None
        with serving(installation, reply_grid_ms=20_000, lease_seconds=3600) as server:
            threading.Thread(target=_post_in_vain, args=(server, key)).start()
            while not services.ledger.releases(ana.id):
                assert server.process.poll() is None
                services.clock.sleep(0.01)
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
        spent = services.ledger.balances(ana.id)[0].spent
        assert spent.primary > 0
        assert services.ledger.verify() == []
        with serving(installation, lease_seconds=3600) as server:
            reply = post(server, key, **POST)
            for _ in range(60):  # each waits for some seconds by itself
                if reply.status_code != 503:
                    break
                reply = post(server, key, **POST)
            assert (reply.status_code, reply.json()["status"]) == (201, "reply")
            assert post(server, key, **POST).content == reply.content
            assert server.end() == 0
        assert services.ledger.balances(ana.id)[0].spent == spent
        assert services.ledger.releases(ana.id) == (reply.content,)
    verified = reticent(installation.directory, installation.environment, "ledger", "verify")
    assert verified.returncode == 0, verified.stderr


def _post_in_vain(server: Server, key: str) -> None:
    try:
        post(server, key, **POST)
    except httpx.TransportError:
        return
    raise AssertionError("there was a reply")


@pytest.mark.slow
def test_a_restart_finishes_what_nobody_asks_for_again(installation: Installation) -> None:
    with opened(installation.settings.model_copy(update={"lease_seconds": 1})) as services:
        facts = services.catalog.facts("people")
        ana = services.access.authenticate(installation.keys["ana"])
        assert ana is not None
        services.ledger.reserve(
            Charge(
                analyst_id=ana.id,
                dataset="people",
                version_id=facts.version_id,
                population="people",
                cost=planning.plan(facts, Count(), Privacy(0.5)).cost,
                request=Ask("people", Count(), Privacy(0.5)).canonical(),
                idempotency_key=None,
            )
        )
        with serving(installation, lease_seconds=1):
            while not isinstance(services.ledger.releases(ana.id)[0], bytes):
                services.clock.sleep(0.05)
        (body,) = services.ledger.releases(ana.id)
        assert isinstance(body, bytes)
        assert json.loads(body)["status"] == "reply"


@pytest.mark.slow
def test_a_graceful_restart_parks_nothing(installation: Installation) -> None:
    """With leases of ten minutes: what had not begun is computed by the next server at once."""
    headers = {"Authorization": f"Bearer {installation.keys['ana']}", "Prefer": "respond-async"}

    def states(server: Server) -> list[str]:
        page = httpx.get(f"{server.url}/v1/releases", headers=headers, timeout=30).json()
        return [release["status"] for release in page["releases"]]

    with serving(installation, reply_grid_ms=500) as server:
        with httpx.Client(headers=headers, timeout=60) as http:  # all within a grid's step
            for _ in range(6):
                reply = http.post(f"{server.url}/v1/releases", json=request_body(epsilon=0.01))
                assert reply.status_code == 202
        assert server.end() == 0
    with opened(installation.settings) as services:
        left = services.ledger.waiting()
        assert left >= 1
        assert len(services.ledger.stale()) == left
    with serving(installation, reply_grid_ms=0) as server:
        services.clock.sleep(0.5)
        for _ in range(600):
            if set(states(server)) == {"reply"}:
                break
            services.clock.sleep(0.05)
        assert states(server) == ["reply"] * 6
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []


def test_before_init_and_on_a_taken_port(tmp_path: Path, installation: Installation) -> None:
    bare = {k: v for k, v in os.environ.items() if not k.startswith("RETICENT_")}
    refused = reticent(tmp_path, bare, "serve")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == "reticent: The database is not ready; run `reticent init` first.\n"
    assert list(tmp_path.glob("*.db")) == []

    for part in ("vault.db", "secrets.json"):
        (installation.directory / part).unlink()
        with pytest.raises(CuratorError, match="`reticent init`"):
            build_services(installation.settings)
    shared = installation.settings.model_copy(
        update={"vault_url": installation.settings.database_url}
    )
    with pytest.raises(CuratorError, match="must be different files"):
        build_services(shared)


def test_a_port_that_is_taken(installation: Installation) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = reticent(
            installation.directory, installation.environment, "serve", "--port", port
        )
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"reticent: Cannot listen on 127.0.0.1, port {port}: ")


def test_bad_settings_are_named(installation: Installation) -> None:
    bad = {"RETICENT_THREADS": "many", "RETICENT_REPLY_GRID_MS": "-1"}
    refused = reticent(installation.directory, installation.environment | bad, "serve")
    assert (refused.returncode, refused.stdout) == (1, "")
    names = "RETICENT_REPLY_GRID_MS, RETICENT_THREADS"
    assert refused.stderr == f"reticent: not a valid setting: {names}.\n"
