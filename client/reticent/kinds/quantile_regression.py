# SPDX-License-Identifier: Apache-2.0
"""Quantile regressions: one fit for each level, and how the coefficients change with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL
from reticent._release import Release
from reticent._text import Text, number, paragraph, probability, text_table
from reticent.results.design import Frame
from reticent.results.regression import RegressionResults

_INTERCEPT = "Intercept"
_PANEL = (3.4, 2.6)  # inches: axes of one coefficient
_ACROSS = 3
_BAND = 0.4  # opacity


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class QuantileRegressionResults(Release):
    """Released regressions of one or several quantiles; each of `fits` is a regression with all
    that one has.

    >>> found = ds.quantile_regression("price ~ sqft_living + grade", [0.25, 0.5, 0.75],
    ...     epsilon=4.0)
    >>> found.fits[0.5].params["grade"], found.fits[0.25].conf_int(), found.to_frame()
    """

    @property
    def fits(self) -> Mapping[float, RegressionResults]:
        """The fits by τ, in increasing order."""
        return {
            float(fit["tau"]): RegressionResults({**self.release, "result": fit})
            for fit in self.result["fits"]
        }

    @property
    def fit(self) -> RegressionResults:
        """The one fit. Raises ValueError where there are several."""
        if len(self.fits) != 1:
            raise ValueError("there is a fit for each tau; see fits")
        return next(iter(self.fits.values()))

    def predict(self, frame: Frame) -> Any:
        """(n,) predicted quantiles of new public data, free; of several τ a mapping, by τ. As
        RegressionResults.predict.
        """
        found = {tau: fit.predict(frame) for tau, fit in self.fits.items()}
        return found if len(found) > 1 else self.fit.predict(frame)

    @property
    def crossing(self) -> bool:
        """Whether a lower quantile lies above a higher one near the middle of the regressors."""
        return bool(self.result["crossing"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def summary(self) -> Text:
        """One table for each τ, the guarantee and the charge."""
        lines = [*self._headline(), f"Records: {self.nobs:,}", *self.tables(), "", *self._footer()]
        return Text("\n".join(lines))

    def tables(self) -> list[str]:
        """The lines of one table for each τ, and what a reader must know."""
        lines: list[str] = []
        for tau, fit in self.fits.items():
            lines += ["", f"tau = {tau:g}", *text_table(_HEADER, _rows(fit))]
            lines += paragraph(f"Estimand: {fit.result['estimand']}")
            lines += [line for said in fit.result["warnings"] for line in paragraph(said)]
        return lines + [line for said in self.result["warnings"] for line in paragraph(said)]

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each τ and term; needs pandas."""
        pandas = _optional.pandas()
        frames = [
            pandas.DataFrame(
                {
                    "tau": tau,
                    "term": fit.names,
                    "coef": np.asarray(fit.params),
                    "std_err": np.asarray(fit.bse),
                    "lower": fit.conf_int()[:, 0],
                    "upper": fit.conf_int()[:, 1],
                }
            )
            for tau, fit in self.fits.items()
        ]
        return pandas.concat(frames, ignore_index=True)

    def plot(self, ax: Any = None) -> Any:
        """Each coefficient by τ with its 95 % interval (thin bars); needs matplotlib, gives the
        first Axes.

        The intercept is left out where there are other terms. With `ax` the first of them alone is
        drawn.
        """
        names = next(iter(self.fits.values())).names
        shown = [j for j, name in enumerate(names) if len(names) == 1 or name != _INTERCEPT]
        if ax is not None:
            return self._panel(ax, shown[0])
        rows, columns = -(-len(shown) // _ACROSS), min(len(shown), _ACROSS)
        size = (_PANEL[0] * columns, _PANEL[1] * rows)
        options = {"squeeze": False, "layout": "constrained", "figsize": size}
        _, grid = _optional.pyplot().subplots(rows, columns, **options)
        for j, axes in zip(shown, grid.flat, strict=False):
            self._panel(axes, j)
        for axes in grid.flat[len(shown) :]:
            axes.set_visible(False)
        return grid[0, 0]

    def _panel(self, axes: Any, j: int) -> Any:
        fits = self.fits
        taus = np.array(list(fits))
        values = np.array([float(fit.params[j]) for fit in fits.values()])
        low, high = np.array([fit.conf_int()[j] for fit in fits.values()]).T
        axes.fill_between(taus, low, high, color=TOTAL, alpha=_BAND, linewidth=0)
        axes.vlines(taus, low, high, color=TOTAL)
        axes.plot(taus, values, "o-", color=SAMPLING)
        axes.axhline(0.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel("tau")
        axes.set_title(next(iter(fits.values())).names[j], fontsize="medium")
        return axes

    def check(self) -> None:
        Release.check(self)
        _ = (self.crossing, self.nobs, list(self.result["warnings"]))
        if not self.fits:
            raise ValueError("a quantile regression has a fit for each tau")
        for fit in self.fits.values():
            fit.check()


_HEADER = ("", "coef", "std err", "privacy se", "P>|z|", "[0.025", "0.975]")


def _rows(fit: RegressionResults) -> list[tuple[str, ...]]:
    columns = (fit.params, fit.bse, fit.privacy_bse, fit.pvalues)
    ends = fit.conf_int()
    return [
        (
            name,
            *(number(float(c[j])) for c in columns[:3]),
            probability(float(columns[3][j])),
            *map(number, ends[j].tolist()),
        )
        for j, name in enumerate(fit.names)
    ]
