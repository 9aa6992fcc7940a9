# SPDX-License-Identifier: Apache-2.0
"""Where a table's names stand, by its first rows as texts: titles may stand above them, and some
tables have none.
"""

import re
from collections import Counter
from collections.abc import Sequence

_YEARS = range(1800, 2101)
"""Whole numbers that are names of columns rather than cells: tables have a column a year."""

_INDEXES = 2
"""Columns without a name that may stand before all others: row names of R, indexes of pandas."""

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,  ]\d+)*|[.,]\d+)(?:[eE][+-]?\d+)?", re.ASCII)
"""A number in any style; dates of digits are no names either."""

_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}.*", re.ASCII | re.DOTALL)


def column_names(header: Sequence[str]) -> list[str]:
    """The names of a header's cells; an empty one is called column_3 by its place."""
    names = [re.sub(r"\s+", " ", name).strip() for name in header]
    return [name or f"column_{place}" for place, name in enumerate(names, start=1)]


def header_row(rows: Sequence[Sequence[str]]) -> int | None:
    """The position of the row that holds the names; None: the table begins without names.

    rows: the first ones, as texts, of which none is blank. The table has the width that most of
    them have; the first row of that width holds its names, unless a number or a date stands in it
    above others.
    """
    widths = Counter(_width(row) for row in rows)
    if not widths:
        return 0
    usual = max(widths, key=lambda width: (widths[width], width))
    first = next((k for k, row in enumerate(rows) if _is_wide(row, usual)), 0)
    return None if _holds_cells(rows[first], rows[first + 1 :]) else first


def _is_wide(row: Sequence[str], usual: int) -> bool:
    """Whether it may be the header: some rows below may have more cells at their end than the
    header, and the reverse.
    """
    filled = sum(bool(cell) for cell in row)
    unnamed = next((k for k, cell in enumerate(row) if cell), 0)
    is_index = 0 < unnamed <= _INDEXES and filled == len(row) - unnamed
    return _width(row) >= usual and (2 * filled > usual or is_index)


def _width(row: Sequence[str]) -> int:
    """Cells up to the last one that holds something; rows of separators alone have all of them."""
    filled = [k for k, cell in enumerate(row, start=1) if cell]
    return filled[-1] if filled else len(row)


def _holds_cells(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the row is one of cells: above each column of numbers it has a number, and there is
    such a column.
    """
    numeric = []
    for k, cell in enumerate(first):
        cells = [row[k] for row in below if k < len(row) and row[k]]
        if cells and sum(map(_is_value, cells)) > len(cells) / 2:
            numeric.append(cell)
    known = [cell for cell in numeric if cell]
    if not known or not all(map(_is_value, known)):
        return False
    return not all(cell.isdecimal() and int(cell[:9]) in _YEARS for cell in known)


def _is_value(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text) or _DATE.fullmatch(text))
