# SPDX-License-Identifier: Apache-2.0
"""A specification curve: one coefficient over many formulas of one study (Simonsohn, Simmons &
Nelson 2020).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _drawing, _optional
from reticent._study.fit import StudyFit
from reticent._study.moments import FloatArray
from reticent._text import Text


@dataclass(frozen=True, slots=True, eq=False)
class SpecificationCurve:
    """One term's coefficient by formula; the first is the base. Intervals are nominal, one formula
    at a time.

    >>> curve = study.robustness("price ~ grade + sqft_living", ["+ bedrooms", "- sqft_living"])
    >>> curve.to_frame(); curve.plot()
    """

    term: str
    formulas: tuple[str, ...]
    fits: tuple[StudyFit, ...]

    @property
    def values(self) -> FloatArray:
        """(k,) the term's coefficient in each specification, in the order of `formulas`."""
        return np.array([fit.params[self.term] for fit in self.fits])

    @property
    def bse(self) -> FloatArray:
        """(k,) its standard errors, sampling and privacy noise together."""
        return np.array([fit.bse[self.term] for fit in self.fits])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(k, 2) intervals; NaN where a formula has none."""
        return np.array([fit.conf_int(alpha)[fit.names.index(self.term)] for fit in self.fits])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row a formula; needs pandas."""
        lower, upper = self.conf_int().T
        p = [fit.pvalues[self.term] for fit in self.fits]
        columns = {
            "coef": self.values,
            "bse": self.bse,
            "lower": lower,
            "upper": upper,
            "pvalue": p,
        }
        return _optional.pandas().DataFrame(columns, index=list(self.formulas))

    def summary(self) -> Text:
        """A line a specification: the coefficient, its 95 % interval and the formula."""
        rows = zip(self.formulas, self.values, self.conf_int(), strict=True)
        lines = [
            f"{value:10.4g}  [{low:.4g}, {high:.4g}]  {text}" for text, value, (low, high) in rows
        ]
        return Text("\n".join([f"{self.term} by specification, 95 % intervals", "", *lines]))

    def __repr__(self) -> str:
        return str(self.summary())

    def plot(self, ax: Any = None) -> Any:
        """Coefficients in increasing order with intervals, labelled by how they vary the base,
        which is above; needs matplotlib, gives the Axes.
        """
        order = np.argsort(self.values)
        base = self.formulas[0]
        labels = [self.formulas[k].removeprefix(base).strip() or "as above" for k in order]
        axes = _drawing.intervals(labels, self.values[order], self.conf_int()[order], ax)
        axes.axvline(self.values[0], color=_drawing.TOTAL, linestyle="--")
        axes.set_xlabel(self.term)
        axes.set_title(base)
        return axes


def varied(base: str, variation: str) -> str:
    """The base with terms added or taken away ("+ x", "- x"), or the variation where it is a whole
    formula.
    """
    return variation if "~" in variation else f"{base} {variation.strip()}"
