"""A first draft of a schema file, from a private file's header and first block of rows.

Kinds are guessed; bounds and levels are left open, because whatever the schema says is published:
bounds read off the data would tell everybody its smallest and largest values.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import CuratorError
from reticent_server.vault.cells import Fault, encode
from reticent_server.vault.csv_file import csv_header
from reticent_server.vault.files import read_blocks
from reticent_server.vault.parquet_file import parquet_schema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}")
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null"}
_MISSING = ("", "NA", "NaN", "?")
_INTRODUCTION = """\
# A draft of a schema from the header and the first rows of {file}.
# Fill in the bounds and the levels from what is known about the variables in general (the codebook,
# the form, physical limits), not from the smallest and largest values in this file: the schema is
# published, and every guarantee is relative to it. Levels are quoted texts: ["0", "1"].
# Columns with missing cells need their markers, such as: missing: ["", "NA"].
# Delete the columns that analysts do not need: they are then not loaded.
"""
_OPEN: Mapping[ColumnKind, str] = {
    ColumnKind.NUMERIC: "{kind: numeric, lower: , upper: }",
    ColumnKind.INTEGER: "{kind: integer, lower: , upper: }",
    ColumnKind.CATEGORICAL: "{kind: categorical, levels: []}",
    ColumnKind.BOOLEAN: "{kind: boolean}",
}


def draft_schema(path: Path) -> str:
    """The text of a schema file to be completed by the curator. Raises CuratorError."""
    columns = _csv_columns(path) if path.suffix.lower() == ".csv" else _parquet_columns(path)
    if not columns:
        raise CuratorError(f"{path.name} has no columns.")
    lines = [_line(name, kind) for name, kind in columns.items()]
    head = 'description: ""\nunit: row  # or {column: person_id, max_rows: 3}\ncolumns:\n'
    return _INTRODUCTION.format(file=path.name) + head + "".join(lines)


def _line(name: str, kind: ColumnKind | None) -> str:
    if not _NAME.fullmatch(name):
        return (
            f"  # {json.dumps(name)}: rename it in the file (letters, digits, _ and .) to load it\n"
        )
    if kind is None:
        return f"  # {name}: its type cannot be loaded; write it as text or numbers\n"
    key = json.dumps(name) if name.lower() in _YAML_WORDS else name
    return f"  {key}: {_OPEN[kind]}\n"


def _csv_columns(path: Path) -> dict[str, ColumnKind | None]:
    names = csv_header(path)
    block = next(read_blocks(path, names), None)
    if block is None:
        raise CuratorError(f"{path.name} has no rows.")
    return {name: _kind_of_texts(block.columns[name]) for name in names}


def _kind_of_texts(cells: pa.Array) -> ColumnKind:
    """The narrowest kind that takes every cell; common markers of missing cells fit any."""
    for kind in (ColumnKind.BOOLEAN, ColumnKind.INTEGER, ColumnKind.NUMERIC):
        wide = Column("", kind, float("-inf"), float("inf"), missing=_MISSING)
        if not isinstance(encode(wide, cells, strict=False), Fault):
            return kind
    return ColumnKind.CATEGORICAL


def _parquet_columns(path: Path) -> dict[str, ColumnKind | None]:
    return {field.name: _kind_of_type(field.type) for field in parquet_schema(path)}


def _kind_of_type(kind: pa.DataType) -> ColumnKind | None:
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
