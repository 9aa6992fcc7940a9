# SPDX-License-Identifier: Apache-2.0
"""A planned fit of a regression model: from public facts to steps, and from releases to the result.

What differs from model to model (its score, its response, what its reply says of it) is a
`RegressionModel`; this module has what all of them share.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows). Every
value that leaves the table is a part of one of the steps, and each part's contributions are
functions of one record and of earlier releases:

    rows       ‖u√w′‖ ≤ ρ        GramSum    Δ = √2 ρ² m    (w′ = min(1, ρ²/‖u‖²))
    gradient   ‖w v q + a‖ ≤ C   VectorSum  Δ = 2C m       (C ≤ RK, K = sup|q|; fitting.score)
    Jacobian   ‖v√(w|h|)‖ ≤ R√H  GramSum    Δ = √2 R²H m   (H = sup|h|; 2R²H m where h has both signs)
    meat       ‖w v q‖ ≤ RK      GramSum    Δ = √2 R²K² m
    scale      one count, or a bounded number                (fitting.huber, fitting.quasi)
    count      one count         CountSum   Δ = m          (masked designs)
               a − ½ within ±½   VectorSum  Δ = m          (weighted designs, a ∈ [0, 1]: fitting.maps)
    profile    cells, levels     QuantileTree, CountSum    (no profile)

and, where a model sums the scores of a person's rows first (fitting.person_scores),

    gradient   ‖k Σ_t w v q‖ ≤ C VectorSum  Δ = 2C         a function of one person's m places
    meat       ‖k Σ_t w v q‖ ≤ C GramSum    Δ = √2 C²
    lengths    one count         CountSum   Δ = √2         (of ‖Σ_t w v q‖, by which the last C is chosen)
    reaches    one count         CountSum   Δ = √2         (of ‖Σ_t w h v vᵀ‖, by which the last L is chosen)
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
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision
from reticent_server.domain.steps import FloatArray, Released, Step
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.advice import advice
from reticent_server.fitting.budget import FitBudget, Signal, Sizes, plan_budget
from reticent_server.fitting.coding import Coding, code_design
from reticent_server.fitting.column_measures import tells_tails
from reticent_server.fitting.contributions import contributions_of
from reticent_server.fitting.expected_intervals import NO_INTERVALS, expected_intervals
from reticent_server.fitting.fit_times import FitTimes
from reticent_server.fitting.forecast import Forecast, forecast_fit, forecast_ratio
from reticent_server.fitting.newton import NoisyNewton
from reticent_server.fitting.own_profile import (
    NO_PROFILE,
    OwnProfile,
    counts_of,
    planned_ground,
    profile_notes,
    selections_of,
    spread_verdict,
)
from reticent_server.fitting.passes import passes_of
from reticent_server.fitting.public.coordinates import USUAL, Coordinates, public_coordinates
from reticent_server.fitting.public.rows import PublicRows, draw_public_rows
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.report import fit_result
from reticent_server.fitting.restriction import UNRESTRICTED, Restriction, Unrestricted
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.scale import scale_of
from reticent_server.fitting.score import ScoreFamily
from reticent_server.fitting.special_columns import special
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.trust import CutWords
from reticent_server.fitting.whole_budget import plan_whole_budget
from reticent_server.fitting.whole_newton import WholeNewton

# relative singular value of the public rows below which least squares leaves a direction at 0
_SINGULAR = 1e-6

DEVIATIONS = (
    "; response and terms are deviations from the person's own means, and persons with fewer "
    "than two rows in use have "
    "none"
)

EXCHANGEABLE = (
    "; generalised least squares with the working correlation {:g} of any two rows of a person"
)

ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, eq=False)
class FitGround(Generic[ResponseT]):
    """What a fit stands on, all public: the coding, the coordinates, what is known of the response,
    the share of records in use; the start (q,), whose predictor is typical, and `spread`: 1, or
    more where it cannot be; offset (rows,) of the public rows, None without one; unequal: as of
    Sizes; distances: (rows,) of the responses of public rows from their
    median, None where no profile tells the tails of all columns.
    """

    coding: Coding
    coordinates: Coordinates
    response: ResponseT
    share: float
    start: FloatArray
    spread: float
    offset: FloatArray | None = None
    unequal: float = 1.0
    distances: FloatArray | None = None


class RegressionModel(Protocol[ResponseT]):
    """A regression model with its constants, which do not depend on the data.

    radius: R² for each coefficient. tuning: c of the reply, None for no cut. nanoseconds: planned
    time that a record's score takes beyond that of products.
    """

    @property
    def mechanism(self) -> str: ...
    @property
    def reference(self) -> str: ...
    @property
    def answers(self) -> str:
        """The reply's first line (domain.plan.Planned)."""
        ...

    @property
    def cut_words(self) -> CutWords:
        """What is said where the largest scores are cut."""
        ...

    @property
    def radius(self) -> float: ...
    @property
    def tuning(self) -> float | None: ...
    @property
    def nanoseconds(self) -> int: ...
    @property
    def of_persons(self) -> bool:
        """Whether scores are summed by person where the unit has several rows
        (fitting.person_scores).
        """
        ...

    def check(self, response: Term) -> None:
        """Raises InvalidQuery for a response whose declared bounds the model cannot have."""

    def response(self, term: Term, values: FloatArray) -> ResponseT:
        """From the responses (rows,) of public rows."""
        ...

    def location(self, response: ResponseT, *, intercept: bool) -> Location:
        """Centre and scale of the standardised response."""
        ...

    def level(self, response: ResponseT, *, intercept: bool) -> float:
        """The predictor of a typical record, standardised."""
        ...

    def tuned(self, sizes: Sizes, rho: int, ground: FitGround[ResponseT]) -> Self:
        """With constants for the smallest error at these sizes, where the query asks for them."""
        ...

    def family(self, ground: FitGround[ResponseT]) -> ScoreFamily: ...
    def signal(self, ground: FitGround[ResponseT]) -> Signal: ...

    def notes(self, ground: FitGround[ResponseT]) -> list[str]:
        """What a forecast has to say of the response."""
        ...

    def adjusted(self, coding: Coding, fit: StandardFit) -> StandardFit:
        """The released fit as it is to be reported."""
        ...

    def described(
        self,
        ground: FitGround[ResponseT],
        fit: StandardFit,
        radius_squared: float,
        result: Mapping[str, Any],
    ) -> dict[str, Any]:
        """What the model's reply says beside `found`, or in its place."""
        ...


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
        times = self.timing
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
            gaussian_counts=(
                *counts_of(self.own_profile),
                *self.budget.counts(self.sizes.unit_rows),
            ),
            selections=selections_of(self.own_profile),
        )

    @property
    def coding(self) -> Coding:
        return self.ground.coding

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
        restriction: Restriction | Unrestricted = UNRESTRICTED,
    ) -> NoisyNewton:
        family, coding = self.model.family(ground), ground.coding
        budget, sizes = self.budget, self.sizes
        scale = scale_of(family, budget, sizes, coding)
        kind = WholeNewton if budget.tail else NoisyNewton
        return kind(
            coding=coding,
            coordinates=ground.coordinates,
            family=family,
            budget=budget,
            sizes=sizes,
            start=ground.start,
            offset=ground.offset,
            contributions=contributions_of(coding, budget, sizes, scale, grouped=self.grouped),
            scale=scale,
            passes=passes_of(budget, sizes),
            restriction=restriction,
        )

    @property
    def precision(self) -> ForecastPrecision:
        """Of the coefficients."""
        fit = self.forecast_fit
        privacy = np.where(self.expected_intervals, fit.privacy, np.inf).tolist()
        return ForecastPrecision(
            tuple(self.design.names), tuple(privacy), tuple(fit.sampling.tolist())
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Steps, tuning, shares of ρ, and for each coefficient the expected privacy over its
        sampling standard error (null where no interval is expected), with what to do about it.
        """
        fit, terms = self.forecast_fit, self.design.names
        notes = [*profile_notes(self.own_profile), *self.model.notes(self.ground)]
        expected = self.expected_intervals
        notes += [NO_INTERVALS] if fit.estimable.any() and not expected.any() else []
        pairs = zip(fit.ratios.tolist(), expected.tolist(), strict=True)
        return {
            "steps": self.budget.steps,
            "tuning": self.model.tuning,
            "shares": self.shares,
            "noise_ratio": self.budget.eta,
            "relative_error": fit.error,
            "terms": list(terms),
            "privacy_to_sampling": [ratio if ok else None for ratio, ok in pairs],
            "notes": notes + advice(fit, self.design, self.facts),
        }

    @property
    def expected_intervals(self) -> NDArray[np.bool_]:
        """(q,) whether each coefficient is expected to have one."""
        known = spread_verdict(self.own_profile).intervals
        declined = not known or bool(self.model.notes(self.ground))
        return expected_intervals(self.forecast_fit, self.sizes, self.budget, declined=declined)

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
        the same fit planned at `rho`; infinite where an own profile would not resolve its
        columns.
        """
        own = self.own_profile and self.own_profile.planned_at(rho)
        if not spread_verdict(own).intervals:
            return np.inf
        if self.is_wide and rho == self.rho:
            return self.forecast_fit.worst
        return forecast_ratio(self._sized(rho - (own.rho if own else 0)).newton)

    def _sized(self, rho: int) -> "FitPlan[ResponseT]":
        """The same fit at another amount for its steps."""
        return _sized(
            self.facts, self.design, self.model, self.ground, self.own_profile, self.level, rho
        )

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
        self, restrict: Callable[[Coding], Restriction] | None = None
    ) -> Generator[Step, tuple[Released, ...], tuple[FitGround[ResponseT], StandardFit]]:
        """The recipe without its report. restrict: gives the restriction of a score test
        (fitting.restriction).
        """
        ground = self.ground
        if self.own_profile:
            own = self.own_profile
            facts = own.profiled((yield own.step))
            ground = ground_of(self.design, facts, self.model, masked=own.masked) or ground
        restriction = restrict(ground.coding) if restrict else UNRESTRICTED
        fit = yield from self._newton(ground, restriction).fit()
        return ground, self.model.adjusted(ground.coding, fit)

    def result(self, ground: FitGround[ResponseT], fit: StandardFit) -> dict[str, Any]:
        """What a reply says of a fit."""
        result = fit_result(
            ground.coding,
            fit,
            level=self.level,
            n=self.facts.n,
            radius_squared=self.sizes.radius_squared,
            words=self.model.cut_words,
        )
        if self.own_profile:
            result["warnings"].append(NO_PROFILE)
            result |= self.own_profile.verdict.applied(result)
        return {
            **result,
            "tuning": self.model.tuning,
            "steps": self.budget.steps,
            "shares": self.shares,
            **self._described(ground, fit, result),
        }

    def _described(
        self, ground: FitGround[ResponseT], fit: StandardFit, result: Mapping[str, Any]
    ) -> dict[str, Any]:
        found = self.model.described(ground, fit, self.sizes.radius_squared, result)
        said = special(self.design) + ("" if fit.freedom is None else fit.freedom.words)
        if self.design.deviations:
            said = DEVIATIONS + said
            found |= {"effects": "person"}
        elif self.design.persons is not None and self.design.persons.correlation:
            said = EXCHANGEABLE.format(self.design.persons.correlation) + said
        return found | {"estimand": found["estimand"] + said}


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


def ground_of(
    design: Design, facts: DatasetFacts, model: RegressionModel[ResponseT], *, masked: bool = True
) -> FitGround[ResponseT] | None:
    """The public ground of a design's fit; None where no profile covers its columns."""
    rows = draw_public_rows(design, facts, masked=masked)
    if rows is None or design.response is None:
        return None
    found = _ground(design, design.response, rows, model)
    if not tells_tails(facts, design):
        return found
    return replace(found, distances=rows.y - np.median(rows.y))


def _ground(
    design: Design, term: Term, rows: PublicRows, model: RegressionModel[ResponseT]
) -> FitGround[ResponseT]:
    """The start is the typical predictor at the intercept; without one, what comes nearest to
    it.
    """
    response, intercept = model.response(term, rows.y), design.intercept
    coding = code_design(design, term, rows, model.location(response, intercept=intercept))
    X, start = coding.standardised(rows.X), np.zeros(coding.size)
    middle = 0.0
    if design.offset is not None:  # of a link log
        middle = float(logsumexp(rows.offset) - np.log(len(X)))
    level = np.full(len(X), model.level(response, intercept=intercept) - middle)
    if intercept:
        start[0] = level[0]
    else:
        start = np.linalg.lstsq(X, level, rcond=_SINGULAR)[0]
    spread = float(np.hypot(1.0, np.sqrt(np.mean((level - X @ start) ** 2))))
    offset = None if design.offset is None else rows.offset
    coordinates = public_coordinates(X)
    return FitGround(coding, coordinates, response, rows.share, start, spread, offset, rows.unequal)
