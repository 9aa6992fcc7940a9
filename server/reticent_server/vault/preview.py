# SPDX-License-Identifier: Apache-2.0
"""The first rows of a private file, for the eyes of the curator who has brought it, beside the schema's fields.

They are private cells: whatever holds them has a repr without them, and they are kept nowhere.
"""

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from reticent_server.vault.cells import texts_of
from reticent_server.vault.csv_file import csv_header
from reticent_server.vault.files import FileFormat, file_format, read_blocks
from reticent_server.vault.parquet_file import parquet_schema

ROWS = 5
"""Rows of a preview: enough to see what the texts of a column look like, on one screen with its fields."""

LONGEST = 40
"""Characters of a cell that are shown."""


@dataclass(frozen=True, slots=True)
class Preview:
    """cells: of each column of the file, by its name, the first ROWS ones as texts."""

    cells: dict[str, tuple[str, ...]] = field(repr=False)

    def of(self, source: str) -> tuple[str, ...]:
        return self.cells.get(source, ())


def preview(path: Path) -> Preview:
    """Raises CuratorError, without a cell in its text."""
    csv = file_format(path) is FileFormat.CSV
    names = csv_header(path) if csv else [column.name for column in parquet_schema(path)]
    block = next(read_blocks(path, names, most=ROWS), None)
    return Preview({} if block is None else {n: _shown(block.columns[n]) for n in names})


def _shown(cells: pa.Array) -> tuple[str, ...]:
    texts = texts_of(cells[:ROWS])
    known = [] if texts is None else texts.to_pylist()
    return tuple("" if text is None else _cut(text) for text in known)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
