# SPDX-License-Identifier: Apache-2.0
"""Survival curves and cumulative incidences as journals print them: steps with their intervals on
one axis, and under them the numbers at risk. Made from the shape of a result's fields, as its
tables are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10
from typing import Any

MOST_CURVES = 6
"""On one figure: more line styles are not told apart; the table has all groups."""

_SURVIVAL, _INCIDENCE = "survival", "incidence"  # fields of a result
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
    """of: what the curves are of. ticks: (per cent, label) along the time. left_out: groups beyond
    MOST_CURVES."""

    of: str
    curves: tuple[StepCurve, ...]
    ticks: tuple[tuple[float, str], ...]
    left_out: int


def step_figure(result: Mapping[str, Any]) -> StepFigure | None:
    """None where a result holds no curve of survival or incidence with its numbers at risk."""
    groups = result.get("groups") or result.get("curves")
    records = groups if isinstance(groups, list) else [result]
    drawn = [each for each in records if _height(each) is not None]
    horizon = result.get("horizon")
    if drawn and _INCIDENCE in drawn[0]:
        horizon = max(each["times"][-1] for each in drawn)
    if not drawn or not isinstance(horizon, int | float) or not horizon > 0:
        return None
    places = _places(float(horizon))
    curves = tuple(_curve(each, float(horizon), places) for each in drawn[:MOST_CURVES])
    ticks = tuple((100 * t / horizon, f"{t:g}") for t in places)
    of = "Cumulative incidence" if _INCIDENCE in drawn[0] else "Survival"
    return StepFigure(of, curves, ticks, len(drawn) - len(curves))


def _places(horizon: float) -> list[float]:
    """Ticks from 0 on, at 1, 2 or 5 times a power of ten."""
    power = 10.0 ** floor(log10(horizon / _TICKS))
    step = next(power * k for k in (1, 2, 5, 10) if power * k * _TICKS >= horizon)
    return [step * k for k in range(_TICKS + 1) if step * k <= horizon]


def _height(record: Any) -> str | None:
    """The name of what a curve is of; None: it is no curve."""
    if not isinstance(record, Mapping):
        return None
    for name in (_SURVIVAL, _INCIDENCE):
        lists = [record.get(k) for k in ("times", name, "confidence_intervals", "at_risk")]
        if all(isinstance(each, list) and each for each in lists):
            return name
    return None


def _curve(record: Mapping[str, Any], horizon: float, places: Sequence[float]) -> StepCurve:
    times, ends = record["times"], record["confidence_intervals"]
    name = _INCIDENCE if _INCIDENCE in record else _SURVIVAL
    first = 0.0 if name == _INCIDENCE else 1.0
    low, high = ([None if pair is None else pair[i] for pair in ends] for i in (0, 1))
    return StepCurve(
        " ".join(str(record[part]) for part in ("level", "cause") if record.get(part)),
        line=_steps(times, record[name], horizon, first),
        low=_steps(times, low, horizon, first),
        high=_steps(times, high, horizon, first),
        at_risk=tuple(_at_risk(record, place) for place in places),
    )


def _steps(
    times: Sequence[float], values: Sequence[float | None], horizon: float, first: float
) -> str:
    """A path that starts at `first`, steps at each time, and ends where a value is missing."""
    parts = [f"M0 {100 * (1 - first):g}"]
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
