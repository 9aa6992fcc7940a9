# SPDX-License-Identifier: Apache-2.0
"""What each process of a server gets of its memory and its connections, and whether a database
allows them.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from reticent_server.database import connect, reading
from reticent_server.errors import CuratorError
from reticent_server.settings import MIN_POOL, Settings
from reticent_server.vault.adbc import POSTGRES, parse_url, postgres_facts

PARENT = 4
"""Connections of the process that keeps workers running: metrics and the console, a page at a
time.
"""

COMMANDS = 5
"""Connections that are left for a curator's commands beside a server."""

# started: the same for two databases of one PostgreSQL. cluster: of everybody but administrators.
# own: of this role on this database; -1 where nobody has set a limit.
_FACTS = """
SELECT pg_postmaster_start_time()::text AS started,
       current_setting('max_connections')::int
           - current_setting('superuser_reserved_connections')::int AS cluster,
       (SELECT datconnlimit FROM pg_database WHERE datname = current_database()) AS of_database,
       (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user) AS of_role
"""


@dataclass(frozen=True, slots=True)
class WorkerShares:
    """parent: of the process that is started; worker: of each of `workers` processes below it, or,
    with one worker, of the same process.
    """

    parent: Settings
    worker: Settings
    workers: int

    @property
    def database_connections(self) -> int:
        """The connections of all processes together."""
        if self.workers == 1:
            return self.parent.database_connections
        below = self.workers * self.worker.database_connections
        return self.parent.database_connections + below

    @property
    def vault_connections(self) -> int:
        """Connections to the vault that all workers may open together."""
        return self.workers * self.worker.vault_connections


def shares(settings: Settings, workers: int) -> WorkerShares:
    """An equal part of the cache, of the connections and of the free work at a time for every
    worker process.
    """
    if workers == 1:
        return WorkerShares(settings, settings, 1)
    parent = settings.model_copy(update={"database_connections": PARENT})
    part = {
        "cache_bytes": settings.cache_bytes // workers,
        "database_connections": max(MIN_POOL, (settings.database_connections - PARENT) // workers),
        "vault_connections": max(1, settings.vault_connections // workers),
        "plan_slots": max(1, settings.plan_slots // workers),
    }
    return WorkerShares(parent, settings.model_copy(update=part), workers)


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a PostgreSQL allows: everybody together, and this role on this database."""

    started: str
    cluster: int
    own: int


def refuse_too_many(settings: Settings, wanted: WorkerShares) -> None:
    """Raises CuratorError, which says what to set, where a PostgreSQL allows fewer connections than
    a server may open: it would answer 503 under load, after a charge perhaps.
    """
    database = _database_limits(settings.database_url)
    vault = _vault_limits(settings.vault_url)
    for limits, variables, number in (
        (database, "RETICENT_DATABASE_CONNECTIONS", wanted.database_connections),
        (vault, "RETICENT_VAULT_CONNECTIONS", wanted.vault_connections),
    ):
        if limits is not None:
            _check(variables, number, min(limits.cluster, limits.own))
    if database is not None and vault is not None and database.started == vault.started:
        both = "RETICENT_DATABASE_CONNECTIONS and RETICENT_VAULT_CONNECTIONS"
        _check(both, wanted.database_connections + wanted.vault_connections, database.cluster)


def _check(variables: str, wanted: int, allowed: int) -> None:
    left = allowed - COMMANDS
    if wanted > left:
        raise CuratorError(
            f"PostgreSQL allows {allowed} connections, of which {COMMANDS} are for commands, and "
            "this "
            f"server may open {wanted}: set {variables} to at most {max(left, 0)} in all, start "
            "fewer "
            "workers, or raise max_connections."
        )


def _database_limits(url: str) -> _Limits | None:
    engine = connect(url, MIN_POOL)
    try:
        if engine.dialect.name != "postgresql":
            return None
        with reading(engine) as connection:
            return _limits(connection.execute(text(_FACTS)).one())
    finally:
        engine.dispose()


def _vault_limits(url: str) -> _Limits | None:
    vault = parse_url(url)
    return _limits(postgres_facts(vault, _FACTS)[0]) if vault.dialect is POSTGRES else None


def _limits(row: Any) -> _Limits:
    started, cluster, of_database, of_role = row
    own = min((limit for limit in (of_database, of_role) if limit >= 0), default=cluster)
    return _Limits(started, cluster, own)
