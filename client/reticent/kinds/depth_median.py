# SPDX-License-Identifier: Apache-2.0
"""The projection-depth median of several columns."""

from dataclasses import dataclass
from typing import Any

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL
from reticent._profile import Profile
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import Vector


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DepthMedian(Release):
    """A released projection-depth median.

    >>> found = ds.depth_median(["price", "sqft_living"], "trimmed", epsilon=2.0)
    >>> found.point["price"], found.plot(ds.profile())
    """

    @property
    def point(self) -> Vector:
        """(d,) the point, named by its columns, in their units."""
        return Vector(self.result["point"], list(map(str, self.result["columns"])))

    @property
    def eta(self) -> float:
        """The sharpness η of the draw: its outlyingness exceeds the least by about d/η."""
        return float(self.result["eta"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records."""
        return int(self.result["n"])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each column; needs pandas."""
        values = {"median": self.point.tolist()}
        return _optional.pandas().DataFrame(values, index=list(self.point.names))

    def plot(self, profile: "Profile | None" = None) -> Any:
        """The point, a panel for each column; needs matplotlib, gives the Figure.

        profile: of the data set; its released quantiles are then drawn below the point.
        """
        size = (6.0, 0.9 * len(self.point) + 0.6)
        figure, grid = _optional.pyplot().subplots(
            len(self.point), figsize=size, layout="constrained", squeeze=False
        )
        for axes, (name, value) in zip(grid.flat, self.point.items(), strict=True):
            known = {} if profile is None else profile.columns.get(name, {})
            if profile is not None and known.get("quantiles"):
                q = profile.quantiles(name)
                axes.plot([q["5%"], q["95%"]], [0, 0], color=TOTAL, linewidth=3)
                axes.plot([q["25%"], q["75%"]], [0, 0], color=TOTAL, linewidth=10)
            axes.plot([value], [0], "o", color=SAMPLING)
            axes.set_yticks([0], [name])
        return figure

    def summary(self) -> Text:
        facts = (
            f"Records: {self.nobs:,}   scale: {self.result['scale']}   directions: "
            f"{self.result['directions']}   eta = {number(self.eta)}"
        )
        table = text_table(("", "median"), [(k, number(v)) for k, v in self.point.items()])
        return Text("\n".join([*self._headline(), facts, "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.point, self.eta, self.nobs, self.result["scale"], self.result["directions"])
