# SPDX-License-Identifier: Apache-2.0
"""How `reticent serve` listens: several workers, TLS, who may reach it, the curator's port."""

import os
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from reticent_server.cli.listening import listen, refuse_exposure, tls_of
from reticent_server.cli.workers import Supervisor, WorkerJob
from reticent_server.domain.roles import STAFF
from reticent_server.errors import CuratorError
from support.installations.small import Installation, Server, opened, request_body, serving
from support.processes.waiting import until

PEM = Path(__file__).parents[2] / "fixtures" / "localhost.pem"
"""A certificate for localhost and its key, for tests only."""


def children(pid: int) -> list[int]:
    """Processes with this parent that answer requests (not multiprocessing's own helper)."""
    # -ww: a COLUMNS of the environment must not cut the helper's name off.
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    return [int(number) for number, args in found if "resource_tracker" not in args]


@contextmanager
def two_workers(installation: Installation) -> Iterator[tuple[Server, str]]:
    """A server of two workers, and the address of its metrics."""
    options = ("--workers", "2", "--curator-port", "0")
    with serving(installation, *options, lease_seconds=1) as server:
        assert server.process.stdout is not None
        yield server, server.process.stdout.readline().split()[3]


@pytest.mark.audit
def test_two_workers_answer_are_replaced_and_end_together(installation: Installation) -> None:
    headers = {"Authorization": f"Bearer {installation.keys['ana']}"}
    with opened(installation.settings) as services:
        key = services.access.add_curator("cura", STAFF, by="t")
    curators = {"Authorization": f"Bearer {key}"}
    with two_workers(installation) as (server, metrics):

        def ask(key: int) -> int:
            named = headers | {"Idempotency-Key": str(key)}
            body = request_body(epsilon=0.01)
            try:  # a connection of its own, so that either worker may take it
                reply = httpx.post(
                    f"{server.url}/v1/releases", json=body, headers=named, timeout=30
                )
            except httpx.TransportError:
                return 0
            return reply.status_code

        assert {ask(key) for key in range(8)} == {201}
        first, second = children(server.process.pid)
        os.kill(first, signal.SIGKILL)
        replaced(server, {first, second})
        assert second in children(server.process.pid)
        for key in range(12):
            until(lambda key=key: ask(key) == 201)
        text = httpx.get(metrics, headers=curators, timeout=60).text
        # Both workers, and the one that was killed, have counted.
        (line,) = [
            x for x in text.splitlines() if x.startswith('reticent_releases_total{outcome="reply"}')
        ]
        assert float(line.split()[1]) == 12
        assert httpx.get(metrics, headers=headers, timeout=60).status_code == 403
        assert httpx.get(metrics, timeout=60).status_code == 401
        workers = children(server.process.pid)
        assert server.end(signal.SIGTERM) == 0
        assert not any(_alive(pid) for pid in workers)
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []
        (ana,) = [b for b in services.ledger.all_balances() if b.account == "population:people"]
        assert ana.spent.primary == 12 * 10**7


def replaced(server: Server, before: set[int]) -> set[int]:
    """The server's workers, when there are two and they are others than before."""
    while len(now := set(children(server.process.pid))) != 2 or now == before:
        assert server.process.poll() is None
        time.sleep(0.05)
    return now


@pytest.mark.audit
def test_a_replacement_that_does_not_start_ends_nobody_else(installation: Installation) -> None:
    """The secrets are away (a volume that is not mounted), and the other worker goes on."""
    with two_workers(installation) as (server, _):
        until(lambda: len(children(server.process.pid)) == 2)
        until(lambda: all(_answers(server) for _ in range(8)))
        ends, stays = children(server.process.pid)
        _not_replaced_for_a_while(installation, server, ends=ends, stays=stays)
        assert server.end(signal.SIGTERM) == 0


def _not_replaced_for_a_while(
    installation: Installation, server: Server, *, ends: int, stays: int
) -> None:
    secrets, log = installation.settings.secrets_file, installation.directory / "serve.log"
    ended = log.read_text().count("worker_ended")
    secrets.rename(secrets.with_suffix(".away"))
    os.kill(ends, signal.SIGKILL)
    until(lambda: log.read_text().count("worker_ended") >= ended + 2)  # and its replacement
    assert server.process.poll() is None
    assert httpx.get(f"{server.url}/healthz", timeout=60).status_code == 200
    assert stays in children(server.process.pid)
    secrets.with_suffix(".away").rename(secrets)
    until(lambda: len(children(server.process.pid)) == 2)
    until(lambda: all(_answers(server) for _ in range(8)))
    assert httpx.get(f"{server.url}/readyz", timeout=60).status_code == 200


def _answers(server: Server) -> bool:
    """On a connection of its own, so that either worker may take it."""
    try:
        return httpx.get(f"{server.url}/healthz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.audit
def test_workers_that_cannot_start_end_the_server(installation: Installation) -> None:
    """The vault goes away between the parent's check and the workers': here, its secrets do."""
    settings = installation.settings.model_copy(
        update={"secrets_file": installation.directory / "absent.json"}
    )
    listener = listen("127.0.0.1", 0)
    announced: list[int] = []
    kept = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        status = Supervisor(WorkerJob(settings, listener, None, 1)).run(lambda: announced.append(1))
    finally:
        listener.close()
        for number, handler in kept.items():
            signal.signal(number, handler)
    assert (status, announced) == (1, [])


@pytest.mark.slow
def test_https(installation: Installation) -> None:
    with serving(installation, "--tls-cert", str(PEM), "--tls-key", str(PEM)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=str(PEM))
        headers = {"Authorization": f"Bearer {installation.keys['ana']}"}
        reply = httpx.get(f"{server.url}/v1/budget", headers=headers, verify=trust, timeout=60)
        assert reply.status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https", "http") + "/healthz", timeout=60)
        assert server.end() == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_keys_in_the_clear_are_refused(host: str) -> None:
    with pytest.raises(CuratorError, match="--behind-proxy"):
        refuse_exposure(host, None, behind_proxy=False)
    refuse_exposure(host, None, behind_proxy=True)
    refuse_exposure(host, tls_of(PEM, PEM), behind_proxy=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_loopback_needs_no_tls(host: str) -> None:
    refuse_exposure(host, None, behind_proxy=False)


def test_half_a_certificate_is_refused(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for pair in ((PEM, None), (None, PEM)):
        with pytest.raises(CuratorError, match="go together"):
            tls_of(*pair)
    for pair in ((nothing, PEM), (PEM, nothing), (tmp_path / "absent", PEM)):
        with pytest.raises(CuratorError, match="PEM"):
            tls_of(*pair)
    assert tls_of(None, None) is None


def test_forwarded_headers_change_nothing(installation: Installation) -> None:
    with serving(installation) as server:
        forged = {
            "X-Forwarded-Proto": "https",
            "X-Forwarded-For": "203.0.113.9",
            "Forwarded": "for=x",
        }
        plain = httpx.get(f"{server.url}/healthz", timeout=60)
        asked = httpx.get(f"{server.url}/healthz", headers=forged, timeout=60)
        same = [{k: v for k, v in r.headers.items() if k != "date"} for r in (plain, asked)]
        assert (plain.content, same[0]) == (asked.content, same[1])
    assert "203.0.113.9" not in (installation.directory / "serve.log").read_text()
