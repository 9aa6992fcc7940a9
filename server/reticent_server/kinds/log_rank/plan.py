# SPDX-License-Identifier: Apache-2.0
"""The log-rank test by two releases: a pilot table, and one bounded sum.

    pilot   one cell a person             RunningCounts   mechanisms.running_counts      30 % of ρ
    scores  ‖score‖ ≤ R, C contrasts      VectorSum       Δ = 2R m                       70 %

C is G − 1, G the groups whose number in the pilot is above its noise, or 1 for a trend. With strata
each person is in one cell of (stratum, group, …) of the pilot, and has the score of the own
stratum. C, R and the scores are functions of the released pilot (kinds.log_rank.scores), so the sum
is a function of one record and of earlier releases; the mechanism enforces R. zCDP composes
adaptively: ρ is the sum. Under the null hypothesis the sum U is close to normal with mean 0 and
covariance V + σ²I, V from the pilot: Uᵀ(V + σ²I)⁻¹U is referred to χ² with C degrees of freedom, so
the noise is in the null law.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.steps import FloatArray, Released, RunningCounts, SumStep, VectorSum
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.trust import clear
from reticent_server.kinds.log_rank.scores import (
    LogRankMap,
    LogRankScores,
    contrasts,
    pilot_of,
    scores_of,
    trend,
)
from reticent_server.kinds.shared.follow_up.question import FollowUp, FollowUpMap
from reticent_server.kinds.shared.follow_up.table import life_table
from reticent_server.kinds.shared.sparse_groups import in_statistic, sparse_warnings
from reticent_server.mechanisms import running_counts

# per cent of ρ: more makes the sum's noise larger, less leaves no hazards to subtract
_PILOT_SHARE = 30


# planned milliseconds, of which deadline_shares takes a fifteenth: of a group in a stratum, tenths
# of one in each interval, and of the variances of 270 pairs of groups; measured with up to 200
# groups
_GROUP_MS, _INTERVAL_TENTHS_MS, _PAIRS_A_MS = 4, 3, 270


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRankResult:
    """statistic, referred to χ² with df degrees of freedom, of the groups whose number of persons
    is above its noise. until: the time up to which events are compared.

    observed_minus_expected: of each of `levels`, noisy events beyond what one common hazard leads
    to expect, weighted as the test weights them; of a trend, their part that goes with the levels'
    places; null of those that are not compared. privacy_share: of the statistic's variance that is
    noise.
    """

    statistic: float
    df: int
    p_value: float
    levels: tuple[str, ...]
    observed_minus_expected: tuple[float | None, ...]
    until: float
    privacy_share: float
    n: int
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GroupComparison:
    """Which groups, and how they are compared: in `of_trend` by one contrast; emphasis: ρ and γ of
    the weights."""

    levels: tuple[str, ...]
    of_trend: bool = False
    emphasis: tuple[float, float] = (0.0, 0.0)

    def contrasts(self, compared: NDArray[np.bool_]) -> FloatArray:
        """(C, G), 0 at the groups that are not `compared` (G,)."""
        places = np.flatnonzero(compared)
        own = trend(places) if self.of_trend else contrasts(len(places))
        rows = np.zeros((len(own), len(compared)))
        rows[:, places] = own
        return rows


@dataclass(frozen=True, slots=True)
class LogRankPlan(Planned):
    """A planned log-rank test."""

    deadline_shares: ClassVar = (0.065, 0.11)

    asked: FollowUp
    comparison: GroupComparison
    pilot: RunningCounts
    score_rho: int
    unit_rows: int
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.asked.design.columns,
            rho=self.pilot.rho + self.score_rho,
            mechanism="discrete Gaussian running counts, then a discrete Gaussian sum of scores",
            reference="Mantel (1966); Canonne, Kamath & Steinke (2020)",
            passes=2,
            column_ms=self._column_ms,
            gaussian_counts=(),
        )

    @property
    def _column_ms(self) -> int:
        """Of the pilots and the scores that follow from them."""
        groups, size, J = len(self.comparison.levels), self.asked.size, self.asked.intervals
        tables = size * (_GROUP_MS + _INTERVAL_TENTHS_MS * J // 10)
        return tables + J * groups * size // _PAIRS_A_MS

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of the pilot's weighted sums, and of the statistic where scores are no longer
        than 1."""
        unit = 2 * self.unit_rows / np.sqrt(2 * self.score_rho / RHO_UNITS)
        return {
            "privacy_standard_error": float(unit),
            "pilot_standard_error": running_counts.noise_sd(self.pilot),
            "cuts": list(self.asked.cuts),
        }

    def run(self) -> Recipe:
        """Two steps; always a reply."""
        (cells,) = yield SumStep("pilot", (self.pilot,), FollowUpMap(self.asked))
        known = self.known_after(cells)
        compared, scores = in_statistic(known), self.scores_after(cells)
        C = len(scores.variance)
        part = VectorSum(C, scores.radius, self.score_rho, self.unit_rows)
        (total,) = yield SumStep("scores", (part,), LogRankMap(self.asked, scores))
        noise = total.sd**2 * np.eye(C)
        statistic = float(total.values @ np.linalg.solve(scores.variance + noise, total.values))
        apart = (self.comparison.contrasts(compared).T @ total.values).tolist()
        return LogRankResult(
            statistic=statistic,
            df=C,
            p_value=float(chdtrc(C, max(statistic, 0.0))),
            levels=self.comparison.levels,
            observed_minus_expected=tuple(
                value if told else None for value, told in zip(apart, compared, strict=True)
            ),
            until=self.asked.cuts[scores.until - 1],
            privacy_share=float(np.trace(noise) / np.trace(scores.variance + noise)),
            n=self.n,
            warnings=sparse_warnings(self.comparison.levels, known),
        )

    def known_after(self, cells: Released) -> NDArray[np.bool_]:
        """(G,) whether a group's number of persons, all strata together, is above its noise in the
        released pilot."""
        table, G = life_table(self.asked, cells, self.n), len(self.comparison.levels)
        numbers = table.counts.sum(axis=(1, 2)).reshape(-1, G).sum(axis=0)
        every = np.ones((1, *table.counts.shape[1:]))
        noise = float(table.noise(every)[0, 0]) * self.asked.size / G
        return np.asarray(clear(numbers, np.sqrt(max(noise, 0.0))))

    def scores_after(self, cells: Released) -> LogRankScores:
        """What persons of the groups that are compared add, given the released pilot alone."""
        compared = in_statistic(self.known_after(cells))
        table, G = life_table(self.asked, cells, self.n), len(self.comparison.levels)
        counts = table.counts * np.resize(compared, len(table.counts))[:, None, None]
        table = replace(table, counts=counts)
        starts = range(0, self.asked.size, G)
        pilots = [pilot_of(table.of(slice(start, start + G))) for start in starts]
        rho = self.score_rho / RHO_UNITS / self.unit_rows**2
        contrasts = self.comparison.contrasts(compared)
        return scores_of(pilots, rho, contrasts, self.comparison.emphasis, compared)


def plan_log_rank(
    facts: DatasetFacts, asked: FollowUp, comparison: GroupComparison, rho: int
) -> LogRankPlan:
    """A test at `rho` (RHO_UNITS). Raises InvalidQuery for a column with one level."""
    if len(comparison.levels) < 2:
        raise InvalidQuery("by needs two or more levels: a log-rank test compares groups.")
    m, pilot = facts.schema.unit.max_rows, rho * _PILOT_SHARE // 100
    return LogRankPlan(asked, comparison, asked.part(pilot, m), rho - pilot, m, facts.n)
