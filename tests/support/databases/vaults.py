"""Loads small files into a vault and reads them back, for tests."""

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa

from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.source import VaultTable
from reticent_server.vault.adbc import connected, parse_url, query
from reticent_server.vault.ingest import Loaded, ingest
from reticent_server.vault.loading import loading
from reticent_server.vault.readers import open_reader

OWNER = "0123456789ab"


class Vault:
    """A vault, and the tables that its catalogue would name."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.kept: set[str] = set()

    def tables(self) -> Collection[str]:
        return self.kept

    def load(self, file: Path, schema: Schema, *, strict: bool = False) -> Loaded:
        with loading(self.url, OWNER, self.tables) as load:
            loaded = ingest(load, file, schema, strict=strict)
            self.kept.add(loaded.source.table)
        return loaded

    def stored_tables(self) -> set[str]:
        vault = parse_url(self.url)
        with connected(vault, autocommit=True) as connection:
            return {name for (name,) in query(connection, vault.dialect.tables)}

    def read(self, source: VaultTable, columns: Sequence[str]) -> pa.Table:
        batches = open_reader(self.url, source).batches(columns)
        return pa.Table.from_batches([batch.unwrap() for batch in batches])


def numeric(
    name: str, lower: float = -1e9, upper: float = 1e9, missing: tuple[str, ...] = ()
) -> Column:
    return Column(name, ColumnKind.NUMERIC, lower, upper, missing=missing)


def integer(
    name: str, lower: float = -100, upper: float = 100, missing: tuple[str, ...] = ()
) -> Column:
    return Column(name, ColumnKind.INTEGER, float(lower), float(upper), missing=missing)


def boolean(name: str, missing: tuple[str, ...] = ()) -> Column:
    return Column(name, ColumnKind.BOOLEAN, 0.0, 1.0, missing=missing)


def categorical(name: str, *levels: str, missing: tuple[str, ...] = ()) -> Column:
    return Column(name, ColumnKind.CATEGORICAL, 0.0, len(levels) - 1.0, levels, missing)


def schema(*columns: Column, unit: Unit | None = None) -> Schema:
    return Schema(columns, unit or Unit())


def csv_file(folder: Path, text: str, name: str = "rows.csv") -> Path:
    file = folder / name
    file.write_bytes(text.encode())
    return file
