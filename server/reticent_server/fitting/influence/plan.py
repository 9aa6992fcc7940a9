# SPDX-License-Identifier: Apache-2.0
"""A planned M-estimate by `influence`, calibrated by propose–test–release.

1. A pilot, a noisy Newton fit at 30 % of ρ, releases a point θ₀, the residual scale σ, the
   whitening W, and the Jacobian and meat at θ₀.
2. The exact fit ϑ of the same estimating equation at that σ and W, relative to θ₀, in whitened
   coordinates.
3. A private choice of a least curvature m, one test that the curvature around ϑ is above m for all
   tables nearby, and Gaussian noise in proportion to the influence function's bound K/m; or No
   Reply.

Privacy (unconditional; neighbours replace one row): the pilot is ρ_p-zCDP (fitting.fit_plan); steps
2 and 3 are a ColumnPart that is δ₁-approximately (ρ − ρ_p)-zCDP given the pilot
(mechanisms.convex_fit). Their adaptive composition is δ₁-approximately ρ-zCDP, hence (ε, δ)-DP.

The sampling part of the covariance is the pilot's sandwich, of released matrices, at the same σ and
W; the privacy part is the noise of step 3, σ² sd² WᵀW, known exactly. Nothing else is computed from
the table.

Source: Avella-Medina (2021), eq. (3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.columns import ConvexFit
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import ColumnStep, FloatArray, Released
from reticent_server.fitting.influence.maps import (
    NANOSECONDS,
    InfluenceMap,
    Pilot,
    PilotPoint,
    forecast_ratios,
    notes,
)
from reticent_server.fitting.influence.settings import LARGEST_FLOOR
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.mechanisms import convex_fit, ptr


@dataclass(frozen=True, slots=True)
class InfluencePlan(Planned):
    """A planned fit by influence."""

    deadline_shares: ClassVar = (0.1, 0.1)

    pilot: Pilot
    part: ConvexFit
    offer: PrivacyCost

    @property
    def outline(self) -> Outline:
        rho = self.pilot.rho + convex_fit.cost(self.part).rho
        return Outline(
            answers=self.pilot.answers,
            columns=self.pilot.columns,
            rho=rho,
            mechanism="exact M-estimate with noise by its influence bound, propose-test-release",
            reference="Avella-Medina (2021), section 4; Dwork & Lei (2009)",
            passes=self.pilot.passes + 1,
            column_ms=self._column_ms,
            draws=self.pilot.draws,
            steady=False,
            # (ε, δ) as asked for; δ₁-approximately ρ-zCDP
            own_cost=PrivacyCost(self.offer.epsilon, self.offer.delta, rho, self.part.delta),
        )

    @property
    def _column_ms(self) -> int:
        """The solver's public number of steps, curvatures for the bisections, and the pilot's
        own.
        """
        n, q = self.n, self.part.size
        steps = sum(convex_fit.problem_of(self.part, n).steps)
        curvatures = 10 * len(self.part.floors) * q
        work = n * (q + 8) * (steps + curvatures) * NANOSECONDS[self.part.loss]
        return self.pilot.column_ms + 100 + ceil((work + 50_000 * steps) / 10**6)

    @property
    def n(self) -> int:
        """The public number of records."""
        return self.pilot.facts.n

    @property
    def likely_floor(self) -> float:
        """The largest m that a well-conditioned design would have, with room for the test; 0:
        none.
        """
        problem = convex_fit.problem_of(self.part, self.n)
        needed = ptr.threshold(self.part.epsilon_test, self.part.delta)
        loss_by_k = problem.largest_curvature / problem.n + 2 * problem.eigenvalue_error
        expected = self.part.floors[0] / LARGEST_FLOOR
        for m in self.part.floors:
            moved = self.part.slack + needed * convex_fit.sensitivity(problem, m)
            width = 1 - moved * sqrt(self.part.size) / (self.part.tuning or 1.0)
            if m + needed * loss_by_k <= 0.85 * expected * max(width, 0.0):
                return m
        return 0.0

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the coefficients; none where a reply is not likely."""
        known = self.forecast
        ratios = [r if known["reply_likely"] else None for r in known["privacy_to_sampling"]]
        return from_ratios(known["terms"], ratios)

    @property
    def forecast(self) -> Mapping[str, Any]:
        """Shares of ρ, the margin that a reply needs, whether one is likely, and for each
        coefficient the expected privacy over its sampling standard error.
        """
        m = self.likely_floor
        noise = convex_fit.noise_sd(self.part, self.n, m or min(self.part.floors))
        pilot = self.pilot.forecast_fit
        scale = pilot.scale if self.part.loss == "huber" else 1.0
        return {
            "tuning": self.part.tuning or None,
            "steps": sum(convex_fit.problem_of(self.part, self.n).steps),
            "notes": notes(self.pilot),
            "shares": self.shares,
            "margin_needed": ptr.threshold(self.part.epsilon_test, self.part.delta),
            "reply_likely": m > 0,
            "terms": list(self.pilot.design.names),
            "privacy_to_sampling": forecast_ratios(self.pilot, pilot, scale * noise).tolist(),
        }

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        pilot, whole = self.pilot.rho, self.rho
        tests = convex_fit.cost(self.part).rho - self.part.rho_release
        release = self.part.rho_release
        return {"pilot": pilot / whole, "tests": tests / whole, "release": release / whole}

    def run(self) -> Recipe:
        """The pilot, and one step of whole columns; None where the test of safety does not pass."""
        ground, fitted = yield from self.pilot.fitted()
        scale = fitted.scale if self.part.loss == "huber" else 1.0
        point = PilotPoint(fitted.theta, scale, fitted.transform, self.part.radius_squared)
        records = InfluenceMap(ground.coding, point, self.part.loss)
        (measured,) = yield ColumnStep("influence", (self.part,), records)
        if not measured.passed:
            return None
        result = self.pilot.result(ground, _moved(fitted, scale * fitted.transform.T, measured))
        released = {
            "calibration": "ptr",
            "least_curvature": float(measured.values[-1]),
            "shares": self.shares,
        }
        return RegressionResult(**(result | released))


def _moved(fitted: StandardFit, back: FloatArray, released: Released) -> StandardFit:
    """θ₀ + backᵀϑ with the noise of the release. A reply certifies that all is estimable."""
    return replace(
        fitted,
        theta=fitted.theta + back @ released.values[:-1],
        privacy=released.sd**2 * back @ back.T,
        directions=replace(fitted.directions, resolved=np.ones(len(fitted.theta), bool)),
    )
