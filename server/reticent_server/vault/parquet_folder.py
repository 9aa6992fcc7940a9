# SPDX-License-Identifier: Apache-2.0
"""Where Parquet files are: a directory of this machine, or the objects under a prefix on S3.

A folder pickles, so that other processes can read it. It never holds credentials: every process
looks them up itself, where the AWS libraries do (environment, profile, role of the machine). No
error has a text of the library, which may quote bytes of a file or say what a request was signed
with.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import pyarrow.parquet as pq

from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import DRIVER_ERRORS
from reticent_server.vault.object_store import AWS, ObjectStore

S3 = "s3://"
_SUFFIX = ".parquet"
_BUFFER_BYTES = 1 << 20
"""Of a column of a file on disk, read at once: 1 MiB takes a disk little longer than its first
byte."""

_CONNECT_SECONDS = 10
"""To reach the service: far above a slow network's round trips, far below a deadline's overrun by
minutes."""

_ADDRESS = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((/[^/\\?#@:\s]+)*)/?")
"""A bucket by S3's rules for names, and plain parts of a prefix: no credentials, no options, no
version."""


class ParquetFolder(Protocol):
    """Files whose names end in .parquet, beside each other."""

    @property
    def address(self) -> str:
        """As the catalogue keeps it, and as `folder_at` takes it."""
        ...

    def names(self) -> list[str]:
        """The names of the files, sorted. Raises CuratorError."""
        ...

    def open(self, name: str) -> pq.ParquetFile:
        """Raises what pyarrow raises (adbc.DRIVER_ERRORS), whose text must not travel on."""
        ...

    @property
    def reads_ahead(self) -> bool:
        """Whether the columns of a run of row groups are fetched at once, before they are
        decoded."""
        ...


def folder_at(address: str | Path, store: ObjectStore = AWS) -> ParquetFolder:
    """The folder at a path, or at s3://BUCKET/PREFIX. Raises CuratorError, which does not repeat an
    address that may have a secret in it."""
    text = str(address)
    if not text.startswith(S3):
        return LocalFolder(str(Path(text).resolve()))
    matched = _ADDRESS.fullmatch(text)
    if matched is None or {".", ".."} & set(text.split("/")):
        raise CuratorError(
            "An address on S3 is s3://BUCKET/PREFIX, without credentials or options: these come "
            "from the environment."
        )
    return S3Folder(matched[1] + matched[2], store)


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A directory."""

    address: str
    reads_ahead = False

    def names(self) -> list[str]:
        """Names of the folder's Parquet files, sorted. Raises CuratorError where it
        is no folder."""
        directory = Path(self.address)
        if not directory.is_dir():
            raise CuratorError(f"{directory} is not a directory.")
        return sorted(path.name for path in directory.glob(f"*{_SUFFIX}"))

    def open(self, name: str) -> pq.ParquetFile:
        """Opens a file, which is read through a buffer."""
        return pq.ParquetFile(Path(self.address) / name, buffer_size=_BUFFER_BYTES)


@dataclass(frozen=True, slots=True)
class S3Folder:
    """The objects right under a prefix. path: BUCKET/PREFIX."""

    path: str
    store: ObjectStore
    reads_ahead = True

    @property
    def address(self) -> str:
        """The folder's URL, s3://bucket/path."""
        return S3 + self.path

    def names(self) -> list[str]:
        """Names of the folder's Parquet files, sorted. Raises CuratorError where it
        cannot be listed."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - .1 s

        try:
            found = _service(self.store).get_file_info(FileSelector(self.path))
        except DRIVER_ERRORS:
            raise CuratorError(
                f"{self.address} is empty or cannot be listed. Check the bucket, the credentials "
                "in the environment (AWS_…), "
                "RETICENT_S3_ENDPOINT and RETICENT_S3_REGION."
            ) from None
        return sorted(
            each.base_name
            for each in found
            if each.type is FileType.File and each.base_name.endswith(_SUFFIX)
        )

    def open(self, name: str) -> pq.ParquetFile:
        """Opens an object; the ranges that are to be read are fetched ahead."""
        return pq.ParquetFile(
            f"{self.path}/{name}", filesystem=_service(self.store), pre_buffer=True
        )


@lru_cache(maxsize=8)
def _service(store: ObjectStore) -> Any:
    """The service, kept: it keeps its connections, and renews credentials of a role by itself."""
    scheme, _, host = store.endpoint.partition("://")
    given: dict[str, Any] = {"scheme": scheme or "https", "connect_timeout": _CONNECT_SECONDS}
    if host:
        given["endpoint_override"] = host
    if store.region:
        given["region"] = store.region
    if store.authority:
        given["tls_ca_file_path"] = store.authority
    try:
        from pyarrow.fs import S3FileSystem  # noqa: PLC0415 - .1 s

        return S3FileSystem(**given)
    except (ImportError, TypeError):  # built without S3; or older than its option for a CA
        raise CuratorError(
            "This pyarrow cannot read from S3, or not with RETICENT_S3_CA."
        ) from None
