# SPDX-License-Identifier: Apache-2.0
"""A test of one or two proportions: noisy counts by group of successes and others.

A record in use of a group adds 1 to one of the cells (group, success or not):
kinds.shared.group_bins, Δ = √2.

With T_g successes of N_g, noise of sd σ in each of the two cells, C_g = T_g − pN_g at the pooled p
has the variance N_gp(1 − p) + σ²((1 − p)² + p²) under equal proportions: z = (C_1/N_1 − C_2/N_2)/√Σ
Var C_g/N_g². An interval of one proportion has the p that
|T − pN| ≤ z√(Np(1 − p) + σ²((1 − p)² + p²)) does not refuse, Wilson's with the noise: a quadratic
in p. The difference's interval has Newcombe's distances of the two. Sources: Wilson (1927);
Newcombe (1998), method 10.
"""

from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar, Protocol

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.normal import half_width
from reticent_server.fitting.results import Interval
from reticent_server.kinds.shared.bins_plan import BinsPlan
from reticent_server.kinds.shared.group_bins import GroupBins, GroupBinsMap, bins_part
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.named_tests import TestResult, normal_p_value
from reticent_server.kinds.shared.sparse_groups import SAYS_NOTHING, sparse_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionTestResult(TestResult):
    """statistic: z. effect: the first proportion minus the second, or minus `value`.

    proportions, intervals, numbers: by group, released.
    """

    levels: tuple[str, ...]
    numbers: tuple[float, ...]
    proportions: tuple[float, ...]
    intervals: tuple[Interval, ...]


class ProportionQuestion(Protocol):
    """What a test of proportions asks beside its columns."""

    @property
    def alternative(self) -> str:
        """ "two-sided", "less" or "greater"."""

    @property
    def confidence_level(self) -> float:
        """The level of the effect's interval."""

    @property
    def value(self) -> float | None:
        """The proportion of the null hypothesis, of one group; None where two are compared."""


@dataclass(frozen=True, slots=True)
class Success(GroupBinsMap):
    """(rows,) 2·group + (1 where the column has the stored value `code`); −1 where the record is in
    no group."""

    code: float = 1.0

    def bins(self, values: FloatArray) -> FloatArray:
        return np.asarray(values == self.code, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ProportionTestPlan(BinsPlan):
    """A planned test of proportions. value: the hypothesis' of one group."""

    deadline_shares: ClassVar = (0.03, 0.05)

    alternative: str = field(default="two-sided")
    value: float | None = None

    def result(self, bins: GroupBins) -> ProportionTestResult:
        raw, N = bins.T[:, 1], bins.numbers
        p = np.clip(raw / N, 0.0, 1.0)
        z = self._statistic(bins)
        intervals = tuple(_wilson(row, bins.sigma, self.confidence_level) for row in bins.T)
        effect, interval = self._effect(p.tolist(), intervals)
        return ProportionTestResult(
            statistic=z,
            p_value=normal_p_value(z, self.alternative),
            effect=effect,
            effect_interval=interval,
            confidence_level=self.confidence_level,
            estimand=self._estimand(),
            levels=self.groups.levels,
            numbers=tuple(bins.T.sum(axis=1).tolist()),
            proportions=tuple(p.tolist()),
            intervals=intervals,
            n=self.n,
            warnings=sparse_warnings(self.groups.levels, bins.known, SAYS_NOTHING),
        )

    def _statistic(self, bins: GroupBins) -> float:
        N, p = bins.numbers, float(bins.pooled[1]) if self.value is None else self.value
        variance = N * p * (1 - p) + bins.sigma**2 * ((1 - p) ** 2 + p**2)
        C = (bins.T[:, 1] - p * bins.T.sum(axis=1)) / N
        difference = float(C[0] - C[1]) if len(C) == 2 else float(C[0])
        return difference / sqrt(float((variance / N**2).sum()))

    def _effect(self, p: list[float], intervals: tuple[Interval, ...]) -> tuple[float, Interval]:
        if self.value is not None:
            (low, high) = intervals[0]
            return p[0] - self.value, (low - self.value, high - self.value)
        (low1, high1), (low2, high2) = intervals
        below, above = (
            sqrt((p[0] - low1) ** 2 + (high2 - p[1]) ** 2),
            sqrt((high1 - p[0]) ** 2 + (p[1] - low2) ** 2),
        )
        d = p[0] - p[1]
        return d, (max(-1.0, d - below), min(1.0, d + above))

    def _estimand(self) -> str:
        if self.value is not None:
            return "proportion minus value"
        first, second = self.groups.levels
        return f"proportion in {first} minus proportion in {second}"


def _wilson(row: FloatArray, sigma: float, level: float) -> Interval:
    """The proportions that the counts (others, successes) do not refuse; (0, 1) where they refuse
    none."""
    z2, T, N = half_width(1.0, level) ** 2, float(row[1]), float(row.sum())
    a = N * N + z2 * max(N, 0.0) - 2 * z2 * sigma**2
    b = -2 * T * N - z2 * max(N, 0.0) + 2 * z2 * sigma**2
    c = T * T - z2 * sigma**2
    if a <= 0 or b * b <= 4 * a * c or N <= 0:
        return 0.0, 1.0
    root = sqrt(b * b - 4 * a * c)
    low, high = ((-b - root) / (2 * a), (-b + root) / (2 * a))
    p = min(1.0, max(0.0, T / N))
    return min(p, max(0.0, low)), max(p, min(1.0, high))


def plan_proportion_test(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: Column,
    code: float,
    asked: ProportionQuestion,
    rho: int,
) -> ProportionTestPlan:
    """A test of proportions at `rho` (RHO_UNITS); design: mask and columns only."""
    cells = Success(design, groups, column.name, (1.0,), code)
    part = bins_part(facts, groups, cells.edges, rho)
    return ProportionTestPlan(
        cells,
        part,
        asked.confidence_level,
        facts.n,
        alternative=asked.alternative,
        value=asked.value,
    )
