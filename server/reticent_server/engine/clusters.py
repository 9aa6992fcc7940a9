# SPDX-License-Identifier: Apache-2.0
"""The engine that the settings ask for: of this machine, or with a cluster. Dask is imported only
then."""

from collections.abc import Callable

from reticent_server.engine.cluster_engine import Cluster, ClusterEngine
from reticent_server.engine.local import EngineLedger, LocalEngine
from reticent_server.errors import CuratorError
from reticent_server.settings import Settings
from reticent_server.vault.ports import Reader


def engine_for(
    settings: Settings, open_reader: Callable[[str], Reader], ledger: EngineLedger
) -> LocalEngine:
    """Raises CuratorError where the cluster of RETICENT_ENGINE=dask cannot be used."""
    cluster = cluster_for(settings)
    sizes = {
        "cache_bytes": settings.cache_bytes,
        "threads": settings.threads,
        "block_rows": settings.block_rows,
    }
    if cluster is None:
        return LocalEngine(open_reader, ledger, **sizes)
    return ClusterEngine(cluster, open_reader, ledger, **sizes)


def cluster_for(settings: Settings) -> Cluster | None:
    """None for RETICENT_ENGINE=local. Raises CuratorError where the cluster cannot be used."""
    if settings.engine == "local":
        return None
    try:
        from reticent_server.engine import dask_cluster  # noqa: PLC0415
    except ImportError:
        message = "RETICENT_ENGINE=dask needs Dask: pip install 'reticent-server[dask]'."
        raise CuratorError(message) from None
    if not settings.dask_scheduler:
        return dask_cluster.local_cluster(settings.dask_workers, cache_bytes=settings.cache_bytes)
    files = (settings.dask_ca, settings.dask_certificate, settings.dask_key)
    given = [file for file in files if file is not None]
    certificates = dask_cluster.Certificates(*given) if len(given) == len(files) else None
    return dask_cluster.remote_cluster(
        settings.dask_scheduler, certificates, cache_bytes=settings.cache_bytes
    )
