# SPDX-License-Identifier: Apache-2.0
"""Parquet files block by block, in the order of their row groups."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock, find_columns, rows_per_block


def parquet_blocks(path: Path, wanted: Sequence[str]) -> Iterator[FileBlock]:
    """The wanted columns with the file's types. Raises CuratorError."""
    failed = False
    try:
        with pq.ParquetFile(path) as file:
            find_columns(file.schema_arrow.names, wanted, path.name)
            yield from _blocks(file, wanted)
    except FileNotFoundError:
        raise CuratorError(f"{path} cannot be opened: no such file.") from None
    except (pa.ArrowException, OSError):  # their texts may quote the file's bytes
        failed = True
    if failed:
        raise CuratorError(f"{path.name} cannot be read as Parquet.")


def parquet_schema(path: Path) -> pa.Schema:
    """The column names and types of a Parquet file. Raises CuratorError."""
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError):
        raise CuratorError(f"{path.name} cannot be read as Parquet.") from None


def _blocks(file: pq.ParquetFile, wanted: Sequence[str]) -> Iterator[FileBlock]:
    total = max(1, file.metadata.num_rows)
    size = rows_per_block(len(wanted))
    start = 0
    for batch in file.iter_batches(batch_size=size, columns=list(wanted)):
        if batch.num_rows:
            columns = {name: batch.column(name) for name in wanted}
            done = (start + batch.num_rows) / total
            yield FileBlock(start, batch.num_rows, columns, done)
            start += batch.num_rows
