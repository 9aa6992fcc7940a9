# SPDX-License-Identifier: Apache-2.0
"""CSV files block by block, with the line of every row.

Python's csv module reads the rows, because it knows on which line each of them begins; pyarrow's
reader does not once a quoted cell holds a line break. UTF-8, commas, one header line; blank lines
are no rows.
"""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock, find_columns, rows_per_block

Row = tuple[int, list[str]]

BLOCK_BYTES = 16 << 20
"""Of the file, in one block: its texts are in memory several times over while they are checked."""

MOST_BLANK = 10_000
"""Blank lines one after the other: more of them are no table, and each costs as much as a row."""


def csv_blocks(path: Path, wanted: Sequence[str], most: int | None = None) -> Iterator[FileBlock]:
    """The wanted columns as texts. most: rows of a block. Raises CuratorError naming row and line, after the rows
    before."""
    with _opened(path) as (raw, text):
        size = max(1, path.stat().st_size)
        rows = _rows(path, text)
        header = [name.strip() for name in next(rows, (0, []))[1]]
        positions = find_columns(header, wanted, path.name)
        start = 0
        same = _same_width(rows, len(header))
        for chunk in _chunks(same, most or rows_per_block(len(header)), raw.tell):
            cells = list(zip(*(row for _, row in chunk), strict=True))
            columns = {
                name: pa.array(cells[at], pa.string())
                for name, at in zip(wanted, positions, strict=True)
            }
            lines = [line for line, _ in chunk]
            yield FileBlock(start, len(chunk), columns, raw.tell() / size, lines)
            start += len(chunk)


def csv_header(path: Path) -> list[str]:
    """The column names of a CSV file. Raises CuratorError."""
    with _opened(path) as (_, text):
        return [name.strip() for name in next(_rows(path, text), (0, []))[1]]


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, io.TextIOWrapper]]:
    try:
        raw = path.open("rb")
    except OSError as error:
        raise CuratorError(f"{path} cannot be opened: {error.strerror}.") from None
    with raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as text:
        yield raw, text


def _rows(path: Path, text: io.TextIOWrapper) -> Iterator[Row]:
    """Every row that is not blank, with the line on which it begins."""
    reader = csv.reader(text, strict=True, skipinitialspace=True)
    line, blank = 1, 0
    try:
        for row in reader:
            blank = 0 if row else blank + 1
            if row:
                yield line, row
            elif blank > MOST_BLANK:
                raise CuratorError(f"{path.name}, line {line}: too many blank lines.")
            line = reader.line_num + 1
    except csv.Error as error:
        raise CuratorError(f"{path.name}, line {line}: {error}.") from None
    except UnicodeDecodeError:
        raise CuratorError(f"{path.name}, line {_bad_line(path)}: not UTF-8 text.") from None


def _bad_line(path: Path) -> int:
    """The first line that is not UTF-8 (the decoder only knows its buffer)."""
    with path.open("rb") as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return 0


def _same_width(rows: Iterator[Row], width: int) -> Iterator[Row]:
    for number, (line, row) in enumerate(rows, start=1):
        if len(row) != width:
            raise CuratorError(
                f"Row {number} (line {line}) must have {width} cells, like the header, "
                f"but has {len(row)}."
            )
        yield line, row


def _chunks(rows: Iterator[Row], size: int, position: Callable[[], int]) -> Iterator[list[Row]]:
    """Lists of up to `size` rows and about BLOCK_BYTES of the file; an error in reading comes after the rows that
    precede it. position: how far the file is read."""
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
