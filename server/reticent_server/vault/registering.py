# SPDX-License-Identifier: Apache-2.0
"""Registers rows that stay where they are: every cell is checked once, as at a load."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import Registered, SqlTable
from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import DRIVER_ERRORS
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.ingest import encode_block, wanted_columns
from reticent_server.vault.object_store import AWS, ObjectStore
from reticent_server.vault.parquet_folder import folder_at
from reticent_server.vault.parquet_source import FileRows, pin_files
from reticent_server.vault.problems import Problems
from reticent_server.vault.sql_probe import probe
from reticent_server.vault.sql_source import read_table, source_url
from reticent_server.vault.units import UnitCounter

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Registration:
    """A checked source. clipped: by column, how many values are outside the bounds (curator
    only).
    """

    source: Registered
    clipped: Mapping[str, int]


def register_files(
    address: str | Path,
    schema: Schema,
    store: ObjectStore = AWS,
    *,
    strict: bool = False,
    progress: Progress = lambda _: None,
) -> Registration:
    """Pins the Parquet files of a directory, or at s3://BUCKET/PREFIX of the store. Raises
    CuratorError naming file, row and column.
    """
    folder = folder_at(address, store)
    wanted = wanted_columns(schema)
    source = pin_files(folder, wanted)
    scan = _Scan(schema, source.n, strict, progress)
    for file in source.files:
        _read(scan, FileRows(folder, file.name)(wanted), f"{file.name}: ")
    return Registration(source, scan.clipped)


def register_table(
    keep_url: Callable[[str], str],
    url: str,
    table: str,
    schema: Schema,
    *,
    order: Sequence[str] = (),
    strict: bool = False,
    progress: Progress = lambda _: None,
) -> Registration:
    """Pins a table or view of an external database. Raises CuratorError naming row and column.

    keep_url: puts the URL away and gives the name under which it will be found. order: columns that
    name the rows; none for the table's own key.
    """
    place = source_url(url)
    wanted = wanted_columns(schema)
    probed = probe(place, table, order, wanted, schema)
    scan = _Scan(schema, probed.rows, strict, progress)
    _read(scan, read_table(place, table, probed.order, probed.columns))
    if not scan.rows:
        raise CuratorError("The table has no rows.")
    declared = tuple(c for c in probed.columns if schema.read_from(c.name))
    source = SqlTable(keep_url(url), table, probed.order, scan.rows, declared)
    return Registration(source, scan.clipped)


class _Scan:
    """What has been read so far; problems: what is wrong with it."""

    def __init__(self, schema: Schema, expected: int, strict: bool, progress: Progress) -> None:
        self._schema = schema
        self._expected = max(1, expected)
        self._strict = strict
        self._progress = progress
        self._units = UnitCounter(schema.unit)
        self.problems = Problems()
        self.rows = 0
        self.clipped = Counter({column.name: 0 for column in schema.columns})

    def add(self, batch: pa.RecordBatch, start: int) -> None:
        """Checks a batch, whose first row is the `start`-th of its file or table."""
        cells = {name: batch.column(name) for name in batch.schema.names}
        block = FileBlock(start, batch.num_rows, cells, 0.0)
        encoded = encode_block(self._schema, block, self.problems, strict=self._strict)
        for name, column in (encoded or {}).items():
            self.clipped[name] += column.clipped
        self._units.add(block)
        self.rows += batch.num_rows
        self._progress(min(1.0, self.rows / self._expected))


def _read(scan: _Scan, batches: Iterator[pa.RecordBatch], where: str = "") -> None:
    start = 0
    try:
        for batch in batches:
            if batch.num_rows:
                scan.add(batch, start)
                start += batch.num_rows
        scan.problems.refuse()
    except CuratorError as error:
        raise CuratorError(where + error.detail) from None
    except DRIVER_ERRORS:  # their texts may quote cells
        raise CuratorError(where + "The rows cannot be read.") from None
    if where and not start:
        raise CuratorError(where + "The file has no rows.")
