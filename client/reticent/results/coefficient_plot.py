# SPDX-License-Identifier: Apache-2.0
"""Coefficients as intervals on a line; matplotlib is asked for when they are drawn."""

from collections.abc import Sequence
from math import inf
from typing import Any

from scipy.special import ndtri

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent.results.coefficients import Coefficients

INTERCEPT = "Intercept"
_HIDING = 25
"""Widest interval over the narrowest from which on the narrowest is hidden by its own marker."""
_MOST_ROWS = 12
"""Coefficients that have axes of their own: more would not fit a page."""
_WIDTH = 6.4
"""Inches; matplotlib's own default."""


def draw(fit: Coefficients, ax: Any = None) -> Any:
    """Coefficients with 95 % intervals, the part from sampling alone drawn thick; the Axes.

    The intercept is left out where there are other terms, since it dwarfs them. A coefficient that
    is not identifiable keeps its line, and nothing is drawn on it. Where the widest interval would
    hide the narrowest, and no axes are given, each coefficient has axes of its own; the first are
    returned.
    """
    several = len(fit.names) > 1
    shown = [i for i, name in enumerate(fit.names) if not (several and name == INTERCEPT)]
    if ax is None and len(shown) <= _MOST_ROWS and _hide_each_other(fit, shown):
        return _rows(fit, shown)
    axes = axes_of(ax)
    for row, i in enumerate(reversed(shown)):
        _interval(axes, fit, i, row)
    axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(shown)), [_label(fit, i) for i in reversed(shown)])
    axes.set_ylim(-0.5, len(shown) - 0.5)
    axes.set_xlabel("coefficient, 95 % interval (thick: sampling alone)")
    axes.set_title(fit.formula, fontsize="medium")
    return axes


def _rows(fit: Coefficients, shown: Sequence[int]) -> Any:
    """Each coefficient on a scale of its own; zero is marked where it is near."""
    size = (_WIDTH, 0.9 + 0.8 * len(shown))
    options = {"squeeze": False, "layout": "constrained", "figsize": size}
    _, grid = _optional.pyplot().subplots(len(shown), 1, **options)
    for axes, i in zip(grid[:, 0], shown, strict=True):
        _interval(axes, fit, i, 0)
        axes.margins(x=0.2)
        low, high = axes.get_xlim()
        if low < 0 < high:
            axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_yticks([0], [_label(fit, i)])
        axes.set_ylim(-0.5, 0.5)
    grid[-1, 0].set_xlabel("coefficient, 95 % interval, scales differ (thick: sampling alone)")
    grid[0, 0].set_title(fit.formula, fontsize="medium")
    return grid[0, 0]


def _hide_each_other(fit: Coefficients, shown: Sequence[int]) -> bool:
    lower, upper = fit.conf_int().T
    widths = [float(upper[i] - lower[i]) for i in shown if fit.estimable[i]]
    usable = [width for width in widths if 0 < width < inf]
    return bool(usable) and max(usable) > _HIDING * min(usable)


def _interval(axes: Any, fit: Coefficients, i: int, row: int) -> None:
    if not fit.estimable[i]:
        return
    value, half = float(fit.params[i]), float(ndtri(0.975)) * float(fit.sampling_bse[i])
    bar = {"solid_capstyle": "butt"}
    axes.plot(fit.conf_int()[i], [row, row], color=TOTAL, linewidth=3, zorder=1, **bar)
    ends = [value - half, value + half]
    axes.plot(ends, [row, row], color=SAMPLING, linewidth=7, zorder=2, **bar)
    axes.plot([value], [row], "o", color="white", markeredgecolor=SAMPLING, zorder=3)


def _label(fit: Coefficients, i: int) -> str:
    return fit.names[i] + ("" if fit.estimable[i] else " (not identifiable)")
