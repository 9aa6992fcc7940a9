# SPDX-License-Identifier: Apache-2.0
"""A test of ranks of several groups: noisy counts by group and bin.

Privacy: kinds.shared.group_bins. Statistics: kinds.shared.ranks, kinds.shared.shares_of_variance.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.fitting.results import Interval
from reticent_server.kinds.shared.bins_plan import BinsPlan, cells_of
from reticent_server.kinds.shared.group_bins import GroupBins, number_of_bins, public_edges
from reticent_server.kinds.shared.groups import LEAST_COMPARED, Groups
from reticent_server.kinds.shared.named_tests import TestResult
from reticent_server.kinds.shared.ranks import RankTest, rank_test
from reticent_server.kinds.shared.shares_of_variance import share_of_total
from reticent_server.kinds.shared.sparse_groups import in_statistic, sparse_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class KruskalResult(TestResult):
    """statistic: H, χ² with df degrees of freedom. effect: η², the share of the ranks' variance
    between groups. Both are of the groups whose number is above its noise.

    mean_ranks: by group, as shares of the records; null of the other groups. edges: where bins
    begin. numbers: released, by group.
    """

    levels: tuple[str, ...]
    numbers: tuple[float, ...]
    mean_ranks: tuple[float | None, ...]
    edges: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class KruskalPlan(BinsPlan):
    """A planned test of ranks."""

    deadline_shares: ClassVar = (0.05, 0.07)

    def _share(self, test: RankTest, known: int) -> tuple[float, Interval]:
        """η² between groups of which `known` are known to have records: an empty one has a mean
        rank that is noise alone."""
        if known < LEAST_COMPARED:
            return 0.0, (0.0, 1.0)
        return share_of_total(test.X, test.df, test.kappa, self.confidence_level)

    def result(self, bins: GroupBins) -> KruskalResult:
        known = bins.known
        compared = in_statistic(known)
        test = rank_test(GroupBins(bins.T[compared], bins.sigma))
        share, interval = self._share(test, int(known.sum()))
        ranks = dict(zip(np.flatnonzero(compared).tolist(), test.mean_ranks.tolist(), strict=True))
        return KruskalResult(
            statistic=test.X,
            df=float(test.df),
            p_value=float(chdtrc(test.df, test.X)),
            effect=share,
            effect_interval=interval,
            confidence_level=self.confidence_level,
            estimand=_estimand(known),
            levels=self.groups.levels,
            numbers=tuple(bins.T.sum(axis=1).tolist()),
            mean_ranks=tuple(ranks.get(g) for g in range(len(known))),
            edges=self.cells.edges,
            n=self.n,
            warnings=sparse_warnings(self.groups.levels, known),
        )


def _estimand(known: NDArray[np.bool_]) -> str:
    """known (G,): which groups have a number of records above its noise."""
    some = f"{known.sum()} groups whose number is above its noise"
    which = "groups" if known.all() else some
    return f"share of the variance of ranks between the {which}, of values in public bins"


def plan_kruskal(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: Column,
    confidence_level: float,
    rho: int,
) -> KruskalPlan:
    """A test of ranks at `rho` (RHO_UNITS); design: mask and columns only."""
    edges = public_edges(facts, column, number_of_bins(facts, groups.size, rho))
    cells, part = cells_of(facts, design, groups, column, edges, rho)
    return KruskalPlan(cells, part, confidence_level, facts.n)
