# SPDX-License-Identifier: Apache-2.0
"""Gray's test from noisy counts: do groups have one cumulative incidence of a cause?

With F the group's cumulative incidence of the cause and S its survival of all causes, the number at
risk of the cause's subdistribution is R_gj = r_gj (1 − F_g,j−1)/S_g,j−1: those at risk and, as far
as they would not have been censored, those who had another event before. Gray's statistic with
ρ = 0 compares the observed events with those that one subdistribution hazard leads to expect,

    z_g = Σ_j (e_gj − R_gj E_j),        E_j = Σ_g e_gj / Σ_g R_gj.

z is a function of all groups' counts h. A count of group g′ moves it by

    Σ_j (1{g = g′} − R_gj/Σ_g R_gj) (de_g′j − E_j dR_g′j),

and the delta method gives its covariance as that of the curves: Σ_k h_k G_k G_kᵀ for persons, drawn
at random, and G Σ Gᵀ for the noise. In contrasts of G − 1 groups, zᵀV⁻¹z is referred to χ² with
G − 1 degrees of freedom. The first part is the variance of the influence functions of z, consistent
under the hypothesis and beyond it; Gray (1988) and cmprsk::cuminc plug the hypothesis into it.
Events are compared up to the last interval in which all groups' numbers at risk are
above their noise.

Post-processing of one release. Source: Gray (1988), Annals of Statistics 16.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from reticent_server.domain.steps import FloatArray
from reticent_server.kinds.cumulative_incidence.incidence import Course
from reticent_server.kinds.shared.follow_up.table import LifeTable
from reticent_server.kinds.shared.groups import LEAST_COMPARED
from reticent_server.numerics.matrices import floored

_LEAST = 1e-9  # persons²: a covariance that is smaller has no inverse


@dataclass(frozen=True, slots=True, kw_only=True)
class GrayTest:
    """Gray's test of one cause: statistic, referred to χ² with df degrees of freedom.
    observed_minus_expected: of each of the levels, noisy events beyond what one subdistribution
    hazard leads to expect, up to the time `until`; null of those that are not compared, as their
    numbers at risk are not above their noise. privacy_share: of the statistic's variance that is
    noise."""

    cause: str
    statistic: float
    df: int
    p_value: float
    observed_minus_expected: tuple[float | None, ...]
    until: float
    privacy_share: float


def gray_test(
    table: LifeTable, courses: Sequence[Course], cause: int, name: str, times: Sequence[float]
) -> GrayTest | None:
    """Of the groups whose number at risk is above its noise at the start; None of fewer than
    two."""
    compared = np.flatnonzero([course.length > 0 for course in courses])
    if len(compared) < LEAST_COMPARED:
        return None
    G, courses = len(courses), [courses[g] for g in compared.tolist()]
    k = min(course.length for course in courses)
    observed, slope = _statistic(table.of(compared), courses, cause, k)
    people = np.einsum("zgai,hgai,gai->zh", slope, slope, table.counts[compared])
    whole = np.zeros((len(courses), G, *slope.shape[2:]))
    whole[:, compared] = slope
    noise = table.noise_of_groups(whole)
    H = np.eye(len(courses))[1:]
    of_group = np.full(G, np.nan)
    of_group[compared] = observed
    # counts below 0 may have made of the first part what is no covariance
    V = floored(H @ people @ H.T, 0.0) + H @ noise @ H.T + _LEAST * np.eye(len(H))
    statistic = float((H @ observed) @ np.linalg.solve(V, H @ observed))
    return GrayTest(
        cause=name,
        statistic=max(statistic, 0.0),
        df=len(H),
        p_value=float(chdtrc(len(H), max(statistic, 0.0))),
        observed_minus_expected=tuple(None if np.isnan(v) else v for v in of_group.tolist()),
        until=float(times[k - 1]),
        privacy_share=float(np.clip(np.trace(H @ noise @ H.T) / np.trace(V), 0.0, 1.0)),
    )


def _statistic(
    table: LifeTable, courses: Sequence[Course], cause: int, k: int
) -> tuple[FloatArray, FloatArray]:
    """z (G,), and its slope (G, G, A, J + 1) in the counts of each group."""
    e = table.counts[:, cause, :k]
    found = [_at_risk(course, cause, k) for course in courses]
    R, dR = np.array([r for r, _ in found]), np.array([slope for _, slope in found])
    E, share = e.sum(axis=0) / R.sum(axis=0), R / R.sum(axis=0)
    own = np.zeros(dR.shape[1:])
    own[np.arange(k), cause, np.arange(k)] = 1.0
    moved = own - E[:, None, None] * dR
    apart = np.eye(len(courses))[:, :, None] - share[:, None]
    return (e - R * E).sum(axis=1), np.einsum("zgj,gjai->zgai", apart, moved)


def _at_risk(course: Course, cause: int, k: int) -> tuple[FloatArray, FloatArray]:
    """R (k,) and its slope (k, A, J + 1)."""
    log_s, F = (_before(v[:k]) for v in (course.log_survival, course.incidence[cause]))
    dlog_s, dF = (_before(v[:k]) for v in (course.survival_slope, course.slope[cause]))
    r = course.at_risk[:k]
    R = r * (1 - F) / np.exp(log_s)
    relative = course.risk_slope[:k] / r[:, None, None] - dF / (1 - F)[:, None, None] - dlog_s
    return R, R[:, None, None] * relative


def _before(values: FloatArray) -> FloatArray:
    """The values (k, …) at the starts of the intervals, 0 for the first."""
    return np.concatenate([np.zeros_like(values[:1]), values[:-1]])
