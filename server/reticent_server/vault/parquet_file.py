# SPDX-License-Identifier: Apache-2.0
"""Parquet files block by block, in the order of their row groups."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock, FileColumn, find_columns, rows_per_block

BLOCK_BYTES = 64 << 20
"""Of a block's cells as the footer says their size: twice what a block of rows_per_block numbers
takes, and longer texts come in shorter blocks.
"""

CELL_BYTES = 8
"""What a cell takes in memory at least, however few bytes of the file tell a run of equal ones."""


def parquet_blocks(
    path: Path,
    wanted: Sequence[str],
    reading: Reading = UNSAID,  # noqa: ARG001
    most: int | None = None,
) -> Iterator[FileBlock]:
    """The wanted columns with the file's types. most: rows of a block. Raises CuratorError."""
    failed = False
    try:
        with pq.ParquetFile(path) as file:
            find_columns(file.schema_arrow.names, wanted, path.name)
            yield from _blocks(file, wanted, most)
    except FileNotFoundError:
        raise CuratorError(f"{path} cannot be opened: no such file.") from None
    except MemoryError:  # Arrow's, too: no fault of the file's form
        raise
    except (pa.ArrowException, OSError):  # their texts may quote the file's bytes
        failed = True
    if failed:
        raise CuratorError(f"{path.name} cannot be read as Parquet.")


def parquet_columns(path: Path, reading: Reading) -> list[FileColumn]:  # noqa: ARG001
    """The column names and types of a Parquet file. Raises CuratorError."""
    try:
        return [FileColumn(field.name) for field in pq.read_schema(path)]
    except (pa.ArrowException, OSError):
        raise CuratorError(f"{path.name} cannot be read as Parquet.") from None


def unpacked_bytes(path: Path) -> int:
    """What the cells of a Parquet file take at least in memory, by its footer alone. Raises
    CuratorError.
    """
    try:
        footer = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        raise CuratorError(f"{path.name} cannot be read as Parquet.") from None
    cells: int = footer.num_rows * footer.num_columns
    return max(CELL_BYTES * cells, _held(footer))


def _held(footer: pq.FileMetaData) -> int:
    """Bytes of all columns before they were packed, as the footer says them."""
    groups = range(footer.num_row_groups)
    return int(sum(footer.row_group(i).total_byte_size for i in groups))


def _rows_at_once(file: pq.ParquetFile, width: int) -> int:
    """Rows of a block, by the footer: fewer where they are long."""
    footer = file.metadata
    fitting = BLOCK_BYTES * max(1, int(footer.num_rows)) // max(1, _held(footer))
    return max(1, min(rows_per_block(width), fitting))


def _blocks(file: pq.ParquetFile, wanted: Sequence[str], most: int | None) -> Iterator[FileBlock]:
    total = max(1, file.metadata.num_rows)
    size = most or _rows_at_once(file, len(wanted))
    start = 0
    for batch in file.iter_batches(batch_size=size, columns=list(wanted)):
        if batch.num_rows:
            columns = {name: batch.column(name) for name in wanted}
            done = (start + batch.num_rows) / total
            yield FileBlock(start, batch.num_rows, columns, done)
            start += batch.num_rows
