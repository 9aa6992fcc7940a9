# SPDX-License-Identifier: Apache-2.0
"""Counts by bin or level."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of, subject
from reticent._text import Text, number, text_table, whole
from reticent._vector import Vector
from reticent.results.counts import Counts, FloatArray
from reticent.results.density_test import DensityTest, density_test

_MOST_TICKS = 15
"""Labels under a plot's bars: more of them, set at an angle, overlap."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Histogram(Counts):
    """Released counts by bin or level.

    >>> found = ds.histogram("waterfront", epsilon=0.2)
    >>> found.counts["1"], found.conf_int(), found.to_frame()
    """

    @property
    def edges(self) -> FloatArray | None:
        """(bins + 1,) public edges; None where the counts are by level."""
        edges = self.result.get("edges")
        return None if edges is None else np.array(edges, dtype=np.float64)

    @property
    def labels(self) -> tuple[str, ...]:
        """Bins or levels as texts."""
        if self.edges is None:
            return tuple(map(str, self.result["levels"]))
        pairs = zip(self.edges[:-1], self.edges[1:], strict=True)
        texts = [f"[{low:g}, {high:g})" for low, high in pairs]
        return (*texts[:-1], texts[-1][:-1] + "]")

    @property
    def counts(self) -> Vector:
        """The counts with their labels."""
        return Vector(self.values, self.labels)

    def density_test(self, cutoff: float, bandwidth: float) -> DensityTest:
        """Whether the number of records jumps at a cut-off that is an edge of the bins (McCrary
        2008; with robust bias correction); costs nothing, whatever the bandwidth.

        Raises ValueError without edges, or with fewer than four bins on a side within the
        bandwidth.
        """
        if self.edges is None:
            raise ValueError("a density has bins with edges: ask for `bins`, not for levels")
        counts = np.asarray(self.values, dtype=np.float64)
        return density_test(self.edges, counts, self.bse, cutoff, bandwidth)

    def summary(self) -> Text:
        rows = [
            (label, whole(value), whole(low), whole(high))
            for label, value, (low, high) in zip(
                self.labels, self.values.tolist(), self.conf_int().tolist(), strict=True
            )
        ]
        table = text_table(("", "count", "[0.025", "0.975]"), rows)
        lines = [*self._headline(), f"Records: {self.nobs:,}   standard error {number(self.bse)}"]
        return Text("\n".join([*lines, "", *table, "", *self._footer()]))

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each bin or level; needs pandas."""
        lower, upper = self.conf_int().T
        columns = {"count": self.values, "lower": lower, "upper": upper}
        return _optional.pandas().DataFrame(columns, index=list(self.labels))

    def plot(self, ax: Any = None) -> Any:
        """Counts with 95 % intervals; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        heights, ends = np.maximum(self.values, 0.0), self.conf_int()
        half = np.abs(ends.T - heights)
        style = {"color": TOTAL, "edgecolor": "white", "ecolor": SAMPLING, "yerr": half}
        if self.edges is not None:
            widths = np.diff(self.edges)
            axes.bar(self.edges[:-1], heights, widths, align="edge", **style)
        else:
            axes.bar(range(len(heights)), heights, **style)
            shown = range(0, len(heights), -(-len(heights) // _MOST_TICKS))
            labels = [self.labels[k] for k in shown]
            axes.set_xticks(shown, labels, rotation=30, ha="right")
        axes.set_xlabel(subject(self.query))
        axes.set_ylabel("noisy count, 95 % interval")
        return axes

    def check(self) -> None:
        Counts.check(self)
        _ = self.counts
