# SPDX-License-Identifier: Apache-2.0
"""Excel files (.xlsx): one sheet, as texts, from the row of its names on.

Read by calamine (python-calamine), a parser in Rust that expands no entities and takes 32 bytes a
cell of the rectangle that holds a sheet's cells. It reads a whole sheet at once, so that Excel
files are read in a cell (intake.cell) alone, whose limits of memory and time are those of zip
bombs, deep XML and cells far away from the others; what the archive's directory says of its size is
refused before. Cells become texts: dates 2020-01-31, whole numbers without a point, others by the
shortest digits that are the same number; so a sheet is understood as a text file is.
"""

import zipfile
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, time, timedelta
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent_server.domain.reading import Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import (
    FileBlock,
    FileColumn,
    FileFault,
    find_columns,
    rows_per_block,
)
from reticent_server.vault.csv_file import Row, without_notes
from reticent_server.vault.extras import library
from reticent_server.vault.headers import column_names, header_row

MOST_UNPACKED = 1 << 30
"""Bytes of all parts of the archive: a sheet of 10 million cells takes half of it."""

_TITLES = 30
"""Rows among which the row of names is looked for."""

_NOWHERE = -1
"""The first column of a table of one column, in which every row has a cell there alone."""

_TYPES, _WORKBOOK = "[Content_Types].xml", "workbook.xml"
"""Parts of every Excel file; the second may stand anywhere (ECMA-376, part 2)."""


def sheet_reading(path: Path, said: Reading) -> Reading:
    """The sheet that is said, else the largest, and the row of its names. Raises CuratorError."""
    book = _book(path)
    sheet = said.sheet if said.sheet is not None else _largest_sheet(book, path)
    known = said.over(Reading(sheet=sheet))
    if known.header is not None:
        return known
    filled = (row for row in _rows(book, known, path) if any(row[1]))
    rows = list(islice(filled, _TITLES))
    row = header_row([cells for _, cells in rows])
    return known.over(Reading(header=0 if row is None else rows[row][0] if rows else 1))


def sheets(path: Path) -> tuple[str, ...]:
    """The names of an Excel file's sheets. Raises CuratorError."""
    return tuple(str(name) for name in _book(path).sheet_names)


def sheet_notes(path: Path, reading: Reading) -> int:
    """How many rows at the end of a sheet may be notes: below a blank row, each with a cell in the
    first column alone. Raises CuratorError.
    """
    notes, below, left = 0, False, None
    for number, cells in enumerate(_sheet(_book(path), reading.sheet or "", path).iter_rows(), 1):
        first = next((k for k, cell in enumerate(cells) if _text(cell)), None)
        is_alone = first is not None and not any(map(_text, cells[first + 1 :]))
        if number < (reading.header or 1) or (first is None and left is None):
            continue
        if left is None:
            left = _NOWHERE if is_alone or first is None else first
        elif first is None:
            below = True
        elif is_alone and first <= left:
            notes += below
        else:
            notes, below = 0, False
    return notes


def sheet_columns(path: Path, reading: Reading) -> list[FileColumn]:
    """The columns of a sheet. Raises CuratorError."""
    names, _ = _headed(_rows(_book(path), reading, path), reading, path)
    return [FileColumn(name) for name in names]


def sheet_blocks(
    path: Path, wanted: Sequence[str], reading: Reading, most: int | None = None
) -> Iterator[FileBlock]:
    """The wanted columns as texts. Rows are told by their number in the sheet, too. Raises
    CuratorError.
    """
    names, rows = _headed(_rows(_book(path), reading, path), reading, path)
    rows = _without_end(without_notes(rows, reading.skip_last or 0))
    positions = find_columns(names, wanted, path.name)
    start, size = 0, most or rows_per_block(len(names))
    while chunk := list(islice(rows, size)):
        cells = {
            name: pa.array([row[at] for _, row in chunk], pa.string())
            for name, at in zip(wanted, positions, strict=True)
        }
        numbers = [number for number, _ in chunk]
        yield FileBlock(start, len(chunk), cells, 1.0, numbers)
        start += len(chunk)


def _book(path: Path) -> Any:
    """The workbook. Raises CuratorError for what is none, and for one that unpacks to too much."""
    return _opened(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _opened(path: Path, changed: int) -> Any:  # noqa: ARG001 - a file that was written again is another one
    calamine = library("python_calamine", "xlsx", "Excel files")
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
        names = {part.filename.rpartition("/")[2] for part in parts}
    except (zipfile.BadZipFile, OSError, ValueError):
        raise CuratorError(f"{path.name} cannot be read as an Excel file.") from None
    if _WORKBOOK not in names or _TYPES not in names:
        raise CuratorError(f"{path.name} is a zip archive and no Excel file: unpack it.")
    if sum(part.file_size for part in parts) > MOST_UNPACKED:
        raise CuratorError(f"{path.name} holds more than {MOST_UNPACKED >> 20} MB: save it as CSV.")
    return _sure(partial(calamine.CalamineWorkbook.from_path, str(path)), path)


@lru_cache(maxsize=1)
def _sheet(book: Any, name: str, path: Path) -> Any:
    """A sheet, of which the last one is kept: it is read for its header, its names and its rows."""
    return _sure(partial(book.get_sheet_by_name, name), path)


def _sure(step: Callable[[], Any], path: Path) -> Any:
    """What the library gives; its errors, and panics of its parser, become one sentence."""
    try:
        return step()
    except MemoryError:
        raise
    except BaseException as error:  # a panic of Rust's is no Exception; texts may quote cells
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
    raise CuratorError(f"{path.name} cannot be read as an Excel file.")


def _largest_sheet(book: Any, path: Path) -> str:
    """The sheet whose cells take the largest rectangle: others hold notes, or a table of codes."""
    sizes = {}
    for name in book.sheet_names:
        sheet = _sheet(book, name, path)
        sizes[str(name)] = sheet.height * sheet.width
    if not any(sizes.values()):
        raise CuratorError(f"{path.name} has no sheet with cells.")
    return max(sizes, key=sizes.__getitem__)


def _rows(book: Any, reading: Reading, path: Path) -> Iterator[Row]:
    """Rows as texts, with their numbers in the sheet; those of empty cells alone, too."""
    if reading.sheet not in book.sheet_names:
        names = ", ".join(repr(name) for name in book.sheet_names[:_TITLES])
        raise CuratorError(f"{path.name} has no sheet {reading.sheet!r}; it has {names}.")
    sheet = _sheet(book, reading.sheet, path)
    for number, row in enumerate(sheet.iter_rows(), start=1):
        yield number, [_text(cell) for cell in row]


def _headed(rows: Iterator[Row], reading: Reading, path: Path) -> tuple[list[str], Iterator[Row]]:
    """(names, the rows below them)."""
    header = 1 if reading.header is None else reading.header
    first = next(((at, row) for at, row in rows if at >= header and any(row)), None)
    if first is None:
        raise FileFault(f"{path.name} has no rows in the sheet {reading.sheet!r}.")
    if header:
        return column_names(first[1]), rows
    return column_names([""] * len(first[1])), _with_first(first, rows)


def _without_end(rows: Iterator[Row]) -> Iterator[Row]:
    """Without the rows at the end whose cells are all empty. One between others is a record of
    missing cells: how many there are of these is private, so that n does not tell it.
    """
    held: list[int] = []
    for number, row in rows:
        if not any(row):
            held.append(number)
            continue
        yield from ((at, [""] * len(row)) for at in held)
        held.clear()
        yield number, row


def _with_first(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


def _text(cell: object) -> str:
    """A cell as a text; a moment at midnight is a date."""
    match cell:
        case str() | None:
            return (cell or "").strip()
        case bool():
            return str(cell).lower()
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
        case datetime():
            return (cell.date() if cell.time() == time() else cell).isoformat()
        case timedelta():
            return repr(cell.total_seconds())
    return str(cell)
