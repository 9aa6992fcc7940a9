# SPDX-License-Identifier: Apache-2.0
"""A release's result as tables and a forest plot: made from the shape of its fields, so that every kind has them.

Lists of one length that stand beside each other are a table's columns; the first list of texts names its rows. An
estimate with an interval is drawn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

Json = Mapping[str, Any]

LONGEST = 1_000
"""Rows of a table that is shown; the rest is in the release's JSON."""

_INTERVALS = ("interval", "bin", "quartiles", "range")
"""How fields are called that hold one interval."""

INTERCEPT = "Intercept"
"""The term that is not drawn: it is in units of its own."""

_HIDDEN = frozenset({"privacy_standard_errors", "estimable"})
"""Shown by the plot and the share of a width, and by an empty interval."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An interval in per cent of the plot's width. bare: without privacy."""

    low: float
    high: float
    at: float
    bare_low: float
    bare_high: float


@dataclass(frozen=True, slots=True)
class Row:
    """share: of the interval's width that privacy adds; None: not known."""

    name: str
    cells: tuple[str, ...]
    mark: Mark | None
    share: float | None


@dataclass(frozen=True, slots=True)
class ResultTable:
    """title: the field that it stands in; empty at the top. axis: (per cent, label) of a plot's ticks; none: no plot."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    axis: tuple[tuple[float, str], ...]
    zero: float | None


@dataclass(frozen=True, slots=True)
class ShownResult:
    """facts: single values by name, more: those inside others. details: what is neither (matrices, for example), as JSON by name."""

    facts: tuple[tuple[str, str], ...]
    tables: tuple[ResultTable, ...]
    more: tuple[tuple[str, str], ...]
    details: tuple[tuple[str, Any], ...]


def shown(result: Json, title: str = "") -> ShownResult:
    """A result as what a page shows."""
    single = {k: v for k, v in result.items() if _is_single(k, v)}
    lists = {
        k: v
        for k, v in result.items()
        if k not in single and isinstance(v, list) and v and _is_column(k, v)
    }
    facts = [(_words(k), _said(k, v)) for k, v in single.items()]
    tables = [_table(title, columns) for columns in _by_length(lists)]
    more: list[tuple[str, str]] = []
    details: list[tuple[str, Any]] = []
    for name, value in result.items():
        if name in lists or name in single or not value:
            continue
        if (
            isinstance(value, list)
            and all(isinstance(each, Mapping) for each in value)
            and _is_flat(value)
        ):
            tables.append(_of_records(_words(name), value))
        elif isinstance(value, Mapping):
            inner = shown(value, " · ".join(filter(None, (title, _words(name)))))
            more += [(f"{_words(name)}: {key}", said) for key, said in (*inner.facts, *inner.more)]
            tables += inner.tables
            details += [(f"{name}.{key}", rest) for key, rest in inner.details]
        else:
            details.append((name, value))
    return ShownResult(tuple(facts), tuple(tables), tuple(more), tuple(details))


def text(value: Any) -> str:
    """A value as a reader writes it: a true minus, a dash for none."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return _number(value).replace("-", "\N{MINUS SIGN}")
        case [low, high] if _is_pair(value):
            return f"{text(low)} to {text(high)}"
        case list() | tuple():
            return ", ".join(map(text, value))
        case _:
            return str(value)


def _number(value: float) -> str:
    """Four digits; of thousands every digit before the point."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e12 else f"{value:.4g}"


def _p(value: Any) -> str:
    """A p-value as journals print it."""
    if not isinstance(value, int | float):
        return text(value)
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _is_single(name: str, value: Any) -> bool:
    """Whether it is one value: a pair is an interval only by its name, as a vector of two looks the same."""
    is_interval = name.endswith(_INTERVALS) and _is_pair(value)
    return value is None or isinstance(value, str | int | float) or is_interval


def _is_pair(value: Any) -> bool:
    numbers = isinstance(value, list | tuple) and len(value) == 2
    return numbers and all(each is None or isinstance(each, int | float) for each in value)


def _is_column(name: str, values: Sequence[Any]) -> bool:
    """Whether all are single values, or all are intervals: by the name, as a matrix of two columns looks the same."""
    if all(isinstance(each, list) for each in values):
        return any(part in name for part in _INTERVALS) and all(map(_is_pair, values))
    return all(each is None or isinstance(each, str | int | float) for each in values)


def _is_flat(records: Sequence[Json]) -> bool:
    """Whether no record holds a vector, which a table's cell cannot show."""
    values = (value for record in records for value in record.values())
    return not any(isinstance(value, list) and not _is_pair(value) for value in values)


def _by_length(lists: Json) -> list[dict[str, Any]]:
    """Lists of the same length together, in the order of the fields."""
    groups: dict[int, dict[str, Any]] = {}
    for name, values in lists.items():
        groups.setdefault(len(values), {})[name] = values
    return list(groups.values())


def _of_records(title: str, records: Sequence[Json]) -> ResultTable:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = {name: [record.get(name) for record in records] for name in names}
    return _table(title, columns)


def _table(title: str, columns: Mapping[str, Sequence[Any]]) -> ResultTable:
    label = next((k for k, v in columns.items() if all(isinstance(e, str) for e in v)), None)
    shown_columns = {k: v for k, v in columns.items() if k != label and k not in _HIDDEN}
    size = min(LONGEST, len(next(iter(columns.values()))))
    names = columns[label] if label else [str(i + 1) for i in range(size)]
    marks, axis, zero = _marks(columns, names)
    rows = tuple(
        Row(
            name=str(names[i]),
            cells=tuple(_cell(name, values[i]) for name, values in shown_columns.items()),
            mark=marks[i] if marks else None,
            share=_share(columns, i),
        )
        for i in range(size)
    )
    return ResultTable(
        title, (_words(label or "no."), *map(_words, shown_columns)), rows, axis, zero
    )


def _cell(name: str, value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{_words(k)} {_cell(k, v)}" for k, v in value.items())
    return _said(name, value)


def _said(name: str, value: Any) -> str:
    return _p(value) if name.startswith("p_value") else text(value)


def _estimates(columns: Mapping[str, Sequence[Any]]) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """The estimates and their intervals: the list of intervals, and the first of numbers before it."""
    names = list(columns)
    intervals = next((k for k, v in columns.items() if any(_is_pair(e) for e in v)), None)
    if intervals is None or "interval" not in intervals:
        return None
    numbers = [
        k
        for k in names[: names.index(intervals)]
        if any(isinstance(e, int | float) for e in columns[k])
        and not any(isinstance(e, str) for e in columns[k])
    ]
    return (columns[numbers[0]], columns[intervals]) if numbers else None


def _marks(
    columns: Mapping[str, Sequence[Any]], names: Sequence[Any]
) -> tuple[list[Mark | None], tuple[tuple[float, str], ...], float | None]:
    """Every row's interval on a common axis, and the axis. An intercept is not drawn: its units are others."""
    found = _estimates(columns)
    if found is None:
        return [], (), None
    drawn = [
        (value, pair)
        if value is not None and pair and None not in pair and name != INTERCEPT
        else None
        for name, value, pair in zip(names, *found, strict=False)
    ]
    ends = [end for each in drawn if each is not None for end in (*each[1], each[0])]
    if not ends:
        return [], (), None
    low, high = min(0.0, *ends), max(0.0, *ends)
    pad = 0.04 * (high - low or 1.0)
    low, high = low - pad, high + pad

    def at(value: float) -> float:
        place: float = 100 * (value - low) / (high - low)
        return place

    shares = [_share(columns, i) or 0.0 for i in range(len(drawn))]
    marks = [
        None if each is None else _mark(each, share, at)
        for each, share in zip(drawn, shares, strict=True)
    ]
    ticks = [low + pad, (low + high) / 2, high - pad]
    return marks, tuple((at(t), text(float(f"{t:.2g}"))) for t in ticks), at(0.0)


def _mark(drawn: tuple[float, Sequence[float]], share: float, at: Callable[[float], float]) -> Mark:
    value, (low, high) = drawn
    keep = 1 - share
    return Mark(
        at(low),
        at(high),
        at(value),
        at(value - keep * (value - low)),
        at(value + keep * (high - value)),
    )


def _share(columns: Mapping[str, Sequence[Any]], i: int) -> float | None:
    """The part of the width that is due to privacy: 1 − √(1 − (privacy/whole)²) of the standard errors."""
    whole = columns.get("standard_errors", ())
    noise = columns.get("privacy_standard_errors", ())
    if i >= len(whole) or i >= len(noise) or not whole[i] or noise[i] is None:
        return None
    kept: float = sqrt(max(0.0, 1 - (noise[i] / whole[i]) ** 2))
    return 1 - kept
