# SPDX-License-Identifier: Apache-2.0
"""Which S3 service holds registered Parquet files."""

from dataclasses import dataclass

from reticent_server.settings import Settings


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Which S3 service. endpoint: https://HOST[:PORT], or http:// of this machine; empty: AWS's
    own. region: empty: as the environment says. authority: PEM file of who signs the endpoint's
    certificate; empty: those of the system."""

    endpoint: str = ""
    region: str = ""
    authority: str = ""


AWS = ObjectStore()


def store_of(settings: Settings) -> ObjectStore:
    """The service that the settings name."""
    authority = "" if settings.s3_ca is None else str(settings.s3_ca.resolve())
    return ObjectStore(settings.s3_endpoint, settings.s3_region, authority)
