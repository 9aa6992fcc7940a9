"""Plots of releases other than regressions; matplotlib is asked for when one is drawn."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reticent import _optional
from reticent._plots import SAMPLING, TOTAL

if TYPE_CHECKING:
    from reticent._estimate import Estimate
    from reticent._location_scale import LocationScaleResults
    from reticent._profile import Profile
    from reticent._robust import DepthMedian, Quantiles, Statistic
    from reticent._tables import Crosstab, Histogram
    from reticent._test_results import TestResults

_MOST_TEXTS = 400
"""Cells of a table that are written out."""


def axes_of(ax: Any) -> Any:
    """These axes, or new ones."""
    return ax if ax is not None else _optional.pyplot().subplots(layout="constrained")[1]


def intervals(labels: Sequence[str], values: Any, ends: Any, ax: Any) -> Any:
    """One row each: a point and its interval; nothing where the interval is not finite."""
    axes = axes_of(ax)
    for row, (value, (low, high)) in enumerate(zip(values, ends, strict=True)):
        if np.isfinite([value, low, high]).all():
            axes.plot([low, high], [row, row], color=TOTAL, linewidth=4, solid_capstyle="butt")
            axes.plot([value], [row], "o", color=SAMPLING)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    return axes


def estimate(shown: "Estimate", ax: Any = None) -> Any:
    """The value with its 95 % interval."""
    kind = str(shown.query["kind"])
    axes = intervals([kind], [shown.value], [shown.conf_int()], ax)
    axes.set_xlabel(f"{_subject(shown.query)}, 95 % interval")
    return axes


def location_scale(shown: "LocationScaleResults", ax: Any = None) -> Any:
    """Location and scale with their 95 % intervals."""
    labels = [
        name + ("" if ok else " (not estimable)")
        for name, ok in zip(shown.params.names, shown.estimable, strict=True)
    ]
    axes = intervals(labels, shown.params.tolist(), shown.conf_int(), ax)
    axes.set_xlabel(f"{_subject(shown.query)}, 95 % interval")
    return axes


def histogram(shown: "Histogram", ax: Any = None) -> Any:
    """Counts by bin (areas over the edges) or by level, with 95 % intervals."""
    axes = axes_of(ax)
    heights, ends = np.maximum(shown.values, 0.0), shown.conf_int()
    half = np.abs(ends.T - heights)
    style = {"color": TOTAL, "edgecolor": "white", "ecolor": SAMPLING, "yerr": half}
    if shown.edges is not None:
        widths = np.diff(shown.edges)
        axes.bar(shown.edges[:-1], heights, widths, align="edge", **style)
    else:
        axes.bar(range(len(heights)), heights, **style)
        axes.set_xticks(range(len(heights)), shown.labels, rotation=30, ha="right")
    axes.set_xlabel(_subject(shown.query))
    axes.set_ylabel("noisy count, 95 % interval")
    return axes


def crosstab(shown: "Crosstab", ax: Any = None) -> Any:
    """The counts of a two-way table as a map; of more ways, the first two after summing the others."""
    axes = axes_of(ax)
    cells = shown.values.sum(axis=tuple(range(2, shown.values.ndim)))
    axes.imshow(np.maximum(cells, 0.0), cmap="Blues", aspect="auto")
    rows, columns = shown.levels[:2]
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_ylabel(shown.columns[0])
    axes.set_xlabel(shown.columns[1])
    if cells.size <= _MOST_TEXTS:
        middle = cells.max() / 2
        for (i, j), count in np.ndenumerate(cells):
            colour = "white" if count > middle else "black"
            axes.text(j, i, f"{count:.0f}", ha="center", va="center", color=colour)
    axes.set_title("noisy counts", fontsize="medium")
    return axes


def quantiles(shown: "Quantiles", ax: Any = None) -> Any:
    """Probabilities against the released quantiles."""
    axes = axes_of(ax)
    order = np.argsort(shown.probabilities)
    values, shares = np.asarray(shown.values)[order], np.asarray(shown.probabilities)[order]
    axes.plot(values, shares, "o-", color=SAMPLING)
    axes.set_ylim(0, 1)
    axes.set_xlabel(_subject(shown.query))
    axes.set_ylabel("share below")
    return axes


def statistic(shown: "Statistic", ax: Any = None) -> Any:
    """The value, and the public bin that holds this table's statistic where there is one."""
    axes = axes_of(ax)
    if shown.bin is not None:
        axes.axvspan(*shown.bin, color=TOTAL, alpha=0.6)
    axes.plot([shown.value], [0], "o", color=SAMPLING)
    axes.set_yticks([0], [str(shown.query["kind"])])
    axes.set_xlabel(_subject(shown.query))
    return axes


def depth_median(shown: "DepthMedian", profile: "Profile | None" = None) -> Any:
    """The point, one panel for each column, over the profile's 5–95 and 25–75 % where it is given."""
    size = (6.0, 0.9 * len(shown.point) + 0.6)
    figure, grid = _optional.pyplot().subplots(
        len(shown.point), figsize=size, layout="constrained", squeeze=False
    )
    for axes, (name, value) in zip(grid.flat, shown.point.items(), strict=True):
        known = {} if profile is None else profile.columns.get(name, {})
        if profile is not None and known.get("quantiles"):
            q = profile.quantiles(name)
            axes.plot([q["5%"], q["95%"]], [0, 0], color=TOTAL, linewidth=3)
            axes.plot([q["25%"], q["75%"]], [0, 0], color=TOTAL, linewidth=10)
        axes.plot([value], [0], "o", color=SAMPLING)
        axes.set_yticks([0], [name])
    return figure


def evidence(shown: "TestResults", ax: Any = None) -> Any:
    """Evidence against each hypothesis, −log₁₀ p, with a line at 5 %."""
    axes = axes_of(ax)
    rows = [(str(r["term"]), r["p_value"]) for r in shown.table]
    heights = [0.0 if p is None else -np.log10(max(float(p), 1e-16)) for _, p in rows]
    labels = [term + (" (not estimable)" if p is None else "") for term, p in rows]
    axes.barh(range(len(rows)), heights, color=SAMPLING)
    axes.axvline(-np.log10(0.05), color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("−log₁₀ p (dotted: 5 %)")
    return axes


def _subject(query: Any) -> str:
    """What a query is about."""
    column, where = query.get("column") or "records", query.get("where")
    return f"{column} where {where}" if where else str(column)
