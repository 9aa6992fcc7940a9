# SPDX-License-Identifier: Apache-2.0
"""A released test of linear hypotheses, or a table of a model's terms."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING, axes_of
from reticent._release import Release
from reticent._text import Text, number, paragraph, probability, text_table
from reticent.results.regression import RegressionResults

_NAMES = {"wald": "Wald", "score": "Score (Rao)", "lr": "Likelihood-ratio-type"}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TestResults(Release):
    """A released test. Its null law counts sampling and privacy noise.

    statistic and pvalue are NaN where a coefficient of the hypothesis is not identifiable; of a
    table of terms, `table` has a row for each term, and statistic, df and pvalue are those of its
    first row.

    >>> ds.hypothesis_test("price ~ sqft_living + grade", ["grade = 0"], "score", epsilon=1.0)
    >>> test = ds.test("price ~ sqft_living + grade", "grade = 0", epsilon=1.0)
    >>> test.statistic, test.df, test.pvalue
    """

    __test__ = False  # not for pytest

    @property
    def test(self) -> str:
        """ "wald", "score" or "lr"."""
        return str(self.result["test"])

    @property
    def table(self) -> tuple[Mapping[str, Any], ...]:
        """One row for each term (or the one test): term, statistic, df, p_value, estimable."""
        if "table" in self.result:
            return tuple(self.result["table"])
        return ({"term": ", ".join(self.result["hypotheses"]), **self.result},)

    @property
    def statistic(self) -> float:
        """The test's statistic, or that of the table's first row; nan where it is not
        identifiable."""
        return _number(self.table[0]["statistic"])

    @property
    def df(self) -> int:
        """Degrees of freedom: rows of the hypothesis."""
        return int(self.table[0]["df"])

    @property
    def pvalue(self) -> float:
        """The test's p-value, or that of the table's first row; nan where it is not
        identifiable."""
        return _number(self.table[0]["p_value"])

    @property
    def estimable(self) -> bool:
        """False where the release cannot tell what is tested from privacy noise."""
        return all(bool(row["estimable"]) for row in self.table)

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    @property
    def fit(self) -> RegressionResults | None:
        """The fit that a Wald or likelihood-ratio-type test was made of; None for a score test."""
        if "fit" not in self.result:
            return None
        return RegressionResults({**self.release, "result": self.result["fit"]})

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each term (or the one test); needs pandas."""
        names = ("statistic", "df", "p_value", "estimable")
        rows = [{name: row[name] for name in names} for row in self.table]
        return _optional.pandas().DataFrame(rows, index=[str(row["term"]) for row in self.table])

    def plot(self, ax: Any = None) -> Any:
        """Evidence against each hypothesis; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        rows = [(str(r["term"]), r["p_value"]) for r in self.table]
        heights = [0.0 if p is None else -np.log10(max(float(p), 1e-16)) for _, p in rows]
        labels = [term + (" (not identifiable)" if p is None else "") for term, p in rows]
        axes.barh(range(len(rows)), heights, color=SAMPLING)
        axes.axvline(-np.log10(0.05), color="black", linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(rows)), labels)
        axes.invert_yaxis()
        axes.set_xlabel("−log₁₀ p (dotted: 5 %)")
        return axes

    def summary(self) -> Text:
        rows = [
            (str(r["term"]), str(r["df"]), _text(r["statistic"]), _p_text(r["p_value"]))
            for r in self.table
        ]
        lines = [*self._headline(), f"{_NAMES.get(self.test, self.test)} test", ""]
        lines += text_table(("", "df", "statistic", "P"), rows)
        for warning in self.result.get("warnings") or ():
            lines += paragraph(str(warning), "- ")
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.test, self.statistic, self.df, self.pvalue, self.nobs, self.estimable)
        if (fit := self.fit) is not None:
            fit.check()


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _text(value: Any) -> str:
    return "not identifiable" if value is None else number(float(value))


def _p_text(value: Any) -> str:
    return "–" if value is None else probability(float(value))
