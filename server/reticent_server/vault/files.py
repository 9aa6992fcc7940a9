# SPDX-License-Identifier: Apache-2.0
"""Opens a private file by what it begins with: one interface for text, columnar files,
spreadsheets, and what SAS, Stata, SPSS and DuckDB write.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reticent_server.domain.reading import Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.arrow_file import arrow_blocks, arrow_columns
from reticent_server.vault.blocks import FileBlock, FileColumn
from reticent_server.vault.csv_file import csv_blocks, csv_columns
from reticent_server.vault.duckdb_file import duckdb_blocks, duckdb_columns, duckdb_reading, tables
from reticent_server.vault.labelled_file import labelled_blocks, labelled_columns
from reticent_server.vault.parquet_file import parquet_blocks, parquet_columns
from reticent_server.vault.sheet_file import (
    sheet_blocks,
    sheet_columns,
    sheet_notes,
    sheet_reading,
    sheets,
)
from reticent_server.vault.text_reading import text_reading


class FileFormat(StrEnum):
    """As a schema file names them; CSV is text with any separator."""

    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"
    XLSX = "xlsx"
    SAS = "sas"
    STATA = "stata"
    SPSS = "spss"
    DUCKDB = "duckdb"


Blocks = Callable[[Path, Sequence[str], Reading, int | None], Iterator[FileBlock]]


@dataclass(frozen=True, slots=True)
class FileReader:
    """columns: with a complete reading. blocks: the wanted columns. reading: completes what is
    said. sheets: among which one is read; none where a file is one table. has_texts: whether its
    cells are texts, of numbers in any style. is_foreign: whether a library of a format of somebody
    else's takes the file apart, which is done in a cell whoever loads it. notes: how many of the
    last rows may be no records.
    """

    columns: Callable[[Path, Reading], list[FileColumn]]
    blocks: Blocks
    reading: Callable[[Path, Reading], Reading] = lambda _, said: said
    sheets: Callable[[Path], tuple[str, ...]] = lambda _: ()
    has_texts: bool = False
    is_foreign: bool = False
    notes: Callable[[Path, Reading], int] = lambda *_: 0


_LABELLED = FileReader(labelled_columns, labelled_blocks, is_foreign=True)
READERS = {
    FileFormat.CSV: FileReader(csv_columns, csv_blocks, text_reading, has_texts=True),
    FileFormat.PARQUET: FileReader(parquet_columns, parquet_blocks),
    FileFormat.ARROW: FileReader(arrow_columns, arrow_blocks),
    FileFormat.XLSX: FileReader(
        sheet_columns,
        sheet_blocks,
        sheet_reading,
        sheets,
        has_texts=True,
        is_foreign=True,
        notes=sheet_notes,
    ),
    FileFormat.SAS: _LABELLED,
    FileFormat.STATA: _LABELLED,
    FileFormat.SPSS: _LABELLED,
    FileFormat.DUCKDB: FileReader(
        duckdb_columns, duckdb_blocks, duckdb_reading, tables, is_foreign=True
    ),
}

_MARKS = {
    b"PAR1": FileFormat.PARQUET,
    b"ARROW1": FileFormat.ARROW,
    b"PK\x03\x04": FileFormat.XLSX,
    b"$FL2": FileFormat.SPSS,
    b"$FL3": FileFormat.SPSS,
    b"<stata_dta>": FileFormat.STATA,
    bytes(12) + b"\xc2\xea\x81\x60": FileFormat.SAS,
    b"HEADER RECORD*******LIB": FileFormat.SAS,
}
"""What files begin with (the formats' specifications). Stata's of before version 13 have their
ending alone.
"""

_SUFFIXES = {".parquet": FileFormat.PARQUET, ".dta": FileFormat.STATA}
_DUCKDB, _DUCKDB_AT = b"DUCK", 8
_ENCRYPTED = b"ENCRYPTED"
"""Of SPSS, behind eight bytes, too."""

_LONGEST = 32

_OTHERS = {
    b"\xd0\xcf\x11\xe0": (
        "is an Excel file of before 2007, or one with a password: save it as .xlsx or CSV, "
        "without a password"
    ),
    b"\x1f\x8b": "is packed by gzip: unpack it",
    b"BZh": "is packed by bzip2: unpack it",
    b"\xfd7zXZ": "is packed by xz: unpack it",
    b"7z\xbc\xaf": "is packed by 7-Zip: unpack it",
    b"%PDF": "is a PDF document, which holds no table that can be read: ask for the data as a file",
    b"{\\rtf": "is a text document: save the table as CSV",
    b"RDX": "is an R workspace: write the table with write.csv",
    b"SQLite format 3": (
        "is an SQLite database: register its table with `reticent dataset register`, or write it "
        "as CSV"
    ),
}
"""Files that are brought by mistake, and what to do."""


def file_format(path: Path) -> FileFormat:
    """The format of a file by its first bytes; a name in .parquet without them is a broken one.
    CuratorError.
    """
    try:
        with path.open("rb") as file:
            begins = file.read(_LONGEST)
    except OSError as error:
        raise CuratorError(f"{path} cannot be opened: {error.strerror}.") from None
    if begins[_DUCKDB_AT:].startswith(_ENCRYPTED):
        raise CuratorError(f"{path.name} is an encrypted file of SPSS: save it without a password.")
    for mark, is_it in _OTHERS.items():
        if begins.startswith(mark):
            raise CuratorError(f"{path.name} {is_it}.")
    if begins[_DUCKDB_AT : _DUCKDB_AT + len(_DUCKDB)] == _DUCKDB:
        return FileFormat.DUCKDB
    marked = next((form for mark, form in _MARKS.items() if begins.startswith(mark)), None)
    return marked or _SUFFIXES.get(path.suffix.lower(), FileFormat.CSV)


def reader_of(path: Path, reading: Reading) -> FileReader:
    """The reader of a file's format, which is said or seen. Raises CuratorError."""
    return READERS[FileFormat(reading.format) if reading.format else file_format(path)]


def read_file_as(path: Path, said: Reading) -> Reading:
    """What is said of how a file is read, and for the rest what it looks like; but for the style of
    numbers. Raises CuratorError.
    """
    known = said.over(Reading(format=(said.format or file_format(path).value)))
    return reader_of(path, known).reading(path, known)


def read_blocks(
    path: Path, wanted: Sequence[str], reading: Reading, most: int | None = None
) -> Iterator[FileBlock]:
    """The wanted columns of a file, in its order; most: rows of a block,
    None for as many as memory is meant for. CuratorError."""
    return reader_of(path, reading).blocks(path, wanted, reading, most)


def file_columns(path: Path, reading: Reading) -> list[FileColumn]:
    """The columns of a file. Raises CuratorError."""
    return reader_of(path, reading).columns(path, reading)
