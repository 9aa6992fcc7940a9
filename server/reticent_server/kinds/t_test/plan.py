# SPDX-License-Identifier: Apache-2.0
"""A t test: one Gram sum of the groups' numbers, sums and squares; of paired columns a noisy range
first.

Privacy: kinds.shared.groups, one GramSum for all groups; paired, 15 % of ρ for the CountSum of
kinds.shared.pilot_range first, and the Gram sum of a range made of what it released: the two
compose by zCDP. All else is post-processing. Statistics: kinds.shared.group_means.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Protocol

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.steps import CountSum, GramSum, SumStep
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.group_means import (
    MeanDifference,
    difference_of_two,
    group_means,
    one_mean,
)
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
from reticent_server.kinds.shared.named_tests import t_interval, t_p_value
from reticent_server.kinds.shared.pilot_range import SHARE, ShellMap, narrowed, shell_part
from reticent_server.kinds.shared.ranges import ClipRange
from reticent_server.kinds.shared.sparse_groups import SAYS_NOTHING, sparse_warnings
from reticent_server.kinds.t_test.result import TTestResult

# half-widths of a paired test's range: a popmean beyond is refuted as surely as one there
_FAR = 1e3


class TTestQuestion(Protocol):
    """What a t test asks beside its columns."""

    @property
    def popmean(self) -> float:
        """The mean (or difference of means) of the null hypothesis."""

    @property
    def alternative(self) -> str:
        """ "two-sided", "less" or "greater"."""

    @property
    def confidence_level(self) -> float:
        """The level of the effect's interval."""


@dataclass(frozen=True, slots=True)
class TTestPlan(Planned):
    """A planned t test. pilot: the count of shells of a paired test."""

    deadline_shares: ClassVar = (0.05, 0.05)

    design: Design
    groups: Groups
    value: ComparedValue
    span: ClipRange
    asked: TTestQuestion
    part: GramSum
    pilot: CountSum | None
    a: float
    n: int

    @property
    def outline(self) -> Outline:
        parts = (self.part,) if self.pilot is None else (self.pilot, self.part)
        return Outline(
            columns=self.design.columns,
            rho=sum(part.rho for part in parts),
            mechanism="discrete Gaussian sums by group",
            reference="Canonne, Kamath & Steinke (2020); Welch (1947)",
            parts=parts,
            passes=len(parts),
            column_ms=moments_ms(self.n, self.groups.size),
            gaussian_counts=() if self.pilot is None else (self.pilot,),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of the effect; what a paired test's differences vary by is not
        public."""
        sd, G = self.span.sd, self.groups.size
        sampling = None if sd is None else sd * G / sqrt(self.n)
        return single("effect", float(self.forecast["privacy_standard_error"]), sampling)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error where every record is in use and groups are equally large."""
        G, noise = self.groups.size, mean_noise(self.part, self.a, self.span.tilt)
        return {"privacy_standard_error": noise * self.span.half * G * sqrt(G) / self.n}

    def run(self) -> Recipe:
        """1. Paired: the range of differences. 2. Sums by group. 3. Welch's comparison."""
        span = self.span
        if self.pilot is not None:
            shells = ShellMap(self.design, self.value, span)
            (counts,) = yield SumStep("range", (self.pilot,), shells)
            span = narrowed(span, counts)
        sums = GroupMomentsMap(self.design, self.groups, self.value, span, self.a)
        (released,) = yield SumStep("moments", (self.part,), sums)
        return self._result(span, moments(released, self.groups.size, self.a))

    def _result(self, span: ClipRange, groups: GroupMoments) -> TTestResult:
        effect, limits = self._effect(span, groups)
        error = span.half * sqrt(effect.V)
        value = span.half * effect.difference
        level = self.asked.confidence_level
        interval = t_interval(value, error, effect.df, level, limits) if groups.sure else limits
        return TTestResult(
            statistic=effect.statistic,
            df=effect.df,
            p_value=t_p_value(effect.statistic, effect.df, self.asked.alternative),
            effect=value,
            effect_interval=interval,
            confidence_level=level,
            estimand=self._estimand(),
            standard_error=error,
            privacy_standard_error=span.half * sqrt(effect.noise),
            range=(span.lower, span.upper),
            groups=group_means(groups, self.groups.levels, span),
            n=self.n,
            warnings=sparse_warnings(self.groups.levels, groups.known, SAYS_NOTHING),
        )

    def _effect(
        self, span: ClipRange, groups: GroupMoments
    ) -> tuple[MeanDifference, tuple[float, float]]:
        """The comparison in z, and what the effect can be in the units of the data."""
        asked = self.asked.popmean
        if self.groups.size == 2:
            return difference_of_two(groups, asked / span.half), (-2 * span.half, 2 * span.half)
        limits = (span.lower - asked, span.upper - asked)
        return one_mean(groups, (asked - span.centre) / span.half), limits

    def _estimand(self) -> str:
        if self.groups.size == 2:
            first, second = self.groups.levels
            return f"mean of {first} minus mean of {second}, of values clipped to the range"
        return "mean minus popmean, of values clipped to the range"


def plan_t_test(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    value: ComparedValue,
    span: ClipRange,
    asked: TTestQuestion,
    rho: int,
) -> TTestPlan:
    """A t test at `rho` (RHO_UNITS); design: mask and columns only."""
    paired = value.minus is not None
    share = int(SHARE * rho) if paired else 0
    pilot = shell_part(facts, share) if paired else None
    unit = None if paired else unit_of(span, declared(facts, value.column))
    middle = 0.0 if paired else span.tilt
    part, a = moments_part(facts, groups, weight(middle), rho - share, unit)
    return TTestPlan(design, groups, value, span, asked, part, pilot, a, facts.n)
