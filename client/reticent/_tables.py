"""Histograms and contingency tables: noisy counts with the noise's standard error."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional, _plots_releases
from reticent._release import Release
from reticent._text import Text, number, paragraph, probability, text_table
from reticent._vector import Vector

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class IndependenceTest:
    """χ² test of independence of a two-way table; the noise is in its null law."""

    statistic: float
    df: int
    pvalue: float

    def __str__(self) -> str:
        p = probability(self.pvalue)
        return f"Independence: χ² = {self.statistic:.4g} on {self.df} degrees of freedom, p = {p}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _Counts(Release):
    @property
    def values(self) -> FloatArray:
        """Unbiased noisy counts, in the shape of the table; some may be negative."""
        return np.array(self.result["values"], dtype=np.float64)

    @property
    def bse(self) -> float:
        """Standard error of every count: the privacy noise alone."""
        return float(self.result["standard_error"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(…, 2) intervals for the counts in this table; no less than 0."""
        half = float(ndtri(1 - alpha / 2)) * self.bse
        ends = [self.values - half, self.values + half]
        return np.asarray(np.maximum(np.stack(ends, axis=-1), 0.0))

    def check(self) -> None:
        Release.check(self)
        _ = (self.values, self.bse, self.nobs)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Histogram(_Counts):
    """Released counts by bin or level.

    >>> found = ds.histogram("waterfront", epsilon=0.2)
    >>> found.counts["1"], found.conf_int(), found.to_frame()
    """

    @property
    def edges(self) -> FloatArray | None:
        """(bins + 1,) public edges; None where the counts are by level."""
        found = self.result.get("edges")
        return None if found is None else np.array(found, dtype=np.float64)

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

    def summary(self) -> Text:
        rows = [
            (label, number(value), number(low), number(high))
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
        return _plots_releases.histogram(self, ax)

    def check(self) -> None:
        _Counts.check(self)
        _ = self.counts


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Crosstab(_Counts):
    """A released contingency table over two or more columns.

    >>> table = ds.crosstab(["grade", "waterfront"], epsilon=0.2)
    >>> table.independence.pvalue, table.to_frame()
    """

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(map(str, self.result["columns"]))

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each column, in the order of the table's axes."""
        return tuple(tuple(map(str, axis)) for axis in self.result["levels"])

    @property
    def independence(self) -> IndependenceTest | None:
        """The test of independence; None unless the table is two-way."""
        found = self.result.get("independence")
        if found is None:
            return None
        values = (float(found["statistic"]), int(found["df"]), float(found["p_value"]))
        return IndependenceTest(*values)

    def to_frame(self) -> Any:
        """A pandas.DataFrame: a two-way table, else one row for each cell; needs pandas."""
        pandas = _optional.pandas()
        if len(self.columns) == 2:
            named = zip(self.levels, self.columns, strict=True)
            index, columns = (pandas.Index(levels, name=name) for levels, name in named)
            return pandas.DataFrame(self.values, index=index, columns=columns)
        cells = pandas.MultiIndex.from_product(self.levels, names=self.columns)
        return pandas.DataFrame({"count": self.values.ravel()}, index=cells)

    def plot(self, ax: Any = None) -> Any:
        """The counts as a map; more than two ways are summed over the others; needs matplotlib, gives the Axes."""
        return _plots_releases.crosstab(self, ax)

    def summary(self) -> Text:
        lines = [*self._headline(), f"Columns: {', '.join(self.columns)}"]
        lines += [f"Records: {self.nobs:,}   standard error of a cell {number(self.bse)}", ""]
        if len(self.columns) == 2:
            rows = [
                (level, *map(number, row))
                for level, row in zip(self.levels[0], self.values.tolist(), strict=True)
            ]
            lines += text_table(("", *self.levels[1]), rows)
        else:
            lines += paragraph(f"A table of {self.values.size} cells; see values and to_frame().")
        if self.independence is not None:
            lines += ["", *paragraph(str(self.independence))]
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        _Counts.check(self)
        _ = self.independence
        if self.values.shape != tuple(map(len, self.levels)):
            raise ValueError("a table has one axis for each column")
