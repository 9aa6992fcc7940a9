# SPDX-License-Identifier: Apache-2.0
"""ROC curves and diagnostic accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent import _optional
from reticent._drawing import SAMPLING, TOTAL, axes_of
from reticent._errors import InvalidQuery
from reticent._release import Release
from reticent._text import Text, number, text_table
from reticent.kinds.binned_residuals import as_released
from reticent.results.coefficients import Coefficients

FloatArray = NDArray[np.float64]
_SEVERAL = frozenset({"multinomial", "ordinal"})
"""Families whose fits have more than one predictor, or thresholds beside it."""
_MEASURES = (
    "sensitivity",
    "specificity",
    "positive_predictive_value",
    "negative_predictive_value",
    "positive_likelihood_ratio",
    "negative_likelihood_ratio",
)


def question_of(
    fit: Coefficients, outcome: str | None, thresholds: Sequence[float]
) -> dict[str, Any]:
    """The fields of the question about a fit's predictor. outcome: another one than the fit's
    response. Raises InvalidQuery for a fit that has not one predictor.
    """
    query = fit.query
    if query["kind"] not in {"linear_regression", "glm"} or query.get("family") in _SEVERAL:
        raise InvalidQuery("roc_of takes a linear regression or a GLM that was released.")
    if query.get("offset") is not None or query.get("exposure") is not None:
        raise InvalidQuery("roc_of takes fits without offset and exposure.")
    formula = as_released(query["formula"], fit.result["terms"])
    response, _, terms = formula.partition("~")
    return {
        "score": terms.strip(),
        "outcome": (response if outcome is None else outcome).strip().strip("`"),
        "thresholds": list(thresholds),
        "where": query.get("where"),
        "coefficients": np.nan_to_num(np.asarray(fit.params, dtype=np.float64)).tolist(),
    }


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RocCurve(Release):
    """A released ROC curve of a score in public bins. Intervals count sampling and privacy noise.

    >>> curve = ds.roc("price", "waterfront", thresholds=[1_000_000], epsilon=1.0)
    >>> curve.auc, curve.conf_int(), curve.bse
    >>> curve.to_frame([1_000_000]); curve.plot()
    >>> curve.predictive_values(1_000_000, prevalence=0.02)
    >>> ds.roc("grade + sqft_living", "waterfront", coefficients=[-9.0, 0.4, 0.0005],
    ...     epsilon=1.0)
    """

    @property
    def auc(self) -> float:
        """The area under the curve: P(score of one with the outcome > of one without), ties ½."""
        return float(self.result["auc"])

    @property
    def bse(self) -> float:
        """Standard error of the area: sampling and privacy noise together."""
        return float(self.result["standard_error"])

    @property
    def privacy_bse(self) -> float:
        """The privacy noise's part of it."""
        return float(self.result["privacy_standard_error"])

    @property
    def confidence_level(self) -> float:
        """Of the interval of the area under the curve, such as .95."""
        return float(self.result["confidence_level"])

    @property
    def thresholds(self) -> FloatArray:
        """(k,) increasing: the public edges of the score, the asked thresholds among them."""
        return self._column("threshold")

    @property
    def sensitivity(self) -> FloatArray:
        """(k,) by threshold."""
        return self._column("sensitivity")

    @property
    def specificity(self) -> FloatArray:
        """(k,) by threshold."""
        return self._column("specificity")

    @property
    def prevalence(self) -> float:
        """Of the outcome among the records in use."""
        return float(self.result["prevalence"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self) -> tuple[float, float]:
        """(lower, upper) of the area, at `confidence_level`."""
        low, high = self.result["auc_interval"]
        return float(low), float(high)

    def predictive_values(self, threshold: float, *, prevalence: float) -> dict[str, Any]:
        """Positive and negative predictive values with their intervals, of a population of another
        prevalence (0 < prevalence < 1): by Bayes' rule from the likelihood ratios. Free.

        Raises ValueError for a threshold that was not released.
        """
        if not 0 < prevalence < 1:
            raise ValueError("prevalence must lie between 0 and 1")
        row, odds = self._row(threshold), prevalence / (1 - prevalence)
        up, down = (row[name] for name in _MEASURES[4:])
        high, low = (row[f"{name}_interval"] for name in _MEASURES[4:])
        return {
            "positive_predictive_value": _share(odds, up),
            "positive_predictive_value_interval": (_share(odds, high[0]), _share(odds, high[1])),
            "negative_predictive_value": 1 - _share(odds, down),
            "negative_predictive_value_interval": (
                1 - _share(odds, low[1]),
                1 - _share(odds, low[0]),
            ),
        }

    def to_frame(self, thresholds: Sequence[float] | None = None) -> Any:
        """A pandas.DataFrame with one row for each threshold (all, or these); needs pandas.

        Raises ValueError for a threshold that was not released.
        """
        rows = self._rows if thresholds is None else [self._row(t) for t in thresholds]
        columns: dict[str, list[float]] = {"threshold": [float(r["threshold"]) for r in rows]}
        for name in _MEASURES:
            ends = [r[f"{name}_interval"] for r in rows]
            columns[name] = [_or_nan(r[name]) for r in rows]
            columns[f"{name}_lower"] = [_or_nan(low) for low, _ in ends]
            columns[f"{name}_upper"] = [_or_nan(high) for _, high in ends]
        return _optional.pandas().DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """The curve, with intervals of its points; needs matplotlib, gives the Axes."""
        axes = axes_of(ax)
        x, y = 1 - self.specificity, self.sensitivity
        bars = {"yerr": self._bars("sensitivity"), "xerr": self._bars("specificity")[::-1]}
        axes.errorbar(x, y, fmt="none", ecolor=TOTAL, **bars)
        axes.plot([1.0, *x, 0.0], [1.0, *y, 0.0], "o-", color=SAMPLING, markersize=3)
        axes.plot([0.0, 1.0], [0.0, 1.0], color="black", linewidth=0.8, linestyle=":")
        axes.set(xlabel="1 − specificity", ylabel="sensitivity", aspect="equal")
        axes.set_title(self._area(), fontsize="medium")
        return axes

    def summary(self) -> Text:
        asked = {float(t) for t in self.query.get("thresholds") or ()}
        rows = [r for r in self._rows if not asked or r["threshold"] in asked]
        header = ("threshold", "sens", "spec", "PPV", "NPV", "LR+", "LR−")
        cells = [
            (number(r["threshold"]), *(number(_or_nan(r[name])) for name in _MEASURES))
            for r in rows
        ]
        which = "high" if self.query.get("positive", "high") == "high" else "low"
        lines = [
            *self._headline(),
            f"Score: {self.query['score']} ({which} is positive)",
            f"Outcome: {self.query['outcome']} = {self.result['levels'][0]}",
            f"Records: {self.nobs:,}   prevalence {number(self.prevalence)}",
            f"{self._area()}   standard error {number(self.bse)}",
            "",
            *text_table(header, cells),
        ]
        return Text("\n".join([*lines, "", *self._footer()]))

    def _area(self) -> str:
        low, high = self.conf_int()
        level = f"{100 * self.confidence_level:g} %"
        return f"AUC {number(self.auc)}, {level} interval [{number(low)}, {number(high)}]"

    def _bars(self, name: str) -> FloatArray:
        """(2, k) how far intervals reach below and above."""
        low, high = np.array([row[f"{name}_interval"] for row in self._rows], dtype=np.float64).T
        values = self._column(name)
        return np.asarray(np.maximum([values - low, high - values], 0.0))

    @property
    def _rows(self) -> list[dict[str, Any]]:
        return list(self.result["cutoffs"])

    def _row(self, threshold: float) -> dict[str, Any]:
        """That of a released threshold. Raises ValueError."""
        for row in self._rows:
            if row["threshold"] == threshold:
                return row
        raise ValueError("that threshold was not released: ask for it, or take one of thresholds")

    def _column(self, name: str) -> FloatArray:
        return np.array([row[name] for row in self._rows], dtype=np.float64)

    def check(self) -> None:
        Release.check(self)
        _ = (self.auc, self.bse, self.privacy_bse, self.nobs, self.conf_int(), self.prevalence)
        _ = (self.thresholds, self.sensitivity, self.specificity, self.confidence_level)


def _share(odds: float, ratio: float | None) -> float:
    """The probability after a test of this likelihood ratio; None: it is not bounded."""
    return 1.0 if ratio is None else odds * ratio / (1 + odds * ratio)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)
