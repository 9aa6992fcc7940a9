# SPDX-License-Identifier: Apache-2.0
"""Proportional hazards with a piecewise-constant baseline: whitening, one damped step, the
baseline, one Newton step.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows; zCDP
composition): every value that leaves the table is a part of one of the steps, whose contributions
are functions of one record and of earlier releases, with the norms of kinds.hazard_regression.maps,
one vector for a person over all intervals:

    whitening  ‖u√w′‖ ≤ ρ                       GramSum    Δ = √2 ρ² m     (fitting.rounds; count: CountSum Δ = m)
    exposure   ‖·‖ ≤ √2                         VectorSum  Δ = 2√2 m
    score      ‖·‖ ≤ c√(a² + R²)                VectorSum  Δ = 2c√(a² + R²) m       (twice: first step, last step)
    root       ‖·‖ ≤ R√c                        GramSum    Δ = √2 R²c m             (twice)
    baseline   ‖·‖ ≤ √(1 + c²)                  VectorSum  Δ = 2√(1 + c²) m
    cross      ‖·‖ ≤ c√(b² + dR²)               VectorSum  Δ = 2c√(b² + dR²) m       (d ≤ 3)
    meat       ‖·‖ ≤ Rc                         GramSum    Δ = √2 R²c² m     (of the last score's own entries: mechanisms.tail_meat)
    profile    cells, levels                    (fitting.own_profile; of columns whose spread no profile tells)

The primitives enforce each norm by scaling down. All else is post-processing.

Accuracy: interval scores of a person together with its scores of regressors are one vector, clipped
once. Follow-up stops at the public cumulative hazard c, which biases nothing. Units: hazards in
events per unit of `time`. Source: Holford (1980), Biometrics 36; Andersen & Gill (1982);
Avella-Medina, Bradshaw & Loh (2023).
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import (
    SELECTION_NANOSECONDS,
    CountSum,
    FloatArray,
    GramSum,
    OneVector,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.fitting.budget import WIDE, Sizes
from reticent_server.fitting.coding import TermCoding, code_terms
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    planned_ground,
    profile_notes,
    selections_of,
    spread_verdict,
)
from reticent_server.fitting.public.coordinates import Coordinates, public_coordinates
from reticent_server.fitting.public.rows import draw_public_rows
from reticent_server.fitting.rounds import whitening_rounds
from reticent_server.kinds.hazard_regression.budget import (
    RADIUS,
    HazardBudget,
    expected_variance,
    plan_budget,
    planned_stop,
)
from reticent_server.kinds.hazard_regression.maps import (
    EXPOSURE_BOUND,
    BaselineMap,
    ExposureMap,
    HazardMap,
    Point,
    along,
)
from reticent_server.kinds.hazard_regression.newton import LastStep, first_step, last_step
from reticent_server.kinds.hazard_regression.offset import PublicOffset, public_offset
from reticent_server.kinds.hazard_regression.report import HazardFit, hazard_fit
from reticent_server.kinds.hazard_regression.surv import Hazards
from reticent_server.kinds.shared.answers import ROBUST_HAZARDS
from reticent_server.numerics.matrices import power

_NANOSECONDS = (
    400  # planned for a record and interval in one pass: exponentials and running sums; measured 60
)
_LEAST_MOMENT = 1e-3  # eigenvalue of the whitened regressors' covariance, beside 1
_TILT = 0.8
"""Of the first step's slopes, in whitened units, by which regressors are centred for the last:
persons with events have the mean β of normal regressors, and persons at risk later a smaller
one.
"""
_MOST_CORRECTED = 8.0  # times: what a baseline is corrected by between the steps

Fitting = Generator[Step, tuple[Released, ...], HazardFit]


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Public: the coding of the regressors with a constant first, the coordinates to begin with,
    and the offset.
    """

    coding: TermCoding
    coordinates: Coordinates
    offset: PublicOffset


def ground_of(asked: Hazards, facts: DatasetFacts, *, masked: bool = True) -> Ground | None:
    """None where no profile covers the columns."""
    rows = draw_public_rows(asked.design, facts, masked=masked)
    if rows is None:
        return None
    coding = code_terms(asked.design, rows)
    coordinates = public_coordinates(coding.standardised(rows.X))
    return Ground(coding, coordinates, public_offset(asked.design, rows))


@dataclass(frozen=True, slots=True, eq=False)
class HazardPlan(Planned):
    """A planned hazard regression. ground: replaced by that of `own_profile` once it is
    released.
    """

    deadline_shares: ClassVar = (0.1, 0.06)

    asked: Hazards
    facts: DatasetFacts
    budget: HazardBudget
    ground: Ground
    own_profile: OwnProfile | None
    stop: float
    level: float

    @property
    def outline(self) -> Outline:
        return Outline(
            answers=ROBUST_HAZARDS,
            columns=self.asked.design.columns,
            rho=self.budget.rho + (self.own_profile.rho if self.own_profile else 0),
            mechanism="noisy Newton (piecewise-exponential hazards), discrete Gaussian sums",
            reference="Holford (1980); Avella-Medina, Bradshaw & Loh (2023)",
            passes=self._passes,
            column_ms=self._column_ms,
            draws=self._draws,
            gaussian_counts=self._gaussian_counts,
            selections=selections_of(self.own_profile),
        )

    @property
    def _gaussian_counts(self) -> tuple[CountSum, ...]:
        own, used = counts_of(self.own_profile), self.budget.count
        return (*own, CountSum(1, used, self.unit_rows)) if used else own

    @property
    def _passes(self) -> int:
        return 5 + (self.own_profile is not None)

    @property
    def _draws(self) -> int:
        return self.own_profile.draws if self.own_profile else 0

    @property
    def _column_ms(self) -> int:
        cells = self.facts.n * len(self.asked.cuts) * self._passes
        return (self._draws * SELECTION_NANOSECONDS + cells * _NANOSECONDS) // 10**6

    @property
    def unit_rows(self) -> int:
        """m."""
        return self.facts.schema.unit.max_rows

    @property
    def terms(self) -> int:
        """k, the slopes."""
        return len(self.asked.design.terms)

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        own = self.own_profile.rho / self.rho if self.own_profile else 0.0
        return {"profile": own} | {k: (1 - own) * v for k, v in self.budget.shares.items()}

    @property
    def precision(self) -> ForecastPrecision:
        """Of the slopes."""
        return from_ratios(self.forecast["terms"], self.forecast["privacy_to_sampling"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The slopes' privacy over sampling standard errors, were half of the persons to have the
        event.
        """
        n, rho = self.facts.n, self.budget.score
        whole, sampling = expected_variance(n, self.terms, rho, self.unit_rows, self.stop)
        ratio = float(np.sqrt(whole / sampling - 1))
        names = [term.name for term in self.asked.design.terms]
        told = spread_verdict(self.own_profile).intervals
        return {
            "steps": 2,
            "shares": self.shares,
            "cuts": list(self.asked.cuts),
            "stop": self.stop,
            "terms": names,
            "privacy_to_sampling": [ratio if told else None] * len(names),
            "notes": profile_notes(self.own_profile),
        }

    def run(self) -> Recipe:
        """Always a reply."""
        ground = self.ground
        if self.own_profile:
            own = self.own_profile
            facts = own.profiled((yield own.step))
            ground = ground_of(self.asked, facts, masked=own.masked) or ground
        return (yield from self._fitted(ground))

    def _fitted(self, ground: Ground) -> Fitting:
        """1. whiten, 2. the baseline without regressors, 3. a damped step, 4. the baseline beside
        it, 5. a Newton step.
        """
        W, count, present = yield from self._whitened(ground)
        hazards, events = self._hazards(ground.offset, *(yield self._exposure(ground.offset)))
        begun = self._point(W, hazards, ground.offset.middle)
        vector, root = yield self._scores("score 1", ground.coding, begun, last=False)
        first = first_step(vector, root, events)
        moved = self._moved(begun, first.slopes, first.log_hazards)
        (released,) = yield self._baseline(ground.coding, moved)
        point, events, sd = self._corrected(moved, released)
        last = yield self._scores("score 2", ground.coding, point, last=True)
        step: LastStep = last_step(last, events, sd, present=present)
        noted = profile_notes(self.own_profile)
        in_use = count if self.asked.design.masked else None
        return hazard_fit(self, ground.coding, point, step, noted, in_use)

    def _whitened(
        self, ground: Ground
    ) -> Generator[Step, tuple[Released, ...], tuple[FloatArray, float, bool]]:
        """W (k, k + 1): regressors with mean 0 and covariance I, as released."""
        n = self.facts.n
        sizes = Sizes(self.terms + 1, 0.0, n, float(n), self.unit_rows)
        rounds, used = ((self.budget.whitening, WIDE),), self.budget.count
        found, count, present = yield from whitening_rounds(
            ground.coding, ground.coordinates, rounds, used, sizes
        )
        back = np.linalg.inv(found.transform)
        S = back @ back.T / float(back[0] @ back[0])
        centre = S[1:, 0]
        # Relative to the diagonal, so that a regressor's unit does not matter for what counts as
        # too small.
        size = np.sqrt(np.maximum(np.diag(S)[1:], np.finfo(float).tiny))
        covariance = (S[1:, 1:] - np.outer(centre, centre)) / np.outer(size, size)
        root = power(covariance, -0.5, _LEAST_MOMENT) / size
        return np.column_stack([-root @ centre, root]), count, present

    def _exposure(self, offset: PublicOffset) -> SumStep:
        size = 2 * len(self.asked.cuts)
        part = VectorSum(size, EXPOSURE_BOUND, self.budget.exposure, self.unit_rows)
        return SumStep("exposure", (part,), ExposureMap(self.asked, offset))

    def _hazards(self, offset: PublicOffset, released: Released) -> tuple[FloatArray, FloatArray]:
        """λ (J,) and the events (J,), neither below its noise."""
        lengths = np.diff(self.asked.cuts, prepend=0.0)
        J = len(lengths)
        sd = max(released.sd, 1.0)
        events = np.maximum(released.values[:J], sd)
        at_risk = np.maximum(released.values[J:], 2 * sd) * np.sqrt(J) * offset.most
        return events / (at_risk * lengths), events

    def _point(self, W: FloatArray, hazards: FloatArray, middle: float) -> Point:
        beta, radius_squared = np.zeros(self.terms), RADIUS * (self.terms + 1)
        return Point(W, beta, hazards, radius_squared, self.stop, middle)

    def _scores(self, label: str, coding: TermCoding, point: Point, *, last: bool) -> SumStep:
        J, k, m, b = len(self.asked.cuts), self.terms, self.unit_rows, self.budget
        score, curvature = (b.score, b.curvature) if last else (b.first_score, b.first_curvature)
        parts: list[VectorSum | GramSum] = [
            VectorSum(J + k, point.vector_bound, score, m),
            GramSum(k, point.root_bound, curvature, m),
        ]
        if last:
            parts.append(VectorSum(J + along(J).shape[1] * k, point.cross_bound, b.cross, m))
            parts.append(GramSum(k, point.meat_bound, b.meat, m))
        joint = OneVector(vector=0, tail=3) if last else None
        return SumStep(label, tuple(parts), HazardMap(self.asked, coding, point, last), joint=joint)

    def _moved(self, point: Point, slopes: FloatArray, log_hazards: FloatArray) -> Point:
        """After a step, with regressors centred anew: λ is that of the new centre."""
        centre = _TILT * slopes
        W = point.transform.copy()
        W[:, 0] -= centre
        hazards = point.hazards * np.exp(log_hazards + centre @ slopes)
        return replace(point, transform=W, beta=slopes, hazards=hazards)

    def _baseline(self, coding: TermCoding, point: Point) -> SumStep:
        size = 2 * len(self.asked.cuts)
        part = VectorSum(size, point.baseline_bound, self.budget.baseline, self.unit_rows)
        return SumStep("baseline", (part,), BaselineMap(self.asked, coding, point))

    def _corrected(self, point: Point, released: Released) -> tuple[Point, FloatArray, float]:
        """The hazards at which as many events are expected as were seen; these events (J,) and
        their noise's sd.
        """
        J = len(self.asked.cuts)
        least = released.sd + 1.0
        seen, expected = (np.maximum(x, least) for x in np.split(released.values, [J]))
        ratio = np.clip(seen / expected, 1 / _MOST_CORRECTED, _MOST_CORRECTED)
        return replace(point, hazards=point.hazards * ratio), seen, released.sd


def plan_hazard_regression(
    facts: DatasetFacts, asked: Hazards, level: float, rho: int
) -> HazardPlan:
    """Plans at `rho` (RHO_UNITS) from public facts alone."""
    ground, own = planned_ground(
        facts, asked.design, rho, lambda known, masked: ground_of(asked, known, masked=masked)
    )
    terms, m = len(asked.design.terms), facts.schema.unit.max_rows
    budget = plan_budget(rho - (own.rho if own else 0), terms, masked=asked.design.masked)
    stop = planned_stop(facts.n, terms, budget.score, m)
    return HazardPlan(asked, facts, budget, ground, own, stop, level)
