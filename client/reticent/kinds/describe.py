# SPDX-License-Identifier: Apache-2.0
"""A description of a table: table 1, and a histogram of every column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._drawing import SAMPLING
from reticent._release import Release
from reticent._text import Text, number, probability
from reticent.results.group_comparisons import GroupComparison, comparison, comparisons_frame
from reticent.results.several import FitTable

Group = Mapping[str, Any]
_COMPARED = (
    "SMD: standardised mean difference of the groups (of more than two the mean of all pairs'), in "
    "brackets its 95 % interval. p: equal means (Welch) or equal shares (Wald). Both count "
    "sampling and privacy noise, one column at a time."
)
_NOTES = (
    "Figures are noisy; in brackets, quartiles.",
    "–: no number. Intervals that count sampling and noise: to_frame(), or table(intervals=True).",
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Description(Release):
    """Released means, spreads, quartiles, shares and histograms of every column, by group: one
    charge.

    >>> about = ds.describe(["price", "sqft_living", "condition"], by="waterfront", epsilon=1.0)
    >>> about.table().latex(), about.to_frame(), about.plot("price")
    """

    @property
    def by(self) -> str | None:
        """The column of the groups; None without groups."""
        found = self.result.get("by")
        return None if found is None else str(found)

    @property
    def groups(self) -> tuple[str, ...]:
        """ "all", then the levels of `by`."""
        return tuple(str(size["level"]) for size in self.result["sizes"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are described."""
        return tuple(str(column["column"]) for column in self.result["columns"])

    @property
    def sizes(self) -> dict[str, float]:
        """Noisy numbers of records by group."""
        return {str(size["level"]): float(size["number"]) for size in self.result["sizes"]}

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each column, figure and group: value, lower and upper
        end; needs pandas.
        """
        rows = [
            (
                column["column"],
                name,
                group["level"],
                figure["value"],
                *figure["confidence_interval"],
            )
            for column in self.result["columns"]
            for group in column["groups"]
            for name, figure in _figures(column, group)
        ]
        header = ["column", "figure", "group", "value", "lower", "upper"]
        return _optional.pandas().DataFrame(rows, columns=header)

    def table(
        self, *, intervals: bool = False, labels: Mapping[str, str] | None = None
    ) -> FitTable:
        """Table 1: mean (standard deviation) and median [quartiles] of numbers, number (percent) of
        levels, by group.

        intervals: the 95 % intervals in the place of spreads. labels: what columns are called
        here, by name, as ds.schema.labels has it. Shows itself as text, HTML, Markdown,
        LaTeX and Word.

        >>> print(ds.describe(["price"], by="waterfront", epsilon=1.0).table())
        """
        counted = tuple(f"{max(0.0, size):,.0f}" for size in self.sizes.values())
        rows: list[tuple[str, ...]] = [("Records", *counted)]
        for column in self.result["columns"]:
            named = {**column, "column": (labels or {}).get(column["column"], column["column"])}
            rows += _rows(named, _interval_cells if intervals else _usual_cells)
        notes = _NOTES[1:] if intervals else _NOTES
        head = (labels or {}).get(self.by or "", self.by or "")
        return FitTable((head, *self.groups), tuple(rows), notes)

    def comparisons(self) -> tuple[GroupComparison, ...]:
        """Each column's standardised difference between the groups, and a test of equal means
        (shares). Free. Raises ValueError without `by`.

        >>> ds.describe(["price"], by="waterfront", epsilon=1.0).comparisons()[0].pvalue
        """
        if self.by is None or len(self.groups) < 3:
            raise ValueError("The description has no groups to compare: ask it with by=.")
        return tuple(comparison(column) for column in self.result["columns"])

    def comparisons_frame(self) -> Any:
        """`comparisons` as a pandas.DataFrame; needs pandas."""
        return comparisons_frame(self.comparisons())

    def tbl_summary(
        self, *, intervals: bool = False, labels: Mapping[str, str] | None = None
    ) -> FitTable:
        """`table` with two more columns, of a description by groups: standardised differences with
        intervals, and p-values. As R's gtsummary names it.

        >>> ds.describe(["price", "grade"], by="waterfront", epsilon=1.0).tbl_summary().latex()
        """
        plain = self.table(intervals=intervals, labels=labels)
        if self.by is None or len(self.groups) < 3:
            return plain
        rows, at = [(*plain.rows[0], "", "")], 1
        for column, found in zip(self.result["columns"], self.comparisons(), strict=True):
            cells = _interval_cells if intervals else _usual_cells
            count = len(cells(column, column["groups"][0]))
            said = (_standardised(found), probability(found.pvalue))
            rows += [
                (*row, *(said if k == 0 else ("", "")))
                for k, row in enumerate(plain.rows[at : at + count])
            ]
            at += count
        return FitTable((*plain.header, "SMD", "p"), tuple(rows), (*plain.notes, _COMPARED))

    def plot(self, column: str | None = None, ax: Any = None) -> Any:
        """Histograms by group with 95 % intervals: of one column in these Axes, or of all in a
        figure; needs matplotlib.
        """
        pyplot = _optional.pyplot()
        if column is not None:
            axes = pyplot.subplots(layout="constrained")[1] if ax is None else ax
            self._draw(column, axes)
            return axes
        rows = -(-len(self.columns) // 2)
        size = (9.0, 3.0 * rows)
        figure, grid = pyplot.subplots(rows, 2, figsize=size, layout="constrained", squeeze=False)
        for name, axes in zip(self.columns, grid.flat, strict=False):
            self._draw(name, axes)
        for axes in grid.flat[len(self.columns) :]:
            axes.set_visible(False)
        return figure

    def summary(self) -> Text:
        return Text("\n".join([*self._headline(), "", str(self.table()), "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.by, self.groups, self.columns, self.sizes, self.nobs, self.table())

    def _draw(self, name: str, axes: Any) -> None:
        """Shares of each group: over the width of their bins, or by level."""
        column = next((c for c in self.result["columns"] if c["column"] == name), None)
        if column is None:
            raise KeyError(f"{name}: the columns are {', '.join(self.columns)}")
        groups = column["groups"][1:] or column["groups"]
        edges, levels = column.get("edges"), column.get("levels")
        starts = _wide_bins(edges) if edges else np.arange(len(levels))
        if edges:
            edges = [*(edges[k] for k in starts), edges[-1]]
        widths = np.diff(edges) if edges else np.ones(len(levels))
        joined = np.sqrt(np.diff(np.append(starts, len(groups[0]["counts"]))))
        for k, group in enumerate(groups):
            scale = widths * max(float(group["number"]), 1.0)
            heights = np.maximum(np.add.reduceat(group["counts"], starts), 0.0) / scale
            half = 1.96 * float(group["count_standard_error"]) * joined / scale
            if edges:
                middles = (np.array(edges[1:]) + np.array(edges[:-1])) / 2
                line = axes.stairs(heights, edges, label=group["level"])
                axes.errorbar(middles, heights, half, fmt="none", ecolor=line.get_edgecolor())
            else:
                width = 0.8 / len(groups)
                places = np.arange(len(levels)) - 0.4 + (k + 0.5) * width
                axes.bar(places, heights, width, yerr=half, label=group["level"], ecolor=SAMPLING)
        if levels:
            axes.set_xticks(range(len(levels)), levels, rotation=30, ha="right")
        if len(groups) > 1:
            axes.legend(title=self.by)
        axes.set_xlabel(name)
        axes.set_ylabel("density" if edges else "share")


def _wide_bins(edges: Sequence[float]) -> NDArray[np.int64]:
    """Where the bins that are drawn begin: one of a single number has no width, and is drawn with
    the next one."""
    apart = np.diff(edges) > 0
    starts = np.flatnonzero(np.append(True, apart[:-1]))
    return starts if apart[-1] or len(starts) == 1 else starts[:-1]


def _standardised(found: GroupComparison) -> str:
    value, (low, high) = found.difference.value, found.difference.conf_int()
    if not np.isfinite(value):
        return "–"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]" if np.isfinite(low) else f"{value:.2f}"


def _figures(column: Mapping[str, Any], group: Group) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Names and figures of a column in one group."""
    if "mean" in group:
        names = ("25%", "50%", "75%")
        yield "mean", group["mean"]
        yield "standard deviation", group["standard_deviation"]
        yield from zip(names, group["quartiles"], strict=True)
    else:
        yield from zip(column["levels"], group["shares"], strict=True)
    if "missing" in group:
        yield "missing", group["missing"]


def _value(figure: Mapping[str, Any]) -> float:
    """nan of a standard deviation that noise hides."""
    return np.nan if figure["value"] is None else float(figure["value"])


def _rows(column: Mapping[str, Any], cells: Any) -> list[tuple[str, ...]]:
    """The rows of a column: a cell for each group."""
    by_group = [cells(column, group) for group in column["groups"]]
    return [(name, *(of[name] for of in by_group)) for name in by_group[0]]


def _usual_cells(column: Mapping[str, Any], group: Group) -> dict[str, str]:
    """Cells as medical journals print them, by the row's name."""
    name, found = column["column"], dict(_figures(column, group))
    values = {key: _value(figure) for key, figure in found.items()}
    cells: dict[str, str] = {}
    missing = values.pop("missing", None)
    if "mean" in group:
        spread = number(values["standard deviation"])
        cells[f"{name}, mean (SD)"] = f"{number(values['mean'])} ({spread})"
        ends = f"[{number(values['25%'])}, {number(values['75%'])}]"
        cells[f"{name}, median"] = f"{number(values['50%'])} {ends}"
    else:
        for (level, share), count in zip(values.items(), group["counts"], strict=True):
            cells[f"{name} = {level}"] = f"{max(0.0, count):,.0f} ({100 * share:.1f} %)"
    if missing is not None:
        cells[f"{name}, missing"] = f"{100 * missing:.1f} %"
    return cells


def _interval_cells(column: Mapping[str, Any], group: Group) -> dict[str, str]:
    """Every figure with its interval."""
    cells = {}
    for key, figure in _figures(column, group):
        low, high = figure["confidence_interval"]
        row = f"{column['column']}, {key}"
        cells[row] = f"{number(figure['value'])} [{number(low)}, {number(high)}]"
    return cells
