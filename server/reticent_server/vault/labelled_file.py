# SPDX-License-Identifier: Apache-2.0
"""Files of SAS (.sas7bdat, .xpt), Stata (.dta) and SPSS (.sav, .zsav), by pyreadstat: codes, with
the labels of their dictionary.

Codes that the dictionary declares missing, and SAS's and Stata's special missing values, are null.
A column with labels for its values has the codes as texts, so that labels become levels. The parser
is in C and reads what strangers wrote: it runs in a cell (intake.cell) alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent_server.domain.reading import Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import FileBlock, FileColumn, find_columns, rows_per_block
from reticent_server.vault.extras import library

_FUNCTIONS = {"sas": ("read_sas7bdat", "read_xport"), "stata": ("read_dta",), "spss": ("read_sav",)}
_XPORT = b"HEADER"
"""A SAS transport file begins with it; other files of SAS do not."""

_MOST_LABELS = 1024
"""Labels that are proposed as levels of a column, of which it has at most so many."""

_MOST_CHARACTERS = 200
"""Of a label: they are read as one line."""


def labelled_columns(path: Path, reading: Reading) -> list[FileColumn]:
    """The columns, with the dictionary's labels. Raises CuratorError."""
    _, meta = _read(path, reading, metadataonly=True, user_missing=True)
    reads_letters = reading.format == "spss"
    return [_column(name, meta, reads_letters=reads_letters) for name in meta.column_names]


def _column(name: str, meta: Any, *, reads_letters: bool) -> FileColumn:
    """reads_letters: whether codes may be texts; those of Stata and SAS are special missing values
    (.a to .z), whose labels are no levels, as are letters beside numbers.
    """
    label = _printable(meta.column_names_to_labels.get(name) or "")
    missing = meta.missing_ranges.get(name) or meta.missing_user_values.get(name) or []
    labels = meta.variable_value_labels.get(name, {})
    if any(not isinstance(code, str) for code in labels) or not reads_letters:
        labels = {code: label for code, label in labels.items() if not isinstance(code, str)}
    levels = _levels(labels, missing)
    return FileColumn(name, label, levels if len(levels) > 1 else ())


def _levels(
    labels: Mapping[object, object], missing: Sequence[object]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """(label, its codes as texts) of the codes that are not missing ones."""
    codes: dict[str, list[str]] = {}
    for code, label in list(labels.items())[:_MOST_LABELS]:
        if not _is_missing(code, missing):
            text = _printable(str(label)) or _text(code)
            codes.setdefault(text, []).append(_text(code))
    return tuple((label, tuple(each)) for label, each in codes.items())


def _printable(text: str) -> str:
    """One line, without control characters: it stands in drafts of schemas and on pages."""
    words = "".join(c if c.isprintable() else " " for c in text).split()
    return " ".join(words)[:_MOST_CHARACTERS]


def _is_missing(code: object, missing: Sequence[Any]) -> bool:
    """Whether a code lies in one of the dictionary's ranges, or is a special missing value (.a)."""
    ranges = [(r["lo"], r["hi"]) if isinstance(r, dict) else (r, r) for r in missing]
    alike = [(low, high) for low, high in ranges if isinstance(low, str) == isinstance(code, str)]
    return any(low <= code <= high for low, high in alike)


def labelled_blocks(
    path: Path, wanted: Sequence[str], reading: Reading, most: int | None = None
) -> Iterator[FileBlock]:
    """The wanted columns: numbers, dates, texts. Raises CuratorError."""
    _, meta = _read(path, reading, metadataonly=True)
    find_columns(meta.column_names, wanted, path.name)
    size = most or rows_per_block(len(wanted))
    total, start = meta.number_rows or 0, 0
    while True:
        cells, _ = _read(
            path,
            reading,
            usecols=list(wanted),
            row_limit=size,
            row_offset=start,
            output_format="dict",
        )
        rows = len(next(iter(cells.values()), ()))
        if not rows:
            return
        columns = {name: _array(cells[name]) for name in wanted}
        start += rows
        yield FileBlock(start - rows, rows, columns, min(1.0, start / max(total, start)))
        if rows < size:
            return


def _array(cells: Any) -> pa.Array:
    """float64, days, or texts; null where a cell is missing."""
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiu":
        return pa.array(cells.astype(np.float64), from_pandas=True)
    values = list(cells)
    known = [value for value in values if not _is_null(value)]
    if known and all(isinstance(value, date) for value in known):  # a datetime is a date
        days = [None if _is_null(v) else _day(v) for v in values]
        return pa.array(days, pa.date32())
    if known and all(isinstance(value, int | float) for value in known):
        return pa.array([None if _is_null(v) else float(v) for v in values], pa.float64())
    return pa.array([None if _is_null(v) else _text(v) for v in values], pa.string())


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _is_null(value: object) -> bool:
    return value is None or value != value or value == ""  # noqa: PLR0124 - NaN and NaT


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _read(path: Path, reading: Reading, **how: Any) -> Any:
    """What pyreadstat gives. Raises CuratorError for every failure of its parser: texts may quote
    cells.
    """
    stats = library("pyreadstat", "stats", "Files of SAS, Stata and SPSS")
    names = _FUNCTIONS[reading.format or "spss"]
    with path.open("rb") as file:
        function = names[-1] if file.read(len(_XPORT)) == _XPORT else names[0]
    how.setdefault("output_format", "dict")
    if reading.encoding:
        how["encoding"] = _ICONV[reading.encoding]
    read, failed = None, False
    try:
        read = getattr(stats, function)(str(path), **_taken(function, how))
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever the parser meets; its text may quote cells
        failed = True
    if failed:  # outside the handler: nothing of it is kept as context
        kind = _NAMES[reading.format or "spss"]
        raise CuratorError(f"{path.name} cannot be read as a file of {kind}.")
    return read


_NAMES = {"sas": "SAS", "stata": "Stata", "spss": "SPSS"}
_ICONV = {
    "utf-8": "UTF-8",
    "utf-16": "UTF-16",
    "windows-1252": "WINDOWS-1252",
    "latin-1": "LATIN1",
}


def _taken(function: str, how: dict[str, Any]) -> dict[str, Any]:
    """SAS's transport files have no user-defined missing values."""
    return (
        how if function != "read_xport" else {k: v for k, v in how.items() if k != "user_missing"}
    )
