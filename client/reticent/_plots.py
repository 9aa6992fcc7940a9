"""Plots; matplotlib is asked for when one is drawn."""

from collections.abc import Sequence
from datetime import datetime
from math import ceil, inf
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from reticent import _optional
from reticent._errors import NotFound

if TYPE_CHECKING:
    from reticent._budget import Account
    from reticent._profile import Profile
    from reticent._regression import RegressionResults
    from reticent._release import Release

TOTAL, SAMPLING = "#9db4c0", "#1f4e79"
INTERCEPT = "Intercept"
_ACROSS = 3
_PANEL = (3.6, 2.3)
_LONGEST = 14
_HIDING = 25
_MOST_ROWS = 12
_WIDTH = 6.4
_UNCHARGED = "cancelled"


def coefficients(fit: "RegressionResults", ax: Any = None) -> Any:
    """Coefficients with 95 % intervals, the part from sampling alone drawn thick; the Axes.

    The intercept is left out where there are other terms, since it dwarfs them. A coefficient that
    is not estimable keeps its line, and nothing is drawn on it. Where the widest interval would hide the
    narrowest, and no axes are given, each coefficient has axes of its own; the first are returned.
    """
    several = len(fit.names) > 1
    shown = [i for i, name in enumerate(fit.names) if not (several and name == INTERCEPT)]
    if ax is None and len(shown) <= _MOST_ROWS and _hide_each_other(fit, shown):
        return _rows(fit, shown)
    axes = ax if ax is not None else _optional.pyplot().subplots(layout="constrained")[1]
    for row, i in enumerate(reversed(shown)):
        _interval(axes, fit, i, row)
    axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(shown)), [_label(fit, i) for i in reversed(shown)])
    axes.set_ylim(-0.5, len(shown) - 0.5)
    axes.set_xlabel("coefficient, 95 % interval (thick: sampling alone)")
    axes.set_title(fit.formula, fontsize="medium")
    return axes


def _rows(fit: "RegressionResults", shown: Sequence[int]) -> Any:
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


def _hide_each_other(fit: "RegressionResults", shown: Sequence[int]) -> bool:
    lower, upper = fit.conf_int().T
    widths = [float(upper[i] - lower[i]) for i in shown if fit.estimable[i]]
    usable = [width for width in widths if 0 < width < inf]
    return bool(usable) and max(usable) > _HIDING * min(usable)


def _interval(axes: Any, fit: "RegressionResults", i: int, row: int) -> None:
    if not fit.estimable[i]:
        return
    value, half = float(fit.params[i]), float(ndtri(0.975)) * float(fit.sampling_bse[i])
    bar = {"solid_capstyle": "butt"}
    axes.plot(fit.conf_int()[i], [row, row], color=TOTAL, linewidth=3, zorder=1, **bar)
    ends = [value - half, value + half]
    axes.plot(ends, [row, row], color=SAMPLING, linewidth=7, zorder=2, **bar)
    axes.plot([value], [row], "o", color="white", markeredgecolor=SAMPLING, zorder=3)


def _label(fit: "RegressionResults", i: int) -> str:
    return fit.names[i] + ("" if fit.estimable[i] else " (not estimable)")


def burn_down(accounts: "Sequence[Account]", releases: "Sequence[Release]", ax: Any = None) -> Any:
    """What was left of each account after each release, as a share of its total; the Axes."""
    axes = ax if ax is not None else _optional.pyplot().subplots(layout="constrained")[1]
    for account in accounts:
        steps = left_after(account, releases)
        if steps:
            times, shares = zip(*steps, strict=True)
            axes.step(times, shares, "o-", where="post", label=account.dataset)
        else:
            axes.plot([], [], label=f"{account.dataset} (nothing asked yet)")
    axes.set_ylim(-3, 103)
    axes.tick_params(axis="x", rotation=30)
    axes.set_ylabel("left of the budget, %")
    axes.set_title("Budget after each release", fontsize="medium")
    if len(accounts) > 1:
        axes.legend()
    return axes


def left_after(account: "Account", releases: "Sequence[Release]") -> list[tuple[datetime, float]]:
    """(time, percentage left) after each release on the account's data set, oldest first.

    Reckoned back from what is left now, so that it is true at the end; a credit or a changed total,
    which releases do not tell, would show as a higher or lower beginning.
    """
    unit = "rho" if account.rule == "zcdp" else "epsilon"
    total, left = (float(getattr(a, unit) or 0.0) for a in (account.total, account.remaining))
    mine = [r for r in releases if r.dataset == account.dataset and r.status != _UNCHARGED]
    steps = []
    for release in sorted(mine, key=lambda r: r.created_at, reverse=True):
        share = 100 * min(1.0, left / total) if total else 0.0
        steps.append((datetime.fromisoformat(release.created_at), share))
        left += float(getattr(release.charged, unit) or 0.0)
    return steps[::-1]


def profile(shown: "Profile") -> Any:
    """One panel for each released column: quantiles against probabilities, or counts; the Figure."""
    names = [c.name for c in shown.schema if _has_panel(shown, c.name)]
    if not names:
        raise NotFound("No profile of this data set has been released; ask its curator for one.")
    columns = min(_ACROSS, len(names))
    rows = ceil(len(names) / columns)
    size = (_PANEL[0] * columns, _PANEL[1] * rows)
    figure, grid = _optional.pyplot().subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False
    )
    panels = list(grid.flat)
    for name, axes in zip(names, panels, strict=False):
        _panel(shown, name, axes)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    return figure


def _has_panel(shown: "Profile", name: str) -> bool:
    figures = shown.columns.get(name, {})
    return bool(figures.get("quantiles") or figures.get("counts"))


def _panel(shown: "Profile", name: str, axes: Any) -> None:
    missing = shown.missing(name)
    share = (
        "" if missing is None else f" ({100 * max(0.0, missing) / max(1, shown.n):.1f} % missing)"
    )
    axes.set_title(name + share, fontsize="medium")
    if shown.columns[name].get("quantiles"):
        places = shown.probabilities_of(name)
        axes.plot(np.asarray(shown.quantiles(name)), places, ".-", color=SAMPLING)
        axes.set_ylim(0, 1)
        axes.set_ylabel("share below")
        return
    counts = shown.counts(name)
    labels = [n if len(n) <= _LONGEST else n[: _LONGEST - 1] + "…" for n in counts.names]
    axes.barh(range(len(labels)), np.maximum(np.asarray(counts), 0.0), color=SAMPLING)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("noisy count")
