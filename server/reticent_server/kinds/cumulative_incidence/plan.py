# SPDX-License-Identifier: Apache-2.0
"""Cumulative incidences of competing causes from one noisy table of (interval, cause or censored,
group).

Privacy: mechanisms.running_counts; each record is in one cell at most, whatever the number of
causes. All else is post-processing: the counts (kinds.shared.follow_up.table), the curves
(kinds.cumulative_incidence.incidence) and Gray's test (kinds.cumulative_incidence.gray). Groups and
causes share one charge: a record that moves from one to another moves two lines, which the
sensitivity counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.steps import RunningCounts, SumStep
from reticent_server.fitting.normal import CONFIDENCE
from reticent_server.kinds.cumulative_incidence.gray import GrayTest, gray_test
from reticent_server.kinds.cumulative_incidence.incidence import Incidence, course_of, described
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.follow_up.curves import curves_outline
from reticent_server.kinds.shared.follow_up.question import (
    FollowUp,
    FollowUpMap,
    with_numbers_at_risk,
)
from reticent_server.kinds.shared.follow_up.table import life_table
from reticent_server.kinds.shared.sparse_groups import NO_CURVE, sparse_warnings
from reticent_server.kinds.survival_curve.curve import TimeGrid
from reticent_server.mechanisms import running_counts

# planned milliseconds, of which deadline_shares takes a twentieth: of a curve, of one in each of
# two intervals, and of Gray's test of twenty pairs of groups; measured with up to 200 groups
_CURVE_MS, _INTERVALS_A_MS, _PAIRS_A_MS = 10, 2, 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CumulativeIncidences:
    """A curve for each group and cause, group by group; tests: Gray's of each cause where the
    question has `by`, of the groups whose number at risk is above its noise."""

    confidence_level: float
    n: int
    curves: tuple[Incidence, ...]
    tests: tuple[GrayTest, ...] | None = None
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CumulativeIncidencePlan(Planned):
    """Planned cumulative incidences."""

    deadline_shares: ClassVar = (0.05, 0.05)

    asked: FollowUp  # on the whole grid
    grid: TimeGrid
    part: RunningCounts
    n: int

    @property
    def outline(self) -> Outline:
        groups, causes, J = self.asked.size, self.asked.censored, self.asked.intervals
        curves = groups * causes * (_CURVE_MS + J // _INTERVALS_A_MS)
        tests = causes * groups**2 // _PAIRS_A_MS
        lines = self.asked.statuses**2
        return curves_outline(self.asked, self.part, lines=lines, curves_ms=curves + tests)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of one weighted sum, and the cells; a curve's own noise depends on the numbers
        at risk."""
        return {
            "privacy_standard_error": running_counts.noise_sd(self.part),
            "cells": self.part.bins,
            "cuts": [self.grid.times[i] for i in self.grid.reported],
        }

    def run(self) -> Recipe:
        """One step; always a reply, whose curves end where the numbers at risk are below their
        noise."""
        (cells,) = yield SumStep("follow-up", (self.part,), FollowUpMap(self.asked))
        table, causes = life_table(self.asked, cells, self.n), self.asked.causes.labels
        courses = [course_of(table, g) for g in range(self.asked.size)]
        curves = tuple(
            described(table, g, courses[g], c, self.grid, (level, cause))
            for g, level in enumerate(self.asked.groups.labels)
            for c, cause in enumerate(causes)
        )
        tests = None
        if self.asked.size > 1:
            found = (
                gray_test(table, courses, c, cause, self.grid.times)
                for c, cause in enumerate(causes)
            )
            tests = tuple(test for test in found if test is not None)
        told = np.array([course.length > 0 for course in courses])
        return CumulativeIncidences(
            confidence_level=CONFIDENCE,
            n=self.n,
            curves=curves,
            tests=tests,
            warnings=sparse_warnings(self.asked.groups.labels, told, NO_CURVE),
        )


def plan_cumulative_incidence(
    facts: DatasetFacts, asked: FollowUp, rho: int
) -> CumulativeIncidencePlan:
    """Curves at `rho` (RHO_UNITS)."""
    fine, reported = with_numbers_at_risk(facts, asked)
    whole = declared(facts, asked.time).kind.is_whole
    grid = TimeGrid(fine.cuts, reported, 1.0 if whole else 0.0)
    part = fine.part(rho, facts.schema.unit.max_rows)
    return CumulativeIncidencePlan(fine, grid, part, facts.n)
