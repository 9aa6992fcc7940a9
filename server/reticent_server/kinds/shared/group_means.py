# SPDX-License-Identifier: Apache-2.0
"""Comparisons of released group means: Welch's two, with the privacy noise in the law.

Two means. With C_g = S_g − mN_g at the pooled mean m, the difference d = C_1/N_1 − C_2/N_2 is the
means' difference, and under equal means its noise is that of the C_g, whatever the released numbers
are (for an expected difference δ, C_1 and C_2 are centred at m + δN_2/N and m − δN_1/N). With
sample variances s_g²,

    V = Σ (s_g²/N_g + η_g/N_g²),   η_g the variance of C_g's noise,   t = d/√V,
    df = 2V²/Σ (2(s_g²/N_g)²/(N_g − 1) + τ_g²/N_g²),   τ_g² the variance of the noise of s_g²:

Welch and Satterthwaite's, with the noise as a known variance and with its share in the error of the
variances.

Several means. w_g = 1/V_g, W = Σ w_g(C_g/N_g)² − (Σ w_gC_g/N_g)²/Σ w_g, Λ = Σ (1 − w_g/w)²/df_g,
F = W/(G − 1)/(1 + 2(G − 2)/(G² − 1)·Λ) against F with G − 1 and (G² − 1)/(3Λ) degrees of freedom
(Welch 1951).

Everything is post-processing of released values. Units: of z, see kinds.shared.groups. Sources:
Welch (1947, 1951); Satterthwaite (1946); noise in the law: Gaboardi, Lim, Rogers & Vadhan (2016).
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.shared.groups import GroupMoments
from reticent_server.kinds.shared.ranges import ClipRange

_MOST_DF = 1e9  # Student's law is the normal one, and F's χ²'s, long before
_LEAST_DF = 1.0  # of a variance that is itself mostly noise: Cauchy's law, the widest that is used


@dataclass(frozen=True, slots=True)
class GroupMean:
    """A group's released number of records, mean and standard deviation, of values clipped to the
    test's range; null of a group whose number is not above its noise."""

    level: str
    number: float
    mean: float | None
    standard_deviation: float | None
    standard_error: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Precision:
    """V (G,), the variance of each group's mean; noise (G,), its part from privacy; df (G,), how
    well V is known."""

    V: FloatArray
    noise: FloatArray
    df: FloatArray
    error: FloatArray
    """(G,) the variance of V itself: df = 2V²/error."""


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """difference: d, without the hypothesis' part; V: its variance; noise: the privacy part of
    V."""

    difference: float
    statistic: float
    df: float
    V: float
    noise: float


def precision(groups: GroupMoments, m: FloatArray | float) -> Precision:
    """The expected precision of the groups' means, with the noise at the mean m."""
    N = groups.at_least_one
    s2, tau2 = _steadied(groups)
    sampling = s2 / N
    noise = groups.centred_noise(m) / N**2
    V = sampling + noise
    error = 2 * sampling**2 / np.maximum(N - 1, 1.0) + tau2 / N**2
    return Precision(V, noise, _degrees(V, error), error)


def _degrees(V: FloatArray, error: FloatArray) -> FloatArray:
    """2V²/error, from _LEAST_DF to _MOST_DF."""
    return np.clip(2 / np.maximum(error / V**2, 2 / _MOST_DF), _LEAST_DF, _MOST_DF)


def _steadied(groups: GroupMoments) -> tuple[FloatArray, FloatArray]:
    """(G,) variances drawn to the pooled one, and the variances of what is left of their noise.

    Posterior means and variances under s_g² ~ (s², s⁴): groups' variances that differ by a factor
    of two or so.
    """
    N, s2, tau2 = groups.at_least_one, groups.variances(), groups.variance_noise()
    pooled = float(np.clip(N @ s2 / N.sum(), 0.0, 1.0))
    drawn = tau2 / (tau2 + max(pooled**2, np.finfo(float).tiny))
    return np.clip(s2 + drawn * (pooled - s2), 0.0, 1.0), np.asarray(tau2 * (1 - drawn))


def difference_of_two(groups: GroupMoments, expected: float = 0.0) -> MeanDifference:
    """Welch's comparison of two groups; expected: the difference of the hypothesis."""
    N = groups.at_least_one
    m = groups.pooled_mean + expected * np.array([N[1], -N[0]]) / N.sum()
    under = precision(groups, m)
    C = groups.centred(m) / N
    null = under.V.sum()
    own = precision(groups, groups.means)
    return MeanDifference(
        difference=float(groups.means[0] - groups.means[1]),
        statistic=float((C[0] - C[1]) / null**0.5),
        df=float(_degrees(null, under.error.sum())),
        V=float(own.V.sum()),
        noise=float(own.noise.sum()),
    )


def one_mean(group: GroupMoments, m: float) -> MeanDifference:
    """One group's mean against m."""
    N = float(group.at_least_one[0])
    under, own = precision(group, m), precision(group, group.means)
    statistic = float(group.centred(m)[0] / N / under.V[0] ** 0.5)
    return MeanDifference(
        difference=float(group.means[0]) - m,
        statistic=statistic,
        df=float(under.df[0]),
        V=float(own.V[0]),
        noise=float(own.noise[0]),
    )


@dataclass(frozen=True, slots=True)
class MeansTest:
    """F of equal means with its degrees of freedom; weight: κ, what multiplies f² in the
    noncentrality of (G − 1)F."""

    statistic: float
    df: tuple[float, float]
    weight: float


def equal_means(groups: GroupMoments) -> MeansTest:
    """Welch's analysis of variance of two or more groups."""
    G, N, m = len(groups.N), groups.at_least_one, groups.pooled_mean
    under = precision(groups, m)
    w = 1 / under.V
    share, d = w / w.sum(), groups.centred(m) / N
    W = float((w * (d - share @ d) ** 2).sum())
    lam = float(((1 - share) ** 2 / under.df).sum())
    scale = 1 + 2 * (G - 2) / (G**2 - 1) * lam
    second = min((G**2 - 1) / (3 * max(lam, 1 / _MOST_DF)), _MOST_DF)
    p = N / N.sum()
    within = float(p @ np.clip(groups.variances(), 0.0, 1.0))
    weight = within * float(w @ (1 - share)) / max(1 - float(p @ p), np.finfo(float).tiny)
    return MeansTest(W / (G - 1) / scale, (G - 1.0, second), weight / scale)


def group_means(
    groups: GroupMoments, levels: tuple[str, ...], span: ClipRange
) -> tuple[GroupMean, ...]:
    """The groups' means in the units of the data."""
    columns = (
        span.centre + span.half * groups.means,
        span.half * np.sqrt(np.clip(groups.variances(), 0.0, 1.0)),
        span.half * np.sqrt(precision(groups, groups.means).V),
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    given = (row if known else (None,) * 3 for row, known in zip(rows, groups.known, strict=True))
    named = zip(levels, groups.N.tolist(), given, strict=True)
    return tuple(GroupMean(level, number, *row) for level, number, row in named)
