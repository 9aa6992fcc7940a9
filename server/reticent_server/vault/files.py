# SPDX-License-Identifier: Apache-2.0
"""Opens a private file by what it begins with: Parquet has a mark, everything else is read as CSV."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path

from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock
from reticent_server.vault.csv_file import csv_blocks
from reticent_server.vault.parquet_file import parquet_blocks

PARQUET_MARK = b"PAR1"
"""The first four bytes of a Parquet file (its format's specification)."""


class FileFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"


_READERS = {FileFormat.CSV: csv_blocks, FileFormat.PARQUET: parquet_blocks}


def file_format(path: Path) -> FileFormat:
    """The format of a file by its first bytes; a name in .parquet without them is a broken one. CuratorError."""
    try:
        with path.open("rb") as file:
            begins = file.read(len(PARQUET_MARK))
    except OSError as error:
        raise CuratorError(f"{path} cannot be opened: {error.strerror}.") from None
    parquet = begins == PARQUET_MARK or path.suffix.lower() == ".parquet"
    return FileFormat.PARQUET if parquet else FileFormat.CSV


def read_blocks(
    path: Path,
    wanted: Sequence[str],
    as_format: FileFormat | None = None,
    most: int | None = None,
) -> Iterator[FileBlock]:
    """The wanted columns of a file, in its order; as_format: None for what it begins with; most: rows of a block,
    None for as many as memory is meant for. CuratorError."""
    return _READERS[as_format or file_format(path)](path, wanted, most)
