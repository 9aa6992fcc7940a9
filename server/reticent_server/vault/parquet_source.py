# SPDX-License-Identifier: Apache-2.0
"""A directory of Parquet files, read where it is, file by file in the order of their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import ParquetFile, ParquetFiles
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.vault.adbc import BATCH_ROWS, DRIVER_ERRORS
from reticent_server.vault.blocks import find_columns
from reticent_server.vault.ports import Reader
from reticent_server.vault.registered import UNREADABLE, RegisteredReader, SourcePart

PARTITION_ROWS = 1 << 20
_BUFFER_BYTES = 1 << 20


def pin_files(directory: Path, wanted: Sequence[str]) -> ParquetFiles:
    """The files *.parquet of a directory with their numbers of rows. Raises CuratorError."""
    if not directory.is_dir():
        raise CuratorError(f"{directory} is not a directory.")
    files = tuple(_pin(path, wanted) for path in sorted(directory.glob("*.parquet")))
    if not files:
        raise CuratorError(f"{directory} has no files that end in .parquet.")
    return ParquetFiles(str(directory.resolve()), files)


def _pin(path: Path, wanted: Sequence[str]) -> ParquetFile:
    try:
        with pq.ParquetFile(path) as file:
            find_columns(file.schema_arrow.names, wanted, path.name)
            return ParquetFile(path.name, file.metadata.num_rows)
    except (pa.ArrowException, OSError):  # their texts may quote the file's bytes
        raise CuratorError(f"{path.name} cannot be read as Parquet.") from None


@dataclass(frozen=True, slots=True)
class FileRows:
    """The cells of a file's row groups (None: of all); it pickles, so that other processes can read."""

    path: str
    row_groups: tuple[int, ...] | None = None

    def __call__(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches in bounded memory, whatever the size of a row group."""
        with pq.ParquetFile(self.path, buffer_size=_BUFFER_BYTES) as file:
            groups = None if self.row_groups is None else list(self.row_groups)
            yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=list(columns))


class ParquetReader(RegisteredReader):
    """Reads a directory's files, one after the other, or in partitions (ports.PartitionedReader)."""

    def __init__(self, schema: Schema, source: ParquetFiles) -> None:
        self._directory = Path(source.directory)
        self._files = source.files
        pieces = [SourcePart(f.rows, FileRows(str(self._directory / f.name))) for f in source.files]
        super().__init__(schema, pieces)
        self._schema = schema

    def partitions(self) -> list[tuple[int, Reader]]:
        """Readers of consecutive rows with the positions of their first ones; n rows in all.

        Each is of some row groups of one file, and has its pinned share of the rows. Raises
        Unavailable where a file cannot be read.
        """
        parts: list[tuple[int, Reader]] = []
        first = 0
        for file in self._files:
            for piece in _split(self._directory / file.name, file.rows):
                parts.append((first, RegisteredReader(self._schema, [piece])))
                first += piece.rows
        return parts


def _split(path: Path, rows: int) -> list[SourcePart]:
    """Pieces of about PARTITION_ROWS rows; the last one has what is left of the pinned number."""
    pieces: list[SourcePart] = []
    left, groups, held = rows, [], 0
    for group, size in enumerate(_group_rows(path)):
        groups.append(group)
        held += size
        if PARTITION_ROWS <= held < left:
            pieces.append(SourcePart(held, FileRows(str(path), tuple(groups))))
            left, groups, held = left - held, [], 0
    return [*pieces, SourcePart(left, FileRows(str(path), tuple(groups)))]


def _group_rows(path: Path) -> list[int]:
    failed = False
    try:
        with pq.ParquetFile(path) as file:
            metadata = file.metadata
            return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    except DRIVER_ERRORS:
        failed = True
    if failed:  # outside the handler: no text of the library is kept as context
        raise Unavailable(UNREADABLE)
    return []
