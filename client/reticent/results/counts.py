# SPDX-License-Identifier: Apache-2.0
"""Noisy counts with the noise's standard error: what histograms and contingency tables share."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from reticent._release import Release

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Counts(Release):
    """Released counts of a table of any number of ways."""

    @property
    def values(self) -> FloatArray:
        """Unbiased noisy counts, in the shape of the table; some may be negative."""
        return np.array(self.result["values"], dtype=np.float64)

    @property
    def bse(self) -> float:
        """Standard error of every count: the privacy noise alone."""
        return float(self.result["standard_error"])

    @property
    def nobs(self) -> int:
        """The data set's public number of records (not of those that were in use)."""
        return int(self.result["n"])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(…, 2) intervals for the counts in this table; no less than 0."""
        half = float(ndtri(1 - alpha / 2)) * self.bse
        ends = [self.values - half, self.values + half]
        return np.asarray(np.maximum(np.stack(ends, axis=-1), 0.0))

    def check(self) -> None:
        Release.check(self)
        _ = (self.values, self.bse, self.nobs)
