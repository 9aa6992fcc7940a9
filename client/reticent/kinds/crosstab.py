# SPDX-License-Identifier: Apache-2.0
"""Contingency tables."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import axes_of
from reticent._text import Text, number, p_value, paragraph, text_table, whole
from reticent.results.agreement import Agreement, kappa, weights_of
from reticent.results.counts import Counts

_MOST_TEXTS = 400
"""Cells of a table that are written out in its plot: twenty by twenty still have room."""


@dataclass(frozen=True, slots=True)
class IndependenceTest:
    """χ² test of independence of a two-way table; the noise is in its null law.

    simulated_pvalue: by 999 tables drawn from the noisy null, which holds where cells have few
    records and the χ² law does not; None for tables of more than 144 cells.
    """

    statistic: float
    df: int
    pvalue: float
    simulated_pvalue: float | None = None

    def __str__(self) -> str:
        said = (
            f"Independence: χ² = {self.statistic:.4g} on {self.df} degrees of freedom, "
            f"{p_value(self.pvalue)}"
        )
        if self.simulated_pvalue is None:
            return said
        return f"{said}; by simulation {p_value(self.simulated_pvalue)}"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Crosstab(Counts):
    """A released contingency table over two or more columns.

    >>> table = ds.crosstab(["grade", "waterfront"], epsilon=0.2)
    >>> table.independence.pvalue, table.to_frame()
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the crossed columns, in the order of the table's axes."""
        return tuple(map(str, self.result["columns"]))

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """The levels of each column, in the order of the table's axes."""
        return tuple(tuple(map(str, axis)) for axis in self.result["levels"])

    @property
    def independence(self) -> IndependenceTest | None:
        """The test of independence; None unless the table is two-way and a person has one row."""
        test = self.result.get("independence")
        if test is None:
            return None
        simulated = test.get("simulated_p_value")
        return IndependenceTest(
            float(test["statistic"]),
            int(test["df"]),
            float(test["p_value"]),
            None if simulated is None else float(simulated),
        )

    def kappa(self, weights: str | None = None) -> Agreement:
        """Cohen's kappa of two columns with the same levels; free. weights: None, `linear` or
        `quadratic`.

        Raises ValueError for another table, or where a person has several rows.
        """
        if len(self.columns) != 2 or self.levels[0] != self.levels[1] or len(self.levels[0]) < 2:
            raise ValueError("kappa is of two columns with the same two or more levels")
        if self.independence is None:
            raise ValueError("kappa takes records as independent: ask for the table with per")
        total = bool(np.isclose(self.values.sum(), self.nobs, rtol=1e-9, atol=1e-6))
        W = weights_of(len(self.levels[0]), weights)
        return kappa(self.values, self.bse, W, total=total)

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
        """The counts as a map; more than two ways are summed over the others; needs matplotlib,
        gives the Axes.
        """
        axes = axes_of(ax)
        cells = self.values.sum(axis=tuple(range(2, self.values.ndim)))
        axes.imshow(np.maximum(cells, 0.0), cmap="Blues", aspect="auto")
        rows, columns = self.levels[:2]
        axes.set_yticks(range(len(rows)), rows)
        axes.set_xticks(range(len(columns)), columns)
        axes.set_ylabel(self.columns[0])
        axes.set_xlabel(self.columns[1])
        if cells.size <= _MOST_TEXTS:
            middle = cells.max() / 2
            for (i, j), count in np.ndenumerate(cells):
                colour = "white" if count > middle else "black"
                axes.text(j, i, f"{count:.0f}", ha="center", va="center", color=colour)
        axes.set_title("noisy counts", fontsize="medium")
        return axes

    def summary(self) -> Text:
        lines = [*self._headline(), f"Columns: {', '.join(self.columns)}"]
        lines += [f"Records: {self.nobs:,}   standard error of a cell {number(self.bse)}", ""]
        if len(self.columns) == 2:
            rows = [
                (level, *map(whole, row))
                for level, row in zip(self.levels[0], self.values.tolist(), strict=True)
            ]
            lines += text_table(("", *self.levels[1]), rows)
        else:
            lines += paragraph(f"A table of {self.values.size} cells; see values and to_frame().")
        if self.independence is not None:
            lines += ["", *paragraph(str(self.independence)), *self._warned()]
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        Counts.check(self)
        _ = self.independence
        if self.values.shape != tuple(map(len, self.levels)):
            raise ValueError("a table has one axis for each column")
