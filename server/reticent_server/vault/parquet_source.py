# SPDX-License-Identifier: Apache-2.0
"""A folder of Parquet files, read where it is, file by file in the order of their names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from reticent_server.domain.schema import Schema
from reticent_server.domain.source import ParquetFile, ParquetFiles
from reticent_server.errors import CuratorError, SourceAway, Unavailable
from reticent_server.vault.adbc import BATCH_ROWS, DRIVER_ERRORS
from reticent_server.vault.blocks import find_columns
from reticent_server.vault.object_store import AWS, ObjectStore
from reticent_server.vault.parquet_folder import ParquetFolder, folder_at
from reticent_server.vault.ports import Reader
from reticent_server.vault.registered import UNREADABLE, RegisteredReader, SourcePart

PARTITION_ROWS = 1 << 20
"""Of the largest parts: 90 MB of 11 columns, so that a part's fixed work is nothing beside its
rows."""

PARTITIONS = 64
"""How many parts a smaller table has, about: so that any number of workers can have equal
shares."""

LEAST_PARTITION_ROWS = 1 << 16
"""Of a part: below it opening a file takes longer than reading the rows."""

AHEAD_ROWS = 1 << 17
"""Rows of the row groups that are fetched at once: 11 columns take 12 MB, which is a few requests'
round trips at the speed of a network; a larger row group is fetched whole."""


def pin_files(folder: ParquetFolder, wanted: Sequence[str]) -> ParquetFiles:
    """The files *.parquet of a folder with their numbers of rows. Raises CuratorError."""
    files = tuple(_pin(folder, name, wanted) for name in folder.names())
    if not files:
        raise CuratorError(f"{folder.address} has no files that end in .parquet.")
    return ParquetFiles(folder.address, files)


def _pin(folder: ParquetFolder, name: str, wanted: Sequence[str]) -> ParquetFile:
    try:
        with folder.open(name) as file:
            find_columns(file.schema_arrow.names, wanted, name)
            return ParquetFile(name, file.metadata.num_rows)
    except DRIVER_ERRORS:  # their texts may quote the file's bytes
        raise CuratorError(f"{name} cannot be read as Parquet.") from None


def probe_files(source: ParquetFiles, store: ObjectStore = AWS) -> None:
    """Looks for the pinned files, and opens the first one; reads no row. Raises SourceAway.

    The objects of a service are not listed, since a role may be allowed to read and not to list.
    """
    cause = "no_such_file"
    try:
        folder = folder_at(source.directory, store)
        names = {file.name for file in source.files}
        if folder.reads_ahead or names <= set(folder.names()):
            cause = "not_readable"
            with folder.open(source.files[0].name):
                return
    except (*DRIVER_ERRORS, CuratorError):
        pass
    raise SourceAway(cause)  # outside the handler: no text of the library is kept as context


@dataclass(frozen=True, slots=True)
class FileRows:
    """The cells of a file's row groups (None: of all); it pickles, so that other processes can
    read."""

    folder: ParquetFolder
    name: str
    row_groups: tuple[int, ...] | None = None

    def __call__(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Batches in bounded memory, whatever the size of a row group on disk; from a service, a
        row group of the columns is in memory."""
        with self.folder.open(self.name) as file:
            groups = range(file.num_row_groups) if self.row_groups is None else self.row_groups
            runs = _runs(file, groups) if self.folder.reads_ahead else [list(groups)]
            for run in runs:
                yield from file.iter_batches(BATCH_ROWS, row_groups=run, columns=list(columns))


def _runs(file: Any, groups: Sequence[int]) -> Iterator[list[int]]:
    """Consecutive row groups, each run with about AHEAD_ROWS rows."""
    run: list[int] = []
    held = 0
    for group in groups:
        run.append(group)
        held += file.metadata.row_group(group).num_rows
        if held >= AHEAD_ROWS:
            yield run
            run, held = [], 0
    if run:
        yield run


class ParquetReader(RegisteredReader):
    """Reads a folder's files, one after the other, or in partitions (ports.PartitionedReader)."""

    def __init__(self, schema: Schema, source: ParquetFiles, store: ObjectStore = AWS) -> None:
        self._folder = folder_at(source.directory, store)
        self._files = source.files
        pieces = [SourcePart(f.rows, FileRows(self._folder, f.name)) for f in source.files]
        super().__init__(schema, pieces)
        self._schema = schema

    def partitions(self) -> list[tuple[int, Reader]]:
        """Readers of consecutive rows with the positions of their first ones; n rows in all.

        Each is of some row groups of one file, and has its pinned share of the rows. Raises
        Unavailable where a file cannot be read.
        """
        parts: list[tuple[int, Reader]] = []
        first = 0
        rows = min(PARTITION_ROWS, max(LEAST_PARTITION_ROWS, self.n // PARTITIONS))
        for file in self._files:
            for piece in _split(self._folder, file, rows):
                parts.append((first, RegisteredReader(self._schema, [piece])))
                first += piece.rows
        return parts


def _split(folder: ParquetFolder, file: ParquetFile, rows: int) -> list[SourcePart]:
    """Pieces of about `rows` rows; the last one has what is left of the pinned number."""
    pieces: list[SourcePart] = []
    left, groups, held = file.rows, [], 0
    for group, size in enumerate(_group_rows(folder, file.name)):
        groups.append(group)
        held += size
        if rows <= held < left:
            pieces.append(SourcePart(held, FileRows(folder, file.name, tuple(groups))))
            left, groups, held = left - held, [], 0
    return [*pieces, SourcePart(left, FileRows(folder, file.name, tuple(groups)))]


def _group_rows(folder: ParquetFolder, name: str) -> list[int]:
    failed = False
    try:
        with folder.open(name) as file:
            metadata = file.metadata
            return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    except DRIVER_ERRORS:
        failed = True
    if failed:  # outside the handler: no text of the library is kept as context
        raise Unavailable(UNREADABLE)
    return []
