"""Quantiles, and single robust numbers and points."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reticent import _optional, _plots_releases
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import Vector

if TYPE_CHECKING:
    from reticent._profile import Profile


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Quantiles(Release):
    """Released quantiles of a column, in its units.

    >>> found = ds.quantiles("price", [0.1, 0.5, 0.9], epsilon=1.0)
    >>> found.values["50%"], found.to_frame()
    """

    @property
    def probabilities(self) -> tuple[float, ...]:
        return tuple(map(float, self.result["probabilities"]))

    @property
    def values(self) -> Vector:
        """The quantiles, named "25%", …, in the order asked for."""
        return Vector(self.result["values"], [f"{100 * p:g}%" for p in self.probabilities])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each probability; needs pandas."""
        columns = {"probability": list(self.probabilities), "value": self.values.tolist()}
        return _optional.pandas().DataFrame(columns, index=list(self.values.names))

    def plot(self, ax: Any = None) -> Any:
        """Probabilities against quantiles; needs matplotlib, gives the Axes."""
        return _plots_releases.quantiles(self, ax)

    def summary(self) -> Text:
        table = text_table(("", "value"), [(k, number(v)) for k, v in self.values.items()])
        return Text("\n".join([*self._headline(), "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.values, self.nobs)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Statistic(Release):
    """A released median, interquartile range or M-estimate, in the units of the data.

    Its noise depends on the data, so it comes without a standard error.

    >>> found = ds.median("price", epsilon=0.5)
    >>> float(found), found.bin
    """

    @property
    def value(self) -> float:
        return float(self.result["value"])

    @property
    def bin(self) -> tuple[float, float] | None:
        """The public bin that holds this table's statistic; None where there are no bins."""
        found = self.result.get("bin")
        return None if found is None else (float(found[0]), float(found[1]))

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """The released quartiles whose difference an interquartile range is; None where there are none."""
        found = self.result.get("quartiles")
        return None if found is None else (float(found[0]), float(found[1]))

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
        return _optional.pandas().DataFrame([row], index=[str(self.query["kind"])])

    def plot(self, ax: Any = None) -> Any:
        """The value, and the bin that holds this table's statistic; needs matplotlib, gives the Axes."""
        return _plots_releases.statistic(self, ax)

    def summary(self) -> Text:
        line = number(self.value)
        if self.bin is not None:
            line += f"   (this table's lies in [{number(self.bin[0])}, {number(self.bin[1])}])"
        return Text("\n".join([*self._headline(), "", line, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.value, self.bin, self.quartiles, self.nobs)


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
        return _plots_releases.depth_median(self, profile)

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
