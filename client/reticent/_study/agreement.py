# SPDX-License-Identifier: Apache-2.0
"""Agreement of raters or methods from a study's moments: intraclass correlations, limits of
agreement.

Of k columns with means m and covariance K over N records (Shrout & Fleiss 1979; McGraw & Wong
1996), up to N/(N − 1), MSR = 1ᵀK1/k, MSE = (tr K − MSR)/(k − 1), and
v = Σ(m − m̄)²/(k − 1) − MSE/N, the raters' own variance:

    ICC(3,1) = (MSR − MSE)/(MSR + (k − 1)MSE),   ICC(2,1) = (MSR − MSE)/(MSR + (k − 1)MSE + kv),

consistency and absolute agreement of one rater; of the mean of k ICC(3,k) = (MSR − MSE)/MSR, and
ICC(2,k) = (MSR − MSE)/(MSR + v). Bland & Altman (1986): d = x − y has the mean b and limits
b ± 1.96s. Errors are of the delta method: noise, what clipping may have moved, and sampling by the
normal law, in which means have the covariance K/N, independent of that of K.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from reticent._errors import InvalidFormula
from reticent._study.moments import Delta, FloatArray, Moments, gradients
from reticent._study.structural import bare, clear_covariance
from reticent._text import number

ICC_NAMES = ("ICC(3,1)", "ICC(2,1)", "ICC(3,k)", "ICC(2,k)")
LIMIT_NAMES = ("bias", "lower", "upper")
_LIMIT = 1.96
"""Standard deviations of a difference: Bland & Altman's."""
MeanFunction = Callable[[FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class AgreementEstimates:
    """Values (k,) by name, bse and privacy_bse; NaN errors where a column is bare."""

    columns: tuple[str, ...]
    names: tuple[str, ...]
    values: FloatArray
    bse: FloatArray
    privacy_bse: FloatArray
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> float:
        return float(self.values[self.names.index(name)])

    def conf_int(self, alpha: float = 0.05) -> FloatArray:
        """(k, 2) normal intervals."""
        half = float(ndtri(1 - alpha / 2)) * self.bse
        return np.column_stack([self.values - half, self.values + half])

    def __repr__(self) -> str:
        rows = zip(self.names, self.values, self.conf_int(), strict=True)
        lines = [f"{k} {number(x)} [{number(low)}, {number(high)}]" for k, x, (low, high) in rows]
        return "\n".join([f"Agreement of {', '.join(self.columns)}", *lines, *self.notes])


def intraclass(moments: Moments, places: Sequence[int]) -> AgreementEstimates:
    """Of the columns at these places, in the same units. Raises InvalidFormula for fewer than
    two."""
    if len(places) < 2:
        raise InvalidFormula("Agreement is of two columns at least.")
    return _estimates(moments, places, ICC_NAMES, lambda m, K: _icc(m, K, moments.records))


def limits(moments: Moments, x: int, y: int) -> AgreementEstimates:
    """Of x − y: the mean difference and the limits of agreement."""
    return _estimates(moments, (x, y), LIMIT_NAMES, lambda m, K: _limits(m, K, moments.records))


def _icc(m: FloatArray, K: FloatArray, n: float) -> FloatArray:
    k = len(m)
    K = K * n / max(n - 1, 1.0)
    MSR = K.sum() / k
    MSE = (np.trace(K) - MSR) / (k - 1)
    v = np.sum((m - m.mean()) ** 2) / (k - 1) - MSE / n
    one, mean = MSR + (k - 1) * MSE, MSR
    return np.asarray((MSR - MSE) / np.array([one, one + k * v, mean, mean + v]))


def _limits(m: FloatArray, K: FloatArray, n: float) -> FloatArray:
    bias = float(m[0] - m[1])
    square = float(K[0, 0] + K[1, 1] - 2 * K[0, 1]) * n / max(n - 1, 1.0)
    reach = _LIMIT * np.sqrt(max(square, 0.0))
    return np.array([bias, bias - reach, bias + reach])


def _estimates(
    moments: Moments, places: Sequence[int], names: tuple[str, ...], function: MeanFunction
) -> AgreementEstimates:
    clear_covariance(moments, places)
    chosen = list(places)
    centres, units = moments.centres[chosen], moments.scales[chosen]
    found = _delta(
        moments, places, lambda m, K: function(centres + units * m, K * np.outer(units, units))
    )
    notes = bare(moments, places)
    noise = np.sqrt(np.maximum(np.diag(found.privacy), 0.0))
    gone = np.nan if notes else 1.0
    columns = tuple(moments.names[p] for p in places)
    return AgreementEstimates(
        columns, names, found.values, found.bse * gone, noise * gone, tuple(notes)
    )


def _delta(moments: Moments, places: Sequence[int], function: MeanFunction) -> Delta:
    """A function of the means (k,) and the covariance (k, k) of some columns."""
    chosen = [0, *places]
    S = moments.sums[np.ix_(chosen, chosen)]
    w, m = float(S[0, 0]), S[0, 1:] / S[0, 0]
    K = moments.covariance(places)

    def of_sums(s: FloatArray) -> FloatArray:
        mean = s[0, 1:] / s[0, 0]
        return function(mean, s[1:, 1:] / s[0, 0] - np.outer(mean, mean))

    slopes = gradients(S, of_sums)
    inner = [G[1:, 1:] * w for G in slopes]
    means = [2 * w * (G[0, 1:] + G[1:, 1:] @ m) for G in slopes]
    sampling = [
        [
            (2 * float(np.sum((G @ K) * (H @ K).T)) + float(g @ K @ h)) / moments.records
            for H, h in zip(inner, means, strict=True)
        ]
        for G, g in zip(inner, means, strict=True)
    ]
    return moments.moved(chosen, function(m, K), slopes, np.array(sampling))
