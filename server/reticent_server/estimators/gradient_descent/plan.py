"""A planned linear regression by noisy gradient descent.

Privacy (unconditional; neighbours replace one unit of ≤ m rows): every value that leaves the table is a
part of a step whose contributions are functions of one record and of earlier releases:

    gradients, T of them   ‖w x̃ ψ_c‖ ≤ Rc      VectorSum  Δ = 2Rc m
    Jacobians, first, last ‖x̃ √(w a)‖ ≤ R      GramSum    Δ = √2 R² m   (0 ≤ a ≤ 1)
    meat                   ‖w x̃ ψ_c‖ ≤ Rc      GramSum    Δ = √2 R²c² m
    scales, count          one bin             CountSum   Δ = √2 m
    quantiles              one cell            QuantileTree              (no profile)

The primitives enforce each norm; the parts' ρ are fixed by the plan and add up under adaptive
composition; T is fixed, so time does not depend on the data. All else is post-processing.

It estimates Σ w(x̃) x̃ ψ_c(r/σ) = 0 with weights on standardised, not whitened, terms. Noisy Newton needs
less noise for the same estimating equation and is the default; this is here as the yardstick.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Recipe
from reticent_server.domain.query import LinearRegression
from reticent_server.estimators.gradient_descent.recipe import Descent
from reticent_server.estimators.gradient_descent.settings import Settings, plan_settings
from reticent_server.estimators.newton.coding import Coding, Split, code_design
from reticent_server.estimators.newton.plan import LinearRegressionPlan, plan_linear_regression
from reticent_server.estimators.newton.report import report
from reticent_server.estimators.newton.settings import Dimensions
from reticent_server.estimators.standardise import Location
from reticent_server.estimators.standardise_private import MiniProfile

_ESTIMAND = (
    "Mallows-Huber regression coefficients with tuning constant {c:g} and residual scale "
    "median|r|/0.6745; weights min(1, {r:g}/|x|^2) on standardised terms"
)
_UNCONVERGED = (
    "The descent may not have converged: its bias towards the start is estimated, counted in the "
    "standard errors, and a large part of them; noisy Newton has no such bias."
)


@dataclass(frozen=True, slots=True)
class GradientDescentPlan:
    """A planned descent; satisfies EstimatorPlan.

    coding is final with a profile; without one `start` is released first and replaces its locations.
    """

    coding: Coding
    settings: Settings
    sizes: Dimensions
    start: MiniProfile | None
    confidence_level: float
    mechanism: str = "noisy gradient descent (Huber-Mallows), discrete Gaussian sums"
    reference: str = "Bassily, Smith & Thakurta (2014); Avella-Medina, Bradshaw & Loh (2023)"

    @property
    def columns(self) -> tuple[str, ...]:
        return self.coding.design.columns

    @property
    def rho(self) -> int:
        return self.settings.rho + (self.start.rho if self.start else 0)

    @property
    def passes(self) -> int:
        scales = len(self.settings.scales_after)
        return self.settings.steps + scales + 2 + (self.start is not None)

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {"steps": self.settings.steps, "tuning": self.settings.c, "shares": self.shares}

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        s = self.settings
        amounts = {
            "quantiles": self.start.rho if self.start else 0,
            "records_in_use": s.count,
            "gradients": s.steps * s.gradient,
            "jacobians": s.first + s.last,
            "scales": len(s.scales_after) * s.scale,
            "meat": s.meat,
        }
        return {name: amount / self.rho for name, amount in amounts.items()}

    def run(self) -> Recipe:
        """The recipe; its result has the keys of any linear regression."""
        coding = self.coding
        if self.start:
            *locations, response = self.start.locations((yield self.start.step))
            coding = _recoded(coding, locations, response)
        found = yield from Descent(coding, self.settings, self.sizes).fit()
        fitted = found.fit
        c, n = self.settings.c, self.sizes.n
        result = report(coding, fitted, tuning=c, level=self.confidence_level, factor=1.0, n=n)
        if coding.design.masked:
            result["records_in_use"] = fitted.count
        if not found.converged:
            result["warnings"].append(_UNCONVERGED)
        estimand = _ESTIMAND.format(c=c, r=coding.white_radius_squared)
        return {**result, "estimand": estimand, "steps": self.settings.steps, "shares": self.shares}


def plan_gradient_descent(
    facts: DatasetFacts, design: Design, query: LinearRegression, rho: int
) -> GradientDescentPlan:
    """Plans a descent at `rho` (RHO_UNITS), on the coding that noisy Newton would have."""
    newton: LinearRegressionPlan = plan_linear_regression(facts, design, query, rho)
    left = rho - (newton.start.rho if newton.start else 0)
    settings = plan_settings(newton.sizes, left, tuning=query.tuning, masked=design.masked)
    return GradientDescentPlan(
        newton.coding, settings, newton.sizes, newton.start, query.confidence_level
    )


def _recoded(coding: Coding, locations: list[Location], response: Location) -> Coding:
    """The coding with released locations; sizes and radii stay."""
    split = Split(coding.white, coding.rare, coding.rare_locations)
    return code_design(coding.design, coding.response, split, locations, response)
