# SPDX-License-Identifier: Apache-2.0
"""A release's result as tables of texts and a forest plot for a page. What stands where is
web.layout's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

from reticent_server.web.layout import IDENTIFIABLE, PlainTable, is_pair, laid_out
from reticent_server.web.step_curves import StepFigure, step_figure

Json = Mapping[str, Any]

LONGEST = 5_000
"""Rows of a table that a page shows: the largest contingency table has 4,096 cells. Files have all
of them."""

INTERCEPT = "Intercept"
"""The term that is not drawn: it is in units of its own."""


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
    """labels: what names it, column by column. share: of the interval's width that privacy adds;
    None: not known."""

    labels: tuple[str, ...]
    cells: tuple[str, ...]
    mark: Mark | None
    share: float | None

    @property
    def name(self) -> str:
        """All that names it, in one text."""
        return " · ".join(self.labels)


@dataclass(frozen=True, slots=True)
class ResultTable:
    """title: the fields that it stands in; empty at the top. axis: (per cent, label) of a plot's
    ticks; none: no plot.

    heads: of the labels, then of the cells. left_out: rows beyond LONGEST. aside: for programs more
    than for readers.
    """

    title: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    axis: tuple[tuple[float, str], ...]
    zero: float | None
    left_out: int = 0
    aside: bool = False


@dataclass(frozen=True, slots=True)
class ShownResult:
    """facts: single values by name, more: those that say how it was computed. notes: warnings.
    steps: survival curves, where it has some."""

    facts: tuple[tuple[str, str], ...]
    tables: tuple[ResultTable, ...]
    more: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    steps: StepFigure | None = None


def shown(result: Json, longest: int = LONGEST) -> ShownResult:
    """A result as what a page shows. longest: rows of a table."""
    laid = laid_out(result)
    facts, more = (
        tuple((name, _said(name, value)) for name, value in each.items())
        for each in (laid.facts, laid.more)
    )
    return ShownResult(
        facts,
        tuple(_table(each, longest) for each in laid.tables),
        more,
        laid.notes,
        step_figure(result),
    )


def text(value: Any) -> str:
    """A value as a reader writes it: a true minus, a dash for none."""
    match value:
        case None | [None, None]:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float() | int():
            return _number(value).replace("-", "\N{MINUS SIGN}")
        case [low, high] if is_pair(value):
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


def _table(table: PlainTable, longest: int) -> ResultTable:
    size = min(longest, table.size)
    marks, axis, zero = ([], (), None) if table.aside else _marks(table)
    columns = {k: v for k, v in table.columns.items() if k != IDENTIFIABLE or not all(v)}
    heads = (*(head for head, _ in table.labels), *columns)
    rows = tuple(
        Row(
            labels=tuple(text(values[i]) for _, values in table.labels),
            cells=tuple(_said(name, values[i]) for name, values in columns.items()),
            mark=marks[i] if marks else None,
            share=_share(table.columns, i),
        )
        for i in range(size)
    )
    return ResultTable(table.title, heads, rows, axis, zero, table.size - size, table.aside)


def _said(name: str, value: Any) -> str:
    return _p(value) if "p value" in name else text(value)


def _estimates(columns: Mapping[str, Sequence[Any]]) -> tuple[Sequence[Any], Sequence[Any]] | None:
    """The estimates and their intervals: the list of intervals, and the first of numbers before
    it."""
    names = list(columns)
    intervals = next((k for k, v in columns.items() if any(is_pair(e) for e in v)), None)
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
    table: PlainTable,
) -> tuple[list[Mark | None], tuple[tuple[float, str], ...], float | None]:
    """Every row's interval on a common axis, and the axis. An intercept is not drawn: its units are
    others, as those of columns are."""
    columns = table.columns
    found = _estimates(columns)
    if found is None or "column" in dict(table.labels):
        return [], (), None
    names = table.labels[-1][1]
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
    """The part of the width that is due to privacy: 1 − √(1 − (privacy/whole)²) of the standard
    errors."""
    whole = columns.get("standard errors", ())
    noise = columns.get("privacy standard errors", ())
    if i >= len(whole) or i >= len(noise) or not whole[i] or noise[i] is None:
        return None
    kept: float = sqrt(max(0.0, 1 - (noise[i] / whole[i]) ** 2))
    return 1 - kept
