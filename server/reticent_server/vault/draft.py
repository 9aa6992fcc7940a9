# SPDX-License-Identifier: Apache-2.0
"""A first draft of a schema file, from a private file's header and first block of rows.

Kinds are guessed; bounds and levels are left open, because whatever the schema says is published:
bounds read off the data would tell everybody its smallest and largest values.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.dates import ISO_DATES
from reticent_server.domain.schema import Column, Recode
from reticent_server.errors import CuratorError
from reticent_server.vault.blocks import draftable
from reticent_server.vault.cells import Fault, encode
from reticent_server.vault.csv_file import csv_header
from reticent_server.vault.date_cells import is_temporal
from reticent_server.vault.files import FileFormat, file_format, read_blocks
from reticent_server.vault.parquet_file import parquet_schema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_MADE = 50  # characters of a made name: with "column_" and a number it stays below the 64 of a name
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}
_MISSING = ("", "NA", "NaN", "?")
_INTRODUCTION = """\
# A draft of a schema from the header and the first rows of {file}.
# Fill in the bounds and the levels from what is known about the variables in general (the codebook,
# the form, physical limits), not from the smallest and largest values in this file: the schema is
# published, and every guarantee is relative to it. Levels are quoted texts: ["0", "1"];
# labels for several texts of the file are levels: {{low: ["1", "2"], high: ["3"]}}, and other: "rest" takes
# every text that is not listed. A column of two texts can be {{kind: boolean, true: ["Yes"], false: ["No"]}}.
# Columns that are computed from others stand under derive, beside columns: derive: {{income_k: "income / 1000"}}.
# Bounds of dates are dates: lower: 2010-01-01.
# Columns with missing cells need their markers, such as: missing: ["", "NA"].
# Delete the columns that analysts do not need: they are then not loaded.
"""
_OPEN: Mapping[ColumnKind, str] = {kind: kind.traits.draft for kind in ColumnKind}
DATE: Literal["date"] = "date"
_OPEN_DATE = "{{kind: date{source}{format}, lower: , upper: }}"
_FORMATS = (ISO_DATES, "%Y%m%dT%H%M%S", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_ANY_DAY = (float("-inf"), float("inf"))

Guess = ColumnKind | str
"""A kind, or of dates the format of their texts."""


@dataclass(frozen=True, slots=True)
class ProposedColumn:
    """A column of a file, as a schema may declare it. source: its name in the file. kind: as the schema file names it, None where
    cells of its type cannot be loaded. form: of dates, strptime's."""

    source: str
    name: str
    kind: ColumnKind | Literal["date"] | None
    form: str = ""


def propose(path: Path, as_format: FileFormat | None = None) -> tuple[ProposedColumn, ...]:
    """The columns of a file, with names and kinds that fit its first block of rows. Raises CuratorError."""
    csv = (as_format or file_format(path)) is FileFormat.CSV
    columns = _csv_columns(path) if csv else _parquet_columns(path)
    if not columns:
        raise CuratorError(f"{path.name} has no columns.")
    names = _names(list(columns))
    return tuple(_proposed(source, names[source], kind) for source, kind in columns.items())


def _proposed(source: str, name: str, kind: Guess | None) -> ProposedColumn:
    if kind is None or isinstance(kind, ColumnKind):
        return ProposedColumn(source, name, kind)
    return ProposedColumn(source, name, DATE, kind)


def draft_schema(path: Path, as_format: FileFormat | None = None) -> str:
    """The text of a schema file to be completed by the curator. Raises CuratorError."""
    lines = [_line(column) for column in propose(path, as_format)]
    head = 'description: ""\nunit: row  # or {column: person_id, max_rows: 3}\ncolumns:\n'
    return _INTRODUCTION.format(file=path.name) + head + "".join(lines)


def _names(sources: list[str]) -> dict[str, str]:
    """A name for each column of the file: its own where it is one, else one that is made from it."""
    names = {source: source for source in sources if _NAME.fullmatch(source)}
    taken = set(names)
    for number, source in enumerate(sources, start=1):
        if source not in names:
            made = re.sub(r"[^A-Za-z0-9]+", "_", source).strip("_")[:_MADE]
            made = made if made[:1].isalpha() else f"column_{made}".strip("_")
            names[source] = made if made not in taken else f"{made}_{number}"
            taken.add(names[source])
    return names


def _line(column: ProposedColumn) -> str:
    name, source = column.name, column.source
    if column.kind is None:
        return f"  # {source if name == source else json.dumps(source)}: its type cannot be loaded; write it as text or numbers\n"
    key = json.dumps(name) if name.lower() in _YAML_WORDS else name
    come_from = "" if source == name else f", from: {json.dumps(source, ensure_ascii=False)}"
    if column.kind == DATE:
        form = "" if column.form == ISO_DATES else f", format: {json.dumps(column.form)}"
        return f"  {key}: {_OPEN_DATE.format(source=come_from, format=form)}\n"
    return f"  {key}: {_OPEN[ColumnKind(column.kind)].format(source=come_from)}\n"


def _csv_columns(path: Path) -> dict[str, Guess | None]:
    names = draftable(csv_header(path), path.name)
    block = next(read_blocks(path, names, FileFormat.CSV), None)
    if block is None:
        raise CuratorError(f"{path.name} has no rows.")
    return {name: _kind_of_texts(block.columns[name]) for name in names}


def _kind_of_texts(cells: pa.Array) -> Guess:
    """The narrowest kind, or format of dates, that takes every cell; common markers of missing cells fit any."""
    for kind in (ColumnKind.BOOLEAN, ColumnKind.INTEGER, ColumnKind.NUMERIC):
        wide = Column("", kind, float("-inf"), float("inf"), missing=_MISSING)
        if not isinstance(encode(wide, cells, strict=False), Fault):
            return kind
    return next((form for form in _FORMATS if _are_dates(cells, form)), ColumnKind.CATEGORICAL)


def _are_dates(cells: pa.Array, form: str) -> bool:
    column = Column("", ColumnKind.INTEGER, *_ANY_DAY, missing=_MISSING, recode=Recode(date=form))
    return not isinstance(encode(column, cells, strict=False), Fault)


def _parquet_columns(path: Path) -> dict[str, Guess | None]:
    schema = parquet_schema(path)
    draftable(schema.names, path.name)
    return {field.name: _kind_of_type(field.type) for field in schema}


def _kind_of_type(kind: pa.DataType) -> Guess | None:
    if is_temporal(kind):
        return ISO_DATES
    tests = {
        pa.types.is_boolean: ColumnKind.BOOLEAN,
        pa.types.is_integer: ColumnKind.INTEGER,
        pa.types.is_floating: ColumnKind.NUMERIC,
        pa.types.is_decimal: ColumnKind.NUMERIC,
        pa.types.is_string: ColumnKind.CATEGORICAL,
        pa.types.is_large_string: ColumnKind.CATEGORICAL,
        pa.types.is_dictionary: ColumnKind.CATEGORICAL,
    }
    return next((column_kind for test, column_kind in tests.items() if test(kind)), None)
