# SPDX-License-Identifier: Apache-2.0
"""As many connections as PostgreSQL allows, and no more: who wants one waits, and is not
refused.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import httpx
import psycopg
import pytest

from reticent_server.cli.shares import COMMANDS, PARENT, refuse_too_many, shares
from reticent_server.errors import CuratorError
from reticent_server.settings import MIN_POOL, Settings
from support.databases.postgresql import Cluster
from support.installations.small import Installation, build, opened, request_body, serving

ALLOWED = 30
RESERVED = 3  # for administrators, PostgreSQL's default


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(connections=ALLOWED)
    for name in ("ledger", "vault"):
        made.execute(f"CREATE DATABASE {name}")
    yield made
    made.remove()


@pytest.fixture(scope="module")
def on_cluster(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    directory = tmp_path_factory.mktemp("connections")
    return build(directory, (cluster.url("ledger"), cluster.url("vault")))


def test_workers_share_what_a_server_may_open() -> None:
    settings = Settings(database_connections=40, vault_connections=16)
    for workers in (2, 4, 7, 12):
        parts = shares(settings, workers)
        assert parts.parent.database_connections == PARENT
        assert 40 - workers < parts.database_connections <= 40
        assert parts.vault_connections <= 16
    alone = shares(settings, 1)
    assert (alone.database_connections, alone.vault_connections) == (40, 16)
    assert alone.parent is alone.worker is settings
    many = shares(settings, 64)  # each needs two, so that the sum is more than was said
    assert many.worker.database_connections == MIN_POOL
    assert many.database_connections == PARENT + 64 * MIN_POOL


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_that_may_open_too_many_says_what_to_set(
    cluster: Cluster, on_cluster: Installation
) -> None:
    allowed = ALLOWED - RESERVED

    def refused(**given: int) -> str:
        settings = on_cluster.settings.model_copy(update=given)
        with pytest.raises(CuratorError) as error:
            refuse_too_many(settings, shares(settings, 1))
        return error.value.detail

    def accepted(**given: int) -> None:
        settings = on_cluster.settings.model_copy(update=given)
        refuse_too_many(settings, shares(settings, 1))

    accepted(database_connections=allowed - COMMANDS - 4, vault_connections=4)
    # One PostgreSQL for both counts both.
    said = refused(database_connections=allowed - COMMANDS - 4, vault_connections=5)
    assert f"PostgreSQL allows {allowed} connections" in said
    assert f"to at most {allowed - COMMANDS} in all" in said
    assert "max_connections" in said
    assert "RETICENT_DATABASE_CONNECTIONS" in refused(database_connections=100)
    assert "RETICENT_VAULT_CONNECTIONS" in refused(database_connections=4, vault_connections=100)
    for limit, undo in (
        ("ALTER DATABASE ledger CONNECTION LIMIT 10", "ALTER DATABASE ledger CONNECTION LIMIT -1"),
    ):
        cluster.execute(limit)
        assert "allows 10 connections" in refused(database_connections=6, vault_connections=1)
        accepted(database_connections=5, vault_connections=1)
        cluster.execute(undo)


@pytest.mark.slow
def test_sqlite_has_no_such_limit(installation: Installation) -> None:
    settings = installation.settings.model_copy(update={"database_connections": 10_000})
    refuse_too_many(settings, shares(settings, 8))


@pytest.mark.audit
@pytest.mark.postgres
def test_serve_refuses_before_it_listens(on_cluster: Installation) -> None:
    with (
        pytest.raises(AssertionError, match="this server may open"),
        serving(on_cluster, "--workers", "2", database_connections=60),
    ):
        pass


@pytest.mark.audit
@pytest.mark.postgres
def test_a_burst_at_a_database_that_stands_still_is_answered_in_full(
    cluster: Cluster, on_cluster: Installation
) -> None:
    """60 callers at once, while somebody holds the head of the chain for a second: every writer has
    a connection that waits for it. (Two processes of 40 connections each would be refused by
    27.)
    """
    key = on_cluster.analyst("dan", epsilon=50, delta=1e-3)
    given = {"database_connections": 16, "vault_connections": 4, "cache_bytes": 0}
    done = Event()
    peaks: list[int] = []

    def hold() -> None:
        with psycopg.connect(
            host=str(cluster.home), user="postgres", dbname="ledger"
        ) as connection:
            connection.execute("SELECT * FROM ledger_head FOR UPDATE")
            done.wait(1.0)

    def watch() -> None:
        query = (
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '' AND usename IS "
            "NOT NULL"
        )
        with psycopg.connect(
            host=str(cluster.home), user="postgres", dbname="postgres"
        ) as connection:
            connection.autocommit = True
            while not done.wait(0.05):
                row = connection.execute(query).fetchone()
                peaks.append(row[0] if row else 0)

    with (
        serving(on_cluster, "--workers", "2", **given) as server,
        httpx.Client(
            base_url=server.url, limits=httpx.Limits(max_connections=60), timeout=60
        ) as http,
    ):

        def ask(number: int) -> int:
            headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": f"burst-{number}"}
            body = request_body({"kind": "mean", "column": "y"}, epsilon=0.01)
            return http.post("/v1/releases", json=body, headers=headers).status_code

        helpers = [Thread(target=hold), Thread(target=watch)]
        for helper in helpers:
            helper.start()
        with ThreadPoolExecutor(60) as pool:
            statuses = Counter(pool.map(ask, range(90)))
        done.set()
        for helper in helpers:
            helper.join()
    # An analyst has at most half of a process's release threads, and so many again may wait: no
    # 429.
    assert statuses == {201: 90}
    assert max(peaks) <= ALLOWED - RESERVED
    with opened(on_cluster.settings) as services:
        assert services.ledger.waiting() == 0
        assert services.ledger.verify() == []
