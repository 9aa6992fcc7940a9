# SPDX-License-Identifier: Apache-2.0
"""Rows that stay where they are: read by reference, checked cell by cell at every reading.

What was checked when the rows were registered may have changed since, and a reply must not tell. So
a reader yields exactly as many rows as were pinned: rows in excess are left out, and rows that are
gone are rows of bad cells. A bad cell is marked, and the record contributes nothing. Each row is
read by itself, whatever the others hold, because the sensitivity of every sum rests on that. What
can fail is the source as a whole: a file or a server that is not there.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from reticent_server.domain.private import Private
from reticent_server.domain.schema import Column, Schema
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.vault.adbc import BATCH_ROWS, DRIVER_ERRORS
from reticent_server.vault.cells import check

UNREADABLE = "The data set cannot be read at the moment."
MASK_SUFFIX, BAD_SUFFIX = ":missing", ":bad"

ReadRaw = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class SourcePart:
    """A part of the rows with a pinned number of them; `read` yields cells under declared names."""

    rows: int
    read: ReadRaw


class RegisteredReader:
    """Reads the pieces in their order (vault.ports.MarkingReader)."""

    marks_bad_cells = True

    def __init__(self, schema: Schema, pieces: Sequence[SourcePart]) -> None:
        self._columns = {column.name: column for column in schema.columns}
        self._pieces = tuple(pieces)

    @property
    def n(self) -> int:
        """The number of rows that were registered, over all pieces."""
        return sum(piece.rows for piece in self._pieces)

    def batches(self, columns: Sequence[str]) -> Iterator[Private[Any]]:
        """Private record batches with exactly n rows in all; for no columns, rows without columns.

        Raises KeyError for a column that is not declared, Unavailable (a constant text) when the
        source cannot be read.
        """
        return self._read([self._columns[name] for name in dict.fromkeys(columns)])

    def _read(self, columns: Sequence[Column]) -> Iterator[Private[Any]]:
        failed = False
        try:
            for piece in self._pieces:
                for batch in _exactly(piece, columns):
                    yield Private(batch)
        except (*DRIVER_ERRORS, CuratorError):
            failed = True
        if failed:  # outside the handler: no driver text is kept as context
            raise Unavailable(UNREADABLE)


def _exactly(piece: SourcePart, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    left = piece.rows
    if columns:
        with closing(_generator(piece.read(list(dict.fromkeys(c.source for c in columns))))) as raw:
            for batch in raw:
                kept = batch.slice(0, left)
                left -= kept.num_rows
                yield _checked(kept, columns)
                if not left:
                    return
    while left:
        rows = min(left, BATCH_ROWS)
        left -= rows
        yield _absent(rows, columns)


def _generator(batches: Iterator[pa.RecordBatch]) -> Any:
    yield from batches


def _checked(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    fields: dict[str, pa.Array] = {}
    for column in columns:
        checked = check(column, batch.column(column.source))
        _add(fields, column, checked.values, checked.missing, checked.bad)
    return pa.RecordBatch.from_pydict(fields)


def _absent(rows: int, columns: Sequence[Column]) -> pa.RecordBatch:
    """Rows of bad cells; without columns there is nothing that could be bad."""
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    fields: dict[str, pa.Array] = {}
    for column in columns:
        value = float(np.clip(0.0, column.lower, column.upper))
        none, every = np.zeros(rows, np.bool_), np.ones(rows, np.bool_)
        _add(fields, column, np.full(rows, value), none, every)
    return pa.RecordBatch.from_pydict(fields)


def _add(fields: dict[str, pa.Array], column: Column, values: Any, missing: Any, bad: Any) -> None:
    fields[column.name] = pa.array(values)
    if column.may_be_missing:
        fields[column.name + MASK_SUFFIX] = pa.array(missing)
    fields[column.name + BAD_SUFFIX] = pa.array(bad.view(np.uint8))  # as it is, not bit by bit
