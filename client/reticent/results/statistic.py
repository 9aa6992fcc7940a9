# SPDX-License-Identifier: Apache-2.0
"""A single number without a standard error: medians, interquartile ranges and M-estimates."""

from dataclasses import dataclass
from typing import Any

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of, subject
from reticent._release import Release
from reticent._text import Text, number


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Statistic(Release):
    """A released median, interquartile range or M-estimate, in the units of the data.

    Its noise depends on the data, so it comes without a standard error; with intervals=True it has
    an interval.

    >>> ds.iqr("price", where="grade >= 8", epsilon=1.0).quartiles
    >>> ds.m_estimate("price", tuning=1e5, lower=0, upper=2e6, epsilon=1.0)
    >>> found = ds.median("price", where="grade >= 8", epsilon=0.5)
    >>> float(found), found.bin
    >>> ds.median("price", intervals=True, epsilon=1.0).conf_int()
    """

    @property
    def value(self) -> float:
        """The released number, with its noise, in the column's units."""
        return float(self.result["value"])

    @property
    def bin(self) -> tuple[float, float] | None:
        """The public bin that holds this table's statistic; None where there are no bins."""
        found = self.result.get("bin")
        return None if found is None else (float(found[0]), float(found[1]))

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """The released quartiles whose difference an interquartile range is; None where there are
        none.
        """
        quartiles = self.result.get("quartiles")
        return None if quartiles is None else (float(quartiles[0]), float(quartiles[1]))

    def conf_int(self) -> tuple[float, float] | None:
        """The released 95 % interval of a question with intervals=True; None without."""
        ends = self.result.get("confidence_interval")
        return None if ends is None else (float(ends[0]), float(ends[1]))

    @property
    def nobs(self) -> int:
        """The data set's public number of records."""
        return int(self.result["n"])

    def __float__(self) -> float:
        return self.value

    def to_frame(self) -> Any:
        """A pandas.DataFrame of one row; needs pandas."""
        lower, upper = self.bin or (None, None)
        row = {"value": self.value, "bin_lower": lower, "bin_upper": upper}
        if (ends := self.conf_int()) is not None:
            row["lower"], row["upper"] = ends
        return _optional.pandas().DataFrame([row], index=[str(self.query["kind"])])

    def plot(self, ax: Any = None) -> Any:
        """The value, and the bin that holds this table's statistic; needs matplotlib, gives the
        Axes.
        """
        axes = axes_of(ax)
        if self.bin is not None:
            axes.axvspan(*self.bin, color=TOTAL, alpha=0.6)
        if (ends := self.conf_int()) is not None:
            axes.plot(ends, [0, 0], "-", color=SAMPLING)
        axes.plot([self.value], [0], "o", color=SAMPLING)
        axes.set_yticks([0], [str(self.query["kind"])])
        axes.set_xlabel(subject(self.query))
        return axes

    def summary(self) -> Text:
        line = number(self.value)
        if self.bin is not None:
            line += f"   (this table's lies in [{number(self.bin[0])}, {number(self.bin[1])}])"
        line += self._interval()
        return Text("\n".join([*self._headline(), "", line, "", *self._footer()]))

    def _interval(self) -> str:
        if (ends := self.conf_int()) is None:
            return ""
        return f"   95 % interval [{number(ends[0])}, {number(ends[1])}]"

    def check(self) -> None:
        Release.check(self)
        _ = (self.value, self.bin, self.quartiles, self.nobs, self.conf_int())
