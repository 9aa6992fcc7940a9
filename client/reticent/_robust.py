"""Quantiles, and single robust numbers and points."""

from dataclasses import dataclass

from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import Vector


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Quantiles(Release):
    """Released quantiles of a column, in its units."""

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
    def nobs(self) -> int:
        """The data set's public number of records."""
        return int(self.result["n"])

    def __float__(self) -> float:
        return self.value

    def summary(self) -> Text:
        line = number(self.value)
        if self.bin is not None:
            line += f"   (this table's lies in [{number(self.bin[0])}, {number(self.bin[1])}])"
        return Text("\n".join([*self._headline(), "", line, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.value, self.bin, self.nobs)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DepthMedian(Release):
    """A released projection-depth median."""

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
