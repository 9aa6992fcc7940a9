# SPDX-License-Identifier: Apache-2.0
"""Survival curves of one or several groups from one noisy table of (interval, event or censored,
group).

Privacy: mechanisms.running_counts; each record is in one cell at most. All else is post-processing:
the counts (kinds.shared.follow_up.table) and the curves (kinds.survival_curve.curve). Groups share
one charge: a record that moves from one to another moves two lines, which the sensitivity counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.steps import RunningCounts, SumStep
from reticent_server.fitting.normal import CONFIDENCE
from reticent_server.fitting.results import Interval, OpenInterval
from reticent_server.kinds.shared.columns import declared
from reticent_server.kinds.shared.follow_up.curves import curves_outline
from reticent_server.kinds.shared.follow_up.question import (
    FollowUp,
    FollowUpMap,
    with_numbers_at_risk,
)
from reticent_server.kinds.shared.follow_up.table import life_table
from reticent_server.kinds.shared.sparse_groups import NO_CURVE, sparse_warnings
from reticent_server.kinds.survival_curve.curve import Curve, TimeGrid, described, raw_curve
from reticent_server.mechanisms import running_counts

# planned milliseconds, of which deadline_shares takes a twentieth: of a curve, and halves of one in
# each interval; measured with up to 200 groups
_CURVE_MS, _INTERVAL_HALVES_MS = 10, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCurve(Curve):
    """One level's curve."""

    level: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivalCurves:
    """A curve (its members as in Curve), or one a level in `groups` where the question has `by`.

    horizon: the time that restricted means go up to, the last one that all curves with times reach;
    None where there is none.
    """

    confidence_level: float
    horizon: float | None
    n: int
    groups: tuple[GroupCurve, ...] | None = None
    times: tuple[float, ...] | None = None
    survival: tuple[float, ...] | None = None
    standard_errors: tuple[float, ...] | None = None
    privacy_standard_errors: tuple[float, ...] | None = None
    confidence_intervals: tuple[Interval, ...] | None = None
    at_risk: tuple[float, ...] | None = None
    events: tuple[float, ...] | None = None
    median: float | None = None
    median_interval: OpenInterval | None = None
    restricted_mean: float | None = None
    restricted_mean_standard_error: float | None = None
    restricted_mean_interval: Interval | None = None
    restricted_means: tuple[float, ...] | None = None
    restricted_mean_standard_errors: tuple[float, ...] | None = None
    warnings: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SurvivalCurvePlan(Planned):
    """Planned survival curves."""

    deadline_shares: ClassVar = (0.05, 0.05)

    asked: FollowUp  # on the whole grid
    grid: TimeGrid
    part: RunningCounts
    n: int

    @property
    def outline(self) -> Outline:
        curves = self.asked.size * (_CURVE_MS + _INTERVAL_HALVES_MS * self.asked.intervals // 2)
        return curves_outline(self.asked, self.part, lines=1, curves_ms=curves)

    @property
    def cuts(self) -> tuple[float, ...]:
        """(J,) those at which curves are reported."""
        return tuple(self.grid.times[i] for i in self.grid.reported)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The noise of one weighted sum, and the cells; the curve's own noise depends on the
        numbers at risk."""
        return {
            "privacy_standard_error": running_counts.noise_sd(self.part),
            "cells": self.part.bins,
            "cuts": list(self.cuts),
        }

    def run(self) -> Recipe:
        """One step; always a reply, whose curves end where the numbers at risk are below their
        noise."""
        (cells,) = yield SumStep("follow-up", (self.part,), FollowUpMap(self.asked))
        table, cuts = life_table(self.asked, cells, self.n), self.cuts
        raw = [raw_curve(table, g) for g in range(self.asked.size)]
        reported = [sum(i < len(each.log_survival) for i in self.grid.reported) for each in raw]
        horizon = min((k for k in reported if k), default=0)
        curves = [
            _members(described(table, g, each, self.grid, horizon)) for g, each in enumerate(raw)
        ]
        common: dict[str, Any] = {
            "confidence_level": CONFIDENCE,
            "horizon": cuts[horizon - 1] if horizon else None,
            "n": self.n,
        }
        if self.asked.groups.column is None:
            return SurvivalCurves(**common, **curves[0])
        labels = self.asked.groups.labels
        groups = tuple(GroupCurve(**c, level=g) for c, g in zip(curves, labels, strict=True))
        warnings = sparse_warnings(labels, np.asarray(reported) > 0, NO_CURVE)
        return SurvivalCurves(**common, groups=groups, warnings=warnings)


def _members(curve: Curve) -> dict[str, Any]:
    return {f.name: getattr(curve, f.name) for f in fields(curve)}


def plan_survival_curve(facts: DatasetFacts, asked: FollowUp, rho: int) -> SurvivalCurvePlan:
    """Curves at `rho` (RHO_UNITS)."""
    fine, reported = with_numbers_at_risk(facts, asked)
    whole = declared(facts, asked.time).kind.is_whole
    grid = TimeGrid(fine.cuts, reported, 1.0 if whole else 0.0)
    return SurvivalCurvePlan(fine, grid, fine.part(rho, facts.schema.unit.max_rows), facts.n)
