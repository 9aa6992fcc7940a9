# SPDX-License-Identifier: Apache-2.0
"""Means of a bounded column by group, from one Gram sum of e_g ⊗ (a, z) (kinds.shared.groups: proof
and noise).

z = (x − centre)/half ∈ [−1, 1] by the declared bounds, so nothing is clipped. With N, S, Q the
released number, sum and sum of squares of a group, the mean is v̄ = S/N and

    Var = s²/N + η(v̄)/N²,   s² = (Q − 2v̄S + v̄²N)/(N − 1),

η(m) the variance of the noise of S − mN.

S − mN has zero-mean noise at any true number, so dividing by the released one is no bias. Where N
is not above three standard deviations of its noise, its quotient has no normal law: the interval is
the whole declared range, and the standard error is at least half of that range, for the differences
that are made of it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import GramSum, SumStep
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.results import Estimate
from reticent_server.fitting.trust import clear
from reticent_server.kinds.shared.by import ByPlan, by_plan, group_mask, groups_by
from reticent_server.kinds.shared.groups import (
    ComparedValue,
    GroupMoments,
    GroupMomentsMap,
    Groups,
    mean_noise,
    moments,
    moments_ms,
    moments_part,
    unit_of,
    weight,
)
from reticent_server.kinds.shared.ranges import declared_range


@dataclass(frozen=True, slots=True)
class GroupMeanPlan(Planned):
    """Planned means by group. tilt: z where public facts lead to expect the means."""

    deadline_shares: ClassVar = (0.06, 0.06)

    map_fn: GroupMomentsMap
    part: GramSum
    tilt: float
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.map_fn.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian sums",
            reference="Dwork & Smith (2009), Theorem 6; Canonne, Kamath & Steinke (2020)",
            column_ms=moments_ms(self.n, self.groups.size),
            gaussian_counts=(),
        )

    @property
    def groups(self) -> Groups:
        """The groups that are compared, in the reply's order."""
        return self.map_fn.groups

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of a group that is as large as the others."""
        sd, G = self.map_fn.range.sd, self.groups.size
        sampling = None if sd is None else sd * sqrt(G / self.n)
        return single("mean", float(self.forecast["privacy_standard_error"]), sampling)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The expected noise of a group that is as large as the others, where every record is in
        use."""
        noise = mean_noise(self.part, self.map_fn.a, self.tilt)
        error = noise * self.map_fn.range.half * self.groups.size / self.n
        return {"privacy_standard_error": error}

    def run(self) -> Recipe:
        """One step; values are within the declared bounds."""
        (released,) = yield SumStep("means", (self.part,), self.map_fn)
        group_moments = moments(released, self.groups.size, self.map_fn.a)
        return [asdict(each) for each in self._estimates(group_moments)]

    def _estimates(self, group_moments: GroupMoments) -> list[Estimate]:
        bounds, N = self.map_fn.range, group_moments.at_least_one
        privacy = np.sqrt(group_moments.centred_noise(group_moments.means)) / N
        errors = bounds.half * np.sqrt(np.maximum(group_moments.variances(), 0.0) / N + privacy**2)
        values = bounds.centre + bounds.half * group_moments.means
        sure = clear(group_moments.N, group_moments.s / self.map_fn.a**2)
        columns = (values, errors, bounds.half * privacy, sure)
        return [
            self._estimate(*each, sure=known)
            for *each, known in zip(*(c.tolist() for c in columns), strict=True)
        ]

    def _estimate(self, value: float, error: float, privacy: float, *, sure: bool) -> Estimate:
        ends = (self.map_fn.range.lower, self.map_fn.range.upper)
        error = error if sure else max(error, self.map_fn.range.half)
        return Estimate(
            value=value,
            standard_error=error,
            privacy_standard_error=privacy,
            confidence_level=CONFIDENCE,
            confidence_interval=normal_interval(value, error, *ends) if sure else ends,
            n=self.n,
        )


def plan_group_mean(
    facts: DatasetFacts, where: str | None, by: str, column: Column, rho: int
) -> ByPlan:
    """Means at `rho` (RHO_UNITS). Raises InvalidQuery."""
    groups = groups_by(facts, by, column.name)
    design = group_mask(facts, where, by, column.name)
    bounds = declared_range(facts, column)
    unit = unit_of(bounds, column)
    part, a = moments_part(facts, groups, weight(bounds.tilt), rho, unit)
    map_fn = GroupMomentsMap(design, groups, ComparedValue(column.name), bounds, a)
    plan = GroupMeanPlan(map_fn, part, bounds.tilt, facts.n)
    return by_plan(facts, plan, groups)
