# SPDX-License-Identifier: Apache-2.0
"""Kolmogorov and Smirnov's test: noisy counts by group and bin, and the law of the largest distance
with its noise.

Privacy: kinds.shared.group_bins.

At the B − 1 edges the distance of two distribution functions (or of one and a public law) is a
normal process: the cumulated counts of a group of N records with shares p have the covariance of
cumulated (diag p − ppᵀ)/N + σ²HHᵀ/N², H = I − p1ᵀ, the noise of counts that are divided by their
own noisy sum. The p-value is the share of DRAWS draws of that process, under equal shares, whose
largest distance reaches the released one; at the edges alone the test is conservative for no law
and blind to differences inside a bin. The interval of the distance is D ± c, c the level's quantile
of the largest distance of the process with the groups' own shares: |D̂ − D| is at most that
distance.

Draws are public ones from a fixed seed: the p-value is a function of what was released.
Sources: Smirnov (1948); noise in the law: Gaboardi, Lim, Rogers & Vadhan (2016).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Interval
from reticent_server.kinds.ks_test.laws import Law
from reticent_server.kinds.shared.bins_plan import BinsPlan, cells_of
from reticent_server.kinds.shared.group_bins import GroupBins, number_of_bins, public_edges
from reticent_server.kinds.shared.groups import Groups
from reticent_server.kinds.shared.named_tests import TestResult
from reticent_server.kinds.shared.sparse_groups import SAYS_NOTHING, sparse_warnings
from reticent_server.numerics.public_random import public_generator

DRAWS = 20_000  # a p-value of .05 has the standard error .0015; the least is 5·10⁻⁵
DRAWS_MS = 100  # planned for the draws and their largest distances, twice; measured: 12 to 25
FEWEST = 8  # bins: with fewer, laws that differ in their spread alone look alike
_FIRM = 1e-12  # of the variance, on the diagonal: a covariance has a root though a bin is empty


@dataclass(frozen=True, slots=True, kw_only=True)
class KsTestResult(TestResult):
    """statistic, effect: the largest distance of the distribution functions at the bins' edges.

    numbers: released, by group. distribution: by group, its released distribution function at the
    edges.
    """

    levels: tuple[str, ...]
    numbers: tuple[float, ...]
    edges: tuple[float, ...]
    distribution: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class KsTestPlan(BinsPlan):
    """A planned test of distributions. law: None for two groups."""

    deadline_shares: ClassVar = (0.09, 0.09)

    law: Law | None = None

    @property
    def outline(self) -> Outline:
        return replace(super(KsTestPlan, self).outline, column_ms=self.counting_ms + DRAWS_MS)

    def result(self, bins: GroupBins) -> KsTestResult:
        F = np.cumsum(bins.T, axis=1)[:, :-1] / bins.numbers[:, None]
        null = np.stack([self._expected(bins)] * len(F))
        d = F[0] - (F[1] if self.law is None else np.cumsum(null[0])[:-1])
        D = float(np.abs(d).max())
        p_value = (1 + float((_largest(bins, null) >= D).sum())) / (1 + DRAWS)
        return KsTestResult(
            statistic=D,
            p_value=p_value,
            effect=min(D, 1.0),
            effect_interval=self._interval(bins, D),
            confidence_level=self.confidence_level,
            estimand="largest distance of the distribution functions at the edges of public bins",
            levels=self.groups.levels,
            numbers=tuple(bins.T.sum(axis=1).tolist()),
            edges=self.cells.edges,
            distribution=tuple(tuple(row) for row in np.clip(F, 0.0, 1.0).tolist()),
            n=self.n,
            warnings=sparse_warnings(self.groups.levels, bins.known, SAYS_NOTHING),
        )

    def _expected(self, bins: GroupBins) -> FloatArray:
        """(B,) shares under the hypothesis."""
        if self.law is None:
            return bins.pooled
        return np.diff(self.law.below(np.asarray(self.cells.edges)), prepend=0.0, append=1.0)

    def _interval(self, bins: GroupBins, D: float) -> Interval:
        if not bins.sure:
            return 0.0, 1.0
        c = float(np.quantile(_largest(bins, bins.own), self.confidence_level))
        return min(1.0, max(0.0, D - c)), min(1.0, D + c)


def _largest(bins: GroupBins, p: FloatArray) -> FloatArray:
    """(DRAWS,) largest distances of the process; p (G, B): the groups' shares."""
    C = sum(_covariance(p[g], float(bins.numbers[g]), bins.sigma) for g in range(len(p)))
    C = np.asarray(C) + np.eye(len(C)) * _FIRM * float(np.trace(C))  # type: ignore[arg-type]
    draws = public_generator("ks_test").normal(size=(DRAWS, len(C)))
    return np.asarray(np.abs(draws @ np.linalg.cholesky(C).T).max(axis=1))


def _covariance(p: FloatArray, N: float, sigma: float) -> FloatArray:
    """(B − 1, B − 1) of a group's distribution function at the edges."""
    below = np.tri(len(p) - 1, len(p))
    H = np.eye(len(p)) - np.outer(p, np.ones(len(p)))
    cells = (np.diag(p) - np.outer(p, p)) / N + sigma**2 / N**2 * H @ H.T
    return np.asarray(below @ cells @ below.T)


def plan_ks_test(
    facts: DatasetFacts,
    design: Design,
    groups: Groups,
    column: Column,
    law: Law | None,
    confidence_level: float,
    rho: int,
) -> KsTestPlan:
    """A test of distributions at `rho` (RHO_UNITS); design: mask and columns only."""
    bins = max(FEWEST, number_of_bins(facts, groups.size, rho))
    edges = public_edges(facts, column, bins) if law is None else _law_edges(law, bins)
    if not edges:
        raise InvalidQuery("The column has a single value, so its distribution cannot be tested.")
    cells, part = cells_of(facts, design, groups, column, edges, rho)
    return KsTestPlan(cells, part, confidence_level, facts.n, law=law)


def _law_edges(law: Law, bins: int) -> tuple[float, ...]:
    """Quantiles of the law: as many records are expected in each bin."""
    return tuple(law.quantiles(np.arange(1, bins) / bins).tolist())
