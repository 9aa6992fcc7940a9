# SPDX-License-Identifier: Apache-2.0
"""Quantile regressions of every group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent import _optional
from reticent._release import Release
from reticent._text import Text
from reticent.kinds.quantile_regression import QuantileRegressionResults
from reticent.results import several
from reticent.results.effects import Effects


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupQuantileRegressions(Release):
    """Released quantile regressions of every group, charged once: each of `groups` has a regression
    for each level.

    >>> found = ds.quantile_regression("price ~ grade", [0.25, 0.75], by="waterfront",
    ...     epsilon=4.0)
    >>> found.groups["1"].fits[0.75].params, found.compare("0", "1", 0.75).conf_int()
    """

    @property
    def by(self) -> str:
        """The column of the groups."""
        return str(self.result["by"])

    @property
    def groups(self) -> Mapping[str, QuantileRegressionResults]:
        """The fits by level of `by`."""
        return {
            str(group["level"]): QuantileRegressionResults({**self.release, "result": group})
            for group in self.result["groups"]
        }

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def compare(self, reference: str, level: str, tau: float) -> Effects:
        """Differences of the coefficients at `tau`, those of `level` less those of `reference`: the
        errors of two groups are independent. Costs nothing. Raises KeyError for an unknown level or
        tau.
        """
        groups = self.groups
        first, second = groups[reference].fits[tau], groups[level].fits[tau]
        return several.compare(first, second, independent=True)

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group, τ and term; needs pandas."""
        frames = []
        for level, group in self.groups.items():
            frame = group.to_frame()
            frame.insert(0, self.by, level)
            frames.append(frame)
        return _optional.pandas().concat(frames, ignore_index=True)

    def plot(self, ax: Any = None) -> Any:
        """Every group's coefficients at the lowest τ with 95 % intervals; needs matplotlib, gives
        the Axes.

        A group's own `plot` shows how its coefficients change with τ.
        """
        lowest = {level: next(iter(group.fits.values())) for level, group in self.groups.items()}
        return several.plot_fits(lowest, None, ax)

    def summary(self) -> Text:
        """The tables of every group, the guarantee and the charge."""
        lines = [*self._headline(), f"Records: {self.nobs:,}"]
        for level, group in self.groups.items():
            lines += ["", f"{self.by} = {level}", *group.tables()]
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.by, self.nobs)
        if not self.groups:
            raise ValueError("an answer by group has fits for each group")
        for group in self.groups.values():
            group.check()
