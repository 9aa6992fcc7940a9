# SPDX-License-Identifier: Apache-2.0
"""One regression a group, side by side, and the differences between groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent import _optional
from reticent._release import Release
from reticent._text import Text, paragraph, text_table
from reticent.results import several
from reticent.results.coefficient_table import HEADER, coefficient_rows
from reticent.results.effects import Effects
from reticent.results.regression import RegressionResults
from reticent.results.several import FitTable


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class GroupRegressions(Release):
    """Released fits of one model in every group, charged once: each of `fits` is a regression with
    all that one has.

    >>> found = ds.linear_regression("log(price) ~ log(sqft_living) + grade", by="waterfront",
    ...     epsilon=2.0)
    >>> found.fits["1"].params["grade"], found.compare("0", "1").conf_int(), found.table()
    """

    @property
    def by(self) -> str:
        """The column of the groups."""
        return str(self.result["by"])

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the `by` column, in the schema's order: one regression each."""
        return tuple(str(group["level"]) for group in self.result["groups"])

    @property
    def fits(self) -> Mapping[str, RegressionResults]:
        """The fits by level of `by`."""
        return {
            str(group["level"]): RegressionResults({**self.release, "result": group})
            for group in self.result["groups"]
        }

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def compare(self, reference: str, level: str) -> Effects:
        """Differences of the coefficients, those of `level` less those of `reference`, with
        intervals: groups are disjoint, so their errors are independent. Costs nothing. Raises
        KeyError for an unknown level.

        >>> found = ds.linear_regression("price ~ grade", by="waterfront", epsilon=1.0)
        >>> found.compare("0", "1").summary()
        """
        for name in (reference, level):
            if name not in self.levels:
                raise KeyError(f"{name}: the levels are {', '.join(self.levels)}")
        fits = self.fits
        return several.compare(fits[reference], fits[level], independent=True)

    def table(self, *, exp: bool = False, stars: bool = True) -> FitTable:
        """All fits side by side, as reticent.table: text, HTML, Markdown, LaTeX or Word."""
        return several.table(self.fits, exp=exp, stars=stars)

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each group and term; needs pandas."""
        frames = []
        for level, fit in self.fits.items():
            frame = fit.to_frame().rename_axis("term").reset_index()
            frame.insert(0, self.by, level)
            frames.append(frame)
        return _optional.pandas().concat(frames, ignore_index=True)

    def plot(self, ax: Any = None) -> Any:
        """Every group's coefficients with 95 % intervals; needs matplotlib, gives the Axes."""
        return several.plot_fits(self.fits, None, ax)

    def summary(self) -> Text:
        """One table for each group, the guarantee and the charge."""
        lines = [*self._headline(), f"Records: {self.nobs:,}"]
        for level, fit in self.fits.items():
            lines += ["", f"{self.by} = {level}", *_table(fit)]
        return Text("\n".join([*lines, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.by, self.nobs)
        if not self.fits:
            raise ValueError("an answer by group has a fit for each group")
        for fit in self.fits.values():
            fit.check()


def _table(fit: RegressionResults) -> list[str]:
    said = [line for text in fit.result["warnings"] for line in paragraph(text)]
    return [*text_table(HEADER, coefficient_rows(fit)), *said]
