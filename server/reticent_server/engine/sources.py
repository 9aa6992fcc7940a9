# SPDX-License-Identifier: Apache-2.0
"""From a version's id to a reader of its rows; the serving process's only use of vault.readers."""

from collections.abc import Callable

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import LinkedTables, ParquetFiles, Source, SqlTable, VaultTable
from reticent_server.vault.adbc import Permits
from reticent_server.vault.object_store import AWS, ObjectStore
from reticent_server.vault.parquet_source import ParquetReader
from reticent_server.vault.person_tables import LinkedReader
from reticent_server.vault.ports import Reader
from reticent_server.vault.readers import open_reader
from reticent_server.vault.registered import RegisteredReader
from reticent_server.vault.sql_source import sql_pieces


def reader_opener(
    vault_url: str,
    source_of: Callable[[str], Source],
    schema_of: Callable[[str], Schema],
    url_of: Callable[[str], str],
    connections: int,
    store: ObjectStore = AWS,
) -> Callable[[str], Reader]:
    """A function from version id to reader.

    source_of, schema_of: the catalogue's, by version id. url_of: the secret URL of a connection.
    connections: how many passes over rows of databases may hold one at once.
    store: the S3 service of registered Parquet files.
    """
    permits = Permits(connections)

    def open_version(version_id: str) -> Reader:
        source = source_of(version_id)
        match source:
            case VaultTable():
                return open_reader(vault_url, source, permits)
            case LinkedTables():
                return LinkedReader(vault_url, source, permits)
            case ParquetFiles():
                return ParquetReader(schema_of(version_id), source, store)
            case SqlTable():
                pieces = sql_pieces(url_of(source.connection), source, permits)
                return RegisteredReader(schema_of(version_id), pieces)

    return open_version
