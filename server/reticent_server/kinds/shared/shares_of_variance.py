# SPDX-License-Identifier: Apache-2.0
"""η², the share of a variance that lies between groups, with an interval, from a quadratic
statistic.

A statistic X of k degrees of freedom that counts privacy noise follows a noncentral χ²_k with
noncentrality λ = κf², f² = η²/(1 − η²) the effect and κ public or released: without noise κ is the
number of records, with it less. The estimate is f² = max(0, X − k)/κ, the interval the values of λ
that a test of X does not refuse.

Sources: Cohen (1988) for f²; Steiger (2004) for the interval by inversion.
"""

from scipy.optimize import brentq
from scipy.stats import chi2, ncx2

from reticent_server.fitting.results import Interval

_LARGEST = 1e8  # noncentrality: SciPy's law loses digits beyond, and the interval is a point there


def share_between(X: float, k: float, kappa: float, level: float) -> tuple[float, Interval]:
    """η² = f²/(1 + f²) and its interval at `level`; (0, (0, 1)) where κ is not positive."""
    value, low, high = _ratios(X, k, kappa, level)
    return value / (1 + value), (low / (1 + low), min(1.0, high / (1 + high)))


def share_of_total(X: float, k: float, kappa: float, level: float) -> tuple[float, Interval]:
    """η² where λ = κη², as of ranks, whose total variance is known; the rest as share_between."""
    value, low, high = (min(1.0, x) for x in _ratios(X, k, kappa, level))
    return value, (low, high)


def _ratios(X: float, k: float, kappa: float, level: float) -> tuple[float, float, float]:
    """λ/κ: the estimate and the ends of its interval."""
    if not kappa > 0:
        return 0.0, 0.0, _LARGEST
    tail = (1 - level) / 2
    ends = (_noncentrality(X, k, 1 - tail), _noncentrality(X, k, tail))
    return max(0.0, X - k) / kappa, ends[0] / kappa, ends[1] / kappa


def _noncentrality(X: float, k: float, probability: float) -> float:
    """λ at which X is exceeded with 1 − probability; 0 where every λ is too large."""
    X = min(X, _LARGEST)
    if X <= 0 or chi2.cdf(X, k) <= probability:
        return 0.0
    upper = X + 10 * X**0.5 + 100.0
    return float(brentq(lambda lam: ncx2.cdf(X, k, lam) - probability, 0.0, upper))
