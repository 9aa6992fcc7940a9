# SPDX-License-Identifier: Apache-2.0
"""A rank-sum test of two groups: noisy counts by group and bin.

Privacy: kinds.shared.group_bins. Statistics: kinds.shared.ranks.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.fitting.normal import half_width
from reticent_server.kinds.shared.bins_plan import BinsPlan, cells_of
from reticent_server.kinds.shared.group_bins import GroupBins, number_of_bins, public_edges
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.named_tests import TestResult, normal_p_value
from reticent_server.kinds.shared.ranks import rank_test, superiority
from reticent_server.kinds.shared.sparse_groups import SAYS_NOTHING, sparse_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class MannWhitneyResult(TestResult):
    """statistic: z. effect: P(X > Y) + ½P(X = Y), X of the first group, Y of the second, of values
    in public bins.

    edges: where bins begin. numbers: released numbers of records by group.
    """

    standard_error: float
    privacy_standard_error: float
    levels: tuple[str, ...]
    numbers: tuple[float, ...]
    edges: tuple[float, ...]


class RankSumQuestion(Protocol):
    """What a rank-sum test asks beside its columns."""

    @property
    def alternative(self) -> str:
        """ "two-sided", "less" or "greater", of the first group's values."""

    @property
    def confidence_level(self) -> float:
        """The level of the effect's interval."""


@dataclass(frozen=True, slots=True)
class MannWhitneyPlan(BinsPlan):
    """A planned rank-sum test."""

    deadline_shares: ClassVar = (0.05, 0.07)

    alternative: str = field(default="two-sided")

    def result(self, bins: GroupBins) -> MannWhitneyResult:
        test, theta = rank_test(bins), superiority(bins)
        z = test.direction * test.X**0.5
        first, second = self.groups.levels
        half = half_width(theta.standard_error, self.confidence_level)
        interval = (max(0.0, theta.value - half), min(1.0, theta.value + half))
        return MannWhitneyResult(
            statistic=z,
            p_value=normal_p_value(z, self.alternative),
            effect=theta.value,
            effect_interval=interval if bins.sure else (0.0, 1.0),
            confidence_level=self.confidence_level,
            estimand=f"P({first} > {second}) + P(equal)/2, of values in public bins",
            standard_error=theta.standard_error,
            privacy_standard_error=theta.noise,
            levels=self.groups.levels,
            numbers=tuple(bins.T.sum(axis=1).tolist()),
            edges=self.cells.edges,
            n=self.n,
            warnings=sparse_warnings(self.groups.levels, bins.known, SAYS_NOTHING),
        )


def plan_mann_whitney(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: Column,
    asked: RankSumQuestion,
    rho: int,
) -> MannWhitneyPlan:
    """A rank-sum test at `rho` (RHO_UNITS); design: mask and columns only."""
    edges = public_edges(facts, column, number_of_bins(facts, groups.size, rho))
    cells, part = cells_of(facts, design, groups, column, edges, rho)
    return MannWhitneyPlan(
        cells, part, asked.confidence_level, facts.n, alternative=asked.alternative
    )
