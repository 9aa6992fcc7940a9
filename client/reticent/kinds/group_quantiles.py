# SPDX-License-Identifier: Apache-2.0
"""Quantiles of a column in every group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of, subject
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import FloatArray
from reticent.kinds.quantiles import Quantiles


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupQuantiles(Release):
    """Released quantiles of a column in every group, in its units: one release, charged once.

    >>> found = ds.quantiles("price", [0.25, 0.5, 0.75], by="waterfront", epsilon=1.0)
    >>> found.groups["1"].values["50%"], found.values, found.to_frame()
    """

    @property
    def by(self) -> str:
        """The column of the groups."""
        return str(self.result["by"])

    @property
    def groups(self) -> Mapping[str, Quantiles]:
        """The quantiles by level of `by`."""
        return {
            str(group["level"]): Quantiles({**self.release, "result": group})
            for group in self.result["groups"]
        }

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probabilities asked for, in the order of the values."""
        return next(iter(self.groups.values())).probabilities

    @property
    def values(self) -> FloatArray:
        """(groups, probabilities) the quantiles, in the order asked for; NaN of a group that has
        hardly any records."""
        return np.stack([np.asarray(group.values) for group in self.groups.values()])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    @property
    def _names(self) -> list[str]:
        return [f"{100 * p:g}%" for p in self.probabilities]

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group and one column for each probability; needs
        pandas.
        """
        index = _optional.pandas().Index(list(self.groups), name=self.by)
        return _optional.pandas().DataFrame(self.values, index=index, columns=self._names)

    def plot(self, ax: Any = None) -> Any:
        """One row for each group: its quantiles as points on a line; needs matplotlib, gives the
        Axes.
        """
        axes = axes_of(ax)
        for row, values in enumerate(self.values):
            axes.plot([values.min(), values.max()], [row, row], color=TOTAL, linewidth=4)
            axes.plot(values, [row] * len(values), "o", color=SAMPLING)
        axes.set_yticks(range(len(self.groups)), list(self.groups))
        axes.set_ylim(len(self.groups) - 0.5, -0.5)
        axes.set_ylabel(self.by)
        axes.set_xlabel(f"{', '.join(self._names)} of {subject(self.query)}")
        return axes

    def summary(self) -> Text:
        cells = zip(self.groups, self.values.tolist(), strict=True)
        rows = [(level, *map(number, values)) for level, values in cells]
        table = text_table((self.by, *self._names), rows)
        return Text("\n".join([*self._headline(), "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        shape = (len(self.groups), len(self.probabilities))
        if self.values.shape != shape:
            raise ValueError("every group has a value for each probability")
        _ = (self.by, self.nobs)
