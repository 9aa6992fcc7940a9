# SPDX-License-Identifier: Apache-2.0
"""A regression discontinuity: the jump at the cut-off, and the two lines."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent._release import Release
from reticent._text import Text, number, probability
from reticent.results.coefficient_table import summary_lines
from reticent.results.coefficients import Coefficients, FloatArray
from reticent.results.fuzzy import FuzzyEffect, Jump, fuzzy_effect

_JUMP = 1  # place of the jump among the coefficients: intercept, jump, slope, change of the slope
_SAME = ("running", "cutoff", "bandwidth", "where", "order")
_SIZES = (4, 6)  # coefficients of lines, and of parabolas: two more, of squares
_POINTS = 60  # of a line on each side
_BAND = 0.4  # opacity


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DiscontinuityResults(Coefficients):
    """A released jump of a mean at a cut-off, with the local lines on both sides.

    >>> found = ds.discontinuity("price", "sqft_living", cutoff=2000.0, bandwidth=1500.0,
    ...     epsilon=4.0)
    >>> found.jump, found.jump_interval(), found.pvalue
    >>> robust = ds.discontinuity("price", "sqft_living", cutoff=2000.0, bandwidth=1500.0,
    ...     order=2, epsilon=4.0)
    """

    @property
    def jump(self) -> float:
        """What the mean is higher by just above the cut-off than just below it."""
        return float(self.params[_JUMP])

    @property
    def first_look(self) -> tuple[str, ...]:
        """All but the jump: the lines are to draw by."""
        return tuple(name for i, name in enumerate(self.names) if i != _JUMP)

    @property
    def standard_error(self) -> float:
        """Of the jump: sampling and privacy noise."""
        return float(self.bse[_JUMP])

    @property
    def pvalue(self) -> float:
        """Of "no jump"."""
        return float(self.pvalues[_JUMP])

    def jump_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """The jump's interval of level 1 − alpha; costs nothing."""
        low, high = self.conf_int(alpha)[_JUMP].tolist()
        return low, high

    def fuzzy(self, treatment: "DiscontinuityResults", alpha: float = 0.05) -> FuzzyEffect:
        """The effect of a treatment whose chance jumps at the cut-off: this jump over that of
        `treatment`, another release with the treatment as y and all else the same. The interval
        (Anderson & Rubin's) holds however small that jump is, and is the whole line where one of
        the two has no interval; costs nothing.

        Raises ValueError where the two are not about the same records.
        """
        if _question(self) != _question(treatment):
            raise ValueError("both releases must have the same data set and, but for y, question")
        return fuzzy_effect(_jump(self), _jump(treatment), alpha)

    @property
    def formula(self) -> str:
        """The question in words."""
        return f"{self.query['y']} ~ {self.query['running']} about {self.query['cutoff']:g}"

    def summary(self) -> Text:
        """The jump, the lines' coefficients, the guarantee and the charge."""
        low, high = (number(end) for end in self.jump_interval())
        said = (
            f"Jump at {self.query['cutoff']:g}: {number(self.jump)} [{low}, {high}], p "
            f"{probability(self.pvalue)}"
        )
        return Text("\n".join(summary_lines(self, [*self._headline(), said], self._footer())))

    def plot(self, ax: Any = None) -> Any:
        """The two lines with their 95 % bands (each point's own); needs matplotlib, gives the
        Axes.
        """
        axes = axes_of(ax)
        cutoff, width = float(self.query["cutoff"]), float(self.query["bandwidth"])
        for start, above in ((cutoff - width, 0.0), (cutoff, 1.0)):
            x = np.linspace(start, start + width, _POINTS)
            u = x - cutoff
            columns = [np.ones(_POINTS), np.full(_POINTS, above), x, above * u, u**2, above * u**2]
            self._line(axes, x, np.column_stack(columns[: len(self.names)]))
        axes.axvline(cutoff, color="black", linewidth=0.8, linestyle=":")
        axes.set_xlabel(str(self.query["running"]))
        axes.set_ylabel(str(self.query["y"]))
        return axes

    def _line(self, axes: Any, x: FloatArray, rows: FloatArray) -> None:
        middle = rows @ np.asarray(self.params)
        variance = np.einsum("ij,jk,ik->i", rows, self.cov_params(), rows)
        half = float(ndtri(0.975)) * np.sqrt(np.maximum(variance, 0.0))
        axes.fill_between(x, middle - half, middle + half, color=TOTAL, alpha=_BAND, linewidth=0)
        axes.plot(x, middle, color=SAMPLING)

    def check(self) -> None:
        Release.check(self)
        p = len(self.names)
        _ = (self.params, self.bse, self.privacy_bse, self.pvalues, self.nobs, self.formula)
        if p not in _SIZES or self.conf_int().shape != (p, 2):
            raise ValueError("a discontinuity has four or six coefficients with intervals")


def _question(release: DiscontinuityResults) -> tuple[Any, ...]:
    """What must be the same of two jumps that are divided."""
    return (release.dataset, release.version, *(release.query.get(name) for name in _SAME))


def _jump(release: DiscontinuityResults) -> Jump:
    sampling, noise = release.sampling_bse[_JUMP], release.privacy_bse[_JUMP]
    return Jump(release.jump, float(sampling), float(noise))
