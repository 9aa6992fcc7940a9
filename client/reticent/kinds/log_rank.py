# SPDX-License-Identifier: Apache-2.0
"""The log-rank test."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING, axes_of
from reticent._release import Release
from reticent._text import Text, number, p_value, text_table
from reticent._vector import Vector


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LogRankTest(Release):
    """Do groups differ in how long it takes until the event? The noise is in the test's null law.

    >>> test = ds.log_rank("days", "sold", "waterfront", epsilon=1.0)
    >>> test.statistic, test.df, test.pvalue
    >>> ds.log_rank("days", "sold", "grade", strata="waterfront", trend=True,
    ...     epsilon=1.0).pvalue
    >>> ds.log_rank("days", "sold", "waterfront", emphasis=(0, 1), epsilon=1.0).pvalue
    """

    @property
    def statistic(self) -> float:
        """The log-rank statistic, referred to χ² with one degree of freedom fewer than groups."""
        return float(self.result["statistic"])

    @property
    def df(self) -> int:
        """Degrees of freedom: groups less one; 1 of a trend."""
        return int(self.result["df"])

    @property
    def pvalue(self) -> float:
        """Of equal hazards in all groups; privacy noise is allowed for."""
        return float(self.result["p_value"])

    @property
    def observed_minus_expected(self) -> Vector:
        """By group: noisy events beyond what one common hazard leads to expect; above 0, events
        come sooner. Weighted as the test weights them; of a trend, their part that goes with the
        order of the levels; nan of a group that is not compared, as it may have no record.
        """
        values = np.array(self.result["observed_minus_expected"], dtype=np.float64)
        return Vector(values, tuple(map(str, self.result["levels"])))

    @property
    def until(self) -> float:
        """The time up to which events are compared: where the test was expected to be most
        powerful.
        """
        return float(self.result["until"])

    @property
    def privacy_share(self) -> float:
        """The part of the statistic's variance that is noise, between 0 and 1."""
        return float(self.result["privacy_share"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def summary(self) -> Text:
        groups = self.observed_minus_expected
        rows = [(k, number(v)) for k, v in zip(groups.names, groups.tolist(), strict=True)]
        df = self.df
        lines = [
            *self._headline(),
            f"Time: {self.query['time']}   event: {self.query['event']}   by: {self.query['by']}",
            *_compared(self.query),
            f"Records: {self.nobs:,}   events up to {number(self.until)}",
            (
                f"χ² = {self.statistic:.4g} on {df} degree{'s' if df > 1 else ''} of freedom, "
                f"{p_value(self.pvalue)}"
            ),
            "",
            *text_table(("", "observed − expected"), rows),
            *self._warned(),
        ]
        return Text("\n".join([*lines, "", *self._footer()]))

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row; needs pandas."""
        row = {"statistic": self.statistic, "df": self.df, "p_value": self.pvalue}
        return _optional.pandas().DataFrame([row], index=["log-rank"])

    def plot(self, ax: Any = None) -> Any:
        """Observed minus expected events by group; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        groups = self.observed_minus_expected
        axes.barh(groups.names, np.nan_to_num(np.asarray(groups)), color=SAMPLING)
        axes.axvline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel("noisy events, observed minus expected")
        axes.set_title(p_value(self.pvalue), fontsize="medium")
        return axes

    def check(self) -> None:
        Release.check(self)
        _ = (self.statistic, self.df, self.pvalue, self.until, self.privacy_share, self.nobs)
        _ = self.observed_minus_expected


def _compared(query: Mapping[str, Any]) -> list[str]:
    """How, where it is not the plain test."""
    parts = [f"strata: {query['strata']}"] if query.get("strata") else []
    parts += ["trend over the levels"] if query.get("trend") else []
    early, late = query.get("emphasis") or (0.0, 0.0)
    if early or late:
        parts.append(f"Fleming–Harrington weights ρ = {early:g}, γ = {late:g}")
    return ["   ".join(parts)] if parts else []
