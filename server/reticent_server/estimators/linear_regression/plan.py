"""A planned linear regression: from public facts to steps, and from releases to the result.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows). Every
value that leaves the table is a part of one of the steps, and each part's contributions are functions
of one record and of earlier releases:

    rows       ‖u√w′‖ ≤ ρ        GramSum    Δ = √2 ρ² m    (w′ = min(1, ρ²/‖u‖²))
    gradient   ‖w u ψ‖ ≤ Rk      VectorSum  Δ = 2Rk m      k = sup|ψ|
    Jacobian   ‖u√(w ψ′)‖ ≤ R    GramSum    Δ = √2 R² m    (0 ≤ ψ′ ≤ 1)
    meat       ‖w u ψ‖ ≤ Rk      GramSum    Δ = √2 R²k² m
    scale      one count         CountSum   Δ = m
    count      one count         CountSum   Δ = m          (masked designs)
    profile    cells, levels     QuantileTree, CountSum    (no profile)

since w‖u‖ ≤ R and w‖u‖² ≤ R². The primitives enforce each norm by scaling down, so a mistake here would
cost accuracy only. The parts' ρ are fixed by the plan and add up to it under adaptive composition of
zCDP; all else is post-processing. The number of passes is fixed, so time does not depend on the data.

Source: Avella-Medina, Bradshaw & Loh (2023); Avella-Medina (2021), Example 2.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.query import LinearRegression
from reticent_server.domain.steps import FloatArray, Released, Step
from reticent_server.errors import InvalidQuery
from reticent_server.estimators.linear_regression.loss import Loss, planned_loss
from reticent_server.estimators.linear_regression.response import PublicResponse, public_response
from reticent_server.estimators.linear_regression.ridge import PENALISED, penalised_estimand, ridged
from reticent_server.fitting.advice import advice
from reticent_server.fitting.budget import Budget, Sizes, plan_budget
from reticent_server.fitting.coding import Coding, Location, code_design
from reticent_server.fitting.coordinates import Coordinates, public_coordinates
from reticent_server.fitting.forecast import Forecast, forecast_fit
from reticent_server.fitting.huber import LinearFamily
from reticent_server.fitting.own_profile import NO_PROFILE, OwnProfile, guessed_facts, plan_own_profile
from reticent_server.fitting.public_rows import PublicRows, draw_public_rows
from reticent_server.fitting.recipe import NoisyNewton, StandardFit
from reticent_server.fitting.report import fit_result, without_intervals
from reticent_server.fitting.restriction import Restriction

DECLINED = (
    "Nearly all records have the same response, so residuals have no scale and a robust fit no standard error: no "
    "intervals are given. Ask for loss=\"squared\", or model whether the response differs from that value."
)


_NS_A_DRAW = 5000  # of a Gumbel selection, per candidate
_PRODUCTS_A_MS = 200  # squared coefficients whose moments of 4,096 public rows take 1 ms


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What a fit stands on, all public: the coding, the coordinates, the response, the share in use; the
    start (q,), whose predictor is a typical response, and spread, its residual scale in units of the response's."""

    coding: Coding
    coordinates: Coordinates
    response: PublicResponse
    share: float
    start: FloatArray
    spread: float


@dataclass(frozen=True, slots=True, eq=False)
class LinearRegressionPlan:
    """A planned Huber–Mallows regression; satisfies EstimatorPlan.

    ground is final with a profile; without one `own_profile` is released first and replaces it.
    """

    facts: DatasetFacts
    design: Design
    ground: Ground
    loss: Loss
    budget: Budget
    sizes: Sizes
    own_profile: OwnProfile | None
    query: LinearRegression
    mechanism: str = "noisy Newton (Huber-Mallows), discrete Gaussian sums"
    reference: str = "Avella-Medina, Bradshaw & Loh (2023); Avella-Medina (2021), Example 2"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.design.columns

    @property
    def coding(self) -> Coding:
        return self.ground.coding

    @property
    def rho(self) -> int:
        return self.budget.rho + (self.own_profile.rho if self.own_profile else 0)

    @property
    def passes(self) -> int:
        fit = len(self.budget.rounds) + self.budget.steps + len(self.budget.scales)
        return fit + (self.own_profile is not None)

    @property
    def column_ms(self) -> int:
        """Planned time beyond that of sums: the draws of an own profile's quantiles, and the filter's steps."""
        draws = self.own_profile.draws if self.own_profile else 0
        return draws * _NS_A_DRAW // 10**6 + self.passes * self.sizes.size**2 // _PRODUCTS_A_MS

    @property
    def newton(self) -> NoisyNewton:
        """The fit on the planned ground."""
        return self._newton(self.ground)

    def _newton(self, ground: Ground, restriction: Restriction | None = None) -> NoisyNewton:
        return NoisyNewton(
            coding=ground.coding,
            coordinates=ground.coordinates,
            family=self.loss.family(ground.spread, ground.response.tie),
            budget=self.budget,
            sizes=self.sizes,
            start=ground.start,
            restriction=restriction,
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Steps, tuning, shares of ρ, and for each coefficient the expected privacy over its sampling
        standard error (null where the releases are not expected to identify it), with what to do about it."""
        fit, terms = self.forecast_fit, self.design.names
        notes = [NO_PROFILE] if self.own_profile else []
        notes += [DECLINED] if self.loss.declines(self.ground.response.tie) else []
        pairs = zip(fit.ratios.tolist(), fit.estimable.tolist(), strict=True)
        return {
            "steps": self.budget.steps,
            "tuning": self.loss.c,
            "shares": self.shares,
            "noise_ratio": self.budget.eta,
            "relative_error": fit.error,
            "terms": list(terms),
            "privacy_to_sampling": [ratio if ok else None for ratio, ok in pairs],
            "notes": notes + advice(fit, self.design, self.facts),
        }

    @property
    def forecast_fit(self) -> Forecast:
        """What the fit will be worth, from public facts alone."""
        return forecast_fit(self.newton)

    def noise_ratio(self, rho: int) -> float:
        """The largest forecast ratio of a coefficient's privacy and sampling standard errors, were the
        same regression planned at `rho` (with the same share for an own profile)."""
        left = rho - (rho * self.own_profile.rho // self.rho if self.own_profile else 0)
        return forecast_fit(_planned(self, left).newton).worst

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
            "scales": sum(b.scales),
            "meat": b.meat,
        }
        return {name: amount / self.rho for name, amount in amounts.items()}

    def run(self) -> Recipe:
        """The recipe; its result has ARCHITECTURE's keys, and steps, shares and warnings."""
        _, _, result = yield from self.fitted()
        return result

    def fitted(
        self, restrict: Callable[[Coding], Restriction] | None = None
    ) -> Generator[Step, tuple[Released, ...], tuple[Coding, StandardFit, dict[str, Any]]]:
        """The recipe, with the coding and the fit that its result was made of.

        restrict: gives the restriction of a score test (fitting.restriction).
        """
        ground = self.ground
        if self.own_profile:
            facts = self.own_profile.profiled((yield self.own_profile.step))
            ground = ground_of(self.design, facts, masked=False)
        restriction = restrict(ground.coding) if restrict else None
        fit = yield from self._newton(ground, restriction).fit()
        if self.query.ridge is not None:
            fit = ridged(fit, self.query.ridge, ground.coding)
        return ground.coding, fit, self._result(ground, fit)

    def _result(self, ground: Ground, fit: StandardFit) -> dict[str, Any]:
        coding = ground.coding
        result = fit_result(coding, fit, level=self.query.confidence_level, n=self.facts.n)
        result["weighting"]["radius_squared"] = self.sizes.radius_squared
        said = result["warnings"]
        if self.loss.declines(ground.response.tie):
            result |= without_intervals(result)
            said.append(DECLINED)
        said += [NO_PROFILE] if self.own_profile else []
        penalty = self.query.ridge
        said += [PENALISED] if penalty is not None else []
        target = self.loss.estimand(self.sizes.radius_squared, ground.response.tie)
        return {
            **result,
            "scale": fit.scale * coding.response_location.scale,
            "tuning": self.loss.c,
            "estimand": target + (penalised_estimand(penalty) if penalty is not None else ""),
            "steps": self.budget.steps,
            "shares": self.shares,
        }


def plan_linear_regression(
    facts: DatasetFacts, design: Design, query: LinearRegression, rho: int
) -> LinearRegressionPlan:
    """Plans a regression at `rho` (RHO_UNITS) from public facts alone; InvalidQuery without response."""
    if design.response is None or not design.names:
        raise InvalidQuery("A regression needs a response and at least one term.")
    own = None
    ground = ground_of(design, facts)
    if ground is None:
        own = plan_own_profile(facts, design, rho)
        ground = ground_of(design, guessed_facts(facts, design), masked=False)
    left = rho - (own.rho if own else 0)
    return _sized(facts, design, ground, own, query, left)


def _planned(plan: LinearRegressionPlan, rho: int) -> LinearRegressionPlan:
    """The same regression at another amount for its fit."""
    return _sized(plan.facts, plan.design, plan.ground, plan.own_profile, plan.query, rho)


def _sized(
    facts: DatasetFacts,
    design: Design,
    ground: Ground,
    own: OwnProfile | None,
    query: LinearRegression,
    rho: int,
) -> LinearRegressionPlan:
    sizes = Sizes(
        size=ground.coding.size,
        radius_squared=0.0,
        n=facts.n,
        expected_n=facts.n * ground.share,
        unit_rows=facts.schema.unit.max_rows,
    )
    loss = planned_loss(query, sizes, rho)
    sizes = replace(sizes, radius_squared=loss.radius * sizes.size)
    budget = plan_budget(sizes, rho, loss.signal(ground.response.tie), masked=design.masked)
    return LinearRegressionPlan(facts, design, ground, loss, budget, sizes, own, query)


def ground_of(design: Design, facts: DatasetFacts, *, masked: bool = True) -> Ground | None:
    """The public ground of a design's fit; None where no profile covers its columns."""
    rows = draw_public_rows(design, facts, masked=masked)
    if rows is None or design.response is None:
        return None
    return _ground(design, design.response, rows)


def _ground(design: Design, term: Term, rows: PublicRows) -> Ground:
    """Without an intercept the response is not centred: the start is what comes nearest to its centre."""
    response = public_response(term, rows.y)
    where = response.location if design.intercept else Location(0.0, response.location.scale)
    coding = code_design(design, term, rows, where)
    X = coding.standardised(rows.X)
    start, spread = np.zeros(coding.size), 1.0
    if not design.intercept:
        level = np.full(len(X), response.location.centre / where.scale)
        start = np.linalg.lstsq(X, level, rcond=1e-6)[0]
        spread = float(np.hypot(1.0, np.sqrt(np.mean((level - X @ start) ** 2))))
    return Ground(coding, public_coordinates(X), response, rows.share, start, spread)
