# SPDX-License-Identifier: Apache-2.0
"""The data set's codebook and its privately released quantiles and counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING
from reticent._errors import NotFound
from reticent._schema import Column, Schema
from reticent._sparkline import sparkline
from reticent._text import Text, html_table, number, paragraph, text_table
from reticent._vector import Vector

_SHOWN = ("5%", "25%", "50%", "75%", "95%")
_HEADER = ("column", "kind", "declared", *_SHOWN, "5%–95%", "missing")
_LONGEST = 28
_BAR = 24
_ACROSS = 3
_PANEL = (3.6, 2.3)
"""Inches."""
_LONGEST_LABEL = 14
_LONGEST_TITLE = 36


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """What is known about the columns without asking: free to browse.

    >>> profile = ds.profile()
    >>> profile.quantiles("price")["50%"], profile.plot()

    n: the public number of records. schema: the codebook. columns: the released figures by column,
    as JSON, with quantiles at `probabilities` or a column's own; empty where the curator has
    released no profile.
    """

    name: str
    n: int
    schema: Schema
    columns: Mapping[str, Mapping[str, Any]]
    probabilities: tuple[float, ...] = ()

    @classmethod
    def from_json(
        cls, name: str, n: int, schema: Schema, content: Mapping[str, Any] | None
    ) -> "Profile":
        """Of the data set `name` with n records. content: the profile of GET /v1/datasets/{name};
        None: there is none.
        """
        if content is None:
            return cls(name, n, schema, {})
        probabilities = tuple(map(float, content["probabilities"]))
        return cls(name, n, schema, dict(content["columns"]), probabilities)

    def quantiles(self, column: str) -> Vector:
        """Private quantiles, named "5%", "10%", …. Raises KeyError where there are none."""
        values = self._figures(column).get("quantiles")
        if values is None:
            raise KeyError(f"{column}: no quantiles have been released")
        return Vector(values, [f"{100 * p:g}%" for p in self.probabilities_of(column)])

    def probabilities_of(self, column: str) -> tuple[float, ...]:
        """Probabilities of a column's quantiles: those that its release could find."""
        return tuple(map(float, self._figures(column).get("probabilities", self.probabilities)))

    def counts(self, column: str) -> Vector:
        """Noisy counts by level, or by value of a whole number. Raises KeyError where there are
        none.
        """
        figures = self._figures(column)
        values = figures.get("counts")
        if values is None:
            raise KeyError(f"{column}: no counts have been released")
        first = int(figures.get("first", 0))
        names = self.schema[column].levels or [str(first + k) for k in range(len(values))]
        return Vector(values, names)

    def missing(self, column: str) -> float | None:
        """Noisy number of missing cells; None where there can be none, or no profile."""
        value = self._figures(column).get("missing")
        return None if value is None else float(value)

    def plot(self) -> Any:
        """Every released column: quantiles, or counts by level; needs matplotlib, gives the Figure.

        Raises NotFound where no profile has been released.
        """
        return _panels(self)

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each column of the data set; needs pandas.

        Declared bounds, the released quantiles by name, and the noisy number of missing cells.
        """
        rows = []
        for column in self.schema:
            declared = {"kind": column.kind, "lower": column.lower, "upper": column.upper}
            released = self._figures(column.name).get("quantiles")
            quantiles = self.quantiles(column.name).to_dict() if released else {}
            rows.append(declared | quantiles | {"missing": self.missing(column.name)})
        index = [column.name for column in self.schema]
        return _optional.pandas().DataFrame(rows, index=index)

    def __repr__(self) -> str:
        title = f"{self.name}: {self.n:,} records, protected unit: {self.schema.unit}"
        described = paragraph(self.schema.description) if self.schema.description else []
        table = text_table(_HEADER, self._rows())
        return "\n".join([title, *described, "", *table, *self._notes()])

    def _repr_html_(self) -> str:
        head = Text("\n".join([f"{self.name}: {self.n:,} records", self.schema.description]))
        foot = Text("\n".join(self._notes()))
        return head._repr_html_() + html_table(_HEADER, self._rows()) + foot._repr_html_()

    def _figures(self, column: str) -> Mapping[str, Any]:
        _ = self.schema[column]
        return self.columns.get(column, {})

    def _rows(self) -> list[tuple[str, ...]]:
        return [self._row(column) for column in self.schema]

    def _row(self, column: Column) -> tuple[str, ...]:
        figures = self._figures(column.name)
        released = self.quantiles(column.name).to_dict() if figures.get("quantiles") else {}
        quantiles = [number(released[p]) if p in released else "" for p in _SHOWN]
        missing = self.missing(column.name)
        share = "" if missing is None else f"{100 * max(0.0, missing) / max(1, self.n):.1f} %"
        shape = sparkline(figures.get("quantiles") or ())
        return (column.name, column.kind, _short(column.domain), *quantiles, shape, share)

    def _labels(self) -> list[str]:
        """A line for each column that has a label."""
        named = self.schema.labels
        longest = max(map(len, named), default=0)
        lines = [f"  {name:{longest}}  {label}" for name, label in named.items()]
        return ["", "Labels", *lines] if lines else []

    def _notes(self) -> list[str]:
        if not self.columns:
            return [
                *self._labels(),
                "",
                "No profile has been released: only what the curator has declared is shown.",
            ]
        lines = self._labels()
        for column in self.schema:
            figures = self._figures(column.name)
            if figures.get("counts") and not figures.get("quantiles"):
                lines += ["", *_bars(column.name, self.counts(column.name))]
        return [*lines, "", "Quantiles, counts and missing rates are noisy releases."]


def _bars(name: str, counts: Vector) -> list[str]:
    """A bar for each level, the longest as wide as `_BAR`; negative noisy counts have none."""
    largest = max(1.0, float(np.max(counts)))
    level = max(len(name) for name in counts.names)
    lines = [
        f"  {k:{level}}  {v:>12,.0f}  {'█' * round(_BAR * max(0.0, v) / largest)}"
        for k, v in counts.items()
    ]
    return [name, *(line.rstrip() for line in lines)]


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _panels(shown: Profile) -> Any:
    """One panel for each released column: quantiles against probabilities, or counts; the
    Figure.
    """
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


def _has_panel(shown: Profile, name: str) -> bool:
    figures = shown.columns.get(name, {})
    return bool(figures.get("quantiles") or figures.get("counts"))


def _panel(shown: Profile, name: str, axes: Any) -> None:
    missing = shown.missing(name)
    share = (
        "" if missing is None else f" ({100 * max(0.0, missing) / max(1, shown.n):.1f} % missing)"
    )
    title = shown.schema[name].title
    title = title if len(title) <= _LONGEST_TITLE else title[: _LONGEST_TITLE - 1] + "…"
    axes.set_title(title + share, fontsize="medium", parse_math=False)
    if shown.columns[name].get("quantiles"):
        places = shown.probabilities_of(name)
        axes.plot(np.asarray(shown.quantiles(name)), places, ".-", color=SAMPLING)
        axes.set_ylim(0, 1)
        axes.set_ylabel("share below")
        return
    counts = shown.counts(name)
    labels = [
        n if len(n) <= _LONGEST_LABEL else n[: _LONGEST_LABEL - 1] + "…" for n in counts.names
    ]
    axes.barh(range(len(labels)), np.maximum(np.asarray(counts), 0.0), color=SAMPLING)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("noisy count")
