# SPDX-License-Identifier: Apache-2.0
"""A planned linear regression by noisy gradient descent.

Privacy (unconditional; neighbours replace one unit of ≤ m rows): every value that leaves the table
is a part of a step whose contributions are functions of one record and of earlier releases:

    rounds                 ‖u√w′‖ ≤ ρ          GramSum    Δ = √2 ρ² m
    gradients, T of them   ‖w u ψ_c‖ ≤ Rc      VectorSum  Δ = 2Rc m
    Jacobian               ‖u √(w ψ′)‖ ≤ R     GramSum    Δ = √2 R² m   (0 ≤ ψ′ ≤ 1)
    meat                   ‖w u ψ_c‖ ≤ Rc      GramSum    Δ = √2 R²c² m
    scales, count          one count           CountSum   Δ = m
    profile                cells, levels       QuantileTree, CountSum    (no profile)

The primitives enforce each norm; the parts' ρ are fixed by the plan and add up under adaptive
composition; T is fixed, so time does not depend on the data. All else is post-processing.

It estimates what noisy Newton estimates, with more noise, and is here as the baseline.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.huber import LinearFamily
from reticent_server.fitting.own_profile import (
    counts_of,
    profile_notes,
    selections_of,
)
from reticent_server.fitting.regression_model import FitGround, ground_of
from reticent_server.fitting.results import RegressionResult
from reticent_server.kinds.linear_regression.gradient_descent.recipe import (
    SCALES_AFTER,
    STEPS,
    Descent,
    DescentBudget,
)
from reticent_server.kinds.shared.linear.plan import (
    LinearRegressionPlan,
    plan_linear_regression,
)
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.shared.linear.response import PublicResponse

# shares of ρ; the gradients get most of the rest. More of these makes intervals surer and the fit
# noisier
_JACOBIAN, _MEAT, _SCALES = 0.10, 0.03, 0.03


@dataclass(frozen=True, slots=True, eq=False)
class GradientDescentPlan(Planned):
    """A planned descent. newton: the regression whose ground it stands on."""

    newton: LinearRegressionPlan
    budget: DescentBudget

    @property
    def outline(self) -> Outline:
        counts = self.budget.counts(self.newton.sizes.unit_rows)
        return Outline(
            answers=self.newton.answers,
            columns=self.newton.columns,
            rho=self._rho,
            mechanism="noisy gradient descent (Huber-Mallows), discrete Gaussian sums",
            reference="Bassily, Smith & Thakurta (2014); Avella-Medina, Bradshaw & Loh (2023)",
            passes=self._passes,
            column_ms=self.newton.column_ms,
            steady=self.newton.steady,
            gaussian_counts=(*counts_of(self.newton.own_profile), *counts),
            selections=selections_of(self.newton.own_profile),
        )

    @property
    def _rho(self) -> int:
        own = self.newton.own_profile
        return self.budget.rho + (own.rho if own else 0)

    @property
    def _passes(self) -> int:
        own = self.newton.own_profile is not None
        return len(self.budget.rounds) + STEPS + len(SCALES_AFTER) + 1 + own

    def expected_ms(self, n: int) -> float:
        """Measured: 1.4 of Newton's steps."""
        return 2 * self.newton.expected_ms(n)

    @property
    def forecast(self) -> Mapping[str, Any]:
        notes = profile_notes(self.newton.own_profile)
        return {
            "steps": STEPS,
            "tuning": self.newton.model.tuning,
            "shares": self.shares,
            "notes": notes + self.newton.model.notes(self.newton.ground),
        }

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        b, own = self.budget, self.newton.own_profile
        amounts = {
            "profile": own.rho if own else 0,
            "records_in_use": b.count,
            "whitening": sum(rho for rho, _ in b.rounds),
            "gradients": STEPS * b.gradient,
            "jacobians": b.jacobian,
            "scales": len(SCALES_AFTER) * b.scale,
            "meat": b.meat,
        }
        return {name: amount / self.rho for name, amount in amounts.items()}

    def run(self) -> Recipe:
        """The recipe; its result has the keys of any linear regression."""
        newton, ground = self.newton, self.newton.ground
        if newton.own_profile:
            own = newton.own_profile
            facts = own.profiled((yield own.step))
            ground = ground_of(newton.design, facts, newton.model, masked=own.masked) or ground
        fit = yield from self._descent(ground).fit()
        result = {**newton.result(ground, fit), "steps": STEPS, "shares": self.shares}
        return RegressionResult(**result)

    def _descent(self, ground: FitGround[PublicResponse]) -> Descent:
        family = self.newton.model.family(ground)
        if not isinstance(family, LinearFamily):
            raise TypeError("a descent is for linear regressions")
        return Descent(
            ground.coding,
            ground.coordinates,
            family,
            self.budget,
            self.newton.sizes.of(ground.coding.size),
            ground.start,
        )


def plan_gradient_descent(
    facts: DatasetFacts, design: Design, query: LinearRegression, rho: int
) -> GradientDescentPlan:
    """Plans a descent at `rho` (RHO_UNITS), on the ground and with the rounds that noisy Newton
    would have.
    """
    if isinstance(query.tuning, str):
        raise InvalidQuery(
            'tuning="planned" is for mechanism="newton"; leave it out or give a number.'
        )
    newton = plan_linear_regression(facts, design, query, rho)
    own, rounds = newton.own_profile, newton.budget.rounds
    left = rho - (own.rho if own else 0) - sum(r for r, _ in rounds) - newton.budget.count
    jacobian, meat, scales = (int(share * rho) for share in (_JACOBIAN, _MEAT, _SCALES))
    scale = scales // len(SCALES_AFTER)
    gradient = (left - jacobian - meat - scale * len(SCALES_AFTER)) // STEPS
    budget = DescentBudget(rounds, gradient, scale, jacobian, meat, newton.budget.count)
    return GradientDescentPlan(newton, budget)
