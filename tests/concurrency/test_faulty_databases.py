# SPDX-License-Identifier: Apache-2.0
"""A database that is full, restarted, or loses its sessions: 503 at worst, and nothing lost or
twice.
"""

import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from support.databases.postgresql import Cluster
from support.installations.small import Installation, build, opened, request_body, serving
from support.ledger.retrying_clients import COST, Client, audit, clients


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of its own, as nobody else's must be stopped."""
    made = Cluster()
    yield made
    made.remove()


@pytest.fixture
def on_cluster(cluster: Cluster, tmp_path: Path) -> Installation:
    for name in ("ledger", "vault"):
        cluster.execute(f"CREATE DATABASE {name}")
    (tmp_path / "installation").mkdir()
    return build(tmp_path / "installation", (cluster.url("ledger"), cluster.url("vault")))


@pytest.mark.slow
def test_a_full_disk_is_a_clean_503_and_no_half_entry(installation: Installation) -> None:
    headers = {"Authorization": f"Bearer {installation.keys['ana']}"}
    log = installation.directory / "reticent.db-wal"

    def ask(http: httpx.Client, key: int) -> int:
        body = request_body({"kind": "mean", "column": "y"}, epsilon=0.01)
        named = headers | {"Idempotency-Key": str(key)}
        reply = http.post("/v1/releases", json=body, headers=named, timeout=60)
        if reply.status_code == 503:
            assert reply.json()["code"] == "unavailable"
        return reply.status_code

    with (
        serving(installation) as server,
        httpx.Client(base_url=server.url, timeout=60) as http,
    ):
        assert ask(http, 0) == 201
        pid, unlimited = server.process.pid, resource.RLIM_INFINITY
        full = log.stat().st_size + 100_000
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (full, unlimited))
        statuses = [ask(http, number) for number in range(1, 20)]
        assert set(statuses) == {201, 503}
        assert statuses[-1] == 503
        with opened(installation.settings) as services:
            assert services.ledger.verify() == []
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        for number in range(20):
            while ask(http, number) != 201:
                pass
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []
        balance = services.ledger.population_balance("people")
        assert balance is not None
        assert balance.spent.primary == 20 * COST


def disturbed(installation: Installation, cluster: Cluster, rounds: int) -> None:
    """Sessions end in mid-transaction; the database is restarted, and crashed. No answer is
    stranded.
    """
    asking, ended = clients(installation), Event()

    def terminate() -> None:
        while not ended.wait(0.07):
            try:
                cluster.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = 'ledger' AND xact_start IS NOT NULL"
                )
            except Exception:  # noqa: BLE001 - it is being restarted
                continue

    with serving(installation) as server:  # with leases of ten minutes, which nobody waits for
        done = Event()
        threads = [Thread(target=c.run, args=(server.url, done)) for c in asking]
        killer = Thread(target=terminate)
        for thread in (*threads, killer):
            thread.start()
        for number in range(rounds):
            ended.wait(0.8)
            cluster.stop(signal.SIGQUIT if number % 2 else signal.SIGINT)
            cluster.start()
        ended.wait(1.0)
        ended.set()
        killer.join()
        _wait_for_more(asking)
        done.set()
        for thread in threads:
            thread.join()
    audit(installation, asking)


def _wait_for_more(asking: list[Client]) -> None:
    """Until every client has an answer that it had not before."""
    before = [len(c.bodies) for c in asking]
    while any(len(c.bodies) <= n for c, n in zip(asking, before, strict=True)):
        Event().wait(0.1)


@pytest.mark.audit
@pytest.mark.postgres
def test_postgresql_restarted_and_its_sessions_ended(
    on_cluster: Installation, cluster: Cluster
) -> None:
    disturbed(on_cluster, cluster, rounds=2)  # in order, and by a crash


@pytest.mark.audit
@pytest.mark.postgres
def test_postgresql_restarted_forty_times(on_cluster: Installation, cluster: Cluster) -> None:
    disturbed(on_cluster, cluster, rounds=40)
