# SPDX-License-Identifier: Apache-2.0
"""Counts by bin or level of each group."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import axes_of, subject
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import FloatArray
from reticent.kinds.histogram import Histogram


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupHistograms(Release):
    """A released histogram of each group over the same bins or levels: one release, charged once.

    >>> found = ds.histogram("grade", by="waterfront", epsilon=0.2)
    >>> found.values, found.groups["1"].counts, found.to_frame()
    """

    @property
    def by(self) -> str:
        """The column of the groups."""
        return str(self.result["by"])

    @property
    def groups(self) -> dict[str, Histogram]:
        """The histograms by level of `by`."""
        return {
            str(group["level"]): Histogram({**self.release, "result": group})
            for group in self.result["groups"]
        }

    @property
    def labels(self) -> tuple[str, ...]:
        """Bins or levels as texts."""
        return next(iter(self.groups.values())).labels

    @property
    def values(self) -> FloatArray:
        """(groups, bins) unbiased noisy counts; some may be negative."""
        return np.stack([group.values for group in self.groups.values()])

    @property
    def bse(self) -> float:
        """Standard error of every count: the privacy noise alone."""
        return next(iter(self.groups.values())).bse

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(groups, bins, 2) intervals for the counts in this table; no less than 0."""
        return np.stack([group.conf_int(alpha) for group in self.groups.values()])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group and bin; needs pandas."""
        pandas = _optional.pandas()
        index = pandas.MultiIndex.from_product(
            [list(self.groups), self.labels], names=[self.by, ""]
        )
        lower, upper = self.conf_int().reshape(-1, 2).T
        columns = {"count": self.values.ravel(), "lower": lower, "upper": upper}
        return pandas.DataFrame(columns, index=index)

    def plot(self, ax: Any = None) -> Any:
        """The groups' counts side by side with 95 % intervals; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        places, width = np.arange(len(self.labels)), 0.8 / len(self.groups)
        for k, (level, group) in enumerate(self.groups.items()):
            heights, ends = np.maximum(group.values, 0.0), group.conf_int()
            left = places - 0.4 + (k + 0.5) * width
            axes.bar(left, heights, width, yerr=np.abs(ends.T - heights), label=level)
        axes.set_xticks(places, self.labels, rotation=30, ha="right")
        axes.set_xlabel(subject(self.query))
        axes.set_ylabel("noisy count, 95 % interval")
        axes.legend(title=self.by)
        return axes

    def summary(self) -> Text:
        rows = [
            (level, *map(number, row))
            for level, row in zip(self.groups, self.values.tolist(), strict=True)
        ]
        lines = [*self._headline(), f"Records: {self.nobs:,}   standard error {number(self.bse)}"]
        table = text_table((self.by, *self.labels), rows)
        return Text("\n".join([*lines, "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.by, self.labels, self.values, self.bse, self.nobs)
        for group in self.groups.values():
            group.check()
