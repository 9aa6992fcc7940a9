# SPDX-License-Identifier: Apache-2.0
"""Residuals of a fit by bins of its fitted values: where the model is wrong, and whether it is
calibrated.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent._errors import InvalidQuery
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent._vector import FloatArray
from reticent.results.brier import BrierScore, brier_score
from reticent.results.coefficients import Coefficients
from reticent.results.link import link_name

_NAME = r"`[^`]+`|[A-Za-z_][A-Za-z0-9_.]*"
_QUOTED = r"\"[^\"]*\"|'[^']*'"
_NUMBERED = re.compile(rf"(center|scale)\(({_NAME}), at=[^()]*\)")
_LISTED = re.compile(
    rf"(lump)\(({_NAME}), keep=\[(?:[^\"'\[\]]|{_QUOTED})*\](?:, other=(?:{_QUOTED}))?\)"
)
_OPEN = re.compile(rf"(center|scale|lump)\(\s*({_NAME})\s*(?:,\s*n\s*=\s*[0-9][^()]*)?\)")


def as_released(formula: str, terms: Sequence[str]) -> str:
    """The formula with the numbers and levels that its terms' names say: a profile that was
    released since has others.
    """
    said = {
        found.group(1, 2): found[0]
        for term in terms
        for spelled in (_NUMBERED, _LISTED)
        for found in spelled.finditer(term)
    }
    return _OPEN.sub(lambda found: said.get(found.group(1, 2), found[0]), formula)


def question_of(fit: Coefficients, bins: Sequence[float] | None) -> dict[str, Any]:
    """The fields of the question about a fit. Raises InvalidQuery for a fit without fitted
    means.
    """
    query = fit.query
    result, levels = fit.result, query.get("family") in {"multinomial", "ordinal"}
    if query["kind"] not in {"linear_regression", "glm"} or levels:
        raise InvalidQuery("residuals takes a linear regression or a GLM that was released.")
    if query.get("offset") is not None or query.get("exposure") is not None:
        raise InvalidQuery("residuals takes fits without offset and exposure.")
    fields = {
        "formula": as_released(query["formula"], fit.result["terms"]),
        "coefficients": np.nan_to_num(np.asarray(fit.params, dtype=np.float64)).tolist(),
        "dispersion": query.get("dispersion"),
        "where": query.get("where"),
        "bins": bins,
        "scale": fit.scale if np.isfinite(fit.scale) and fit.scale > 0 else None,
    }
    power = result.get("variance_power")
    law = {} if power is None else {"variance_power": power}
    return {**fields, "link": link_name(result), **law}


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BinnedResiduals(Release):
    """Released mean residuals (bins,) of a fit at its released coefficients, with intervals that
    count sampling and noise.

    >>> fit = ds.glm("waterfront ~ sqft_living + grade", "binomial", epsilon=1.0)
    >>> found = ds.residuals(fit, epsilon=0.5)
    >>> found.residuals, found.conf_int(), found.to_frame()
    >>> axes = found.plot(calibration=True)
    >>> ds.binned_residuals("price ~ grade", [-1e6, 2e5], scale=3e5,
    ...     bins=[2e5, 4e5, 6e5, 8e5], epsilon=0.5)
    """

    @property
    def edges(self) -> FloatArray:
        """(bins + 1,) of the fitted values."""
        return np.array(self.result["edges"], dtype=np.float64)

    @property
    def fitted(self) -> FloatArray:
        """(bins,) middles of the bins."""
        return np.array(self.result["fitted"], dtype=np.float64)

    @property
    def numbers(self) -> FloatArray:
        """(bins,) noisy numbers of records."""
        return np.array(self.result["numbers"], dtype=np.float64)

    @property
    def residuals(self) -> FloatArray:
        """(bins,) means of the response less the fitted value."""
        return np.array(self.result["residuals"], dtype=np.float64)

    @property
    def bse(self) -> FloatArray:
        """(bins,) standard errors: sampling and privacy noise together."""
        return np.array(self.result["standard_errors"], dtype=np.float64)

    @property
    def privacy_bse(self) -> FloatArray:
        """(bins,) the privacy noise's part."""
        return np.array(self.result["privacy_standard_errors"], dtype=np.float64)

    @property
    def standard_deviations(self) -> FloatArray:
        """(bins,) of the residuals: whether their spread changes with the fitted value."""
        return np.array(self.result["standard_deviations"], dtype=np.float64)

    @property
    def observed(self) -> FloatArray:
        """(bins,) the bins' middles and the mean residuals: of a calibrated model, the middles."""
        return np.asarray(self.fitted + self.residuals)

    def brier(self) -> BrierScore:
        """The Brier score of a logistic model, of the records whose probability is in a bin: with
        bins from 0 to 1 of all. Free. Raises InvalidQuery for another link.

        >>> ds.residuals(fit, bins=[0, 0.1, 0.2, 0.4, 0.7, 1], epsilon=0.5).brier().conf_int()
        """
        if self.query.get("link") != "logit":
            raise InvalidQuery("A Brier score is of probabilities: of a model with the link logit.")
        return brier_score(
            self.numbers,
            self.residuals,
            self.standard_deviations,
            self.fitted,
            self.privacy_bse,
            np.array(self.result["clipped"], dtype=np.float64),
        )

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self) -> FloatArray:
        """(bins, 2) released 95 % intervals of the mean residuals."""
        return np.array(self.result["confidence_intervals"], dtype=np.float64)

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each bin; needs pandas."""
        lower, upper = self.conf_int().T
        columns = {
            "from": self.edges[:-1],
            "to": self.edges[1:],
            "number": self.numbers,
            "residual": self.residuals,
            "bse": self.bse,
            "lower": lower,
            "upper": upper,
            "standard deviation": self.standard_deviations,
        }
        return _optional.pandas().DataFrame(columns)

    def plot(self, ax: Any = None, *, calibration: bool = False) -> Any:
        """Mean residuals with 95 % intervals, or with calibration the observed means against the
        fitted ones; needs matplotlib, gives the Axes.
        """
        axes = axes_of(ax)
        shift = self.fitted if calibration else np.zeros(len(self.fitted))
        values, ends = self.residuals + shift, self.conf_int() + shift[:, None]
        style = {"color": SAMPLING, "ecolor": TOTAL, "fmt": "o", "elinewidth": 3}
        axes.errorbar(self.fitted, values, np.abs(ends.T - values), **style)
        line = self.edges[[0, -1]]
        axes.plot(line, line if calibration else [0.0, 0.0], color="black", linewidth=0.8)
        axes.set_xlabel("fitted value")
        axes.set_ylabel("observed mean" if calibration else "mean residual, 95 % interval")
        return axes

    def summary(self) -> Text:
        columns = (self.edges[:-1], self.edges[1:], self.residuals, self.bse, *self.conf_int().T)
        cells = zip(*(map(number, column.tolist()) for column in columns), strict=True)
        header = ("fitted from", "to", "residual", "std err", "[0.025", "0.975]")
        table = text_table(header, cells)
        return Text("\n".join([*self._headline(), "", *table, "", *self._footer()]))

    def check(self) -> None:
        Release.check(self)
        _ = (self.edges, self.numbers, self.observed, self.bse, self.privacy_bse, self.nobs)
        _ = (self.conf_int(), self.standard_deviations)
