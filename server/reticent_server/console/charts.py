# SPDX-License-Identifier: Apache-2.0
"""The geometry of the charts that the templates draw as inline SVG; no style, no script."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reticent_server.pipeline.account_history import AccountPoint
from reticent_server.web.filters import when

WIDTH, HEIGHT = 640.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 16.0, 12.0, 28.0
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis. at: its place in the picture's units; label: the number beside it."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class BurnDown:
    """What is spent of an account over time, in ε, as a rising step line towards its cap. In the
    units of a viewBox WIDTH × HEIGHT; `line` is the path of what is spent, `cap` that of the cap.
    caps: when the cap was set to what, in words, oldest first."""

    line: str
    area: str
    cap: str
    caps: tuple[str, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def burn_down(points: Sequence[AccountPoint], now: datetime) -> BurnDown | None:
    """The chart of an account's history until now; None where there is no history."""
    if not points:
        return None
    times = [datetime.fromisoformat(point.at) for point in points]
    start, end = times[0], max(now, times[-1] + timedelta(minutes=1))
    top = max(max(point.cap, point.spent) for point in points) or 1.0

    def x(time: datetime) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((time - start) / (end - start))

    def y(value: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top)

    xs = [*map(x, times), x(end)]
    line = _steps(xs, [y(point.spent) for point in points])
    floor = f"L{WIDTH - RIGHT:.1f},{y(0):.1f}L{LEFT:.1f},{y(0):.1f}Z"
    return BurnDown(
        line=line,
        area=line + floor,
        cap=_steps(xs, [y(point.cap) for point in points]),
        caps=tuple(f"ε {p.cap:.6g} from {when(p.at)}" for p in points if p.sets_cap),
        x_ticks=tuple(Tick(x(t), _label(t, end - start)) for t in _between(start, end)),
        y_ticks=tuple(Tick(y(top * i / _TICKS), f"{top * i / _TICKS:.3g}") for i in range(5)),
    )


def _steps(xs: Sequence[float], ys: Sequence[float]) -> str:
    """A path that keeps each height until the next time. len(xs) = len(ys) + 1."""
    path = f"M{xs[0]:.1f},{ys[0]:.1f}"
    for time, height in zip(xs[1:], [*ys[1:], ys[-1]], strict=True):
        path += f"H{time:.1f}V{height:.1f}"
    return path


def _between(start: datetime, end: datetime) -> list[datetime]:
    return [start + (end - start) * i / _TICKS for i in range(_TICKS + 1)]


def _label(time: datetime, span: timedelta) -> str:
    if span > timedelta(days=2):
        return f"{time:%d %b}" if span < timedelta(days=300) else f"{time:%b %Y}"
    return f"{time:%H:%M}" if span < timedelta(hours=20) else f"{time:%d %b %H:%M}"
