# SPDX-License-Identifier: Apache-2.0
"""Passes over Parquet data sets on a Dask cluster: the map goes to the rows, integer sums come
back.

The sums are those of the local engine bit for bit, so it does not matter who computes them, or how
often: a lost worker's parts are computed again elsewhere, and noise is drawn once, by the engine,
when all parts are there. A scheduler runs any code that it is sent, so connections are
authenticated by TLS certificates; only a scheduler that an administrator runs on this machine may
go without. A cluster that is started here has no dashboard and no pages, and nothing is logged but
words.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import dask
from distributed import Client, LocalCluster, Security, wait

from reticent_server.domain.steps import SumStep
from reticent_server.engine.block_sums import added
from reticent_server.engine.blocks import Table
from reticent_server.engine.partition import FAILED, UNREADABLE, sums_of_parts
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.events import EventLogger

LOST = "The cluster does not answer at the moment."
# of one pass, after which a silent cluster counts as lost; a longer wait keeps the slot
PATIENCE_SECONDS = 600
# a dashboard, worker pages or logs could show cells: none is served, none is kept
_NO_PAGES = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    "distributed.admin.log-length": 0,
}

log = EventLogger(__name__)


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files of a client of the scheduler: the authority's, the client's, the client's key."""

    authority: Path
    certificate: Path
    key: Path

    def security(self) -> Security:
        """TLS, and nothing else."""
        return Security(
            require_encryption=True,
            tls_ca_file=str(self.authority),
            tls_client_cert=str(self.certificate),
            tls_client_key=str(self.key),
        )


class DaskCluster:
    """A cluster that adds up the parts of a table (engine.cluster_engine.Cluster).

    cache_bytes: of encoded columns, in each worker process.
    """

    def __init__(self, client: Client, *, cache_bytes: int) -> None:
        self._client = client
        self._cache_bytes = cache_bytes

    def totals(self, parts: Sequence[Table], step: SumStep, block_rows: int) -> list[Any]:
        """The step's exact integer sums over all parts. Raises Unavailable, or RuntimeError where a
        part failed; neither says more."""
        failed = False
        totals: list[Any] | None = None
        try:
            for sums in self._sums(parts, step, block_rows):
                # a part may have no row of a subset
                totals = added(totals, sums) if sums else totals
        except _PartFailed:
            raise
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the cluster's: no part lets out an exception
            log.warning("cluster_failed", error=type(error).__name__)
            failed = True
        if failed:  # outside the handler: nothing is kept as context
            raise Unavailable(LOST)
        return totals or []

    def _sums(self, parts: Sequence[Table], step: SumStep, block_rows: int) -> Iterator[list[Any]]:
        futures = self._submitted(parts, step, block_rows)
        try:
            with self._client.as_current():  # wait() asks for the client of its thread
                wait(futures, timeout=PATIENCE_SECONDS)
            found = self._client.gather(futures)
        finally:
            self._give_up(futures)
        for sums in found:
            if sums == UNREADABLE:
                raise Unavailable("The data set cannot be read at the moment.")
            if sums == FAILED:
                raise _PartFailed
            yield sums

    def _give_up(self, futures: Sequence[Any]) -> None:
        """Stops what still runs; what is done is forgotten with its future, without a message of
        its own."""
        running = [future for future in futures if not future.done()]
        if running:
            self._client.cancel(running)

    def _submitted(self, parts: Sequence[Table], step: SumStep, block_rows: int) -> list[Any]:
        """A part goes to the same worker in every pass, which has its columns in memory by then.

        All parts of a thread are one task: what the scheduler takes for a task is much to a pass.
        """
        threads = self._client.nthreads()
        places = [worker for worker in sorted(threads) for _ in range(threads[worker])]
        shares = equal_shares(parts, max(1, len(places)))
        name = f"sums-{uuid4().hex}"
        return [
            self._client.submit(
                sums_of_parts,
                share,
                step,
                block_rows,
                self._cache_bytes,
                key=f"{name}-{k}",
                pure=False,
                workers=places[k] if places else None,
                allow_other_workers=bool(places),
            )
            for k, share in enumerate(shares)
            if share
        ]

    def close(self) -> None:
        """Leaves the cluster; ends one that was started for this process."""
        cluster = self._client.cluster
        self._client.close()
        if cluster is not None:
            cluster.close()


def equal_shares(parts: Sequence[Table], number: int) -> list[list[Table]]:
    """The parts in `number` shares of about as many rows, the same in every pass: the largest
    first, each to whoever has the fewest rows (Graham's rule: at most 4/3 of the best)."""
    shares: list[list[Table]] = [[] for _ in range(number)]
    rows = [0] * number
    for part in sorted(parts, key=lambda part: -part.n):
        least = rows.index(min(rows))
        shares[least].append(part)
        rows[least] += part.n
    return shares


class _PartFailed(RuntimeError):
    """A part's computation failed; the text is constant."""

    def __init__(self) -> None:
        super().__init__("a part of the table could not be computed")


def local_cluster(workers: int, *, cache_bytes: int) -> DaskCluster:
    """A cluster of processes on this machine, which share `cache_bytes`; it ends with this process.

    Its certificates are made for it and are in memory only.
    """
    dask.config.set(_NO_PAGES)
    security = Security.temporary()
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        protocol="tls://",
        security=security,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # its empty pages: at any free port
        memory_limit=0,  # what grows is the column cache, which has a limit of its own
        silence_logs=logging.CRITICAL,
    )
    client = Client(cluster, security=security, set_as_default=False)
    return DaskCluster(client, cache_bytes=cache_bytes // workers)


def remote_cluster(
    address: str, certificates: Certificates | None, *, cache_bytes: int
) -> DaskCluster:
    """The cluster of a scheduler at an address. Raises CuratorError."""
    check_address(address, certificates)
    security = certificates.security() if certificates else None
    try:
        client = Client(address, security=security, set_as_default=False)
    except Exception:  # noqa: BLE001 - of many kinds, and the curator needs one sentence
        message = "The scheduler at RETICENT_DASK_SCHEDULER does not answer."
        raise CuratorError(message) from None
    return DaskCluster(client, cache_bytes=cache_bytes)


def check_address(address: str, certificates: Certificates | None) -> None:
    """Raises CuratorError for a scheduler that others could read from, or speak for."""
    parts = urlsplit(address)
    if parts.scheme == "tls" and certificates is not None:
        return
    if parts.scheme == "tls":
        raise CuratorError("A tls:// scheduler needs RETICENT_DASK_CA, _CERTIFICATE and _KEY.")
    if parts.scheme != "tcp" or not _is_loopback(parts.hostname or ""):
        raise CuratorError(
            "RETICENT_DASK_SCHEDULER must be tls://HOST:PORT; tcp:// is for this machine only."
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
