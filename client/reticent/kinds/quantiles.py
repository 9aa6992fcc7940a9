# SPDX-License-Identifier: Apache-2.0
"""Quantiles of a column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._drawing import SAMPLING, axes_of, subject
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import Vector


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Quantiles(Release):
    """Released quantiles of a column, in its units.

    >>> found = ds.quantiles("price", [0.1, 0.5, 0.9], epsilon=1.0)
    >>> found.values["50%"], found.to_frame()
    >>> ds.quantiles("price", [0.1, 0.5, 0.9], intervals=True, epsilon=1.0).conf_int()
    """

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The probabilities asked for, in the order of the values."""
        return tuple(map(float, self.result["probabilities"]))

    @property
    def values(self) -> Vector:
        """The quantiles, named "25%", …, in the order asked for."""
        return Vector(self.result["values"], [f"{100 * p:g}%" for p in self.probabilities])

    def conf_int(self) -> NDArray[np.float64] | None:
        """(k, 2) released 95 % intervals of a question with intervals=True; None without."""
        ends = self.result.get("confidence_intervals")
        return None if ends is None else np.array(ends, dtype=np.float64)

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each probability; needs pandas."""
        columns = {"probability": list(self.probabilities), "value": self.values.tolist()}
        if (ends := self.conf_int()) is not None:
            columns |= {"lower": ends[:, 0].tolist(), "upper": ends[:, 1].tolist()}
        return _optional.pandas().DataFrame(columns, index=list(self.values.names))

    def plot(self, ax: Any = None) -> Any:
        """Probabilities against quantiles; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        order = np.argsort(self.probabilities)
        values, shares = np.asarray(self.values)[order], np.asarray(self.probabilities)[order]
        axes.plot(values, shares, "o-", color=SAMPLING)
        if (ends := self.conf_int()) is not None:
            axes.hlines(shares, ends[order, 0], ends[order, 1], color=SAMPLING)
        axes.set_ylim(0, 1)
        axes.set_xlabel(subject(self.query))
        axes.set_ylabel("share below")
        return axes

    def summary(self) -> Text:
        rows = [(name, number(value)) for name, value in self.values.items()]
        if (ends := self.conf_int()) is None:
            table = text_table(("", "value"), rows)
        else:
            told = [(number(low), number(high)) for low, high in ends]
            rows_told = [row + pair for row, pair in zip(rows, told, strict=True)]
            table = text_table(("", "value", "[0.025", "0.975]"), rows_told)
        return Text("\n".join([*self._headline(), "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.values, self.nobs, self.conf_int())
