"""A planned linear regression: from public facts to steps, and from releases to the result.

Privacy (unconditional, for every table and every n; neighbours replace one unit of ≤ m rows). Every
value that leaves the table is a part of one of the steps, and each part's contributions are functions
of one record and of earlier releases:

    gradient   ‖w u ψ‖ ≤ Rk          VectorSum  Δ = 2Rk m      k = sup|ψ|: Huber's c, biweight's .286c
    Jacobian   ‖u√(w a)‖ ≤ R         GramSum    Δ = √2 R² m    (0 ≤ a ≤ 1)
    meat       ‖w u ψ‖ ≤ Rk          GramSum    Δ = √2 R²k² m
    scale      one bin               CountSum   Δ = √2 m
    count      one bin               CountSum   Δ = √2 m       (masked designs)
    quantiles  one cell              QuantileTree              (no profile)

since w‖u_c‖ ≤ R_c, w‖u_c‖² ≤ R_c², w ≤ 1 and the rare dummies of one record have Σb_j⁻² ≤ R² − R_c². The
primitives enforce each norm by scaling down, so a mistake here would cost accuracy only. The parts'
ρ are fixed by the plan and add up to it under adaptive composition of zCDP; all else is
post-processing. The number of passes is fixed, so time does not depend on the data.

Source: Avella-Medina, Bradshaw & Loh (2023); Avella-Medina (2021), Example 2.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from reticent_server.domain.design import Design, Term
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.query import LinearRegression
from reticent_server.domain.steps import Released, Step
from reticent_server.errors import InvalidQuery
from reticent_server.estimators.newton.bootstrap import widening
from reticent_server.estimators.newton.coding import (
    Coding,
    Split,
    code_design,
    profile_locations,
    split_terms,
)
from reticent_server.estimators.newton.forecast import Forecast, forecast_fit, forecast_notes
from reticent_server.estimators.newton.recipe import Newton, StandardFit
from reticent_server.estimators.newton.report import estimand, report
from reticent_server.estimators.newton.restriction import Restriction
from reticent_server.estimators.newton.ridge import PENALISED, penalised_estimand, ridged
from reticent_server.estimators.newton.settings import (
    LEAST_BIWEIGHT,
    Dimensions,
    Settings,
    forecast,
    plan_settings,
)
from reticent_server.estimators.standardise import Location
from reticent_server.estimators.standardise_private import MiniProfile, plan_mini_profile
from reticent_server.numerics.public_random import public_generator

_NO_PROFILE = (
    "No profile covers this model's columns: a share of the budget went to their quartiles. "
    "A profile by the curator would be paid once for all queries."
)


@dataclass(frozen=True, slots=True)
class LinearRegressionPlan:
    """A planned Huber–Mallows regression; satisfies EstimatorPlan.

    coding is final with a profile; without one `start` is released first and replaces its locations.
    """

    facts: DatasetFacts
    coding: Coding
    settings: Settings
    sizes: Dimensions
    start: MiniProfile | None
    query: LinearRegression
    mechanism: str = "noisy Newton (Huber-Mallows), discrete Gaussian sums"
    reference: str = "Avella-Medina, Bradshaw & Loh (2023); Avella-Medina (2021), Example 2"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.coding.design.columns

    @property
    def rho(self) -> int:
        return self.settings.rho + (self.start.rho if self.start else 0)

    @property
    def passes(self) -> int:
        return self.settings.passes + (self.start is not None)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Steps, tuning, shares of ρ, expected standard errors in public units, and for each
        coefficient the expected privacy over its sampling standard error."""
        fit, terms = self.forecast_fit, self.coding.design.names
        notes = [_NO_PROFILE] if self.start else []
        notes += forecast_notes(fit, self.coding, terms)
        return {
            "steps": self.settings.steps,
            "tuning": self.settings.c,
            "shares": self.shares,
            **forecast(self.settings, self.sizes),
            "relative_error": fit.error,
            "terms": list(terms),
            "privacy_to_sampling": [r if isfinite(r) else None for r in fit.ratios.tolist()],
            "notes": notes,
        }

    @property
    def forecast_fit(self) -> Forecast:
        """What the fit will be worth, from public facts alone."""
        return forecast_fit(self.coding, self.settings, self.sizes, self.facts.profile)

    def noise_ratio(self, rho: int) -> float:
        """The largest forecast ratio of a coefficient's privacy and sampling standard errors, were the
        same regression planned at `rho` (with the same share for a mini-profile)."""
        left = rho - (rho * self.start.rho // self.rho if self.start else 0)
        settings = _settings(self.sizes, left, self.query, self.coding.design)
        return forecast_fit(self.coding, settings, self.sizes, self.facts.profile).worst

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        s = self.settings
        amounts = {
            "quantiles": self.start.rho if self.start else 0,
            "records_in_use": s.count,
            "gradients": sum(s.gradients),
            "jacobians": sum(s.jacobians),
            "scales": sum(s.scales),
            "meat": s.meat,
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

        restrict: gives the restriction of a score test (restriction); its fit is not widened.
        """
        coding = self.coding
        if self.start:
            *locations, response = self.start.locations((yield self.start.step))
            coding = _recode(coding, locations, response)
        restriction = restrict(coding) if restrict else None
        newton = Newton(coding, self.settings, self.sizes, restriction)
        fitted = yield from newton.fit()
        rng = public_generator(self.facts.version_id, repr(coding.design), str(self.rho))
        factor = 1.0 if restriction else widening(newton, fitted, rng)
        if self.query.ridge is not None:
            fitted = ridged(fitted, self.query.ridge, coding.design.intercept)
        result = report(
            coding,
            fitted,
            tuning=self.settings.c,
            level=self.query.confidence_level,
            factor=factor,
            n=self.facts.n,
        )
        if self.settings.biweight is not None:
            found = estimand(coding, self.settings.c, self.settings.start.c)
            result["estimand"] = found
        if self.query.ridge is not None:
            result["estimand"] += penalised_estimand(self.query.ridge)
            result["warnings"].append(PENALISED)
        if self.start:
            result["warnings"].append(_NO_PROFILE)
        if coding.design.masked:
            result["records_in_use"] = fitted.count
        return coding, fitted, {**result, "steps": self.settings.steps, "shares": self.shares}


def plan_linear_regression(
    facts: DatasetFacts, design: Design, query: LinearRegression, rho: int
) -> LinearRegressionPlan:
    """Plans a regression at `rho` (RHO_UNITS) from public facts alone; InvalidQuery without response."""
    response = design.response
    if response is None or not design.names:
        raise InvalidQuery("A regression needs a response and at least one term.")
    start, coding = _start(facts, design, response, rho)
    sizes = Dimensions(
        size=coding.size,
        white_size=coding.white_size,
        intercept=design.intercept,
        radius_squared=coding.radius_squared,
        white_radius_squared=coding.white_radius_squared,
        n=facts.n,
        unit_rows=facts.schema.unit.max_rows,
    )
    left = rho - (start.rho if start else 0)
    settings = _settings(sizes, left, query, design)
    return LinearRegressionPlan(facts, coding, settings, sizes, start, query)


def _settings(sizes: Dimensions, rho: int, query: LinearRegression, design: Design) -> Settings:
    """The settings at `rho`; InvalidQuery where the biweight's c is too small."""
    biweight = query.loss == "tukey"
    if biweight and query.tuning is not None and query.tuning < LEAST_BIWEIGHT:
        raise InvalidQuery(f"The biweight's tuning constant is at least {LEAST_BIWEIGHT:g}.")
    return plan_settings(sizes, rho, tuning=query.tuning, masked=design.masked, biweight=biweight)


def _start(
    facts: DatasetFacts, design: Design, response: Term, rho: int
) -> tuple[MiniProfile | None, Coding]:
    """The coding from the profile; or a mini-profile, and a coding whose locations it will replace."""
    profile = facts.profile
    split = split_terms(design, profile)
    terms = (*split.white, response)
    found = profile_locations(terms, profile) if profile else None
    if found is not None:
        return None, code_design(design, response, split, found[:-1], found[-1])
    unknown = [Location(0.0, 1.0)] * len(terms)
    start = plan_mini_profile(design, terms, facts.schema, facts.n, rho)
    return start, code_design(design, response, split, unknown[:-1], unknown[-1])


def _recode(coding: Coding, locations: list[Location], response: Location) -> Coding:
    """The coding with released locations; sizes and radii stay."""
    split = Split(coding.white, coding.rare, coding.rare_locations)
    return code_design(coding.design, coding.response, split, locations, response)
