# SPDX-License-Identifier: Apache-2.0
"""Where the rows of a version are read; the serving process's only use of vault.readers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import LinkedTables, ParquetFiles, Source, SqlTable, VaultTable
from reticent_server.errors import CuratorError, SourceAway
from reticent_server.vault.adbc import Permits
from reticent_server.vault.object_store import AWS, ObjectStore
from reticent_server.vault.parquet_source import ParquetReader, probe_files
from reticent_server.vault.person_tables import LinkedReader
from reticent_server.vault.ports import Reader
from reticent_server.vault.readers import open_reader, probe_table
from reticent_server.vault.registered import BAD_SUFFIX, RegisteredReader
from reticent_server.vault.sql_source import probe_rows, sql_pieces


@dataclass(frozen=True, slots=True)
class Sources:
    """The rows of every version, by its id.

    source_of, schema_of: the catalogue's, by version id. url_of: the secret URL of a connection.
    connections: how many passes over rows of databases may hold one at once. store: the S3 service
    of registered Parquet files.
    """

    vault_url: str = field(repr=False)
    source_of: Callable[[str], Source]
    schema_of: Callable[[str], Schema]
    url_of: Callable[[str], str]
    permits: Permits
    store: ObjectStore = AWS

    def reader(self, version_id: str) -> Reader:
        """Opens a reader of a version's rows, which reads when it is asked for them."""
        source = self.source_of(version_id)
        match source:
            case VaultTable():
                return open_reader(self.vault_url, source, self.permits)
            case LinkedTables():
                return LinkedReader(self.vault_url, source, self.permits)
            case ParquetFiles():
                return ParquetReader(self.schema_of(version_id), source, self.store)
            case SqlTable():
                pieces = sql_pieces(self.url_of(source.connection), source, self.permits)
                return RegisteredReader(self.schema_of(version_id), pieces)

    def bad_cells(
        self, version_id: str, columns: Sequence[str], progress: Callable[[float], None]
    ) -> Counter[str]:
        """Reads all rows for the curator: by column, how many cells do not fit the schema. Raises
        Unavailable where there are not as many rows as were recorded."""
        found: Counter[str] = Counter()
        reader, done = self.reader(version_id), 0
        for batch in reader.batches(columns):
            rows = batch.unwrap()
            done += rows.num_rows
            progress(min(1.0, done / max(1, reader.n)))
            for name in rows.schema.names:
                if name.endswith(BAD_SUFFIX):
                    bad = rows.column(name).to_numpy(zero_copy_only=False)
                    found[name.removesuffix(BAD_SUFFIX)] += int(bad.sum())
        return found

    def probe(self, version_id: str) -> None:
        """Looks whether a version's rows could be read now: asks for the tables and their columns,
        or for the files, and for no row. Raises SourceAway."""
        source = self.source_of(version_id)
        match source:
            case VaultTable():
                probe_table(self.vault_url, source)
            case LinkedTables():
                for linked in source.tables:
                    probe_table(self.vault_url, linked.table)
            case ParquetFiles():
                probe_files(source, self.store)
            case SqlTable():
                probe_rows(self._url(source), source)

    def _url(self, source: SqlTable) -> str:
        try:
            return self.url_of(source.connection)
        except CuratorError:
            raise SourceAway("no_url_in_the_secrets") from None
