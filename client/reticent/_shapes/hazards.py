# SPDX-License-Identifier: Apache-2.0
"""lifelines' CoxPHFitter."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from reticent import _optional
from reticent._errors import NotPrivate
from reticent._shapes.model import described
from reticent._shapes.results import FittedModel
from reticent.kinds.hazard_regression import HazardResults
from reticent.results.proportionality import ProportionalHazards


class CoxPHFitter:
    """fit asks, which is charged; then the members of lifelines' fitter. Needs pandas. alpha: 1
    less the level of intervals.
    """

    def __init__(self, alpha: float = 0.05) -> None:
        self.alpha = alpha
        self._model: FittedModel | None = None

    def fit(
        self,
        df: Any,
        duration_col: str,
        event_col: str | None = None,
        formula: str | None = None,
        **spending: Any,
    ) -> "CoxPHFitter":
        """df: a data set. formula: the right side. spending: epsilon, ci_ratio and so on, unless
        the data set is `budgeted`, and `cuts`. Raises NotPrivate without event_col or formula.

        >>> CoxPHFitter().fit(ds, "days", "sold", formula="grade", epsilon=2.0).hazard_ratios_
        """
        if event_col is None or formula is None:
            raise NotPrivate('Name event_col, and the terms: formula="age + C(sex)".')
        terms = formula.partition("~")[2] if "~" in formula else formula
        left = f"Surv({duration_col}, {event_col})"
        self._model = described("hazard_regression", f"{left} ~ {terms}", df).fit(**spending)
        return self

    @property
    def model(self) -> FittedModel:
        """With statsmodels' members; model.fit is the release. Raises NotPrivate before fit."""
        if self._model is None:
            raise NotPrivate("Call fit first.")
        return self._model

    @property
    def params_(self) -> Any:
        """(p,) logarithms of hazard ratios."""
        return self.model.params

    @property
    def hazard_ratios_(self) -> Any:
        """(p,)"""
        return np.exp(self.model.params)

    @property
    def standard_errors_(self) -> Any:
        """(p,) of sampling and privacy noise."""
        return self.model.bse

    @property
    def confidence_intervals_(self) -> Any:
        """(p, 2)"""
        return self.model.conf_int(self.alpha)

    @property
    def summary(self) -> Any:
        """A frame with a row for each coefficient."""
        ends = self.confidence_intervals_
        columns = {
            "coef": self.params_,
            "exp(coef)": self.hazard_ratios_,
            "se(coef)": self.standard_errors_,
            "coef lower": ends[0],
            "coef upper": ends[1],
            "z": self.model.tvalues,
            "p": self.model.pvalues,
        }
        return _optional.pandas().DataFrame(columns)

    def predict_survival_function(
        self, X: Any, times: Sequence[float] | None = None, **more: Any
    ) -> Any:
        """A frame with a row for each time and a column for each row of X; more: `offset`.
        Intervals are in model.fit.predict_survival."""
        found = cast(HazardResults, self.model.fit).predict_survival(X, times, **more)
        return _optional.pandas().DataFrame(found.survival.T, index=found.times)

    def check_assumptions(self) -> ProportionalHazards:
        """Whether hazards are proportional, of a fit asked with `proportionality`."""
        return cast(HazardResults, self.model.fit).cox_zph()

    def plot(self, ax: Any = None) -> Any:
        """A forest plot of hazard ratios; needs matplotlib, gives the Axes."""
        return cast(HazardResults, self.model.fit).plot_hazard_ratios(ax)

    def print_summary(self) -> None:
        """The release's summary, whose first line says what is estimated."""
        print(self.model.summary())  # noqa: T201 - as lifelines does
