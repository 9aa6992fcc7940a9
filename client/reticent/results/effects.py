# SPDX-License-Identifier: Apache-2.0
"""Named combinations of a fit's coefficients: predictions, margins, means and contrasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from reticent import _optional, _simultaneous
from reticent._drawing import intervals
from reticent._text import Text, number, paragraph, probability, text_table

FloatArray = NDArray[np.float64]
_HEADER = ("", "estimate", "std err", "z", "P>|z|", "lower", "upper")


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Effects:
    """k estimates with covariance (k, k), which counts sampling and privacy noise. Free of charge.

    >>> fit = ds.linear_regression("price ~ sqft_living + C(waterfront)", epsilon=2.0)
    >>> fit.margins().conf_int(), fit.contrasts("waterfront").summary()

    estimable: (k,) False where a combination is mostly privacy noise; its numbers are NaN.
    widening: of intervals relative to normal ones, as in the fit that they come from. about: what
    is estimated, in words.
    """

    names: tuple[str, ...]
    estimates: FloatArray
    covariance: FloatArray
    estimable: tuple[bool, ...]
    widening: float
    about: str

    @property
    def bse(self) -> FloatArray:
        """(k,) standard errors."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def pvalues(self) -> FloatArray:
        """(k,) two-sided p-values of "estimate = 0"."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(2 * ndtr(-np.abs(self.estimates / self.bse / self.widening)))

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> FloatArray:
        """(k, 2) intervals of level 1 − alpha; simultaneous: all estimable ones at once."""
        if not 0 < alpha < 1:
            raise ValueError("alpha lies between 0 and 1")
        z = self._joint(1 - alpha) if simultaneous else float(ndtri(1 - alpha / 2))
        half = z * self.widening * self.bse
        return np.column_stack([self.estimates - half, self.estimates + half])

    def summary_frame(self, alpha: float = 0.05) -> Any:
        """A pandas.DataFrame with a row for each estimate; needs pandas."""
        lower, upper = self.conf_int(alpha).T
        columns = {
            "estimate": self.estimates,
            "std err": self.bse,
            "pvalue": self.pvalues,
            "lower": lower,
            "upper": upper,
            "estimable": np.array(self.estimable),
        }
        return _optional.pandas().DataFrame(columns, index=list(self.names))

    def summary(self) -> Text:
        """The table with 95 % intervals, and which estimates could not be computed."""
        rows = [
            (name, *map(number, (b, se, z)), probability(p), number(low), number(high))
            for name, b, se, z, p, (low, high) in zip(
                self.names,
                self.estimates,
                self.bse,
                self.estimates / np.where(self.bse > 0, self.bse, np.nan),
                self.pvalues,
                self.conf_int(),
                strict=True,
            )
        ]
        lost = [name for name, ok in zip(self.names, self.estimable, strict=True) if not ok]
        said = f"Not identifiable at this privacy level: {', '.join(lost)}." if lost else ""
        return Text(
            "\n".join([*paragraph(self.about), *text_table(_HEADER, rows), *paragraph(said)])
        )

    def plot(self, ax: Any = None) -> Any:
        """The estimates with 95 % intervals; needs matplotlib, gives the Axes."""
        return intervals(self.names, self.estimates, self.conf_int(), ax)

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _joint(self, level: float) -> float:
        usable = np.array(self.estimable) & (np.nan_to_num(np.diag(self.covariance)) > 0)
        if not usable.any():
            return float("nan")
        if not np.isfinite(self.covariance[np.ix_(usable, usable)]).all():
            return float(ndtri(1 - (1 - level) / (2 * usable.sum())))  # Bonferroni's
        return _simultaneous.critical_value(self.covariance[np.ix_(usable, usable)], level)


def combined(
    names: Sequence[str],
    values: FloatArray,
    gradient: FloatArray,
    covariance: FloatArray,
    estimable: Sequence[bool],
    widening: float,
    about: str,
) -> Effects:
    """Effects by the delta method: values (k,), gradient (k, p), covariance (p, p); NaN where not
    identifiable.
    """
    G = np.nan_to_num(gradient)
    C = G @ np.nan_to_num(covariance) @ G.T
    lost = ~np.array(estimable, dtype=bool) | ~np.isfinite(values)
    C[lost, :] = C[:, lost] = np.nan
    shown = np.where(lost, np.nan, values)
    return Effects(tuple(names), shown, C, tuple(map(bool, ~lost)), widening, about)
