# SPDX-License-Identifier: Apache-2.0
"""What is understood of a private file: how it is read, what its columns may be, its first rows,
and what must be asked.

What is said is never guessed again. A file that can be read in two ways is not read in either:
decimal signs and the order of day and month are decided by the cells, or asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from reticent_server.domain.reading import PLAIN, STYLES, UNSAID, NumberStyle, Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileColumn, draftable
from reticent_server.vault.cells import texts_of
from reticent_server.vault.column_scan import DAY_FIRST, ColumnScan
from reticent_server.vault.files import (
    file_columns,
    read_blocks,
    read_file_as,
    reader_of,
)

ROWS = 5
"""Rows of a preview: enough to see what the texts of a column look like, on one screen with its
fields.
"""

LONGEST = 40
"""Characters of a cell that are shown."""

SCANNED = 1 << 21
"""Cells that are looked at: some seconds of processor time. A table of 20 columns has 100,000 rows
of them.
"""

_FIRST_ROWS = 1 << 13
"""Rows of the first block: few, so that a small file costs little and a broken one is known
early.
"""

_DECIMAL = (
    "Numbers such as 1,234 stand in the file: say whether the comma is the decimal sign "
    "(`decimal: comma`) or stands between "
    "thousands (`decimal: point`, `thousands: comma`)."
)
_POINT = (
    "Numbers such as 1.234 stand in the file, between semicolons: say whether the point is the "
    "decimal sign (`decimal: point`) or "
    "stands between thousands (`decimal: comma`, `thousands: point`)."
)
_NOTES = (
    "Rows at the end ({} of them, below a blank row) have a cell in the first column alone: say "
    "whether they are notes (`skip_last: {}`) or records (`skip_last: 0`)."
)
_DATES = "Dates of {} can be read with the day or with the month first: say which."
_ANSWER = " Answer it under `file` in the schema."

_COMMA, _COMMA_GROUPS, _POINT_GROUPS = (
    NumberStyle("comma"),
    NumberStyle("point", "comma"),
    NumberStyle("comma", "point"),
)


@dataclass(frozen=True, slots=True)
class ScannedColumn:
    """A column of the file, what its cells may be, and the first of them."""

    file: FileColumn
    scan: ColumnScan = field(repr=False)
    first: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Understood:
    """reading: complete but for what is asked. sheets: of the file, from which one is read. rows:
    that were looked at; whole: whether they are all.
    """

    reading: Reading
    columns: tuple[ScannedColumn, ...]
    rows: int
    whole: bool
    questions: tuple[str, ...]
    sheets: tuple[str, ...]


def understand(path: Path, said: Reading) -> Understood:
    """Looks at the first SCANNED cells. Raises CuratorError."""
    known = read_file_as(path, said)
    columns = file_columns(path, known)
    names = draftable([column.name for column in columns], path.name)
    if not names:
        raise CuratorError(f"{path.name} has no columns.")
    scans = {name: ColumnScan() for name in names}
    first: dict[str, tuple[str, ...]] = {}
    rows, whole = _scanned(path, known, scans, first)
    if not rows:
        raise CuratorError(f"{path.name} has no rows.")
    style, question = number_style(path, known, list(scans.values()))
    reading = known if style is None else _styled(known, style)
    scanned = tuple(
        ScannedColumn(c, scans[c.name], first[c.name])
        for place, c in enumerate(columns, start=1)
        if scans[c.name].has_cells or c.name != f"column_{place}"  # nothing at all
    )
    order, asked = _day_order(scanned, known)
    questions = tuple(each for each in (_notes(path, known), question, asked) if each)
    sheets = reader_of(path, known).sheets(path)
    return Understood(replace(reading, dates=order), scanned, rows, whole, questions, sheets)


def _scanned(
    path: Path, known: Reading, scans: dict[str, ColumnScan], first: dict[str, tuple[str, ...]]
) -> tuple[int, bool]:
    """(rows, whether they are all)."""
    rows, most = 0, max(1, min(_FIRST_ROWS, SCANNED // len(scans)))
    for block in read_blocks(path, list(scans), known, most):
        for name, scan in scans.items():
            scan.add(block.columns[name])
        if not first:
            first |= {name: _shown(block.columns[name]) for name in scans}
        rows += block.rows
        if rows * len(scans) >= SCANNED:
            return rows, False
    return rows, True


def _shown(cells: pa.Array) -> tuple[str, ...]:
    texts = texts_of(cells[:ROWS])
    if pa.types.is_nested(cells.type):  # which cannot be loaded, and has texts of any length
        return (_cut(str(cells.type)),)
    known = [str(cell) for cell in cells[:ROWS]] if texts is None else texts.to_pylist()
    return tuple("" if text is None else _cut(text) for text in known)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"


def _notes(path: Path, known: Reading) -> str:
    """What must be asked of the last rows."""
    notes = reader_of(path, known).notes(path, known) if known.skip_last is None else 0
    return _NOTES.format(notes, notes) if notes else ""


def _styled(known: Reading, style: NumberStyle) -> Reading:
    return replace(known, decimal=style.decimal, thousands=style.thousands)


def number_style(
    path: Path, known: Reading, scans: Sequence[ColumnScan]
) -> tuple[NumberStyle | None, str]:
    """(the style in which most cells are numbers, ""), or (None, what must be asked); (None, "")
    for typed numbers.
    """
    if not reader_of(path, known).has_texts:
        return None, ""
    if known.decimal is not None:
        return known.numbers, ""
    styles = [s for s in STYLES if known.thousands in {None, s.thousands}]
    numeric = [scan for scan in scans if scan.has_cells and scan.styles]
    fits = {style: sum(scan.cells_in(style) for scan in numeric) for style in styles}
    best = [style for style in styles if fits[style] == max(fits.values(), default=0)]
    style = best[0] if best else PLAIN
    if style == _COMMA and _COMMA_GROUPS in best:
        return None, _DECIMAL
    if style == PLAIN and known.separator == "semicolon" and _is_either(numeric):
        return None, _POINT
    return style, ""


def _is_either(numeric: Sequence[ColumnScan]) -> bool:
    """Whether a point in some column may stand between thousands, and in no other is a decimal sign
    for sure.
    """
    pointed = [scan for scan in numeric if "." in scan.signs]
    return bool(pointed) and all(
        scan.cells_in(_POINT_GROUPS) == scan.cells_in(PLAIN) for scan in pointed
    )


def _day_order(scanned: Sequence[ScannedColumn], known: Reading) -> tuple[str | None, str]:
    """(which is first in dates that can be read in two ways, ""), or (None, what must be asked)."""
    both = [c.file.name for c in scanned if two_forms(c.scan)]
    if known.dates is not None or not both:
        return known.dates, ""
    decided = {c.scan.forms[0] for c in scanned if _is_decided(c.scan)}
    day, month = bool(decided & set(DAY_FIRST)), bool(decided & set(DAY_FIRST.values()))
    if day != month:
        return ("day-first" if day else "month-first"), ""
    return None, _DATES.format(", ".join(both))


def _is_decided(scan: ColumnScan) -> bool:
    return scan.has_cells and not scan.styles and bool(scan.forms) and not two_forms(scan)


def two_forms(scan: ColumnScan) -> tuple[str, str] | None:
    """The form with the day first and the one with the month first, where both fit the same cells,
    which are most.
    """
    if scan.styles or not scan.forms:
        return None
    count = scan.cells_in(scan.forms[0])
    pairs = DAY_FIRST.items()
    return next(((d, m) for d, m in pairs if scan.cells_in(d) == scan.cells_in(m) == count), None)


def understood(path: Path, said: Reading, wanted: Sequence[str], numeric: Sequence[str]) -> Reading:
    """How a file is read whose schema is known. wanted: its columns; numeric: those of numbers.
    What the schema does not say is understood from the file. Raises CuratorError, too where the
    file can be read in two ways.
    """
    known = read_file_as(path, _usual(path, said, wanted))
    _refuse_another_reading(path, said, known, wanted)
    if asked := _notes(path, known):
        raise CuratorError(asked + _ANSWER)
    if known.decimal is not None or not numeric or not reader_of(path, known).has_texts:
        return known
    scans = {name: ColumnScan() for name in numeric}
    _scanned_first(path, known, scans)
    style, question = number_style(path, known, list(scans.values()))
    if style is None:
        raise CuratorError(question + _ANSWER)
    return _styled(known, style)


def _refuse_another_reading(
    path: Path, said: Reading, known: Reading, wanted: Sequence[str]
) -> None:
    """Raises CuratorError where the file has all columns, read otherwise than is said: its header
    would be told as the wrong reading has it.
    """
    if not said.said or set(wanted) <= _header(path, known):
        return
    own = read_file_as(path, UNSAID)
    if set(wanted) <= _header(path, own):
        differs = [key for key, value in said.said.items() if own.said.get(key, value) != value]
        parts = [
            f"`{key}: {said.said[key]}`, and this file looks like `{key}: {own.said[key]}`"
            for key in differs
        ]
        if parts:
            raise CuratorError(
                f"{path.name} is not written as the schema's `file` says: {'; '.join(parts)}. "
                "Save it as the schema says, or load it with a schema that says otherwise."
            )


def _header(path: Path, known: Reading) -> set[str]:
    """The columns' names; none where they cannot be read."""
    try:
        return {column.name for column in file_columns(path, known)}
    except CuratorError:
        return set()


def _scanned_first(path: Path, known: Reading, scans: dict[str, ColumnScan]) -> None:
    block = next(read_blocks(path, list(scans), known, _FIRST_ROWS), None)
    if block is not None:
        for name, scan in scans.items():
            scan.add(block.columns[name])


def _usual(path: Path, said: Reading, wanted: Sequence[str]) -> Reading:
    """With commas and a header in the first line, where this gives all columns that are wanted."""
    if said.format not in {None, "csv"} or said.separator or said.header is not None:
        return said
    if said.format is None and reader_of(path, said) is not reader_of(path, Reading(format="csv")):
        return said
    usual = read_file_as(path, said.over(Reading(format="csv", separator="comma", header=1)))
    return usual if set(wanted) <= _header(path, usual) else said
