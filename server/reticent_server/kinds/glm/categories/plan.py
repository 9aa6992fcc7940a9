# SPDX-License-Identifier: Apache-2.0
"""Models of a response with several levels: planned from public facts, on the filter of
fitting.filter.

Privacy (unconditional, for every table and every n; neighbours replace one record; zCDP
composition): every value that leaves the table is a part of one of the steps, whose contributions
are functions of one record and of earlier releases:

    rows         ‖u√w′‖ ≤ ρ                  GramSum     Δ = √2 ρ²   (fitting.rounds)
    count        one count                   CountSum    Δ = 1       (masked designs)
                 a − ½ in ±½                 VectorSum   Δ = 1       (weighted designs)
    score        ‖w (s_η ⊗ u, s_λ)‖ ≤ C      VectorSum   Δ = 2C
    information  ‖w E x xᵀ‖_F ≤ L            VectorSum   Δ = 2L
    meat         ‖w (s_η ⊗ u, s_λ)‖ ≤ C      GramSum     Δ = √2 C²
    profile      cells, levels               QuantileTree, CountSum  (no profile)

with w′ = min(1, ρ²/‖u‖²), C² = sup (R²‖s_η‖² + ‖s_λ‖²) and
L² = sup (R⁴‖I_ηη‖² + 2R²‖I_ηλ‖² + ‖I_λλ‖²)

(categories.law; multinomial: C = √2 R, L = R²/2; ordinal: maxima at the public gaps, C² ≤ R² + b²(K
− 2).) The primitives enforce each norm by scaling down, so a mistake here would cost accuracy only.
The meat is made of the score's own integers, so that the two cost together what
mechanisms.one_vector says, at usual shares what the score costs alone. The steps' ρ add up to the
plan's; all else is post-processing.

Units: log odds. Errors: the sandwich of the weighted score, with what the filter says is left of
the way to the solution. Source: McFadden (1974); McCullagh (1980); Avella-Medina, Bradshaw & Loh
(2023).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from reticent_server.domain.design import AllOf, AnyOf, Compare, Design, Not
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import DRAWING, Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import SELECTION_NANOSECONDS, FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.budget import BENT_JACOBIAN, FitBudget, Signal, Sizes, plan_budget
from reticent_server.fitting.coding import Coding, code_design
from reticent_server.fitting.empty_levels import LeftOut, full_values, without_empty_levels
from reticent_server.fitting.identifiability import Directions
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
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.report import BoolArray, roots
from reticent_server.kinds.glm.categories.forecast import forecast_categories
from reticent_server.kinds.glm.categories.law import CategoryLaw, Latent, information
from reticent_server.kinds.glm.categories.laws import LAWS
from reticent_server.kinds.glm.categories.maps import entry_count
from reticent_server.kinds.glm.categories.newton import CategoryNewton
from reticent_server.kinds.glm.categories.report import category_result, in_units
from reticent_server.kinds.glm.categories.response import LEAST_LEVELS, MOST_PARAMETERS
from reticent_server.kinds.shared.answers import ROBUST_LOGITS
from reticent_server.kinds.shared.tables import Axis
from reticent_server.numerics.level_places import level_places

_NO_RESPONSE = (
    "Levels of the response whose released number of records is not above its noise are left out: "
    "{levels}."
)
RADIUS = 2.0  # R² for each coefficient: the binomial family's
# of the information at the start: mean information once a model explains some of the responses
_EXPLAINED = 0.7
_LEAST_SHARE = 0.002  # of a level, that a start assumes
# planned for one entry of a record in one pass: measured 4 (multinomial) to 8 (ordinal)
_NANOSECONDS = 12
# squared parameters of which the work between two passes takes 1 ms; measured: 3 to 11
_PRODUCTS_A_MS = 2


@dataclass(frozen=True, slots=True, eq=False)
class CategoryGround:
    """What a fit stands on, all public. start (P,), spacings (S,): at the levels' public shares.
    axis: of the levels of the response that have records; left_out: what the design leaves out of
    the one that was asked for (fitting.empty_levels)."""

    coding: Coding
    coordinates: Coordinates
    law: CategoryLaw
    start: FloatArray
    spacings: FloatArray
    share: float
    unequal: float
    axis: Axis
    left_out: LeftOut | None


@dataclass(frozen=True, slots=True, eq=False)
class CategoryPlan(Planned):
    """A planned fit. ground: replaced by that of `own_profile` once it is released."""

    facts: DatasetFacts
    design: Design
    axis: Axis
    family: str
    ground: CategoryGround
    budget: FitBudget
    sizes: Sizes
    own_profile: OwnProfile | None
    level: float

    @property
    def outline(self) -> Outline:
        return Outline(
            answers=ROBUST_LOGITS,
            columns=self.design.columns,
            rho=self.budget.rho + (self.own_profile.rho if self.own_profile else 0),
            mechanism="noisy Newton (logits of several levels), discrete Gaussian sums",
            reference="McFadden (1974); McCullagh (1980); Avella-Medina, Bradshaw & Loh (2023)",
            passes=self._passes,
            column_ms=self._column_ms,
            draws=self._draws,
            gaussian_counts=(
                *counts_of(self.own_profile),
                *self.budget.counts(self.sizes.unit_rows),
            ),
            selections=selections_of(self.own_profile),
        )

    @property
    def _passes(self) -> int:
        return len(self.budget.rounds) + self.budget.steps + (self.own_profile is not None)

    @property
    def _draws(self) -> int:
        return self.own_profile.draws if self.own_profile else 0

    @property
    def parameters(self) -> int:
        """D."""
        return self.ground.law.predictors * self.sizes.size + self.ground.law.spacings

    @property
    def _column_ms(self) -> int:
        law = self.ground.law
        entries = entry_count(law.predictors, law.spacings, self.sizes.size) + self.parameters
        scores = self.facts.n * self._passes * entries * _NANOSECONDS
        between = self._passes * self.parameters**2 // _PRODUCTS_A_MS
        return (self._draws * SELECTION_NANOSECONDS + scores) // 10**6 + between

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        b = self.budget
        amounts = {
            "profile": self.own_profile.rho if self.own_profile else 0,
            "records_in_use": b.count,
            "whitening": sum(rho for rho, _ in b.rounds),
            "gradients": sum(b.gradients),
            "jacobians": sum(b.jacobians),
            "meat": b.meat,
        }
        whole = sum(amounts.values())
        return {name: amount / whole for name, amount in amounts.items()}

    @property
    def names(self) -> list[str]:
        """The names of the reported coefficients."""
        return self.ground.law.names(self.ground.axis.levels, self.ground.coding.design.names)

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the coefficients."""
        _, privacy, sampling, flags = self._expected
        lost = np.where(flags, privacy, np.inf).tolist()
        known = self.own_profile is None
        return ForecastPrecision(
            tuple(self.names), tuple(lost), tuple(sampling.tolist()), in_units=known
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """As of a regression (fitting.fit_plan)."""
        error, privacy, sampling, flags = self._expected
        pairs = zip((privacy / sampling).tolist(), flags.tolist(), strict=True)
        return {
            "steps": self.budget.steps,
            "tuning": None,
            "shares": self.shares,
            "noise_ratio": self.budget.eta,
            "relative_error": error,
            "terms": self.names,
            "privacy_to_sampling": [ratio if ok else None for ratio, ok in pairs],
            "notes": [
                *profile_notes(self.own_profile),
                *(() if self.ground.left_out is None else self.ground.left_out.said),
            ],
        }

    @property
    def _expected(self) -> tuple[float, FloatArray, FloatArray, BoolArray]:
        """The error in u, standard errors (D,) of noise and of sampling, and whether there will be
        intervals.
        """
        ground, found = self.ground, forecast_categories(self.newton(self.ground))
        theta = np.zeros((ground.law.predictors, self.sizes.size))
        _, A = in_units(ground.coding, ground.law, theta, ground.spacings)
        tiny = np.finfo(float).tiny
        privacy, sampling = (
            np.maximum(roots(A @ C @ A.T), tiny) for C in (found.privacy, found.sampling)
        )
        flags = Directions(found.vectors, found.resolved).mapped(A).flags
        flags = flags & spread_verdict(self.own_profile).intervals
        return (
            found.error,
            privacy,
            sampling,
            trust.coefficients(flags, privacy, sampling).estimable,
        )

    def newton(self, ground: CategoryGround) -> CategoryNewton:
        """The fit on a ground."""
        return CategoryNewton(
            ground.coding,
            ground.coordinates,
            ground.law,
            ground.axis.column,
            ground.axis.stored,
            self.budget,
            self.sizes.of(ground.coding.size),
            ground.start,
            ground.spacings,
        )

    def expected_ms(self, n: int) -> float:
        """Passes, what is between them, and an own profile's draws."""
        drawing = self.draws * SELECTION_NANOSECONDS / 10**6
        return 0.5 * (self.deadline_ms(n) - drawing) + DRAWING * drawing

    def run(self) -> Recipe:
        """Always a reply."""
        ground = self.ground
        if self.own_profile:
            own = self.own_profile
            facts = own.profiled((yield own.step))
            ground = (
                _ground(self.design, facts, self.axis, self.family, masked=own.masked) or ground
            )
        fit = yield from self.newton(ground).fit()
        return category_result(self, ground, fit)


def _ground(
    design: Design, facts: DatasetFacts, axis: Axis, family: str, *, masked: bool = True
) -> CategoryGround | None:
    """None where no profile covers the columns."""
    fitted = without_empty_levels(design, facts)
    design, left_out = fitted.design, fitted.left_out
    axis, design, said = _with_records(axis, design, facts)
    if said:
        known = left_out or LeftOut(design.names, frozenset(), ())
        left_out = replace(known, said=(*known.said, *said))
    rows = draw_public_rows(design, facts, masked=masked)
    if rows is None or design.response is None:
        return None
    places = np.maximum(level_places(axis.stored, rows.y), 0)
    counts = np.bincount(places, minlength=axis.size)
    shares = np.maximum(counts / counts.sum(), _LEAST_SHARE)
    law = LAWS[family](shares / shares.sum())
    start, spacings = law.start(shares / shares.sum())
    coding = code_design(design, design.response, rows, Location(0.0, 1.0))
    coordinates = public_coordinates(coding.standardised(rows.X))
    shared = (rows.share, rows.unequal)
    return CategoryGround(coding, coordinates, law, start, spacings, *shared, axis, left_out)


def _with_records(
    axis: Axis, design: Design, facts: DatasetFacts
) -> tuple[Axis, Design, tuple[str, ...]]:
    """The levels of a response, and the records, without those levels that may have none by
    released counts; and sentences. All levels where fewer than three have records."""
    full = full_values(facts, axis.column)
    kept = [(v, n) for v, n in zip(axis.stored, axis.levels, strict=True) if not full or v in full]
    if len(kept) == axis.size or len(kept) < LEAST_LEVELS:
        return axis, design, ()
    stored, levels = (tuple(each) for each in zip(*kept, strict=True))
    lost = [name for name in axis.levels if name not in levels]
    unused = (Compare(axis.column, "==", v) for v in axis.stored if v not in stored)
    used = Not(AnyOf(tuple(unused)))
    where = used if design.where is None else AllOf((design.where, used))
    left = replace(axis, size=len(kept), stored=stored, levels=levels)
    return left, replace(design, where=where), (_NO_RESPONSE.format(levels=", ".join(lost)),)


def plan_categories(
    facts: DatasetFacts, design: Design, axis: Axis, family: str, level: float, rho: int
) -> CategoryPlan:
    """Plans at `rho` (RHO_UNITS) from public facts alone. Raises InvalidQuery for too many
    coefficients.
    """
    ground, own = planned_ground(
        facts,
        design,
        rho,
        lambda known, masked: _ground(design, known, axis, family, masked=masked),
    )
    q, law = ground.coding.size, ground.law
    if law.predictors * q + law.spacings > MOST_PARAMETERS:
        raise InvalidQuery(
            f"The model has more than {MOST_PARAMETERS} coefficients: name fewer terms, or lump "
            "levels."
        )
    expected_n = facts.n * ground.share
    sizes = Sizes(q, RADIUS * q, facts.n, expected_n, unequal=ground.unequal)
    weighted = design.weight is not None
    left = rho - (own.rho if own else 0)
    signal = _signal(ground, sizes)
    budget = plan_budget(sizes, left, signal, masked=design.masked, weighted=weighted)
    budget = budget.with_meat_of(law.predictors * q + law.spacings, left)
    return CategoryPlan(facts, design, axis, family, ground, budget, sizes, own, level)


def _signal(ground: CategoryGround, sizes: Sizes) -> Signal:
    """What the planner takes for the score of one coefficient: its noise is that of D entries,
    spread over q.
    """
    law, R = ground.law, sqrt(sizes.radius_squared)
    at = Latent(ground.start[:, None], ground.spacings)
    J = information(*law.cells(at))[: law.predictors, : law.predictors, 0]
    more = sqrt((law.predictors * sizes.size + law.spacings) / sizes.size)
    return Signal(
        bound=law.score_bound(R, ground.spacings) / R * more,
        curvature=_EXPLAINED * float(np.trace(J)) / law.predictors,
        scaled=False,
        curvature_bound=sqrt(2) * law.information_bound(R, ground.spacings) / R**2 * more,
        early_jacobian=BENT_JACOBIAN,
    )
