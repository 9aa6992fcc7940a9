# SPDX-License-Identifier: Apache-2.0
"""A planned location and scale by `influence` with the asymptotic calibration: conditional, always
replies.

1. A pilot, a noisy Newton fit of Huber's Proposal 2 at (ε/4, δ/2), releases (μ₀, σ₀) and the
   Jacobian there.
2. The exact joint solution around it, μ = μ₀ + σ₀m and σ = σ₀s, with noise by its joint influence,
   at the rest: mechanisms.asymptotic_location_scale, private under the assumptions that the
   guarantee names.

The sampling covariance is the pilot's, of released moments, at the new scale. The noise's scale is
not returned: standard errors count it at the Jacobian that the pilot released. Composition: sums of
ε and of δ.

There is no calibration by propose-test-release: the test of mechanisms.convex_fit needs a fit at a
scale that was released before, and records that are weighed by a function of one linear predictor.

Source: Avella-Medina (2021), Theorem 1 and Example 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from reticent_server.accounting.conversions import max_rho
from reticent_server.domain.columns import AsymptoticLocationScale
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.schema import Column
from reticent_server.domain.steps import Block, ColumnStep, FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.influence.asymptotic import ASSUMPTIONS, SCALE_NOTE
from reticent_server.fitting.influence.settings import LARGEST_FLOOR, REACH
from reticent_server.fitting.influence.whole import check_whole, too_few
from reticent_server.kinds.location_scale.plan import (
    LocationScalePlan,
    LocationScaleResult,
    plan_location_scale,
)
from reticent_server.kinds.location_scale.query import LocationScale
from reticent_server.kinds.location_scale.recipe import LocationScaleFitted
from reticent_server.mechanisms import asymptotic_location_scale as mechanism
from reticent_server.numerics.proposal2_convex import largest_influence, normal_curvature
from reticent_server.numerics.psi import Huber
from reticent_server.numerics.smooth_p_value import smoothness

# c: below 1 the joint curvature is small; above 3 a record's influence on σ, of up to c², is large:
# more noise either way
LEAST_TUNING, LARGEST_TUNING = 1.0, 3.0
_SLACK = 0.1  # r, in scales around the pilot; a wider one asks for more curvature
# of the normal law's curvature: five steps of √2 below the largest floor of a regression
_FLOOR = LARGEST_FLOOR * 2**-2.5
_NO_MASS = "No single value is held by so many records that the scale could be 0."


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedColumn:
    """Gives (z,) (1, rows), z = (y − location)/scale."""

    column: str
    location: float
    scale: float

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):
            z = (block.columns[self.column] - self.location) / self.scale
        return (np.asarray(z, dtype=np.float64)[None, :],)


@dataclass(frozen=True, slots=True)
class AsymptoticLocationScalePlan(Planned):
    """A planned location and scale."""

    pilot: LocationScalePlan
    pilot_cost: PrivacyCost
    part: AsymptoticLocationScale

    @property
    def outline(self) -> Outline:
        own_cost = self.pilot_cost + mechanism.cost(self.part)
        return Outline(
            answers=self.pilot.answers,
            columns=self.pilot.columns,
            rho=own_cost.rho,
            mechanism=(
                "exact solution of Huber's Proposal 2 with noise by its influence, asymptotic"
            ),
            reference="Avella-Medina (2021), Theorem 1 and Example 1",
            passes=self.pilot.passes + 1,
            column_ms=self._column_ms,
            steady=False,
            assumptions=(*ASSUMPTIONS, _NO_MASS),
            own_cost=own_cost,
        )

    @property
    def n(self) -> int:
        """The number of records, which the noise's scale depends on."""
        return self.pilot.facts.n

    @property
    def _column_ms(self) -> int:
        """Sorting, and the solver's public number of steps."""
        steps = mechanism.problem_of(self.part, self.n).steps
        return self.pilot.column_ms + 100 + ceil((150 * self.n + 20_000 * steps) / 10**6)

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the location, in scales."""
        sampling, privacy = (
            self.forecast[f"{of}_standard_error"] for of in ("sampling", "privacy")
        )
        return from_ratios(("location",), (float(privacy) / float(sampling),))

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Standard errors of the location in scales, at the normal law."""
        c = self.part.tuning
        S = np.diag([Huber(c).mean_derivative, normal_curvature(c)])
        return {
            "tuning": c,
            "notes": [*self.pilot.forecast["notes"], SCALE_NOTE],
            "sampling_standard_error": self.pilot.forecast["sampling_standard_error"],
            "privacy_standard_error": self._noise(S),
        }

    def _noise(self, S: FloatArray) -> float:
        """In scales."""
        gamma = largest_influence(S, self.part.tuning, self.part.floor)
        return gamma * mechanism.factor(self.part, self.n)

    def run(self) -> Recipe:
        """The pilot, and one step of the whole column."""
        fitted = yield from self.pilot.fitted()
        column = StandardisedColumn(self.pilot.column.name, fitted.location, fitted.scale)
        (released,) = yield ColumnStep("location and scale", (self.part,), column)
        m, s = (float(v) for v in released.values)
        moved = replace(
            fitted,
            location=fitted.location + fitted.scale * m,
            scale=fitted.scale * s,
            sampling=fitted.sampling * s**2,
            privacy=(fitted.scale * s * self._noise(_curvature(fitted))) ** 2 * np.eye(2),
        )
        result = self.pilot.report(moved)
        result["warnings"].append(SCALE_NOTE)
        return LocationScaleResult(**result, calibration="asymptotic")


def _curvature(fitted: LocationScaleFitted) -> FloatArray:
    """S of the released Jacobian A."""
    return np.asarray(fitted.jacobian / np.array([[1.0], [2.0]]))


def plan_influence_location_scale(
    facts: DatasetFacts, design: Design, column: Column, query: LocationScale, offer: PrivacyCost
) -> AsymptoticLocationScalePlan:
    """Plans for at most `offer`'s (ε, δ). Raises InvalidQuery."""
    if query.calibration != "asymptotic":
        raise InvalidQuery(
            "By influence, location_scale has the asymptotic calibration only: its scale is not "
            "released before."
        )
    check_whole(facts, design)
    if isinstance(query.tuning, str):
        raise InvalidQuery(
            'tuning="planned" is for mechanism="newton"; leave it out or give a number.'
        )
    if query.tuning is not None and not LEAST_TUNING <= query.tuning <= LARGEST_TUNING:
        raise InvalidQuery("This mechanism needs a tuning between 1 and 3.")
    epsilon, delta = offer.epsilon // 4, offer.delta // 2
    pilot = plan_location_scale(facts, design, column, query, max_rho(epsilon, delta))
    c = pilot.settings.c
    part = AsymptoticLocationScale(
        tuning=c,
        floor=_FLOOR * normal_curvature(c),
        reach=REACH,
        slack=_SLACK,
        epsilon=offer.epsilon - epsilon,
        delta=offer.delta - delta,
    )
    beta = smoothness(2, part.epsilon / EPSILON_UNITS, part.delta / DELTA_UNITS)
    problem = mechanism.problem_of(part, facts.n)
    too_few(problem.record_curvature / (facts.n * normal_curvature(c)), beta)
    pilot_cost = PrivacyCost(epsilon, delta, pilot.rho)
    return AsymptoticLocationScalePlan(pilot, pilot_cost, part)
