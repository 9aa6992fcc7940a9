"""A released regression, with statsmodels' names. Everything here is free post-processing."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _hypotheses, _optional, _simultaneous
from reticent._errors import NotEstimable
from reticent._hypotheses import WaldTest
from reticent._release import Release
from reticent._summary import HEADER, coefficient_rows, regression_summary, summary_notes
from reticent._text import Text, html_table
from reticent._vector import Vector

FloatArray = NDArray[np.float64]
_MOSTLY = 0.3  # of the variance, as the server's flags


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class RegressionResults(Release):
    """A fitted model with p coefficients, in the units of the data.

    Standard errors, tests and intervals count sampling and privacy noise. Entries that the noise
    has drowned are marked in `estimable`, and may be NaN.

    >>> fit = ds.linear_regression("price ~ sqft_living + grade", epsilon=1.0)
    >>> fit.params["grade"], fit.bse["grade"], fit.pvalues["grade"]
    >>> fit.wald_test("grade = 0").pvalue, fit.conf_int(alpha=0.1)
    """

    @property
    def names(self) -> tuple[str, ...]:
        """(p,) names of the coefficients."""
        return tuple(map(str, self.result["terms"]))

    @property
    def params(self) -> Vector:
        """(p,) coefficients."""
        return self._vector("coefficients")

    @property
    def bse(self) -> Vector:
        """(p,) standard errors: sampling and privacy noise together."""
        return self._vector("standard_errors")

    @property
    def privacy_bse(self) -> Vector:
        """(p,) the privacy noise's part of the standard errors."""
        return self._vector("privacy_standard_errors")

    @property
    def sampling_bse(self) -> Vector:
        """(p,) what sampling alone gives: √(bse² − privacy_bse²)."""
        variance = np.asarray(self.bse) ** 2 - np.asarray(self.privacy_bse) ** 2
        return Vector(np.sqrt(np.maximum(variance, 0.0)), self.names)

    @property
    def tvalues(self) -> Vector:
        """(p,) coefficients over standard errors."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return Vector(np.asarray(self.params) / np.asarray(self.bse), self.names)

    @property
    def pvalues(self) -> Vector:
        """(p,) two-sided p-values of "coefficient = 0", as released."""
        return self._vector("p_values")

    @property
    def estimable(self) -> tuple[bool, ...]:
        """(p,) False where the coefficient lies in a direction that is mostly privacy noise."""
        return tuple(bool(flag) for flag in self.result["estimable"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    @property
    def scale(self) -> float:
        """The released scale of the residuals."""
        return _number(self.result["scale"])

    @property
    def tuning(self) -> float:
        """The tuning constant c of the loss, in units of `scale`."""
        return _number(self.result["tuning"])

    @property
    def formula(self) -> str:
        return str(self.query["formula"])

    def cov_params(self) -> FloatArray:
        """(p, p) covariance of the coefficients: sampling and privacy noise."""
        return np.array(self.result["covariance"], dtype=np.float64)

    def conf_int(self, alpha: float = 0.05, *, simultaneous: bool = False) -> FloatArray:
        """(p, 2) intervals of level 1 − alpha; costs nothing.

        simultaneous: all coefficients that are estimable lie in their intervals at once with
        probability 1 − alpha (by the law of the largest |z|, from the released covariance).

        At the released level these are the released intervals. At another level normal quantiles
        take their place, widened in the proportion in which the released intervals are wider than
        normal ones (a small-sample calibration).
        """
        if not 0 < alpha < 1:
            raise ValueError("alpha lies between 0 and 1")
        released = np.array(self.result["confidence_intervals"], dtype=np.float64)
        level = float(self.result["confidence_level"])
        if abs(1 - alpha - level) < 1e-9 and not simultaneous:
            return released
        z = self._joint_quantile(1 - alpha) if simultaneous else ndtri(1 - alpha / 2)
        ratio = z / ndtri((1 + level) / 2)
        centre = np.asarray(self.params)[:, None]
        return np.asarray(centre + ratio * (released - centre))

    def _joint_quantile(self, level: float) -> float:
        covariance = self.cov_params()
        usable = np.array(self.estimable) & (np.nan_to_num(np.diag(covariance)) > 0)
        if not usable.any():
            return float("nan")
        return _simultaneous.critical_value(covariance[np.ix_(usable, usable)], level)

    def wald_test(self, hypotheses: str | Sequence[str]) -> WaldTest:
        """A joint test of linear hypotheses such as "x1 = 0, x2 = x3"; costs nothing.

        Raises InvalidHypothesis, or NotEstimable where a combination that is tested lies in a direction
        that is mostly privacy noise. Of a collinear pair neither coefficient can be tested, but what they
        do together can.
        """
        texts, R, r = _hypotheses.parse(hypotheses, self.names)
        drowned = [t for t, row in zip(texts, R, strict=True) if not self._can_test(row[None])]
        if drowned or not self._can_test(R):
            raise NotEstimable(
                f"Not estimable at this privacy level: {', '.join(drowned or texts)}. The direction is mostly "
                "privacy noise, so a test would mean nothing. Leave it out of the hypothesis, or fit "
                "with a larger epsilon or fewer terms."
            )
        params, covariance = np.nan_to_num(self.params), np.nan_to_num(self.cov_params())
        return _hypotheses.wald(texts, R, r, np.asarray(params), covariance)

    def _can_test(self, R: FloatArray) -> bool:
        """By the released directions; by the flags of what R (k, p) names where a release has none."""
        directions = self.result.get("directions")
        if directions is None:
            return bool(np.all(np.array(self.estimable)[np.any(R, axis=0)]))
        return _hypotheses.unresolved_share(R, directions) <= _MOSTLY

    def summary(self) -> Text:
        """The fit, its guarantee and its charge as a text."""
        lines = regression_summary(self, self._headline(), self._footer())
        return Text("\n".join(lines))

    def _repr_html_(self) -> str:
        head, foot = Text("\n".join(self._headline())), Text("\n".join(summary_notes(self)))
        end = Text("\n".join(self._footer()))
        table = html_table(HEADER, coefficient_rows(self))
        return "".join([head._repr_html_(), table, foot._repr_html_(), end._repr_html_()])

    def to_frame(self) -> Any:
        """A pandas.DataFrame with one row for each coefficient; needs pandas."""
        lower, upper = self.conf_int().T
        columns = {
            "coef": np.asarray(self.params),
            "bse": np.asarray(self.bse),
            "privacy_bse": np.asarray(self.privacy_bse),
            "sampling_bse": np.asarray(self.sampling_bse),
            "z": np.asarray(self.tvalues),
            "pvalue": np.asarray(self.pvalues),
            "lower": lower,
            "upper": upper,
            "estimable": np.array(self.estimable),
        }
        return _optional.pandas().DataFrame(columns, index=list(self.names))

    def plot(self, ax: Any = None) -> Any:
        """Coefficients with intervals (thick: from sampling alone); needs matplotlib, gives the Axes."""
        # Imported late: matplotlib is optional.
        from reticent._plots import coefficients  # noqa: PLC0415

        return coefficients(self, ax)

    def _vector(self, name: str) -> Vector:
        return Vector(self.result[name], self.names)

    def check(self) -> None:
        Release.check(self)
        p = len(self.names)
        _ = (self.params, self.bse, self.privacy_bse, self.pvalues, self.nobs, self.scale)
        _ = (self.tuning, self.formula, float(self.result["confidence_level"]))
        shapes = (self.cov_params().shape, self.conf_int().shape, len(self.estimable))
        directions = self.result.get("directions") or []
        if shapes != ((p, p), (p, 2), p) or any(len(d["vector"]) != p for d in directions):
            raise ValueError("the arrays of a regression fit its number of terms")


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
