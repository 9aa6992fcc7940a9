# SPDX-License-Identifier: Apache-2.0
"""An event study: dummies of the time since treatment, and a joint test of those before it.

    y_it = a_i + g_t + Σ_k b_k 1{t − s_i = k} + x_itᵀb + e_it,    k = −before … after without −1

s_i is the period of the first treatment; the ends hold all periods beyond them. The test of b_k = 0
for all k < −1 is Wald's with the covariance of sampling and noise together, against F with the
least of the intervals' degrees of freedom where these are cluster-robust, else against χ². It is
post-processing of the fit.
"""

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc

from reticent_server.domain.design import EventTime, Term
from reticent_server.domain.plan import Recipe
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.results import RegressionResult, Share
from reticent_server.kinds.shared.treatment import TreatmentPlan, indicator

# relative eigenvalue at which a covariance is inverted: the statistic stays finite
_SMALLEST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrendTest:
    """The joint test that nothing happens before treatment. null: not estimable."""

    statistic: float | None
    df: int
    p_value: Share | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStudyResult(RegressionResult):
    """A fit whose first terms, after an intercept, are those of the times since treatment.
    event_times: theirs, without the reference −1; the first holds all earlier ones, the last all
    later ones."""

    event_times: list[int]
    pretrend: PretrendTest


@dataclass(frozen=True, slots=True, eq=False)
class EventStudyPlan(TreatmentPlan):
    """A planned event study. times: k of its first terms."""

    times: tuple[int, ...] = ()

    def run(self) -> Recipe:
        """The recipe."""
        ground, fit = yield from self.fitted()
        result = self.result(ground, fit)
        first = int(ground.coding.design.intercept)
        leads = [first + j for j, k in enumerate(self.times) if k < 0]
        R = np.eye(ground.coding.size)[leads]
        directions = fit.directions.mapped(back_transform(ground.coding).matrix)
        known = directions.estimable(R) and all(result["estimable"][j] for j in leads)
        pretrend = _pretrend(result, leads) if known else _unknown(leads)
        return EventStudyResult(**result, event_times=list(self.times), pretrend=pretrend)


def _unknown(leads: list[int]) -> PretrendTest:
    return PretrendTest(statistic=None, df=len(leads), p_value=None)


def _pretrend(result: dict[str, Any], leads: list[int]) -> PretrendTest:
    """Wald's test; statistic: χ² with df degrees of freedom."""
    b = np.array(result["coefficients"], dtype=np.float64)[leads]
    C = np.array(result["covariance"], dtype=np.float64)[np.ix_(leads, leads)]
    W, k = float(b @ np.linalg.pinv(C, rcond=_SMALLEST, hermitian=True) @ b), len(leads)
    degrees = result.get("degrees_of_freedom")
    p = chdtrc(k, W) if degrees is None else fdtrc(k, min(degrees[j] for j in leads), W / k)
    return PretrendTest(statistic=W, df=k, p_value=float(p))


def event_times(before: int, after: int) -> tuple[int, ...]:
    """k of the terms: −before … after, without the reference −1."""
    return tuple(k for k in range(-before, after + 1) if k != -1)


def event_terms(
    time: str, start: str, before: int, after: int, never: float | None
) -> tuple[Term, ...]:
    """The dummies of the times since treatment."""
    terms = []
    for k in event_times(before, after):
        low, high = (-inf if k == -before else k), (inf if k == after else k)
        name = f"<={k}" if k == -before else f">={k}" if k == after else f"{k}"
        terms.append(indicator(f"event_time[{name}]", EventTime(time, start, low, high, never)))
    return tuple(terms)
