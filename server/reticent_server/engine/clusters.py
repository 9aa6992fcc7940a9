"""Which cluster the settings ask for, if any; Dask is imported only then."""

from reticent_server.engine.local import Cluster
from reticent_server.errors import CuratorError
from reticent_server.settings import Settings


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
