# SPDX-License-Identifier: Apache-2.0
"""Standardised differences and tests of groups for a Table 1, from a released description.

Numbers: with means m, their errors e (sampling and noise) and variances s² in two groups,

    d = (m₂ − m₁)/s̄,  s̄² = (s₁² + s₂²)/2,  Var(d) = (e₁² + e₂²)/s̄² + d²·Var(s̄²)/(4s̄⁴),

the variance of s² from the released interval of s. The test is Welch's:
(m₂ − m₁)²/(e₁² + e₂²) ~ χ²₁, of more groups Σ(m − m̄)²/e² ~ χ² with weights 1/e².

Levels: with shares p (L,), S = diag p − ppᵀ without its last row and column, and D = p₂ − p₁,
d² = DᵀS̄⁻¹D (Yang & Dalton 2012), less what noise adds to it, tr(S̄⁻¹V); of two levels d has the
sign of the first one's difference and an interval. Counts with noise of variance σ² give shares the
noise σ²AAᵀ/N², A = I − p1ᵀ; the test is Wald's, of shares that differ from the pooled ones. Of more
than two groups d is the mean of all pairs' |d|, and has no interval. Post-processing of one
release, free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import hypot, nan, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from reticent import _optional

FloatArray = NDArray[np.float64]
_Z = float(ndtri(0.975))
_CLEAR = 2.0
"""Standard errors that a pooled variance must be above 0, for a difference in its units."""


@dataclass(frozen=True, slots=True)
class Standardised:
    """A standardised difference, with its standard error: NaN where there is none."""

    value: float
    bse: float = nan

    def conf_int(self, alpha: float = 0.05) -> tuple[float, float]:
        """(lower, upper) by the normal law."""
        half = float(ndtri(1 - alpha / 2)) * self.bse
        return self.value - half, self.value + half


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """One column: its standardised difference, and the p-value of equal means (equal shares)."""

    column: str
    difference: Standardised
    statistic: float
    df: int

    @property
    def pvalue(self) -> float:
        """P(χ²(df) > statistic); nan where the statistic is not finite."""
        return float(chdtrc(self.df, self.statistic)) if np.isfinite(self.statistic) else nan


def comparisons_frame(rows: Sequence[GroupComparison]) -> Any:
    """A pandas.DataFrame with one row a column; needs pandas."""
    columns = {
        "smd": [r.difference.value for r in rows],
        "bse": [r.difference.bse for r in rows],
        "lower": [r.difference.conf_int()[0] for r in rows],
        "upper": [r.difference.conf_int()[1] for r in rows],
        "statistic": [r.statistic for r in rows],
        "df": [r.df for r in rows],
        "pvalue": [r.pvalue for r in rows],
    }
    return _optional.pandas().DataFrame(columns, index=[r.column for r in rows])


def comparison(column: Mapping[str, Any]) -> GroupComparison:
    """Of a described column, whose first group is all records."""
    name, groups = str(column["column"]), column["groups"][1:]
    if "mean" in groups[0]:
        return GroupComparison(name, _of_numbers(groups), *_equal_means(groups, column))
    return GroupComparison(name, _of_levels(groups), *_equal_shares(groups))


def _of_numbers(groups: Sequence[Mapping[str, Any]]) -> Standardised:
    found = [_numbers_apart(a, b) for a, b in combinations(groups, 2)]
    return found[0] if len(found) == 1 else _mean_of(found)


def _mean_of(found: Sequence[Standardised]) -> Standardised:
    return Standardised(float(np.mean([abs(each.value) for each in found])))


def _numbers_apart(a: Mapping[str, Any], b: Mapping[str, Any]) -> Standardised:
    change = float(b["mean"]["value"]) - float(a["mean"]["value"])
    error = hypot(float(a["mean"]["standard_error"]), float(b["mean"]["standard_error"]))
    squares = [float(each["standard_deviation"]["value"] or 0.0) ** 2 for each in (a, b)]
    noise = [_error_of_square(each["standard_deviation"]) for each in (a, b)]
    pooled, wide = sum(squares) / 2, hypot(*noise) / 2
    if pooled <= _CLEAR * wide or pooled <= 0:
        return Standardised(nan)
    d = change / sqrt(pooled)
    return Standardised(d, sqrt(error**2 / pooled + (d * wide / (2 * pooled)) ** 2))


def _error_of_square(figure: Mapping[str, Any]) -> float:
    """The standard error of s², from the upper end of s: the lower one may be cut at 0."""
    value, (_, high) = float(figure["value"] or 0.0), figure["confidence_interval"]
    return (float(high) ** 2 - value**2) / _Z


def _equal_means(
    groups: Sequence[Mapping[str, Any]], column: Mapping[str, Any]
) -> tuple[float, int]:
    """The statistic and its degrees of freedom; NaN where a group is too small to say a mean."""
    means = np.array([float(g["mean"]["value"]) for g in groups])
    errors = np.array([float(g["mean"]["standard_error"]) for g in groups])
    clipped = column.get("clipped")
    open_ones = any(list(g["mean"]["confidence_interval"]) == list(clipped or ()) for g in groups)
    if open_ones or not np.all(errors > 0):
        return nan, len(groups) - 1
    w = errors**-2.0
    return float(np.sum(w * (means - np.sum(w * means) / w.sum()) ** 2)), len(groups) - 1


def _of_levels(groups: Sequence[Mapping[str, Any]]) -> Standardised:
    found = [_levels_apart(a, b, len(groups)) for a, b in combinations(groups, 2)]
    return found[0] if len(found) == 1 else _mean_of(found)


def _levels_apart(a: Mapping[str, Any], b: Mapping[str, Any], G: int) -> Standardised:
    if not (_sure(a) and _sure(b)):
        return Standardised(nan)
    (p, V), (q, W) = (_shares(each, G) for each in (a, b))
    D, S = (q - p)[:-1], (_multinomial(p) + _multinomial(q))[:-1, :-1] / 2
    if len(D) == 1:
        first = float(D[0] / sqrt(S[0, 0]))
        errors = [float(each["shares"][0].get("standard_error") or nan) for each in (a, b)]
        # s̄² of shares has the slope (1 − 2p)/2 in each, beside that of the difference.
        slopes = [
            sign / sqrt(S[0, 0]) - first * (1 - 2 * share) / (4 * S[0, 0])
            for sign, share in ((-1, p[0]), (1, q[0]))
        ]
        return Standardised(first, hypot(*(s * e for s, e in zip(slopes, errors, strict=True))))
    inverse = np.linalg.inv(S)
    square = float(D @ inverse @ D - np.trace(inverse @ (V + W)[:-1, :-1]))
    return Standardised(sqrt(max(square, 0.0)))


def _equal_shares(groups: Sequence[Mapping[str, Any]]) -> tuple[float, int]:
    L, G = len(groups[0]["shares"]), len(groups)
    df = (L - 1) * (G - 1)
    if L < 2 or not all(map(_sure, groups)):
        return nan, max(df, 1)
    shares, noise = zip(*(_shares(g, G) for g in groups), strict=True)
    N = np.array([_number(g) for g in groups])
    pooled = np.asarray(N @ np.array(shares) / N.sum())
    V = [(_multinomial(pooled) / n + W)[:-1, :-1] for n, W in zip(N, noise, strict=True)]
    weights = [np.linalg.inv(each) for each in V]
    kept = [p[:-1] for p in shares]
    centre = np.linalg.solve(sum(weights), sum(w @ p for w, p in zip(weights, kept, strict=True)))
    away = [p - centre for p in kept]
    return float(sum(d @ w @ d for d, w in zip(away, weights, strict=True))), df


def _sure(group: Mapping[str, Any]) -> bool:
    """Whether the group is clear of its noise: else all of [0, 1] is the interval of a share."""
    return any(list(each["confidence_interval"]) != [0.0, 1.0] for each in group["shares"])


def _number(group: Mapping[str, Any]) -> float:
    return max(float(np.sum(group["counts"][: len(group["shares"])])), 1.0)


def _shares(group: Mapping[str, Any], groups: int) -> tuple[FloatArray, FloatArray]:
    """Shares within (0, 1) that add up to 1, and the covariance of their noise. Where counts were
    put on a public total σ² is larger than that of one by 1/(1 − 1/B), with B cells, at least
    these.
    """
    N = _number(group)
    counts = np.array(group["counts"][: len(group["shares"])], dtype=np.float64)
    L = len(counts)
    p = np.maximum(counts, 0.5)  # half a record: a share has an error at 0, too
    p /= p.sum()
    sigma2 = float(group["count_standard_error"]) ** 2 / (1 - 1 / (L * groups))
    A = np.eye(L) - np.outer(p, np.ones(L))
    return p, np.asarray(sigma2 / N**2 * A @ A.T)


def _multinomial(p: FloatArray) -> FloatArray:
    return np.asarray(np.diag(p) - np.outer(p, p))
