# SPDX-License-Identifier: Apache-2.0
"""Predictions of new data from a released fit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional
from reticent.results.link import Link

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Prediction:
    """Predicted means (n,) of new data; standard errors count sampling and privacy noise. Free of
    charge.

    >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> fit.get_prediction({"sqft_living": [1500, 2500], "grade": [7, 9]}).summary_frame()

    linear, linear_se: of the linear predictor. scale: the residuals', None where a family has none:
    then there are no prediction intervals. Entries are NaN where a prediction is mostly privacy
    noise or a cell is missing.
    """

    linear: FloatArray
    linear_se: FloatArray
    link: Link
    scale: float | None
    widening: float

    @property
    def predicted_mean(self) -> FloatArray:
        """(n,) means in the units of the response as the formula has it (log(y) stays a
        logarithm).
        """
        return self.link.mean(self.linear)

    @property
    def se_mean(self) -> FloatArray:
        """(n,) standard errors of the means, by the delta method."""
        return np.asarray(self.link.slope(self.linear) * self.linear_se)

    def conf_int(self, alpha: float = 0.05, *, obs: bool = False) -> FloatArray:
        """(n, 2) intervals of the means, through the link; obs: of one new observation with normal
        residuals.

        Raises ValueError for obs where no residual scale was released. The scale is taken as known.
        """
        if not 0 < alpha < 1:
            raise ValueError("alpha lies between 0 and 1")
        z = float(ndtri(1 - alpha / 2))
        half = z * self.widening * self.linear_se
        if obs:
            if self.scale is None:
                raise ValueError("prediction intervals need a linear model with a released scale")
            half = np.sqrt(half**2 + (z * self.scale) ** 2)
        ends = (self.link.mean(self.linear - half), self.link.mean(self.linear + half))
        return np.column_stack(ends)

    def summary_frame(self, alpha: float = 0.05) -> Any:
        """A pandas.DataFrame with statsmodels' columns; obs_ci_* where a residual scale was
        released.
        """
        lower, upper = self.conf_int(alpha).T
        columns = {
            "mean": self.predicted_mean,
            "mean_se": self.se_mean,
            "mean_ci_lower": lower,
            "mean_ci_upper": upper,
        }
        if self.scale is not None:
            columns["obs_ci_lower"], columns["obs_ci_upper"] = self.conf_int(alpha, obs=True).T
        return _optional.pandas().DataFrame(columns)

    def __repr__(self) -> str:
        return repr(self.summary_frame())
