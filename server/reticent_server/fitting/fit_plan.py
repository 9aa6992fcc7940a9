# SPDX-License-Identifier: Apache-2.0
"""A planned fit of a regression model: from public facts to steps, and from releases to the result.

What differs from model to model (its score, its response, what its reply says of it) is a
`RegressionModel`; this module has what all of them share.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows). Every
value that leaves the table is a part of one of the steps, and each part's contributions are
functions of one record and of earlier releases:

    rows       ‖u√w′‖ ≤ ρ        GramSum    Δ = √2 ρ² m    (w′ = min(1, ρ²/‖u‖²))
    gradient   ‖w v q + a‖ ≤ C   VectorSum  Δ = 2C m       (C ≤ RK, K = sup|q|; fitting.score)
    Jacobian   ‖v√(w|h|)‖ ≤ R√H  GramSum    Δ = √2 R²H m   (H = sup|h|; 2R²H m of both signs)
    meat       ‖w v q‖ ≤ RK      GramSum    Δ = √2 R²K² m
    scale      one count, or a bounded number                (fitting.huber, fitting.quasi)
    count      one count         CountSum   Δ = m          (masked designs)
               a − ½ within ±½   VectorSum  Δ = m          (weights a ∈ [0, 1]: fitting.maps)
    profile    cells, levels     QuantileTree, CountSum    (no profile)

and, where a model sums the scores of a person's rows first (fitting.person_scores),

    gradient   ‖k Σ_t w v q‖ ≤ C VectorSum  Δ = 2C         a function of one person's m places
    meat       ‖k Σ_t w v q‖ ≤ C GramSum    Δ = √2 C²
    lengths    one count         CountSum   Δ = √2         (of ‖Σ_t w v q‖, which choose the last C)
    reaches    one count         CountSum   Δ = √2         (of ‖Σ_t w h v vᵀ‖: the last L)
    Jacobian   ‖Σ_t w h v vᵀ‖ ≤ L  VectorSum Δ = 2L       of the last step; the norm is Frobenius'

since w‖v‖ ≤ R and w‖v‖² ≤ R². The primitives enforce each norm by scaling down, so a mistake here
would cost accuracy only. The steps' ρ, of parts that are of one vector together
(mechanisms.one_vector), are fixed by the plan and add up to it under adaptive composition of zCDP;
all else is post-processing. The number of passes is fixed by the plan, but for those of the scale
that a released profile of the query's own makes needless (a response with most records at one
value): time depends on released values only, and what was planned stays charged.

Source: Avella-Medina, Bradshaw & Loh (2023); Avella-Medina (2021), Example 2.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Forecastable, Outline, Planned, Recipe
from reticent_server.domain.plan_of_plans import PlannedOn
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import Released, Step
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.budget import FitBudget, Sizes, plan_budget
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.contributions import contributions_of
from reticent_server.fitting.expected_intervals import expected_intervals
from reticent_server.fitting.fit_forecast import FitForecast
from reticent_server.fitting.fit_reply import FitReply
from reticent_server.fitting.fit_times import FitTimes
from reticent_server.fitting.forecast import Forecast, forecast_fit
from reticent_server.fitting.newton import NoisyNewton
from reticent_server.fitting.own_profile import (
    OwnProfile,
    counts_of,
    planned_ground,
    profile_notes,
    selections_of,
    spread_verdict,
)
from reticent_server.fitting.passes import Passes
from reticent_server.fitting.public.coordinates import USUAL
from reticent_server.fitting.regression_model import (
    FitGround,
    RegressionModel,
    ResponseT,
    ground_of,
)
from reticent_server.fitting.restriction import Restriction
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.scale import scale_of
from reticent_server.fitting.score import ScoreFamily
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.whole_budget import plan_whole_budget
from reticent_server.fitting.whole_newton import WholeNewton


@dataclass(frozen=True, slots=True, eq=False)
class FitPlan(Planned, Generic[ResponseT]):
    """A planned fit.

    ground is final with a profile; without one `own_profile` is released first and replaces it.
    level: of confidence. grouped: whether it is the fit of one group among others
    (fitting.group_fits).
    """

    facts: DatasetFacts
    design: Design
    model: RegressionModel[ResponseT]
    ground: FitGround[ResponseT]
    budget: FitBudget
    sizes: Sizes
    own_profile: OwnProfile | None
    level: float
    grouped: bool = False
    made: dict[str, Forecast] = field(init=False, repr=False, default_factory=dict)
    """The forecast, once it is asked for: a plan is asked for it several times."""

    @property
    def fit(self) -> "FitPlan[ResponseT]":
        """Itself."""
        return self

    @property
    def outline(self) -> Outline:
        times, own = self.timing, self.own_profile
        counts = (*counts_of(own), *self.budget.counts(self.sizes.unit_rows))
        return Outline(
            answers=self.model.answers,
            columns=self.design.columns,
            rho=self.budget.rho + (self.own_profile.rho if self.own_profile else 0),
            mechanism=self.model.mechanism,
            reference=self.model.reference,
            passes=times.passes,
            column_ms=times.column_ms(self.facts.n),
            draws=times.draws or 0,
            of_persons=self.model.of_persons,
            steady=times.steady,
            gaussian_counts=counts,
            selections=selections_of(own),
        )

    @property
    def timing(self) -> FitTimes:
        """What it takes."""
        made = 0 if self.design.persons is None else len(self.design.persons.made)
        draws = None if self.own_profile is None else self.own_profile.draws
        return FitTimes(self.budget, self.sizes.size, self.model.nanoseconds, made, draws)

    def expected_ms(self, n: int) -> float:
        """As its times are."""
        return self.timing.expected_ms(n, len(self.columns))

    @property
    def newton(self) -> NoisyNewton:
        """The fit on the planned ground."""
        return self._newton(self.ground)

    def _newton(
        self,
        ground: FitGround[ResponseT],
        restriction: Restriction | None = None,
    ) -> NoisyNewton:
        family, sizes = self.model.family(ground), self.sizes.of(ground.coding.size)
        return composed(ground, family, self.budget, sizes, restriction, grouped=self.grouped)

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the coefficients."""
        return self.expected.precision

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Steps, tuning, shares of ρ, and what is expected of each coefficient
        (fit_forecast.FitForecast).
        """
        planned = {
            "steps": self.budget.steps,
            "tuning": self.model.tuning,
            "shares": self.shares,
            "noise_ratio": self.budget.eta,
        }
        return self.expected.shown(planned)

    @property
    def expected(self) -> FitForecast:
        """What a plan says of the fit."""
        own, notes, fit = self.own_profile, self.model.notes(self.ground), self.forecast_fit
        declined = not spread_verdict(own).intervals or bool(notes)
        given = expected_intervals(fit, self.sizes, self.budget, declined=declined)
        left_out, design = self.ground.left_out, self.ground.coding.design
        said = [*profile_notes(own), *notes, *(() if left_out is None else left_out.said)]
        return FitForecast(design, self.facts, fit, given, said, in_units=own is None)

    @property
    def forecast_fit(self) -> Forecast:
        """What the fit will be worth, from public facts alone."""
        if not self.made:
            self.made["forecast"] = forecast_fit(self.newton)
        return self.made["forecast"]

    @property
    def is_wide(self) -> bool:
        """Whether a forecast takes so long that only a few are made."""
        return self.sizes.size > USUAL

    def noise_ratio(self, rho: int) -> float:
        """The largest forecast ratio of a coefficient's privacy and sampling standard errors, were
        the same fit planned at `rho`; infinite where no interval would be expected.
        """
        there = self if rho == self.rho else self._planned_at(rho)
        return there.forecast_fit.worst if there.expected.intervals.any() else np.inf

    def _planned_at(self, rho: int) -> "FitPlan[ResponseT]":
        own = self.own_profile and self.own_profile.planned_at(rho)
        left, made = rho - (own.rho if own else 0), (self.model, self.ground, own)
        return _sized(self.facts, self.design, *made, self.level, left)

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where: of what the parts would cost alone, which is more than ρ
        together.
        """
        return self.budget.shares(self.own_profile.rho if self.own_profile else 0)

    def run(self) -> Recipe:
        """The recipe; its result has ARCHITECTURE's keys, and steps, shares and warnings."""
        ground, fit = yield from self.fitted()
        return RegressionResult(**self.result(ground, fit))

    def fitted(
        self, restrict: Callable[[Coding], Restriction | None] | None = None
    ) -> Generator[Step, tuple[Released, ...], tuple[FitGround[ResponseT], StandardFit]]:
        """The recipe without its report. restrict: gives the restriction of a score test
        (fitting.restriction).
        """
        ground = self.ground
        if self.own_profile:
            own = self.own_profile
            facts = own.profiled((yield own.step))
            ground = ground_of(self.design, facts, self.model, masked=own.masked) or ground
        restriction = restrict(ground.coding) if restrict else None
        fit = yield from self._newton(ground, restriction).fit()
        return ground, self.model.adjusted(ground.coding, fit)

    def result(self, ground: FitGround[ResponseT], fit: StandardFit) -> dict[str, Any]:
        """What a reply says of a fit."""
        n, own = self.facts.n, self.own_profile
        sizes = self.sizes.of(ground.coding.size)
        reply = FitReply(self.design, self.model, own, sizes, self.budget, n, self.level)
        return reply.result(ground, fit)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedOnFit(PlannedOn, Generic[ResponseT]):
    """A planned fit, and steps after it."""

    plan: FitPlan[ResponseT]

    @property
    def base(self) -> Planned:
        """The fit."""
        return self.plan

    @property
    def fit(self) -> Forecastable:
        """The fit alone."""
        return self.plan

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The fit's."""
        return self.plan.forecast

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the coefficients: the fit's alone, whose budget is what the steps
        after it leave."""
        return self.plan.precision


def composed(
    ground: FitGround[Any],
    family: ScoreFamily,
    budget: FitBudget,
    sizes: Sizes,
    restriction: Restriction | None = None,
    *,
    grouped: bool = False,
) -> NoisyNewton:
    """The loop, with the objects in which fits differ."""
    coding, scale = ground.coding, scale_of(family, budget, sizes, ground.coding)
    kind = WholeNewton if budget.tail else NoisyNewton
    return kind(
        coding=coding,
        coordinates=ground.coordinates,
        family=family,
        budget=budget,
        sizes=sizes,
        start=ground.start,
        offset=ground.offset,
        contributions=contributions_of(coding, budget, sizes, scale, grouped=grouped),
        scale=scale,
        passes=Passes(budget, sizes),
        restriction=restriction,
    )


def plan_fit(
    facts: DatasetFacts, design: Design, model: RegressionModel[ResponseT], level: float, rho: int
) -> FitPlan[ResponseT]:
    """Plans a fit at `rho` (RHO_UNITS) from public facts alone; InvalidQuery without response or
    terms.
    """
    if design.response is None or not design.names:
        raise InvalidQuery("A regression needs a response and at least one term.")
    model.check(design.response)
    ground, own = planned_ground(
        facts, design, rho, lambda known, masked: ground_of(design, known, model, masked=masked)
    )
    left = rho - (own.rho if own else 0)
    return _sized(facts, design, model, ground, own, level, left)


def _sized(
    facts: DatasetFacts,
    design: Design,
    model: RegressionModel[ResponseT],
    ground: FitGround[ResponseT],
    own: OwnProfile | None,
    level: float,
    rho: int,
) -> FitPlan[ResponseT]:
    model, sizes = sized(facts, model, ground, rho, known=own is None)
    weighted = design.weight is not None
    signal = model.signal(ground)
    planned = plan_whole_budget if signal.whole else plan_budget
    budget = planned(sizes, rho, signal, masked=design.masked, weighted=weighted)
    return FitPlan(facts, design, model, ground, budget, sizes, own, level)


def sized(
    facts: DatasetFacts,
    model: RegressionModel[ResponseT],
    ground: FitGround[ResponseT],
    rho: int,
    *,
    known: bool = True,
) -> tuple[RegressionModel[ResponseT], Sizes]:
    """The model with its constants and the sizes of its fit at `rho` (RHO_UNITS). known: whether
    the ground is final.
    """
    sizes = Sizes(
        size=ground.coding.size,
        radius_squared=0.0,
        n=facts.n,
        expected_n=facts.n * ground.share,
        unit_rows=facts.schema.unit.max_rows,
        person_rows=facts.schema.unit.max_rows if model.of_persons else 1,
        unequal=ground.unequal,
        spread=ground.coordinates.spread if known else np.inf,
    )
    model = model.tuned(sizes, rho, ground)
    signal = model.signal(ground)
    return model, replace(
        sizes,
        radius_squared=model.radius * sizes.size,
        rms=signal.rms,
        skewed=signal.skewed,
    )
