# SPDX-License-Identifier: Apache-2.0
"""A release's result as plain tables of values, for pages and files: made from the shape of its
fields, so that every kind has them.

1. A single value is a fact; so is an interval, by its name.
2. Lists of one length that stand beside each other are the columns of one table; its texts (terms,
   levels) name the rows. Edges of k + 1 bins beside lists of length k are their bins; a grid of
   numbers (times, probabilities) names rows that no text does.
3. A list of records is stacked: what is a fact in each is a column of one table, and tables of the
   same columns stand below each other; the record's level, column or tau is the first column. What
   all records have in common is a fact.
4. A matrix is a table with names at both sides.

Every number of the result is in one of these, but for those of an estimate that is not
identifiable: its standard error, interval and p-value are left blank, since they would be read as a
finding.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import pairwise
from typing import Any

Json = Mapping[str, Any]
Labels = tuple[tuple[str, tuple[Any, ...]], ...]
Names = Mapping[int, tuple[str, Any]]
"""What names rows, by their number."""

IDENTIFIABLE = "identifiable"
"""The column that says yes or no for each estimate."""

_INTERVALS = ("interval", "bin", "quartiles", "range", "bounds", "clipped")
"""Parts of fields' names that hold intervals: a vector of two, or a matrix of two columns, looks
the same."""

_BLANKED = (
    "standard_errors", "privacy_standard_errors", "classical_standard_errors", "p_values",
    "confidence_intervals", "statistic", "p_value",
)  # fmt: skip
"""What says nothing of an estimate that is not identifiable."""

_RECORD_NAMES = ("level", "column", "term", "tau")
"""Fields that name a record, in the order in which they are looked for."""

_GRIDS = ("edges", "cuts", "times", "probabilities")
"""Ends of names of lists that name rows themselves, and so belong to no table whose rows have
texts."""

_LIFTED = frozenset({"confidence level", "tuning"})
"""Numbers with a fraction that are said once where several records have them alike; whole numbers
and texts are too."""

_QUARTERS = ("25 %", "50 %", "75 %")

_ASIDE = frozenset(
    {"covariance", "directions", "weighting", "shares", "moments", "noise", "narrow", "variables"}
)
"""Fields from which programs compute further; a page folds them away."""


@dataclass(frozen=True, slots=True)
class PlainTable:
    """A table of values. labels: columns that name the rows, (head, values). columns: by head; a
    cell is one value or an interval.

    title: the fields that it stands in; empty at the top. aside: for programs more than for
    readers.
    """

    title: str
    labels: Labels
    columns: Mapping[str, Sequence[Any]]
    aside: bool = False

    @property
    def size(self) -> int:
        """Rows."""
        return max(len(values) for values in (*dict(self.labels).values(), *self.columns.values()))


@dataclass(frozen=True, slots=True)
class Laid:
    """facts: single values by name, more: those that say how it was computed. notes: warnings, in
    words."""

    facts: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[PlainTable, ...] = ()
    notes: tuple[str, ...] = ()


def laid_out(result: Json) -> Laid:
    """A result as facts, tables and notes; tables with intervals first, those for programs last."""
    found = _record(result, "", {})
    order = sorted(found.tables, key=lambda each: (each.aside, not _has_intervals(each)))
    return replace(found, tables=tuple(order))


def _has_intervals(table: PlainTable) -> bool:
    return any("interval" in head for head in table.columns)


def words(name: str) -> str:
    """A field's name as a reader writes it."""
    return name.replace("_", " ")


def is_pair(value: Any) -> bool:
    """Whether it is an interval; an end may be open."""
    numbers = isinstance(value, list | tuple) and len(value) == 2
    return numbers and all(
        each is None or _is_number(each) or isinstance(each, date) for each in value
    )


def _record(record: Json, title: str, around: Names) -> Laid:
    """around: labels by length, of the records outside."""
    record = _blanked(record)
    parts = {name: value for name, value in record.items() if not _is_empty(value)}
    notes = tuple(map(str, parts.pop("warnings", ())))
    facts = {name: value for name, value in record.items() if _is_single(name, value)}
    columns = {name: value for name, value in parts.items() if _is_column(name, value)}
    names = {**around, **_grids(columns), **_labels(columns)}
    nested = {n: v for n, v in parts.items() if n not in facts and n not in columns}
    found = Laid({words(n): v for n, v in facts.items()}, {}, (), notes)
    found = replace(found, tables=tuple(_tables(title, record, columns, nested, names)))
    for name, value in nested.items():
        inner = _nested(record, name, value, title, names)
        found = _joined(found, name, inner, aside=name in _ASIDE and not _is_figures(value))
    return found


def _nested(record: Json, name: str, value: Any, title: str, names: Names) -> Laid:
    inner = " · ".join(filter(None, (title, words(name))))
    if isinstance(value, Mapping):
        if all(isinstance(each, Mapping) for each in value.values()):
            return _stacked(name, [{"level": k, **v} for k, v in value.items()], inner, names)
        grids = _grids({k: v for k, v in record.items() if _is_column(k, v)})
        return _record(value, inner, {**names, **grids})
    if all(isinstance(each, Mapping) for each in value):
        return _stacked(name, value, inner, names)
    if _is_axes(value):
        return Laid()
    return Laid(tables=tuple(_matrix(record, value, inner, names)))


def _joined(found: Laid, name: str, inner: Laid, *, aside: bool) -> Laid:
    """What a field holds, after what stood before it."""
    named = {
        k if k in found.facts and found.facts[k] == v else f"{words(name)}: {k}": v
        for k, v in inner.facts.items()
    }
    own = {k: v for k, v in named.items() if k not in found.facts}
    more = {f"{words(name)}: {k}": v for k, v in inner.more.items()}
    tables = tuple(replace(each, aside=each.aside or aside) for each in inner.tables)
    return Laid(
        found.facts if aside else {**found.facts, **own},
        {**found.more, **(own if aside else {}), **more},
        (*found.tables, *tables),
        tuple(dict.fromkeys((*found.notes, *inner.notes))),
    )


def _stacked(name: str, records: Sequence[Json], title: str, names: Names) -> Laid:
    """Records below each other, with what names them as the first column."""
    head, labels = _names_of(name, records, names)
    laid = [
        _record({k: v for k, v in record.items() if k != head}, title, names) for record in records
    ]
    common, rows = _common([each.facts for each in laid])
    shared, further = _common([each.more for each in laid])
    label = ((words(head), tuple(labels)),)
    tables = [
        _of_facts(title, label, rows, aside=False),
        _of_facts(title, label, further, aside=True),
    ]
    notes = [
        f"{text}: {note}"
        for text, each in zip(map(str, labels), laid, strict=True)
        for note in each.notes
    ]
    alike = laid and all(each.notes == laid[0].notes for each in laid)
    return Laid(
        common,
        shared,
        (*filter(None, tables), *_below_each_other(label, [each.tables for each in laid])),
        laid[0].notes if alike else tuple(notes),
    )


def _names_of(name: str, records: Sequence[Json], names: Names) -> tuple[str, Sequence[Any]]:
    """The field that tells the records apart, and its values."""
    for each in _RECORD_NAMES:
        if all(each in record for record in records):
            return each, [record[each] for record in records]
    if name == "quartiles" and len(records) == len(_QUARTERS):
        return "quartile", _QUARTERS
    if len(records) in names and all("value" in record for record in records):
        return names[len(records)]
    return "no.", [*range(1, len(records) + 1)]


def _common(facts: Sequence[Json]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(what several records have alike, the rest of each)."""
    first = facts[0] if len(facts) > 1 else {}
    alike = {
        k: v
        for k, v in first.items()
        if (v is None or type(v) in {str, int} or k.rpartition(": ")[2] in _LIFTED)
        and all(k in f and f[k] == v for f in facts)
    }
    return alike, [{k: v for k, v in each.items() if k not in alike} for each in facts]


def _of_facts(
    title: str, labels: Labels, rows: Sequence[Json], *, aside: bool
) -> PlainTable | None:
    heads = list(dict.fromkeys(name for row in rows for name in row))
    columns = {head: [row.get(head) for row in rows] for head in heads}
    return PlainTable(title, labels, columns, aside) if columns else None


def _below_each_other(
    label: Labels, tables: Sequence[Sequence[PlainTable]]
) -> Iterator[PlainTable]:
    """Tables of the same title and columns of all records, each row with its record's name."""
    found: dict[Any, list[tuple[Any, PlainTable]]] = {}
    ((head, names),) = label
    for name, own in zip(names, tables, strict=True):
        for table in own:
            key = (table.title, tuple(dict(table.labels)), tuple(table.columns), table.aside)
            found.setdefault(key, []).append((name, table))
    for (title, labels, columns, aside), parts in found.items():
        first = (head, tuple(name for name, part in parts for _ in range(part.size)))
        others = [
            (each, tuple(v for _, part in parts for v in dict(part.labels)[each]))
            for each in labels
        ]
        stacked = {each: [v for _, part in parts for v in part.columns[each]] for each in columns}
        yield PlainTable(title, (first, *others), stacked, aside)


def _tables(
    title: str, record: Json, columns: Json, nested: Json, names: Names
) -> Iterator[PlainTable]:
    """Columns of one length together. What only names the rows of what is nested is no table of its
    own."""
    for size, group in _groups(columns, record, names):
        names_only = nested and all(_is_text(v) or _is_grid(k) for k, v in group.items())
        own = _not_used_inside(group) if names_only else group
        if own:
            label, rest = _label(record, own, size, names)
            yield PlainTable(title, label, {words(k): v for k, v in rest.items()})


def _not_used_inside(group: Json) -> dict[str, Any]:
    """What no table inside repeats: texts and bins name rows there."""
    return {k: v for k, v in group.items() if not (_is_text(v) or k.endswith("edges"))}


def _groups(columns: Json, record: Json, names: Names) -> Iterator[tuple[int, dict[str, Any]]]:
    """(rows, columns): of one length each; grids apart from what texts name, edges apart from what
    lies in their bins."""
    found: dict[tuple[int, str], dict[str, Any]] = {}
    texts = {len(v) for v in columns.values() if _is_text(v)}
    bins = {len(v) - 1 for k, v in columns.items() if k.endswith("edges")}
    bins &= {len(v) for v in columns.values()}
    for name, values in columns.items():
        if name.endswith("edges") and len(values) - 1 in bins:
            continue
        apart = name if _is_grid(name) and len(values) in texts else ""
        found.setdefault((len(values), apart), {})[name] = values
    for (size, _), own in found.items():
        yield size, own | _rows_of_matrices(record, size, names)


def _label(
    record: Json, own: dict[str, Any], size: int, names: Names
) -> tuple[Labels, dict[str, Any]]:
    """(what names the rows, the other columns): a text, estimates' own names, what the records
    outside say, a grid, numbers."""
    text = next((k for k, v in own.items() if _is_text(v)), None)
    grid = next((k for k in own if _is_grid(k) and len(own) > 1), None)
    estimates = _leading_numbers(record, own, size)
    if text is not None:
        return _taken(own, text)
    if estimates:
        parameters = (("parameter", tuple(map(words, estimates))),)
        return parameters, {"estimate": [*estimates.values()], **own}
    if grid is not None:
        return _taken(own, grid)
    if size in names and not all(map(_is_grid, own)):
        head, values = names[size]
        return ((words(head), tuple(values)),), own
    return (("no.", tuple(range(1, size + 1))),), own


def _taken(own: Json, name: str) -> tuple[Labels, dict[str, Any]]:
    return ((words(name), tuple(own[name])),), {k: v for k, v in own.items() if k != name}


def _leading_numbers(record: Json, own: Json, size: int) -> dict[str, Any]:
    """Estimates that stand as single numbers before the lists of their errors."""
    if IDENTIFIABLE not in own:
        return {}
    first = [name for name, _ in zip(record, range(size), strict=False)]
    numbers = {name: record[name] for name in first if _is_number(record[name])}
    return numbers if len(numbers) == size else {}


def _labels(columns: Json) -> dict[int, tuple[str, Any]]:
    """Texts that name rows, by their number."""
    found: dict[int, tuple[str, Any]] = {}
    for name, values in columns.items():
        if _is_text(values) and len(set(values)) == len(values):
            found.setdefault(len(values), (name, values))
    return found


def _grids(columns: Json) -> dict[int, tuple[str, Any]]:
    """Bins between edges, and grids, by how many rows they name."""
    found: dict[int, tuple[str, Any]] = {}
    for name, values in columns.items():
        if name.endswith("edges"):
            bins = [*map(list, pairwise(values))]
            found.setdefault(len(bins), ("bin", bins))
        elif _is_grid(name):
            found.setdefault(len(values), (name, values))
    return found


def _matrix(record: Json, value: Sequence[Any], title: str, names: Names) -> Iterator[PlainTable]:
    """A matrix; a table of counts by the levels of two columns or more, where `levels` holds its
    axes."""
    axes: Any = record.get("levels")
    if _is_axes(axes) and _shape(value) == [len(axis) for axis in axes]:
        yield _cells(title, record.get("columns", ()), axes, value)
    elif len(value) == len(value[0]) or not _joins(record, value):
        texts = {size: each for size, each in names.items() if _is_text(each[1])}
        head, rows = texts.get(len(value), ("no.", range(1, len(value) + 1)))
        across = texts.get(len(value[0]), ("", range(1, len(value[0]) + 1)))[1]
        columns = {_text(name): [row[j] for row in value] for j, name in enumerate(across)}
        yield PlainTable(title, ((words(head), tuple(map(_text, rows))),), columns, aside=True)


def _joins(record: Json, value: Sequence[Any]) -> bool:
    """Whether its rows are columns beside a list of the record."""
    return any(
        isinstance(v, list) and _is_column(k, v) and len(v) == len(value[0])
        for k, v in record.items()
    )


def _rows_of_matrices(record: Json, size: int, names: Names) -> dict[str, Any]:
    """Rows of matrices of `size` columns and another number of rows, as columns: functions on a
    grid, one a level."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if _is_axes(record.get("levels")) or _is_column(name, value) or _is_single(name, value):
            continue
        if len(_shape(value)) == 2 and len(value) != size == len(value[0]):
            labels = names.get(len(value), ("", range(1, len(value) + 1)))[1]
            found |= {
                f"{name}: {_text(label)}": row for label, row in zip(labels, value, strict=True)
            }
    return found


def _cells(title: str, columns: Sequence[str], axes: Sequence[Any], values: Any) -> PlainTable:
    """Counts: of two columns crosswise, of more one row a cell."""
    named = " · ".join(filter(None, (title, " by ".join(map(str, columns)))))
    first = str(columns[0]) if columns else "level"
    if len(axes) == 2:
        across = {str(b): [row[j] for row in values] for j, b in enumerate(axes[1])}
        return PlainTable(named, ((first, tuple(axes[0])),), across)
    places: list[tuple[Any, ...]] = [()]
    for axis in axes:
        places = [(*place, level) for place in places for level in axis]
    labels = tuple(
        (str(name), tuple(place[i] for place in places)) for i, name in enumerate(columns)
    )
    return PlainTable(named, labels, {"count": [*_flat(values)]})


def _flat(values: Any) -> Iterator[Any]:
    for each in values:
        yield from _flat(each) if isinstance(each, list | tuple) else (each,)


def _shape(values: Any) -> list[int]:
    return [len(values), *_shape(values[0])] if isinstance(values, list) and values else []


def _blanked(record: Json) -> Json:
    """The record with the errors of what is not identifiable left blank, and a column that says
    so."""
    kept = record.get("estimable")
    if kept is None:
        return record
    found = {IDENTIFIABLE if k == "estimable" else k: v for k, v in record.items()}
    for name in _BLANKED:
        value = record.get(name)
        if isinstance(kept, list) and isinstance(value, list) and len(value) == len(kept):
            found[name] = [v if ok else _blank(v) for v, ok in zip(value, kept, strict=True)]
        elif kept is False and name in record:
            found[name] = None
    return found


def _blank(value: Any) -> Any:
    return [None, None] if isinstance(value, list) else None


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple | Mapping) and not value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_single(name: str, value: Any) -> bool:
    is_interval = _is_interval(name) and is_pair(value)
    return value is None or isinstance(value, str | int | float | date) or is_interval


def _is_interval(name: str) -> bool:
    """By a name in the singular: a plural is a column of intervals."""
    if name in {"clipped", "quartiles"}:
        return True
    return any(part in name for part in _INTERVALS) and not name.endswith("s")


def _is_text(values: Any) -> bool:
    return all(isinstance(each, str) for each in values)


def _is_axes(value: Any) -> bool:
    """Lists of texts: the levels of a table's columns."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, list) and _is_text(v) for v in value)
    )


def _is_column(name: str, values: Any) -> bool:
    """Whether all are single values, or all are intervals."""
    if not isinstance(values, list | tuple) or _is_single(name, values):
        return False
    if all(isinstance(each, list | tuple) for each in values):
        return any(part in name for part in _INTERVALS) and all(map(is_pair, values))
    return all(each is None or isinstance(each, str | int | float | date) for each in values)


def _is_grid(name: str) -> bool:
    return name.endswith(_GRIDS)


def _is_figures(value: Any) -> bool:
    """Whether it is a list of records."""
    return isinstance(value, list | tuple) and all(
        "value" in each for each in value if isinstance(each, Mapping)
    )


def _text(value: Any) -> str:
    if not is_pair(value):
        return str(value)
    return " to ".join(str(end) if isinstance(end, date) else f"{end:g}" for end in value)
