# SPDX-License-Identifier: Apache-2.0
"""What a reader of private files yields: the same kind of block for CSV and for Parquet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from reticent_server.errors import CuratorError

CELLS_PER_BLOCK = 1 << 19


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


def find_columns(header: Sequence[str], wanted: Sequence[str], file: str) -> list[int]:
    """Positions of the wanted columns. Raises CuratorError for absent and for repeated names."""
    for name in wanted:
        if header.count(name) != 1:
            problem = "has no column" if name not in header else "has more than one column"
            hint = "; is it separated by commas?" if len(header) == 1 else ""
            raise CuratorError(f"{file} {problem} {name!r} in its header{hint}.")
    return [header.index(name) for name in wanted]
