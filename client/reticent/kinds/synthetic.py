# SPDX-License-Identifier: Apache-2.0
"""Noisy tables of cliques of columns: shares, fits and synthetic records, all free."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from reticent import _optional
from reticent._drawing import intervals
from reticent._errors import InvalidQuery
from reticent._joint import joint_records
from reticent._release import Release
from reticent._text import Text, number, paragraph, text_table
from reticent._vector import FloatArray
from reticent.results.cell_fits import (
    IDENTITY,
    LOGIT,
    CellColumn,
    MeanCurve,
    cell_design,
    fit_result,
    parse,
)
from reticent.results.cell_table import CellTable
from reticent.results.regression import RegressionResults

_DRAWS = 100  # of a free analysis: a standard error to 7 %
_LEAST_DRAWS = 10  # fewer leave intervals to chance
_DISPLACED = 0.5  # standard errors: an interval off by so much holds .92 instead of .95
_NORMAL = float(ndtri(0.975))  # of 95 % intervals
_MARK = "synthetic, not for inference"


@dataclass(frozen=True, slots=True, eq=False)
class CellEstimates:
    """Estimates (p,) of an analysis of a table's cells; standard errors count sampling and noise,
    by `draws` repetitions of both.

    displacement: (p,) the repetitions' mean less the estimate: what noise once more does to an
    analysis that is not linear in the counts.
    """

    params: FloatArray
    bse: FloatArray
    displacement: FloatArray
    draws: int

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(p, 2) by Student's law with draws − 1 degrees of freedom; NaN where noise once more
        moves the estimate by half a standard error (and three of what chance does to the mean).
        """
        most = (_DISPLACED + 3 / self.draws**0.5) * self.bse
        known = np.where(np.abs(self.displacement) <= most, self.bse, np.nan)
        half = float(stdtrit(self.draws - 1, 1 - alpha / 2)) * known
        return np.column_stack([self.params - half, self.params + half])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class SyntheticTables(Release):
    """Released noisy tables of cliques of columns, and what is made of them, all free.

    Shares, fits and analyses whose columns lie inside of one clique have intervals that count
    sampling and noise; of others there are records only, without intervals.

    >>> tables = ds.synthetic(["grade", "condition", "waterfront"],
    ...     [["grade", "condition", "waterfront"]], epsilon=1.0)
    >>> tables.shares(["grade", "waterfront"])
    >>> tables.logit("waterfront ~ grade + C(condition)").summary()
    >>> tables.ols("grade ~ condition").conf_int()
    >>> mean = lambda cells: [(cells.grade * cells.weight).sum() / cells.weight.sum()]
    >>> tables.fit(mean, ["grade"]).conf_int()
    >>> axes = tables.plot(["waterfront", "condition"])
    >>> records = tables.records(columns=["grade", "waterfront"])
    """

    @property
    def columns(self) -> Mapping[str, CellColumn]:
        """Each column's cells, in the order of the question."""
        rows: dict[str, list[Mapping[str, Any]]] = {}
        for row in self.result["levels"]:
            rows.setdefault(str(row["column"]), []).append(row)
        return {
            name: CellColumn(
                tuple(str(row["level"]) for row in of),
                None if of[0]["number"] is None else tuple(float(row["number"]) for row in of),
            )
            for name, of in rows.items()
        }

    @property
    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each table."""
        return tuple(tuple(map(str, of["columns"])) for of in self.result["tables"])

    @property
    def bse(self) -> float:
        """The standard error of the noise in a cell of any table."""
        return float(self.result["standard_error"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    @property
    def all_tables(self) -> list[CellTable]:
        """The table of each clique, in their order."""
        sizes = {name: len(of.levels) for name, of in self.columns.items()}
        return [
            CellTable(
                tuple(of["columns"]),
                np.array(of["values"], dtype=np.float64).reshape([sizes[c] for c in of["columns"]]),
                self.bse,
                None if of["total"] is None else float(of["total"]),
            )
            for of in self.result["tables"]
        ]

    def table(self, columns: Sequence[str]) -> CellTable:
        """The noisy table of columns that lie in one clique: a margin of the one with the least
        noise. Raises InvalidQuery where they do not.
        """
        names = self._names(columns)
        inside = [of for of in self.all_tables if set(names) <= set(of.columns)]
        if not inside:
            raise InvalidQuery(
                f"No table has {', '.join(names)} together, so nothing that was released tells how "
                "they occur together, and no interval can be given. Name them as one of the "
                "cliques of a new question."
            )
        return min((of.margin(names) for of in inside), key=lambda of: of.sigma)

    def shares(self, columns: Sequence[str], alpha: float = 0.05) -> Any:
        """A pandas.DataFrame of the shares of each cell, with standard errors and intervals for the
        population; needs pandas.
        """
        pandas = _optional.pandas()
        table = self._clear(columns)
        share, error = (x.ravel() for x in table.shares())
        half = float(ndtri(1 - alpha / 2)) * error
        levels = [self.columns[name].levels for name in table.columns]
        cells = pandas.MultiIndex.from_product(levels, names=table.columns)
        ends = {"lower": np.maximum(share - half, 0.0), "upper": np.minimum(share + half, 1.0)}
        return pandas.DataFrame({"share": share, "standard_error": error, **ends}, index=cells)

    def ols(self, formula: str) -> RegressionResults:
        """Least squares, such as `y ~ age + C(region)`, over the columns of one clique; bins'
        middles stand for numbers.
        """
        return self._fit(formula, IDENTITY, "Least squares")

    def logit(self, formula: str) -> RegressionResults:
        """The same of a logit, whose response is of two levels (1 is the second), or 0 and 1."""
        return self._fit(formula, LOGIT, "Logistic regression")

    def fit(
        self,
        analysis: Callable[[Any], Any],
        columns: Sequence[str],
        draws: int = _DRAWS,
        seed: int = 0,
    ) -> CellEstimates:
        """Any smooth analysis of columns that lie in one clique; needs pandas.

        analysis: takes a pandas.DataFrame with one row a cell, its columns and a column `weight`,
        the number of records (some are negative), and gives numbers (p,). It is asked `draws` times
        more, of weights with sampling and noise once more, and their spread is the standard error.
        """
        if draws < _LEAST_DRAWS:
            raise ValueError(f"draws is at least {_LEAST_DRAWS}")
        table, rng = self._clear(columns), np.random.default_rng(seed)
        cells = self._cells(table)

        def estimate(weights: FloatArray) -> FloatArray:
            found = np.asarray(analysis(cells.assign(weight=weights)), dtype=np.float64)
            return np.atleast_1d(found)

        again = np.array([estimate(table.draw(rng)) for _ in range(draws)])
        params, bse = estimate(table.counts.ravel()), again.std(axis=0, ddof=1)
        return CellEstimates(params, bse, again.mean(axis=0) - params, draws)

    def to_frame(self) -> Any:
        """A pandas.DataFrame of the released counts, one row a cell of each table; needs pandas."""
        rows = [
            {"clique": " × ".join(of.columns), "cell": " × ".join(cell), "count": count}
            for of in self.all_tables
            for cell, count in zip(
                product(*(self.columns[name].levels for name in of.columns)),
                of.counts.ravel().tolist(),
                strict=True,
            )
        ]
        return _optional.pandas().DataFrame(rows)

    def records(
        self, n: int | None = None, columns: Sequence[str] | None = None, seed: int = 0
    ) -> Any:
        """A pandas.DataFrame of n synthetic records (as many as the data set has), to work with: no
        interval may be made from them.

        Columns in one clique are drawn from its table; others together by a graphical model of all
        tables, by `pip install 'reticent[synthetic]'`.
        """
        names = self._names(self.columns if columns is None else columns)
        rows = self.nobs if n is None else n
        if rows < 1:
            raise ValueError("n is at least 1")
        if any(set(names) <= set(of) for of in self.cliques):
            table = self.table(names)
            chances = table.positive() / table.number
            cells = np.random.default_rng(seed).choice(
                chances.size, rows, p=chances / chances.sum()
            )
            places = np.unravel_index(cells, table.counts.shape)
            drawn = dict(zip(table.columns, places, strict=True))
        else:
            sizes = {name: len(of.levels) for name, of in self.columns.items()}
            drawn = joint_records(self.all_tables, sizes, rows, seed)
        frame = self._named({name: drawn[name] for name in names})
        for name in names:
            frame[name].attrs["reticent"] = _MARK
        frame.attrs["reticent"] = _MARK
        return frame

    def plot(self, columns: Sequence[str] | None = None, ax: Any = None) -> Any:
        """The shares of the cells of columns in one clique, by default the first one's, with 95 %
        intervals; needs matplotlib, gives the Axes.
        """
        table = self._clear(self.cliques[0] if columns is None else columns)
        share, error = (x.ravel() for x in table.shares())
        cells = product(*(self.columns[name].levels for name in table.columns))
        half = _NORMAL * error
        ends = np.column_stack([np.maximum(share - half, 0.0), np.minimum(share + half, 1.0)])
        axes = intervals([", ".join(cell) for cell in cells], share, ends, ax)
        axes.set_xlabel(f"share of {', '.join(table.columns)}")
        return axes

    def summary(self) -> Text:
        rows = [
            (" × ".join(of.columns), str(of.counts.size), number(of.counts.size**0.5 * of.sigma))
            for of in self.all_tables
        ]
        lines = [
            *self._headline(),
            f"Records: {self.nobs:,}   standard error of a cell {number(self.bse)}",
            "",
            *text_table(("clique", "cells", "noise of all"), rows),
            "",
            *paragraph("Analyses inside of one clique have intervals: shares, ols, logit, fit."),
        ]
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.bse, self.nobs, self.all_tables)

    def _names(self, columns: Iterable[str]) -> list[str]:
        """Different columns of the question. Raises InvalidQuery."""
        names = [columns] if isinstance(columns, str) else list(columns)
        known = self.columns
        if not names or len(set(names)) < len(names) or not set(names) <= set(known):
            raise InvalidQuery(f"Name different columns of these: {', '.join(known)}.")
        return names

    def _clear(self, columns: Sequence[str]) -> CellTable:
        """The table of columns, whose number of records is above the noise. Raises InvalidQuery."""
        table = self.table(columns)
        if not table.is_clear:
            raise InvalidQuery(
                "The noise hides how many records were in use, so no share can be given. Ask again "
                "with a wider condition, a clique of fewer cells, or a larger epsilon."
            )
        return table

    def _fit(self, formula: str, link: MeanCurve, name: str) -> RegressionResults:
        response, terms = parse(formula)
        table = self.table([response, *(term for term, _ in terms)])
        design = cell_design(table, self.columns, response, terms)
        if link is LOGIT and not set(np.unique(design.y)) <= {0.0, 1.0}:
            raise InvalidQuery("A logit takes a response of two levels, or of 0 and 1.")
        result = fit_result(table, design, link, f"{name} of the columns' cells.", self.nobs)
        query = {"kind": "synthetic", "formula": formula, "where": self.query.get("where")}
        return RegressionResults({**self.release, "query": query, "result": result})

    def _cells(self, table: CellTable) -> Any:
        places = np.indices(table.counts.shape).reshape(len(table.columns), -1)
        return self._named(dict(zip(table.columns, places, strict=True)))

    def _named(self, places: Mapping[str, Any]) -> Any:
        """A frame of the cells' numbers, or levels."""
        known = self.columns
        shown = {name: np.asarray(known[name].numbers or known[name].levels) for name in places}
        return _optional.pandas().DataFrame({name: shown[name][at] for name, at in places.items()})
