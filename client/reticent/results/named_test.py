# SPDX-License-Identifier: Apache-2.0
"""A released test that goes by its name: t, Mann–Whitney, a correlation and the like."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import intervals
from reticent._release import Release
from reticent._text import Text, number, p_value, paragraph, text_table
from reticent.results.group_estimates import GroupDifferences, pairwise_differences

_NAMES = {
    "t_test": "t test (Welch)",
    "anova": "analysis of variance (Welch)",
    "mann_whitney": "Mann–Whitney test",
    "kruskal": "Kruskal–Wallis test",
    "proportion_test": "test of proportions",
    "correlation": "correlation",
    "ks_test": "Kolmogorov–Smirnov test",
}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NamedTest(Release):
    """A released test. Its null law and its interval count sampling and privacy noise.

    >>> test = ds.t_test("price", "waterfront", epsilon=1.0)
    >>> test.effect, test.conf_int(), test.statistic, test.df, test.pvalue
    >>> ds.t_test(columns=["sqft_living", "bedrooms"], paired=True, popmean=2000, epsilon=1.0)
    >>> ds.anova("price", "condition", epsilon=1.0).to_frame()
    >>> ds.mann_whitney("price", "waterfront", alternative="less", epsilon=1.0)
    >>> ds.kruskal("price", "condition", levels=["1", "3", "5"], epsilon=1.0)
    >>> ds.proportion_test("condition", "waterfront", success="5", epsilon=1.0)
    >>> ds.correlation(["price", "sqft_living"], method="spearman", epsilon=1.0)
    >>> ds.ks_test("price", "waterfront", epsilon=1.0)
    """

    __test__ = False  # not for pytest

    @property
    def statistic(self) -> float:
        """The test's statistic, which `pvalue` is computed from; the privacy noise is in it."""
        return float(self.result["statistic"])

    @property
    def df(self) -> float | None:
        """Degrees of freedom; None where the null law is normal or simulated."""
        found = self.result.get("df")
        return None if found is None else float(found)

    @property
    def pvalue(self) -> float:
        """Of the null hypothesis, with the law of the statistic that counts the noise."""
        return float(self.result["p_value"])

    @property
    def effect(self) -> float:
        """Of which `estimand` says what it is, in the units of the data."""
        return float(self.result["effect"])

    def differences(self, reference: str | None = None) -> GroupDifferences:
        """Of the means of every pair of an anova's groups, or of each group from `reference`, free;
        without groups that may have no record.
        Raises KeyError for an unknown level, ValueError for a test without group means.

        >>> ds.anova("price", "condition", epsilon=1.0).differences().pvalues("tukey")
        """
        groups = [g for g in self.result.get("groups") or () if g["mean"] is not None]
        if self.query["kind"] != "anova" or not groups:
            raise ValueError("Differences of groups are of an anova, or of a mean by group.")
        means, errors = (
            np.array([float(g[name]) for g in groups]) for name in ("mean", "standard_error")
        )
        return pairwise_differences([str(g["level"]) for g in groups], means, errors, reference)

    @property
    def estimand(self) -> str:
        """What `effect` estimates, in words."""
        return str(self.result["estimand"])

    @property
    def confidence_level(self) -> float:
        """Of the interval of the effect, such as .95."""
        return float(self.result["confidence_level"])

    @property
    def bse(self) -> float | None:
        """Standard error of the effect, privacy noise counted; None where it has none."""
        found = self.result.get("standard_error")
        return None if found is None else float(found)

    @property
    def privacy_bse(self) -> float | None:
        """The privacy noise's part of the standard error."""
        found = self.result.get("privacy_standard_error")
        return None if found is None else float(found)

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    @property
    def groups(self) -> tuple[Mapping[str, Any], ...]:
        """What was released of each group: level, number, and mean and the like where the test has
        it.
        """
        if "groups" in self.result:
            return tuple(self.result["groups"])
        columns = {
            "level": self.result.get("levels"),
            "number": self.result.get("numbers"),
            "proportion": self.result.get("proportions"),
            "mean_rank": self.result.get("mean_ranks"),
        }
        given = {name: values for name, values in columns.items() if values is not None}
        return tuple(
            dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)
        )

    def conf_int(self) -> tuple[float, float]:
        """(lower, upper) of the effect, at `confidence_level`."""
        low, high = self.result["effect_interval"]
        return float(low), float(high)

    def to_frame(self) -> Any:
        """A pandas.DataFrame of one row: effect, interval, statistic, df and p-value; needs
        pandas.
        """
        low, high = self.conf_int()
        row: dict[str, float | None] = {"effect": self.effect, "lower": low, "upper": high}
        row |= {"statistic": self.statistic, "df": self.df, "p_value": self.pvalue}
        return _optional.pandas().DataFrame([row], index=[str(self.query["kind"])])

    def plot(self, ax: Any = None) -> Any:
        """The effect with its interval; needs matplotlib, gives the Axes."""
        axes = intervals([str(self.query["kind"])], [self.effect], [self.conf_int()], ax)
        axes.set_xlabel(f"{self.estimand}, {100 * self.confidence_level:g} % interval")
        return axes

    def summary(self) -> Text:
        (low, high), level = self.conf_int(), f"{100 * self.confidence_level:g} %"
        df = "" if self.df is None else f", df = {number(self.df)}"
        lines = [
            *self._headline(),
            *paragraph(f"Estimated: {self.estimand}"),
            "",
            f"{number(self.effect)}   {level} interval [{number(low)}, {number(high)}]",
            f"{self._name}: statistic = {number(self.statistic)}{df}, {p_value(self.pvalue)}",
            "",
            *self._table(),
            *self._warned(),
            *self._footer(),
        ]
        return Text("\n".join(lines))

    @property
    def _name(self) -> str:
        return _NAMES.get(str(self.query["kind"]), "test")

    def _table(self) -> list[str]:
        if not self.groups:
            return []
        header = tuple(self.groups[0])
        rows = [
            [str(row["level"]), *(number(row[name]) for name in header[1:])] for row in self.groups
        ]
        return [*text_table(("", *(name.replace("_", " ") for name in header[1:])), rows), ""]

    def check(self) -> None:
        Release.check(self)
        _ = (self.statistic, self.df, self.pvalue, self.effect, self.estimand, self.nobs)
        _ = (self.confidence_level, self.bse, self.privacy_bse, self.groups, self.conf_int())
