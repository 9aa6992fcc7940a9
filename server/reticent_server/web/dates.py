# SPDX-License-Identifier: Apache-2.0
"""Numbers of a result that are days since 1970-01-01 as dates: where its question is about a column
of dates."""

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from math import floor, isfinite
from typing import Any

_FIRST = date(1970, 1, 1)

_ANYWHERE = frozenset({"edges", "clipped"})
_IN_UNITS: Mapping[str, frozenset[str]] = {
    "mean": frozenset({"value", "confidence_interval"}),
    "median": frozenset({"value", "bin"}),
    "quantiles": frozenset({"values"}),
    "quartiles": frozenset({"value", "confidence_interval"}),
}
"""Fields in the units of the column, by the kind that replies them or by the field that they stand
in."""


def dated(query: Mapping[str, Any], result: Any, dates: Collection[str]) -> Any:
    """The result with dates in the place of days. dates: names of the columns that are."""
    kind = query["kind"]
    return _within(result, kind, dates, is_date=query.get("column") in dates)


def _within(part: Any, place: str, dates: Collection[str], *, is_date: bool) -> Any:
    """place: the kind, or the field that a record stands in and that says what it is."""
    if isinstance(part, list):
        return [_within(each, place, dates, is_date=is_date) for each in part]
    if not isinstance(part, Mapping):
        return part
    ours = part["column"] in dates if isinstance(part.get("column"), str) else is_date
    fields = _IN_UNITS.get(place, frozenset()) | _ANYWHERE
    return {
        name: _as_dates(value)
        if ours and name in fields
        else _within(value, name if name in _IN_UNITS else _kept(place, name), dates, is_date=ours)
        for name, value in part.items()
    }


def _kept(place: str, name: str) -> str:
    """Groups and fits are of what they stand in; any other field is not."""
    return place if name in {"groups", "columns"} else ""


def _as_dates(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_dates(each) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        try:
            return _FIRST + timedelta(days=floor(value))
        except OverflowError:
            return value
    return value
