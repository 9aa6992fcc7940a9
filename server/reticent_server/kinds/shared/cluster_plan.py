# SPDX-License-Identifier: Apache-2.0
"""A planned fit whose standard errors are between the levels of public columns
(fitting.cluster_scores)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, TypeVar

import numpy as np

from reticent_server.domain.plan import Outline, Recipe
from reticent_server.domain.steps import CountSum, FloatArray, SumStep, VectorSum
from reticent_server.fitting import trust
from reticent_server.fitting.cluster_scores import (
    ALLOWED,
    RADIUS,
    ClusterParts,
    ClusterScoreMap,
    between,
    clustered,
    shift_of,
)
from reticent_server.fitting.fit_plan import PlannedOnFit
from reticent_server.fitting.maps import FitState, ScoreMap, on_lattice
from reticent_server.fitting.noise import planned_sd
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.score import Score
from reticent_server.fitting.standard_fit import StandardFit

_RECORD_NANOSECONDS = 150  # planned for a record's score and its place; measured: 40 to 80
_LEAST_SCALE = 1e-3  # of the public one: a scale that noise has made 0 would divide by 0
_ENTRY_MICROSECONDS = 20  # planned for the noise of an entry; measured: 5

ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, eq=False)
class ClusterPlan(PlannedOnFit[ResponseT]):
    """A planned fit, and two steps more for its standard errors."""

    clusters: ClusterParts

    @property
    def outline(self) -> Outline:
        counts = self.plan.outlined.gaussian_counts
        parts = tuple(p for p in self.clusters.sums(1.0) if isinstance(p, CountSum))
        return replace(
            self.base.outlined,
            rho=self.plan.rho + self.clusters.rho,
            passes=self.plan.passes + 2,
            column_ms=self.plan.column_ms + self._step_ms,
            gaussian_counts=None if counts is None else (*counts, *parts),
        )

    @property
    def _step_ms(self) -> int:
        entries = self.clusters.size * self.clusters.groups
        records = self.plan.facts.n * _RECORD_NANOSECONDS
        return records // 10**6 + entries * _ENTRY_MICROSECONDS // 1000

    def expected_ms(self, n: int) -> float:
        """The fit's, and two passes more."""
        return self.plan.expected_ms(n) + 2 * self.plan.timing.pass_ms(n)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The fit's, of independent rows, as public facts do not tell of clusters; and what
        clusters' standard errors are expected to be known to.
        """
        found = dict(self.plan.forecast)
        return {**found, "notes": [*found["notes"], self._note]}

    @property
    def _note(self) -> str:
        noises = self.taken_off
        unsure = sqrt(sum(2 / G * ((1 + noise) ** 2 - 1) for noise, G in noises))
        total = sum(noise for noise, _ in noises)
        return trust.clusters_expected(self.clusters.name, total, sqrt(1 + ALLOWED * unsure))

    @property
    def taken_off(self) -> list[tuple[float, int]]:
        """What is taken off a variance between clusters, over that of independent rows, and G; of
        each clustering."""
        ground, plan = self.plan.ground, self.plan
        score = self._score(ground, ground.spread)
        signal, n = plan.model.signal(ground), max(plan.sizes.expected_n, 1.0)
        parts = self.clusters.sums(self._radius * score.bound)
        sds = [planned_sd(part) for part in parts if isinstance(part, VectorSum)]
        sizes = [each.size for each in self.clusters.clusterings]
        return [(G * sd**2 / n / signal.rms**2, G) for sd, G in zip(sds, sizes, strict=True)]

    def run(self) -> Recipe:
        """The fit, then two steps; always a reply."""
        ground, fit = yield from self.plan.fitted()
        of_fit = replace(self, clusters=replace(self.clusters, size=ground.coding.size))
        return (yield from of_fit.judged(ground, fit))

    def judged(self, ground: FitGround[ResponseT], fit: StandardFit) -> Recipe:
        """The two steps after a fit of as many coefficients as clusters are about."""
        score = self._score(ground, max(fit.scale, _LEAST_SCALE * ground.spread))
        clip, n = self._radius * score.bound, max(fit.count, 1.0)
        released = yield SumStep(
            "bounded scores",
            self.clusters.shift(clip, self._radius * sqrt(score.curvature_bound)),
            self._scores(ground, fit, score, fit.theta, curvature=True),
        )
        shift = shift_of(fit, score.unit, released, n)
        rows = ClusterScoreMap(
            self._scores(ground, fit, score, shift.theta), self.clusters.clusterings
        )
        sums = yield SumStep("bounded scores by cluster", self.clusters.sums(clip), rows)
        found = between(fit, shift.A, sums, self.clusters.clusterings, n)
        fit, noise = clustered(ground.coding, fit, found, self.clusters.name)
        return RegressionResult(**self._judged(self.plan.result(ground, fit), noise))

    @property
    def _radius(self) -> float:
        """R."""
        q = self.clusters.size
        return sqrt(min(RADIUS * q, self.plan.sizes.of(q).radius_squared))

    def _score(self, ground: FitGround[ResponseT], scale: float) -> Score:
        """The bounded score that the fit starts from."""
        return self.plan.model.family(ground).score(scale, self.plan.budget.steps)

    def _scores(
        self,
        ground: FitGround[ResponseT],
        fit: StandardFit,
        score: Score,
        theta: FloatArray,
        *,
        curvature: bool = False,
    ) -> ScoreMap:
        size = ground.coding.size
        point = FitState(on_lattice(theta, size), fit.transform, self._radius**2, score)
        return ScoreMap(ground.coding, point, np.zeros(size), curvature=curvature)

    def _judged(self, result: dict[str, Any], noise: FloatArray) -> dict[str, Any]:
        """Without intervals where clusters are too few, or noise hides a variance. noise: of the
        coefficients that the fit has."""
        given = zip(result["terms"], result["coefficients"], strict=True)
        names = [name for name, value in given if value is not None]
        few = trust.few_clusters(result["clusters"])
        told = trust.told_from_clusters(noise)
        hidden = [name for name, ok in zip(names, told, strict=True) if not ok]
        result |= few.applied(result)
        if few.intervals and hidden:
            result |= trust.without_intervals(result, set(hidden))
            result["warnings"] = [*result["warnings"], trust.clusters_hidden(hidden)]
        return result
