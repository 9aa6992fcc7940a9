# SPDX-License-Identifier: Apache-2.0
"""Survival curves as journals print them: steps with their intervals on one axis, and under them the
numbers at risk. Made from the shape of a result's fields, as its tables are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10
from typing import Any

MOST_CURVES = 6
"""On one figure: more line styles are not told apart; the table has all groups."""

_TICKS = 4
"""Steps along the time: numbers at risk stand side by side on a telephone."""


@dataclass(frozen=True, slots=True)
class StepCurve:
    """line, low, high: paths in a box of 100 by 100. at_risk: by tick, "–" beyond the last time."""

    name: str
    line: str
    low: str
    high: str
    at_risk: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepFigure:
    """ticks: (per cent, label) along the time. left_out: groups beyond MOST_CURVES."""

    curves: tuple[StepCurve, ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int


def step_figure(result: Mapping[str, Any]) -> StepFigure | None:
    """None where a result holds no curve of survival with its numbers at risk."""
    groups = result.get("groups")
    records = groups if isinstance(groups, list) else [result]
    drawn = [each for each in records if _is_curve(each)]
    horizon = result.get("horizon")
    if not drawn or not isinstance(horizon, int | float) or not horizon > 0:
        return None
    places = _places(float(horizon))
    curves = tuple(_curve(each, float(horizon), places) for each in drawn[:MOST_CURVES])
    ticks = tuple((100 * t / horizon, f"{t:g}") for t in places)
    return StepFigure(curves, ticks, len(drawn) - len(curves))


def _places(horizon: float) -> list[float]:
    """Ticks from 0 on, at 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(horizon / _TICKS))
    step = next(power * k for k in (1, 2, 5, 10) if power * k * _TICKS >= horizon)
    return [step * k for k in range(_TICKS + 1) if step * k <= horizon]


def _is_curve(record: Any) -> bool:
    if not isinstance(record, Mapping):
        return False
    lists = [record.get(k) for k in ("times", "survival", "confidence_intervals", "at_risk")]
    return all(isinstance(each, list) and each for each in lists)


def _curve(record: Mapping[str, Any], horizon: float, places: Sequence[float]) -> StepCurve:
    times, ends = record["times"], record["confidence_intervals"]
    low, high = ([None if pair is None else pair[i] for pair in ends] for i in (0, 1))
    return StepCurve(
        str(record.get("level", "")),
        *(_steps(times, values, horizon) for values in (record["survival"], low, high)),
        tuple(_at_risk(record, place) for place in places),
    )


def _steps(times: Sequence[float], values: Sequence[float | None], horizon: float) -> str:
    """A path that starts at 1, falls at each time, and ends where a value is missing."""
    parts = ["M0 0"]
    for time, value in zip(times, values, strict=False):
        if value is None:
            break
        parts.append(f"H{100 * min(time / horizon, 1.0):.2f}")
        parts.append(f"V{100 * (1 - min(max(value, 0.0), 1.0)):.2f}")
    return "".join(parts)


def _at_risk(record: Mapping[str, Any], place: float) -> str:
    """When the interval begins in which a time lies."""
    edges = [0.0, *record["times"]]
    for (low, high), count in zip(pairwise(edges), record["at_risk"], strict=False):
        if low <= place < high:
            return f"{max(0.0, count):,.0f}"
    return "–"
