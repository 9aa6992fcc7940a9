# SPDX-License-Identifier: Apache-2.0
"""The forecast of a question at many ε: each point is a plan of its own, from public facts; no
record is read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, sqrt
from statistics import median
from typing import Any

from reticent_server.errors import ReticentError

Json = Mapping[str, Any]

POINTS = 9
"""Plans of a curve: a plan of a fit takes some 10 ms, and a curve of so smooth a function needs no
more."""

FEW_POINTS = 3
"""Of a design whose forecasts take long (Forecastable.is_wide): .2 s each."""

LEAST_EPSILON = 0.05
"""Where the curve begins, or at a tenth of what is asked: below it no usual table has a useful
answer."""

TOP_RATIO = 4.0
"""Where the plot of widths ends: intervals four times as wide are of no use."""


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """At ε: the middle, least and largest width of an interval relative to that without privacy, or
    the standard error that the noise adds, all three the same. None: nothing is expected to be
    identified."""

    epsilon: float
    middle: float | None
    best: float | None
    worst: float | None


@dataclass(frozen=True, slots=True)
class ForecastCurve:
    """is_ratio: whether the points are relative widths; else they are the noise's standard errors.
    measure: in words."""

    points: tuple[ForecastPoint, ...]
    is_ratio: bool
    measure: str


def point(epsilon: float, forecast: Json) -> ForecastPoint | None:
    """A point of a plan's forecast; None where it has no figure of this kind."""
    ratios = forecast.get("privacy_to_sampling")
    if isinstance(ratios, list) and ratios:
        widths = [sqrt(1 + r * r) for r in ratios if r is not None and isfinite(r)]
        worst = max(widths) if len(widths) == len(ratios) else None
        return ForecastPoint(
            epsilon, *((median(widths), min(widths), worst) if widths else (None,) * 3)
        )
    named = _error(forecast)
    return None if named is None else ForecastPoint(epsilon, named[1], named[1], named[1])


def curve(
    epsilon: float,
    largest: float,
    forecast: Json,
    at: Callable[[float], Json],
    points: int = POINTS,
) -> ForecastCurve | None:
    """The forecasts between a small ε and the largest of a query; `at` plans at an ε. None where
    the kind has no figure that a curve could show."""
    own = point(epsilon, forecast)
    if own is None:
        return None
    low, high = min(LEAST_EPSILON, epsilon / 10), max(largest, epsilon)
    steps = [low * exp(log(high / low) * i / (points - 1)) for i in range(points)]
    made = [own]
    for step in steps:
        each = _point_at(float(f"{step:.3g}"), at)
        made += [] if each is None else [each]
    is_ratio = isinstance(forecast.get("privacy_to_sampling"), list)
    named = _error(forecast)
    measure = "interval width" if is_ratio or named is None else named[0].replace("_", " ")
    return ForecastCurve(tuple(sorted(made, key=lambda each: each.epsilon)), is_ratio, measure)


def _point_at(epsilon: float, at: Callable[[float], Json]) -> ForecastPoint | None:
    """None where the question cannot be planned at that ε."""
    try:
        return point(epsilon, at(epsilon))
    except ReticentError:
        return None


def _error(forecast: Json) -> tuple[str, float] | None:
    """The forecast standard error that a plan names, and its name."""
    named = (
        (name, float(value))
        for name, value in forecast.items()
        if name.endswith("_error") and isinstance(value, int | float) and value > 0
    )
    return next(named, None)


@dataclass(frozen=True, slots=True)
class Plot:
    """A curve's geometry, in per cent of the plot's width and height. paths: of a viewBox of 100 by
    100."""

    line: str
    band: str
    xs: tuple[tuple[float, str], ...]
    ys: tuple[tuple[float, str], ...]
    here: tuple[float, float] | None


def plot(curve: ForecastCurve, epsilon: float) -> Plot:
    """The plot of a curve: ε on a logarithmic axis; relative widths from 1, standard errors on a
    logarithmic axis."""
    low, high = curve.points[0].epsilon, curve.points[-1].epsilon
    values = [p.middle for p in curve.points if p.middle is not None]
    bottom, top = _limits(curve, values)

    def x(value: float) -> float:
        return 100 * log(value / low) / log(high / low) if high > low else 50.0

    def y(value: float | None) -> float:
        v = min(top, max(bottom, top if value is None else value))
        if curve.is_ratio:
            return 100 * (top - v) / (top - bottom)
        return 100 * log(top / v) / log(top / bottom)

    known = [p for p in curve.points if p.middle is not None]
    line = _path([(x(p.epsilon), y(p.middle)) for p in known])
    worst = [(x(p.epsilon), y(p.worst)) for p in known]
    best = [(x(p.epsilon), y(p.best)) for p in reversed(known)]
    own = next((p for p in known if p.epsilon == epsilon), None)
    return Plot(
        line=line,
        band=_path([*worst, *best]) + "Z" if curve.is_ratio and known else "",
        xs=tuple((x(t), f"{t:g}") for t in _ticks(low, high)),
        ys=tuple((y(t), f"{t:.3g}") for t in _heights(curve, bottom, top)),
        here=None if own is None else (x(own.epsilon), y(own.middle)),
    )


def _limits(curve: ForecastCurve, values: Sequence[float]) -> tuple[float, float]:
    if curve.is_ratio:
        return 1.0, min(TOP_RATIO, max(2.0, *values)) if values else TOP_RATIO
    return min(values, default=1.0) * 0.8, max(values, default=2.0) * 1.25


def _heights(curve: ForecastCurve, bottom: float, top: float) -> Sequence[float]:
    if curve.is_ratio:
        return [1.0 + (top - 1.0) * i / 4 for i in range(5)]
    return [bottom * (top / bottom) ** (i / 4) for i in range(5)]


def _ticks(low: float, high: float) -> list[float]:
    usual = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
    return [t for t in usual if low <= t <= high]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f},{y:.2f}" for x, y in points) if points else ""
