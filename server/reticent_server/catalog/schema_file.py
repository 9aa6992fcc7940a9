# SPDX-License-Identifier: Apache-2.0
"""The curator's schema file (YAML) → Schema, checked strictly.

What the file declares becomes public and every guarantee is relative to it, so nothing is guessed:
an unknown key, a bound that is not a number or a level that is not quoted is an error that names
the column and says what to change.
"""

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from pathlib import Path

from reticent_server.catalog.derived import read_derived
from reticent_server.catalog.recodes import (
    COLUMN_NAME,
    column_error,
    read_date,
    read_format,
    read_levels,
    read_words,
    texts_in,
)
from reticent_server.catalog.strict_yaml import load_yaml
from reticent_server.domain.column_kind import ColumnKind
from reticent_server.domain.reading import Reading, read_reading
from reticent_server.domain.schema import (
    BOOLEAN_TEXTS,
    LEAST_WIDTH,
    MAX_COLUMNS,
    MAX_INTEGER,
    MAX_NUMBER,
    MAX_TEXT,
    WEIGHT,
    Column,
    Recode,
    Schema,
    Unit,
)
from reticent_server.errors import CuratorError

MAX_MARKERS = 100
MAX_DESCRIPTION = 4000
MAX_UNIT_ROWS = 1_000_000

_NAMED = 12  # columns, in one message
_TOP_KEYS = ("description", "file", "unit", "columns", "derive", "persons")
_DATE = "date"  # a kind of the file: an integer column of days since 1970-01-01
_DATE_KEYS = ("kind", "label", "from", "lower", "upper", "format", "missing")
_WORDS: Mapping[object, object] = {True: "true", False: "false"}  # YAML reads these keys as values


def read_schema(path: Path) -> Schema:
    """The schema that a file declares. Raises CuratorError: one sentence, naming the column."""
    return parse_schema(load_yaml(path))


def parse_schema(document: object) -> Schema:
    """The schema of a parsed YAML document."""
    top = _mapping(document, "The schema file must be a mapping with the key `columns`.")
    _only(top, _TOP_KEYS, "The schema file")
    declared = _declared(top)
    _refuse_open(declared)
    columns = tuple(_column(name, body) for name, body in declared.items())
    unit = _unit(top.get("unit", "row"))
    for keyed in columns:
        if keyed.source == unit.column and keyed.may_be_missing:
            raise column_error(
                keyed.name, "it names the unit, so it cannot have `missing`; remove that"
            )
    description = _description(top.get("description", ""))
    features = _features(top.get("persons", {}), unit)
    derived = read_derived(top.get("derive", {}), {column.name for column in columns})
    if len(columns) + len(derived) > MAX_COLUMNS:
        raise CuratorError(f"There are more than {MAX_COLUMNS} columns with `derive`.")
    reading = _reading(top.get("file", {}))
    return Schema(columns, unit, description, features, derived=derived, reading=reading)


def _reading(value: object) -> Reading:
    said = _mapping(
        value, "`file` must be a mapping, such as {separator: semicolon, decimal: comma}."
    )
    if None in said.values():
        open_keys = [str(key) for key, value in said.items() if value is None]
        raise CuratorError(
            f"`file`: fill in {', '.join(open_keys)}; the file can be read in two ways."
        )
    try:
        return read_reading(said)
    except ValueError as error:
        raise CuratorError(f"`file`: {error}.") from None


def _declared(top: Mapping[object, object]) -> Mapping[object, object]:
    columns = _mapping(top.get("columns"), "`columns` must be a mapping of column names.")
    if not columns:
        raise CuratorError("`columns` is empty; declare at least one column.")
    if len(columns) > MAX_COLUMNS:
        raise CuratorError(f"`columns` declares more than {MAX_COLUMNS} columns; declare fewer.")
    return columns


def _refuse_open(declared: Mapping[object, object]) -> None:
    """Names every column whose bounds or levels are still empty, as `dataset schema` leaves
    them.
    """
    bodies = [(str(name), body) for name, body in declared.items() if isinstance(body, Mapping)]
    bounds = [n for n, body in bodies if any(body.get(k, 0) is None for k in ("lower", "upper"))]
    levels = [n for n, body in bodies if body.get("levels", "") in (None, [])]
    formats = [n for n, body in bodies if body.get("format", "") is None]
    parts = [
        f"{what} of {_some(names)}"
        for what, names in (("lower and upper", bounds), ("levels", levels), ("format", formats))
        if names
    ]
    if parts:
        raise CuratorError(
            f"Fill in {', and '.join(parts)}. They are published, so take them from a codebook "
            "or from "
            "common knowledge, never from the file; delete the columns that analysts do not need."
        )


def _some(names: list[str]) -> str:
    shown = [name[:MAX_TEXT] for name in names[:_NAMED]]
    return ", ".join(shown) + (f" and {len(names) - _NAMED} more" if names[_NAMED:] else "")


def _column(name: object, body: object) -> Column:
    if not isinstance(name, str) or not COLUMN_NAME.fullmatch(name):
        raise CuratorError(
            f"Column {str(name)[:MAX_TEXT]!r}: a name is a letter or _ followed by up to 63 "
            "letters, "
            "digits, _ or . (quote names that YAML reads as something else)."
        )
    declared = _mapping(body, f"Column {name}: write {{kind: …}} after the name.")
    declared = {_WORDS.get(key, key): value for key, value in declared.items()}
    kind = _kind(name, declared.get("kind"))
    if declared["kind"] == _DATE:
        return _date_column(name, declared)
    _only(declared, kind.traits.keys, f"Column {name} ({kind})")
    levels, recode = _texts_read(name, kind, declared)
    lower, upper = _bounds(name, kind, declared, levels)
    missing = _missing(name, declared, kind, [text for text, _ in recode.codes] or levels)
    role, label = _role(name, declared, lower), _label(name, declared)
    return Column(name, kind, lower, upper, levels, missing, recode, role, label)


def _role(name: str, declared: Mapping[object, object], lower: float) -> str:
    """WEIGHT, or empty without the key."""
    if "role" not in declared:
        return ""
    if declared["role"] != WEIGHT:
        raise column_error(name, f"role must be {WEIGHT}, or be left out")
    if lower < 0:
        raise column_error(name, "a weight needs a lower bound of at least 0")
    return WEIGHT


def _label(name: str, declared: Mapping[object, object]) -> str:
    """One line of text, without what could be taken for another; empty without the key."""
    value = declared.get("label", "")
    said = value.strip() if isinstance(value, str) else ""
    if value != "" and (not said or len(said) > MAX_TEXT or not said.isprintable()):
        raise column_error(
            name, f"label must be one line of text of at most {MAX_TEXT} characters, quoted"
        )
    return said


def _date_column(name: str, declared: Mapping[object, object]) -> Column:
    """Whole days since 1970-01-01."""
    _only(declared, _DATE_KEYS, f"Column {name} (date)")
    lower, upper = (read_date(name, key, declared.get(key)) for key in ("lower", "upper"))
    if lower >= upper:
        raise column_error(name, "lower must be before upper")
    recode = Recode(_source(name, declared), date=read_format(name, declared))
    missing = _missing(name, declared, ColumnKind.INTEGER, ())
    label = _label(name, declared)
    return Column(name, ColumnKind.INTEGER, lower, upper, (), missing, recode, label=label)


def _texts_read(
    name: str, kind: ColumnKind, declared: Mapping[object, object]
) -> tuple[tuple[str, ...], Recode]:
    """The levels of a column, and how the file's texts become its values."""
    source = _source(name, declared)
    if kind.has_levels:
        levels, codes, other = read_levels(name, declared)
        return levels, Recode(source, codes, other)
    return (), Recode(source, () if kind.is_number else read_words(name, declared))


def _source(name: str, declared: Mapping[object, object]) -> str:
    if "from" not in declared:
        return ""
    source = declared["from"]
    if not isinstance(source, str) or not source.strip() or len(source) > MAX_TEXT:
        raise column_error(name, "from must be the quoted name of a column of the file")
    return "" if source.strip() == name else source.strip()


def _kind(name: str, value: object) -> ColumnKind:
    if value == _DATE:
        return ColumnKind.INTEGER
    if not isinstance(value, str) or value not in set(ColumnKind):
        raise column_error(name, f"kind must be one of {', '.join((*ColumnKind, _DATE))}")
    return ColumnKind(value)


def _bounds(
    name: str, kind: ColumnKind, declared: Mapping[object, object], levels: tuple[str, ...]
) -> tuple[float, float]:
    if not kind.is_number:
        return 0.0, float(len(levels) - 1) if kind.has_levels else 1.0
    lower, upper = (_bound(name, kind, key, declared.get(key)) for key in ("lower", "upper"))
    if lower >= upper:
        raise column_error(name, "lower must be less than upper")
    if upper - lower < LEAST_WIDTH:
        raise column_error(name, f"upper must be {LEAST_WIDTH:g} above lower at least")
    return lower, upper


def _bound(name: str, kind: ColumnKind, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise column_error(name, f"{key} must be a number, such as 0, -1.5 or 1.0e+6")
    if isinstance(value, float) and not isfinite(value):
        raise column_error(name, f"{key} must be finite")
    if kind.is_whole and value != int(value):
        raise column_error(name, f"{key} must be an integer, or the kind numeric")
    limit, text = (MAX_INTEGER, "2^53") if kind.is_whole else (MAX_NUMBER, f"{MAX_NUMBER:g}")
    if abs(value) > limit:
        raise column_error(name, f"{key} must be between -{text} and {text}")
    return float(value) + 0.0  # no negative zero


def _missing(
    name: str, declared: Mapping[object, object], kind: ColumnKind, read: Sequence[str]
) -> tuple[str, ...]:
    if "missing" not in declared:
        return ()
    markers = texts_in(name, "missing", declared["missing"], MAX_MARKERS)
    words = kind is ColumnKind.BOOLEAN and not read
    taken = BOOLEAN_TEXTS if words else read
    for marker in markers:
        if (marker.lower() if words else marker) in taken:
            raise column_error(name, f"{marker!r} is both a value and a `missing` marker; keep one")
    return markers


def _unit(value: object) -> Unit:
    if value == "row":
        return Unit()
    help_text = "`unit` must be `row`, or {column: person_id, max_rows: 3}"
    declared = _mapping(value, f"{help_text}.")
    _only(declared, ("column", "max_rows"), "`unit`")
    column, max_rows = declared.get("column"), declared.get("max_rows")
    if not isinstance(column, str) or not column.strip() or len(column) > MAX_TEXT:
        raise CuratorError(f"{help_text}: `column` must be the name of a column of the file.")
    if type(max_rows) is not int or not 1 <= max_rows <= MAX_UNIT_ROWS:
        raise CuratorError(f"{help_text}: `max_rows` must be an integer from 1 to {MAX_UNIT_ROWS}.")
    return Unit(column.strip(), max_rows)


def _features(value: object, unit: Unit) -> tuple[tuple[str, str], ...]:
    """The declared features of a person; formula.features reads their texts."""
    declared = _mapping(value, '`persons` must be a mapping of names to texts, such as "count()".')
    if declared and unit.column is None:
        raise CuratorError(
            "`persons` declares features of a person, so `unit` must be {column: …, max_rows: …}."
        )
    for name, text in declared.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise CuratorError('`persons` must be a mapping of names to texts, such as "count()".')
    return tuple((str(name), str(text)) for name, text in declared.items())


def _description(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_DESCRIPTION:
        raise CuratorError(f"`description` must be a text of at most {MAX_DESCRIPTION} characters.")
    return value.strip()


def _mapping(value: object, otherwise: str) -> Mapping[object, object]:
    if not isinstance(value, Mapping):
        raise CuratorError(otherwise)
    return value


def _only(mapping: Mapping[object, object], known: Collection[str], where: str) -> None:
    for key in mapping:
        if key not in known:
            raise CuratorError(
                f"{where}: the key {str(key)[:MAX_TEXT]!r} is not known; "
                f"the keys are {', '.join(known)}."
            )
