# SPDX-License-Identifier: Apache-2.0
"""A schema as the fields of a form: what is proposed, and what was sent, with what is wrong beside
each column.

The fields of column i of the file are `c<i>.<part>`; a column is declared where `c<i>.use` is
"yes". Lists are texts separated by " | "; levels stand one a line, as `level`, or as `level = text
| text` where the file says it otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reticent_server.catalog.schema_file import parse_schema
from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.reading import KEYS, NUMBERS, Reading, read_reading
from reticent_server.domain.schema import USUAL_MARKERS, Schema
from reticent_server.errors import CuratorError
from reticent_server.intake.staged import ProposedColumn
from reticent_server.intake.versions import checked

Fields = Mapping[str, str]
Body = dict[str, Any]

OPEN: dict[str, str] = dict.fromkeys(
    (
        "dataset",
        "population",
        "separate",
        "publishes",
        "description",
        "unit",
        "max_rows",
        "strict",
        "derive",
    ),
    "",
)
"""The fields that are about no single column, still empty."""

READ = "read."
"""How the names of the fields begin that say how the file is read; ACCEPTED: that somebody has
looked at it.
"""
ACCEPTED = f"{READ}accepted"
WAS = "was."
"""How those begin that say how it was read when the page was shown."""

SEPARATOR = "|"
MEANS = " = "
"""Between a level and the file's texts for it: with blanks, since levels such as "<=50K" hold the
sign.
"""

DATE = "date"
"""A kind of the schema file beside those of stored columns."""

_BOUNDED = (*(kind for kind in ColumnKind if kind.is_number), DATE)
_LEVELS = tuple(kind for kind in ColumnKind if kind.has_levels)
_NEITHER = "Fill in lower and upper, from a codebook or from common knowledge: they are published."
_NO_LEVELS = (
    "Write its levels, one a line, from a codebook or from common knowledge: they are published."
)
_NOTHING = "Choose at least one column to be loaded."


@dataclass(frozen=True, slots=True)
class CheckedForm:
    """errors: by the column's position in the file. problem: with no single column. schema: None
    unless all is well.
    """

    schema: Schema | None = None
    errors: Mapping[int, str] = field(default_factory=dict)
    problem: str = ""


def proposed_fields(columns: Sequence[ProposedColumn]) -> dict[str, str]:
    """What the form of a new file is filled with: bounds and levels are left open, because they are
    published; levels of the file's own dictionary are no data.
    """
    fields = {"max_rows": "1"}
    for i, column in enumerate(columns):
        if column.kind is not None:
            given = {part: text for part, text in _proposed_parts(column).items() if text}
            fields |= {f"c{i}.{part}": text for part, text in given.items()}
    return fields


def _proposed_parts(column: ProposedColumn) -> dict[str, str]:
    return {
        "use": "" if column.idle else "yes",
        "name": column.name,
        "label": column.label,
        "kind": column.kind or "",
        "format": column.form,
        "levels": "\n".join(f"{level}{MEANS}{SEPARATOR.join(c)}" for level, c in column.levels),
        "missing": f" {SEPARATOR} ".join(text for text in column.missing if text),
        "empty": "yes" if "" in column.missing else "",
    }


def reading_in(fields: Fields) -> Reading:
    """How the fields say that the file is read. Raises CuratorError."""
    said: dict[object, object] = {
        key: fields[f"{READ}{key}"] for key in KEYS if fields.get(f"{READ}{key}")
    }
    said |= {key: int(str(said[key])) for key in NUMBERS if str(said.get(key)).isdecimal()}
    try:
        return read_reading(said)
    except ValueError as error:
        raise CuratorError(f"How the file is read: {error}.") from None


def reading_fields(reading: Reading) -> dict[str, str]:
    """The fields that say it."""
    return {f"{READ}{key}": str(value) for key, value in reading.said.items()}


def check(columns: Sequence[ProposedColumn], fields: Fields) -> CheckedForm:
    """The schema that the fields declare, or everything that is wrong with them."""
    chosen = [i for i, c in enumerate(columns) if c.kind and fields.get(f"c{i}.use") == "yes"]
    parts = _parts(fields)
    bodies = {i: _body(columns[i], parts.get(f"c{i}", {})) for i in chosen}
    for i, (_, body) in bodies.items():
        if columns[i].source == fields.get("unit") and body.get("missing") == list(USUAL_MARKERS):
            del body["missing"]  # what is proposed for every column, and cannot be for the unit's
    errors: dict[int, str] = {}
    names: set[str] = set()
    for i, (name, body) in bodies.items():
        wrong = _open_places(body) or _error_of(name, body)
        if not wrong and name in names:
            wrong = f"Another column is called {name}, too; give this one another name."
        names.add(name)
        errors |= {i: wrong} if wrong else {}
    if errors:
        return CheckedForm(errors=errors)
    return _whole(dict(bodies.values()), fields) if bodies else CheckedForm(problem=_NOTHING)


def _whole(declared: Mapping[str, Body], fields: Fields) -> CheckedForm:
    try:
        schema = checked(parse_schema(_document(declared, fields)))
        return CheckedForm(replace(schema, reading=reading_in(fields)))
    except CuratorError as error:
        return CheckedForm(problem=error.detail)


def _document(declared: Mapping[str, Body], fields: Fields) -> Body:
    """As a schema file says it."""
    column = fields.get("unit", "")
    unit = {"column": column, "max_rows": _number(fields.get("max_rows", ""))} if column else "row"
    description = fields.get("description", "")
    derive = _pairs(fields.get("derive", ""))
    made: Body = {"derive": derive} if derive else {}
    return {"description": description, "unit": unit, "columns": declared} | made


def _pairs(text: str) -> dict[str, str]:
    """name → formula of lines `name = formula`; a line without the sign is a name that has none,
    which the schema refuses.
    """
    lines = (line.partition("=") for line in text.splitlines() if line.strip())
    return {name.strip(): formula.strip() for name, _, formula in lines}


def _parts(fields: Fields) -> dict[str, dict[str, str]]:
    """The fields of each column, by part."""
    parts: dict[str, dict[str, str]] = {}
    for name, text in fields.items():
        column, _, part = name.partition(".")
        parts.setdefault(column, {})[part] = text
    return parts


def _body(column: ProposedColumn, given: Mapping[str, str]) -> tuple[str, Body]:
    """(name, what a schema file says of the column)."""
    name, kind = given.get("name", ""), given.get("kind", "")
    body: Body = {"kind": kind}
    if given.get("label"):
        body["label"] = given["label"]
    if name != column.source:
        body["from"] = column.source
    if kind in _BOUNDED:
        body |= {key: _number(given.get(key, "")) for key in ("lower", "upper")}
    if kind == DATE and given.get("format"):
        body["format"] = given["format"]
    if kind in _LEVELS:
        body |= {"levels": _levels(given.get("levels", ""))}
        body |= {"other": given["other"]} if given.get("other") else {}
    if kind == ColumnKind.BOOLEAN:
        body |= {key: _texts(given[key]) for key in ("true", "false") if given.get(key)}
    markers = ([""] if given.get("empty") == "yes" else []) + _texts(given.get("missing", ""))
    return name, body | ({"missing": markers} if markers else {})


def _open_places(body: Body) -> str:
    """What is still to be filled in; "" if nothing is."""
    if body.get("lower", 0) == "" or body.get("upper", 0) == "":
        return _NEITHER
    return _NO_LEVELS if body.get("levels", 0) == [] else ""


def _error_of(name: str, body: Body) -> str:
    try:
        parse_schema({"columns": {name: body}})
    except CuratorError as error:
        return error.detail.removeprefix(f"Column {name}: ")
    return ""


def _number(text: str) -> int | float | str:
    """A number as YAML would read it; a text that is none stays, for the schema to say so."""
    for reads in (int, float):
        try:
            return reads(text) if text.isascii() and "_" not in text else text
        except ValueError:
            continue
    return text


def _texts(text: str) -> list[str]:
    return [each.strip() for each in text.split(SEPARATOR) if each.strip()]


def _levels(text: str) -> list[str] | dict[str, list[str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not any(MEANS in line for line in lines):
        return lines
    pairs = [line.partition(MEANS)[::2] if MEANS in line else (line, line) for line in lines]
    merged: dict[str, list[str]] = {}
    for level, texts in pairs:
        merged.setdefault(level.strip(), []).extend(_texts(texts))
    return merged
