# SPDX-License-Identifier: Apache-2.0
"""Differences and ratios of released numbers whose noise is independent."""

from dataclasses import dataclass
from math import erfc, log, nan, sqrt

import numpy as np

Z = 1.959963984540054  # standard errors on each side of a 95 % interval


@dataclass(frozen=True, slots=True)
class Contrast:
    """A number computed from released ones, its standard error (persons and noise), 95 % interval
    and p-value: two-sided, of no difference (a ratio of 1); nan of a number that is no contrast.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    pvalue: float = nan


def difference(first: tuple[float, float], second: tuple[float, float]) -> Contrast:
    """The first estimate less the second, both (value, standard error) and independent of each
    other. The interval is of 95 %, and the p-value two-sided; both take the difference as
    normal."""
    value, error = first[0] - second[0], float(np.hypot(first[1], second[1]))
    return Contrast(value, error, (value - Z * error, value + Z * error), _pvalue(value, error))


def ratio(first: tuple[float, float], second: tuple[float, float]) -> Contrast:
    """Its interval is that of its logarithm."""
    if min(first[0], second[0]) <= 0:
        raise ValueError("a ratio with 0 has no interval")
    value = first[0] / second[0]
    error = float(np.hypot(first[1] / first[0], second[1] / second[0]))
    low, high = np.exp(np.array([-Z, Z]) * error) * value
    return Contrast(value, error, (float(low), float(high)), _pvalue(log(value), error))


def _pvalue(value: float, error: float) -> float:
    return erfc(abs(value) / (error * sqrt(2))) if error > 0 else nan
