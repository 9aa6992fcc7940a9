# SPDX-License-Identifier: Apache-2.0
"""A cold read of ten columns into the engine's cache: from the vault, and from registered sources.

Each source is read REPEATS times by a new cache; the best counts, so files are in the page cache.
BENCH_COLD_ROWS (1e6): the table's rows. PostgreSQL where its binaries are installed.
"""

import json
import os
import platform
import tempfile
import time
from pathlib import Path

import pyarrow.dataset as pads
import pyarrow.parquet as pq

from benchmarks.tables import names, schema, write_table
from reticent_server.engine.blocks import Table
from reticent_server.engine.cache import ColumnCache
from reticent_server.vault.adbc import connected, create_vault, execute, parse_url
from reticent_server.vault.parquet_folder import folder_at
from reticent_server.vault.parquet_source import ParquetReader, pin_files
from reticent_server.vault.readers import open_reader
from reticent_server.vault.registered import RegisteredReader
from reticent_server.vault.registering import register_table
from reticent_server.vault.sql_source import sql_pieces
from support.databases import postgresql
from support.databases.vaults import Vault

ROWS = int(float(os.environ.get("BENCH_COLD_ROWS", "1e6")))
P, REPEATS = 9, 3
COLUMNS = (*names(P), "y")


def cold_seconds(found):
    """Best seconds until all columns are in an empty cache."""
    best = float("inf")
    for _ in range(REPEATS):
        table = Table(found, "v", schema(P), COLUMNS)
        blocks = table.blocks(ColumnCache(4 << 30), 1 << 15)
        start = time.perf_counter()
        next(blocks)
        best = min(best, time.perf_counter() - start)
        blocks.close()
    return best


def loaded(url, file):
    """The reader of the file's rows in a vault."""
    create_vault(url)
    return open_reader(url, Vault(url).load(file, schema(P)).source)


def external(url, place):
    """The reader of the same rows in another database's table."""
    target = parse_url(url)
    if target.file is not None:
        target.file.touch()
    with connected(target, autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.adbc_ingest("rows", pads.dataset(place).to_table(), mode="create")
        if target.file is None:
            execute(connection, "ALTER TABLE rows ADD COLUMN id BIGSERIAL PRIMARY KEY")
    source = register_table(lambda _: "here", url, "rows", schema(P)).source
    return RegisteredReader(schema(P), sql_pieces(url, source))


def readers(folder):
    """(name, reader) of every source."""
    place = write_table(folder / "rows", ROWS, P)
    whole = folder / "whole.parquet"
    pq.write_table(pads.dataset(place).to_table(), whole)
    yield "parquet", ParquetReader(schema(P), pin_files(folder_at(place), COLUMNS))
    yield "sqlite_vault", loaded(f"sqlite:///{folder / 'vault.db'}", whole)
    yield "sqlite_registered", external(f"sqlite:///{folder / 'external.db'}", place)
    if postgresql.binaries() is not None:
        yield "postgresql_vault", loaded(postgresql.new_database(), whole)
        yield "postgresql_registered", external(postgresql.new_database(), place)


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name, reader in readers(Path(temporary)):
            found[f"{name}_seconds"] = cold_seconds(reader)
            print(f"{name:24} {found[f'{name}_seconds']:.3f}", flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps({"benchmark": "sources", "n": ROWS, "machine": machine} | found))


if __name__ == "__main__":
    main()
