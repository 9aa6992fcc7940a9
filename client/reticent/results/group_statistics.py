# SPDX-License-Identifier: Apache-2.0
"""One number a group without a standard error: medians."""

from dataclasses import dataclass
from typing import Any

from reticent import _optional
from reticent._drawing import SAMPLING, axes_of, subject
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import Vector


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupStatistics(Release):
    """The released median of every group, in the units of the data: one release, charged once.

    Its noise depends on the data, so it comes without standard errors.

    >>> found = ds.median("price", by="waterfront", epsilon=0.5)
    >>> found.values["1"], found.to_frame()
    """

    @property
    def by(self) -> str:
        """The column of the groups."""
        return str(self.result["by"])

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the `by` column, in the schema's order."""
        return tuple(str(group["level"]) for group in self.result["groups"])

    @property
    def values(self) -> Vector:
        """The values with their groups' names; NaN of a group that has hardly any records."""
        return Vector([group["value"] for group in self.result["groups"]], self.levels)

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group; needs pandas."""
        index = _optional.pandas().Index(self.levels, name=self.by)
        return _optional.pandas().DataFrame({"value": self.values.tolist()}, index=index)

    def plot(self, ax: Any = None) -> Any:
        """One point for each group; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        axes.plot(self.values.tolist(), range(len(self.levels)), "o", color=SAMPLING)
        axes.set_yticks(range(len(self.levels)), self.levels)
        axes.set_ylim(len(self.levels) - 0.5, -0.5)
        axes.set_ylabel(self.by)
        axes.set_xlabel(f"{self.query['kind']} of {subject(self.query)}")
        return axes

    def summary(self) -> Text:
        rows = [(level, number(value)) for level, value in self.values.items()]
        table = text_table((self.by, "value"), rows)
        return Text("\n".join([*self._headline(), "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.by, self.values, self.nobs)
