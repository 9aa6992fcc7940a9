# SPDX-License-Identifier: Apache-2.0
"""A multinomial or an ordinal logit: odds ratios, and predicted probabilities of every level."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from reticent import _optional
from reticent._hypotheses import WaldTest
from reticent.results import after_fit
from reticent.results.design import INTERCEPT, Design, Frame
from reticent.results.regression import RegressionResults

FloatArray = NDArray[np.float64]

_EDGE = 1e-12  # of a probability: its logit stays within the floats


@dataclass(frozen=True, slots=True, eq=False)
class PredictedLevels:
    """Probabilities of K levels for k rows of new data: probability, std_err, lower and upper (k,
    K). Intervals are those of the logit, sampling and noise; NaN where a cell is missing or the
    prediction is mostly privacy noise.
    """

    levels: tuple[str, ...]
    probability: FloatArray
    std_err: FloatArray
    lower: FloatArray
    upper: FloatArray

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each row and level; needs pandas."""
        rows, K = self.probability.shape
        columns = ("probability", "std_err", "lower", "upper")
        values = (self.probability, self.std_err, self.lower, self.upper)
        return _optional.pandas().DataFrame(
            {
                "row": np.repeat(np.arange(rows), K),
                "level": list(self.levels) * rows,
                **{name: value.ravel() for name, value in zip(columns, values, strict=True)},
            }
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CategoryResults(RegressionResults):
    """A released model of a response with several levels. multinomial: coefficients "level: term"
    are logarithms of the odds of that level against the first; ordinal: slopes (above 0: higher
    levels), then thresholds "low|high".

    >>> fit = ds.glm("condition ~ grade + sqft_living", "ordinal", epsilon=4.0)
    >>> fit.odds_ratios()["grade"], fit.wald_test("grade = 0").pvalue
    >>> fit.predict_levels({"grade": [6, 9], "sqft_living": [1500, 2500]}).probability
    """

    @property
    def levels(self) -> tuple[str, ...]:
        """The response's levels, in the order of the schema."""
        return tuple(str(level) for level in self.result["levels"])

    @property
    def response(self) -> str:
        """The response's column."""
        return str(self.result["response"])

    @property
    def ordered(self) -> bool:
        """Whether the levels are taken in their order."""
        return bool(self.result["family"] == "ordinal")

    @property
    def slopes(self) -> tuple[str, ...]:
        """The coefficients' names without intercepts and thresholds."""
        if self.ordered:
            return self.names[: len(self.names) - len(self.levels) + 1]
        return tuple(name for name in self.names if not name.endswith(f": {INTERCEPT}"))

    def odds_ratios(self) -> dict[str, tuple[float, float, float]]:
        """(ratio, lower, upper) of each slope, with the intervals of the release; nan where not
        identifiable.
        """
        values, ends = np.exp(np.asarray(self.params)), np.exp(self.conf_int())
        rows = zip(self.names, values.tolist(), ends.tolist(), strict=True)
        return {
            name: (ratio, low, high) for name, ratio, (low, high) in rows if name in self.slopes
        }

    def predict(self, frame: Frame, *, offset: Any = None, exposure: Any = None) -> FloatArray:
        """(k, K) probabilities of the levels for new public data, a data frame or a mapping of
        columns; costs nothing. Raises InvalidFormula for an offset or exposure: such a fit has
        none.
        """
        given = {"offset": offset, "exposure": exposure}
        frame = after_fit.with_given(frame, self.query, given)
        return self.predict_levels(frame).probability

    def predict_levels(self, frame: Frame, *, level: float = 0.95) -> PredictedLevels:
        """The same with standard errors and intervals. Raises InvalidFormula for data that lack a
        column.
        """
        X = Design(self._terms, self.result.get("baselines")).rows(frame)
        each = [self._row(x) for x in X]
        p, covariance = np.array([p for p, _ in each]), np.nan_to_num(self.cov_params())
        variance = np.array([np.einsum("kd,de,ke->k", G, covariance, G) for _, G in each])
        se = np.sqrt(np.maximum(variance, 0.0))
        inside = np.clip(p, _EDGE, 1 - _EDGE)
        half = float(ndtri((1 + level) / 2)) * se / (inside * (1 - inside))
        lower, upper = expit(logit(inside) - half), expit(logit(inside) + half)
        lost = np.array([not self._known(x) for x in X])
        for values in (p, se, lower, upper):
            values[lost] = np.nan
        return PredictedLevels(self.levels, p, se, lower, upper)

    def f_test(self) -> WaldTest:
        """Of all slopes being 0: a Wald test of the released fit, free."""
        return self.wald_test([f"{name} = 0" for name in self.slopes])

    @property
    def _terms(self) -> tuple[str, ...]:
        """The design's columns, with the intercept."""
        if self.ordered:
            return (INTERCEPT, *self.slopes)
        q = len(self.names) // (len(self.levels) - 1)
        return tuple(name.removeprefix(f"{self.levels[1]}: ") for name in self.names[:q])

    def _predictors(self, x: FloatArray) -> FloatArray:
        """(K − 1, D) whose products with the coefficients are logits: of y ≤ each level, or of each
        level against the first.
        """
        K = len(self.levels)
        if self.ordered:
            return np.hstack([np.tile(-x[1:], (K - 1, 1)), np.eye(K - 1)])
        return np.asarray(np.kron(np.eye(K - 1), x), dtype=np.float64)

    def _row(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probabilities (K,) at a row x (q,), and their derivative (K, D) by the coefficients."""
        A = self._predictors(x)
        eta = A @ np.nan_to_num(self.params)
        if self.ordered:
            below = np.concatenate([[0.0], np.maximum.accumulate(expit(eta)), [1.0]])
            slope = (expit(eta) * expit(-eta))[:, None] * A
            edge = np.zeros((1, A.shape[1]))
            return np.diff(below), np.diff(np.vstack([edge, slope, edge]), axis=0)
        odds = np.append(0.0, eta) - max(0.0, float(np.max(eta)))
        p = np.exp(odds) / np.exp(odds).sum()
        return p, (np.diag(p) - np.outer(p, p))[:, 1:] @ A

    def _known(self, x: FloatArray) -> bool:
        return bool(np.isfinite(x).all()) and self._can_test(self._predictors(x))

    def _fitted(self) -> after_fit.Fitted:
        """What predictions, margins, marginal means and contrasts of one mean stand on: here there
        are several.
        """
        raise ValueError(_SEVERAL)

    def check(self) -> None:
        RegressionResults.check(self)
        K, D = len(self.levels), len(self.names)
        blocks = D >= K if self.ordered else K > 1 and D % (K - 1) == 0
        if K < 3 or not self.response or not blocks:
            raise ValueError("a model of levels has as many coefficients as its levels ask for")


_SEVERAL = (
    "This model predicts a probability of each level: use predict_levels(frame), with rows that "
    "differ in the column that "
    "is asked about."
)
