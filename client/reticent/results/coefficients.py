# SPDX-License-Identifier: Apache-2.0
"""Named coefficients with standard errors and intervals: what every fitted model has."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent import _optional, _simultaneous
from reticent._release import Release
from reticent._vector import Vector

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Coefficients(Release):
    """p released coefficients, in the units of the data. Everything here is free
    post-processing.
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
        """(p,) standard errors: sampling and privacy noise together; NaN where a coefficient is not
        identifiable.
        """
        return self._errors("standard_errors")

    @property
    def privacy_bse(self) -> Vector:
        """(p,) the privacy noise's part of the standard errors; NaN where a coefficient is not
        identifiable.
        """
        return self._errors("privacy_standard_errors")

    @property
    def first_look(self) -> tuple[str, ...]:
        """Names of coefficients that this kind gives without intervals, whatever epsilon is."""
        return ()

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
    def clusters(self) -> float | None:
        """The noisy number of persons with a row in use, where a person's rows count together, or
        of levels with records, where the question names a `cluster`; else None.
        """
        return _optional_number(self.result.get("clusters"))

    @property
    def cluster(self) -> str | None:
        """The column that the question's `cluster` names; else None."""
        name = self.result.get("cluster")
        return None if name is None else str(name)

    @property
    def design_effects(self) -> Vector | None:
        """(p,) by how much clusters multiply the sampling variances, 1 at least, where the question
        names a `cluster`; else None.
        """
        given = self.result.get("design_effects") is not None
        return self._vector("design_effects") if given else None

    @property
    def effective_clusters(self) -> float | None:
        """How many equal persons (or levels) would have scores that vary as theirs; None where rows
        count one by one.
        """
        return _optional_number(self.result.get("effective_clusters"))

    @property
    def df_resid(self) -> Vector | None:
        """(p,) degrees of freedom of intervals and p-values, where standard errors are by person
        or by `cluster`; else None.
        """
        given = self.result.get("degrees_of_freedom") is not None
        return self._vector("degrees_of_freedom") if given else None

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
        """The formula as it was asked, such as "y ~ x + C(g)"."""
        return str(self.query["formula"])

    def cov_params(self) -> FloatArray:
        """(p, p) covariance of the coefficients: sampling and privacy noise."""
        return np.array(self.result["covariance"], dtype=np.float64)

    def conf_int(
        self, alpha: float = 0.05, *, simultaneous: bool = False, exp: bool = False
    ) -> FloatArray:
        """(p, 2) intervals of level 1 − alpha; costs nothing.

        simultaneous: all coefficients that are estimable lie in their intervals at once with
        probability 1 − alpha (by the law of the largest |z|, from the released covariance).

        At the released level these are the released intervals. At another level normal quantiles
        take their place, widened in the proportion in which the released intervals are wider than
        normal ones (a small-sample calibration).

        exp: the exponentials of the ends: intervals of odds ratios or rate ratios.
        """
        ends = self._ends(alpha, simultaneous)
        return np.asarray(np.exp(ends)) if exp else ends

    def _ends(self, alpha: float, simultaneous: bool) -> FloatArray:
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

    def _errors(self, name: str) -> Vector:
        """Blank where they would be read as a finding."""
        values = np.array(self.result[name], dtype=np.float64)
        return Vector(np.where(self.estimable, values, np.nan), self.names)

    def _vector(self, name: str) -> Vector:
        return Vector(self.result[name], self.names)


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _optional_number(value: Any) -> float | None:
    return None if value is None else float(value)
