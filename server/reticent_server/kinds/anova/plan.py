# SPDX-License-Identifier: Apache-2.0
"""An analysis of variance: one Gram sum of the groups' numbers, sums and squares.

Privacy: kinds.shared.groups. Statistics: kinds.shared.group_means, kinds.shared.shares_of_variance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.steps import GramSum, SumStep
from reticent_server.fitting.results import Interval
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.group_means import GroupMean, MeansTest, equal_means, group_means
from reticent_server.kinds.shared.groups import (
    LEAST_COMPARED,
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
from reticent_server.kinds.shared.named_tests import TestResult
from reticent_server.kinds.shared.ranges import ClipRange
from reticent_server.kinds.shared.shares_of_variance import share_between
from reticent_server.kinds.shared.sparse_groups import in_statistic, sparse_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class AnovaResult(TestResult):
    """effect: η², the share of the variance that lies between the groups. F and η² are of the
    groups whose number is above its noise. df_denominator: of F.

    range: what values were clipped to. groups: one for each group.
    """

    df_denominator: float
    range: Interval
    groups: tuple[GroupMean, ...]


@dataclass(frozen=True, slots=True)
class AnovaPlan(Planned):
    """A planned analysis of variance."""

    deadline_shares: ClassVar = (0.08, 0.06)

    design: Design
    groups: Groups
    value: ComparedValue
    span: ClipRange
    confidence_level: float
    part: GramSum
    a: float
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian sums by group",
            reference="Canonne, Kamath & Steinke (2020); Welch (1951)",
            parts=(self.part,),
            column_ms=moments_ms(self.n, self.groups.size),
            gaussian_counts=(),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of a group's mean."""
        sd, G = self.span.sd, self.groups.size
        sampling = None if sd is None else sd * sqrt(G / self.n)
        return single("mean", float(self.forecast["privacy_standard_error"]), sampling)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error of a group's mean, every record in use and groups equally
        large."""
        noise = mean_noise(self.part, self.a, self.span.tilt)
        return {"privacy_standard_error": noise * self.span.half * self.groups.size / self.n}

    def run(self) -> Recipe:
        """1. Sums by group. 2. Welch's F, and the share of the variance between groups."""
        sums = GroupMomentsMap(self.design, self.groups, self.value, self.span, self.a)
        (released,) = yield SumStep("moments", (self.part,), sums)
        return self._result(moments(released, self.groups.size, self.a))

    def _share(self, test: MeansTest, known: int) -> tuple[float, Interval]:
        """η² between groups of which `known` are known to have records: an empty one has a mean
        that is noise alone."""
        if known < LEAST_COMPARED:
            return 0.0, (0.0, 1.0)
        k = test.df[0]
        return share_between(k * test.statistic, k, test.weight, self.confidence_level)

    def _result(self, groups: GroupMoments) -> AnovaResult:
        test = equal_means(groups.of_groups(in_statistic(groups.known)))
        first, second = test.df
        share, interval = self._share(test, int(groups.known.sum()))
        return AnovaResult(
            statistic=test.statistic,
            df=first,
            df_denominator=second,
            p_value=float(fdtrc(first, second, test.statistic)),
            effect=share,
            effect_interval=interval,
            confidence_level=self.confidence_level,
            estimand=_estimand(groups.known),
            range=(self.span.lower, self.span.upper),
            groups=group_means(groups, self.groups.levels, self.span),
            n=self.n,
            warnings=sparse_warnings(self.groups.levels, groups.known),
        )


def _estimand(known: NDArray[np.bool_]) -> str:
    """known (G,): which groups have a number of records above its noise."""
    which = "groups" if known.all() else f"the {known.sum()} groups whose number is above its noise"
    return f"share of the variance between {which}, of values clipped to the range"


def plan_anova(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: str,
    span: ClipRange,
    confidence_level: float,
    rho: int,
) -> AnovaPlan:
    """An analysis of variance at `rho` (RHO_UNITS); design: mask and columns only."""
    unit = unit_of(span, declared(facts, column))
    part, a = moments_part(facts, groups, weight(span.tilt), rho, unit)
    return AnovaPlan(
        design, groups, ComparedValue(column), span, confidence_level, part, a, facts.n
    )
