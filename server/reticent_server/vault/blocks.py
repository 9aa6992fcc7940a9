# SPDX-License-Identifier: Apache-2.0
"""What a reader of private files yields: the same kind of block for CSV and for Parquet."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from reticent_server.domain.schema import MAX_COLUMNS, MAX_TEXT
from reticent_server.errors import CuratorError

CELLS_PER_BLOCK = 1 << 19
_NAMED = 12  # columns of a file, in one message


@dataclass(frozen=True, slots=True)
class FileColumn:
    """A column of a file. label: what the file calls it besides, and levels: (label, codes) of its
    values, both of the file's own dictionary.
    """

    name: str
    label: str = ""
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class FileBlock:
    """Consecutive data rows of a file.

    start: 0-based number of the first row. columns: the wanted columns. lines: the line of the file
    where each row begins (CSV only). done: the fraction of the file read so far.
    """

    start: int
    rows: int
    columns: Mapping[str, pa.Array]
    done: float
    lines: Sequence[int] = ()

    def place(self, index: int) -> str:
        """Where the block's row `index` is, in words: rows count from 1, without the header."""
        row = f"row {self.start + index + 1}"
        return f"{row} (line {self.lines[index]})" if self.lines else row


def rows_per_block(width: int) -> int:
    """Rows that keep a block of `width` columns within bounded memory."""
    return max(64, min(1 << 16, CELLS_PER_BLOCK // max(1, width)))


class FileFault(CuratorError):
    """Something is wrong with a file as such, after the blocks that were read."""


def find_columns(header: Sequence[str], wanted: Sequence[str], file: str) -> list[int]:
    """Positions of the wanted columns. Raises CuratorError for absent and for repeated names, all
    at once.
    """
    times = Counter(header)
    absent = [repr(name) for name in wanted if not times[name]]
    repeated = [repr(name) for name in wanted if times[name] > 1]
    if absent:
        names = ", ".join(repr(name[:MAX_TEXT]) for name in header[:_NAMED])
        more = f" and {len(header) - _NAMED} more" if header[_NAMED:] else ""
        raise CuratorError(
            f"{file} has no column {', '.join(absent)} in its header, which was read as: "
            f"{names}{more}."
        )
    if repeated:
        raise CuratorError(f"{file} has more than one column {', '.join(repeated)} in its header.")
    places = {name: place for place, name in enumerate(header)}
    return [places[name] for name in wanted]


def draftable(header: Sequence[str], file: str) -> Sequence[str]:
    """The names of a file's columns, for which a schema is to be drafted. Raises CuratorError where
    there are more columns than a schema declares, or names that are longer than it takes.
    """
    if len(header) > MAX_COLUMNS:
        raise CuratorError(
            f"{file} has {len(header)} columns, and a schema declares at most {MAX_COLUMNS}: "
            "leave out those "
            "that analysts do not need."
        )
    if any(len(name) > MAX_TEXT for name in header):
        raise CuratorError(f"{file} has a column whose name is longer than {MAX_TEXT} characters.")
    return header
