# SPDX-License-Identifier: Apache-2.0
"""Text files block by block, with the line of every row.

Python's csv module reads the rows, because it knows on which line each of them begins; pyarrow's
reader does not once a quoted cell holds a line break. Blank lines are no rows, and neither are rows
of empty cells alone at the end, as spreadsheets leave them.
"""

import csv
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent_server.domain.reading import ENCODINGS, QUOTES, SEPARATORS, Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import (
    FileBlock,
    FileColumn,
    FileFault,
    find_columns,
    rows_per_block,
)
from reticent_server.vault.headers import column_names

Row = tuple[int, list[str]]

BLOCK_BYTES = 16 << 20
"""Of the file, in one block: its texts are in memory several times over while they are checked."""

MOST_BLANK = 10_000
"""Blank lines one after the other: more of them are no table, and each costs as much as a row."""

_NAMED = 5
"""Rows of another width that are named."""


def csv_blocks(
    path: Path, wanted: Sequence[str], reading: Reading, most: int | None = None
) -> Iterator[FileBlock]:
    """The wanted columns as texts. most: rows of a block. Raises CuratorError naming row and line,
    after the rows before.
    """
    with _opened(path, reading) as (raw, text):
        size = max(1, path.stat().st_size)
        names, rows = headed(_rows(path, text, reading), reading)
        positions = find_columns(names, wanted, path.name)
        start = 0
        rows = without_notes(rows, reading.skip_last or 0)
        same = _same_width(_without_end(rows), len(names))
        for chunk in _chunks(same, most or rows_per_block(len(names)), raw.tell):
            cells = list(zip(*(row for _, row in chunk), strict=True))
            columns = {
                name: pa.array(cells[at], pa.string())
                for name, at in zip(wanted, positions, strict=True)
            }
            lines = [line for line, _ in chunk]
            yield FileBlock(start, len(chunk), columns, raw.tell() / size, lines)
            start += len(chunk)


def csv_columns(path: Path, reading: Reading) -> list[FileColumn]:
    """The columns of a text file. Raises CuratorError."""
    with _opened(path, reading) as (_, text):
        return [FileColumn(name) for name in headed(_rows(path, text, reading), reading)[0]]


def headed(rows: Iterator[Row], reading: Reading) -> tuple[list[str], Iterator[Row]]:
    """(the columns' names, the rows below them). A header of line 0 is none."""
    header = 1 if reading.header is None else reading.header
    line, first = next(((at, row) for at, row in rows if at >= header), (0, []))
    if header and reading.separator == "blanks":
        return _with_row_names(first, rows)
    if header:
        return column_names(first), rows
    return column_names([""] * len(first)), _with_first((line, first), rows) if first else rows


def _with_row_names(first: list[str], rows: Iterator[Row]) -> tuple[list[str], Iterator[Row]]:
    """R writes no name above its row names, so that the header has a cell fewer than all rows."""
    second = next(rows, None)
    if second is None:
        return column_names(first), rows
    unnamed = [""] if len(second[1]) == len(first) + 1 else []
    return column_names([*unnamed, *first]), _with_first(second, rows)


def _with_first(first: Row, rows: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rows


@contextmanager
def _opened(path: Path, reading: Reading) -> Iterator[tuple[Any, io.TextIOWrapper]]:
    try:
        raw = path.open("rb")
    except OSError as error:
        raise CuratorError(f"{path} cannot be opened: {error.strerror}.") from None
    codec = ENCODINGS[reading.encoding or "utf-8"]
    with raw, io.TextIOWrapper(raw, codec, newline="") as text:
        yield raw, text


def dialect(reading: Reading) -> dict[str, Any]:
    """As the csv module's reader takes it."""
    return {
        "delimiter": SEPARATORS[reading.separator or "comma"],
        "quotechar": QUOTES[reading.quote or "double"],
        "skipinitialspace": True,
    }


def table_lines(text: Iterable[str], reading: Reading) -> Iterable[str]:
    """The lines as the csv module splits them: blanks separate cells, and end none."""
    if reading.separator != "blanks":
        return text
    return (line.replace("\t", " ").rstrip(" \r\n") + "\n" for line in text)


def _rows(path: Path, text: io.TextIOWrapper, reading: Reading) -> Iterator[Row]:
    """Every row that is not blank, with the line on which it begins."""
    reader = csv.reader(table_lines(text, reading), strict=True, **dialect(reading))
    line, blank = 1, 0
    try:
        for row in reader:
            blank = 0 if row else blank + 1
            if row:
                yield line, row
            elif blank > MOST_BLANK:
                raise FileFault(f"{path.name}, line {line}: too many blank lines.")
            line = reader.line_num + 1
    except csv.Error as error:
        raise FileFault(f"{path.name}, line {line}: {error}.") from None
    except UnicodeError:
        encoding = reading.encoding or "utf-8"
        raise FileFault(
            f"{path.name}, line {_bad_line(path, encoding) or line}: not {encoding.upper()} text."
        ) from None


def _bad_line(path: Path, encoding: str) -> int:
    """The first line that cannot be decoded (the decoder only knows its buffer); 0 where lines
    cannot be distinguished.
    """
    if encoding == "utf-16":
        return 0
    with path.open("rb") as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode(ENCODINGS[encoding])
            except UnicodeError:
                return number
    return 0


def _without_end(rows: Iterable[Row]) -> Iterator[Row]:
    """Without the rows at the end whose cells are all empty, of which a spreadsheet leaves some."""
    held: list[Row] = []
    for each in rows:
        if len(each[1]) > 1 and len(held) < MOST_BLANK and not any(each[1]):
            held.append(each)
            continue
        yield from held
        held.clear()
        yield each


def without_notes(rows: Iterator[Row], notes: int) -> Iterator[Row]:
    """Without so many rows at the end that hold a cell, and the blank ones among and below them."""
    if not notes:
        yield from rows
        return
    held: deque[Row] = deque()
    filled = 0
    for row in rows:
        held.append(row)
        filled += any(row[1])
        while filled > notes:
            first = held.popleft()
            filled -= any(first[1])
            yield first


def _same_width(rows: Iterator[Row], width: int) -> Iterator[Row]:
    """Rows until one has another number of cells; all of those are then named."""
    wrong: list[str] = []
    count = last = 0
    for number, (line, row) in enumerate(rows, start=1):
        last = last + 1 if len(row) == 1 < width else 0
        if len(row) == width and not count:
            yield line, row
        elif len(row) != width:
            count += 1
            if len(wrong) < _NAMED:
                wrong.append(
                    f"Row {number} (line {line}) must have {width} cells, like the header, "
                    f"but has {len(row)}."
                )
    if count > len(wrong):
        wrong.append(f"So it is in {count - len(wrong)} more rows.")
    if last and last == count:
        wrong.append(f"If the last ones are notes and no records: `skip_last: {last}`.")
    if wrong:
        raise FileFault(" ".join(wrong))


def _chunks(rows: Iterator[Row], size: int, position: Callable[[], int]) -> Iterator[list[Row]]:
    """Lists of up to `size` rows and about BLOCK_BYTES of the file; an error in reading comes after
    the rows that precede it. position: how far the file is read.
    """
    chunk: list[Row] = []
    began = position()
    failure: CuratorError | None = None
    try:
        for row in rows:
            chunk.append(row)
            if len(chunk) == size or position() - began >= BLOCK_BYTES:
                yield chunk
                chunk, began = [], position()
    except CuratorError as error:
        failure = error
    if chunk:
        yield chunk
    if failure is not None:
        raise failure
