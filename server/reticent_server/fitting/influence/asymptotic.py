# SPDX-License-Identifier: Apache-2.0
"""A planned M-estimate by `influence` with the asymptotic calibration: conditional, noisy, always
replies.

1. A pilot, a noisy Newton fit at (ε/4, δ/4), as in fitting.influence.plan.
2. The exact fit around it with noise of the scale K/λ_min(M_n) · 5√(2 ln n ln(2/δ))/(εn), at
   (11ε/20, δ/2).
3. A p-value of each coefficient with noise by its own influence; all of them share (ε/5, δ/4).

Steps 2 and 3 are a ColumnPart (mechanisms.asymptotic_fit), private under the assumptions that the
guarantee names; the noise's scale is not returned. Standard errors are made of the pilot's
releases: its sandwich, and the noise of step 2 at the curvature that the pilot released; `p_values`
and intervals are made of them and of the coefficients, as in any fit. The p-values of step 3 are
`noisy_p_values`: their own noise is not shown, and is large. `noisy_p_intervals` are made of these
and the coefficients alone, which is post-processing of two releases:

    β̃ ± z se~,   se~ = |β̃|/√(H₁⁻¹(1 − p̃)),   H₁ the law of χ²₁, p̃ moved inside (0, 1)

Source: Avella-Medina (2021), Theorems 1 and 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from reticent_server.accounting.conversions import max_rho
from reticent_server.domain.columns import AsymptoticFit
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, from_ratios
from reticent_server.domain.steps import ColumnStep, FloatArray
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.influence.maps import (
    NANOSECONDS,
    InfluenceMap,
    Pilot,
    PilotPoint,
    forecast_ratios,
    notes,
)
from reticent_server.fitting.influence.settings import FLOORS, LARGEST_FLOOR, REACH, SLACK
from reticent_server.fitting.influence.whole import too_few
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.report import back_transform
from reticent_server.fitting.results import Interval, RegressionResult
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.mechanisms import asymptotic_fit
from reticent_server.numerics.smooth_p_value import noise_factor, smoothness

ASSUMPTIONS = (
    "Conditions 1 to 3 of Avella-Medina (2021) hold for the table and for all tables nearby.",
    "Among them: the mean Hessian is smooth and bounded away from zero around the solution.",
    "The number of records is beyond the n0 of Theorem 1.",
    "The solution lies within the planned distance of the pilot fit.",
)
SCALE_NOTE = (
    "Standard errors count the privacy noise at the curvature that the pilot released; the "
    "noise's own "
    "scale depends on the data and is not shown."
)
# of ε, the fit gets the other 11: more for the pilot makes standard errors surer and the fit
# noisier
_TWENTIETHS = {"pilot": 5, "p_values": 4}
# of p̃, whose quantile at 0 or 1 is infinite: the shortest and the widest interval that is told
_INSIDE = 1e-12, 0.999


@dataclass(frozen=True, slots=True)
class AsymptoticPlan(Planned):
    """A planned fit. part: its contrasts are those of the pilot's start."""

    pilot: Pilot
    pilot_cost: PrivacyCost
    part: AsymptoticFit

    @property
    def outline(self) -> Outline:
        own_cost = self.pilot_cost + asymptotic_fit.cost(self.part)
        return Outline(
            answers=self.pilot.answers,
            columns=self.pilot.columns,
            rho=own_cost.rho,
            mechanism="exact M-estimate and p-values with noise by their influence, asymptotic",
            reference="Avella-Medina (2021), Theorems 1 and 4",
            passes=self.pilot.passes + 1,
            column_ms=self._column_ms,
            steady=False,
            assumptions=ASSUMPTIONS,
            own_cost=own_cost,
        )

    @property
    def n(self) -> int:
        """The public number of records."""
        return self.pilot.facts.n

    @property
    def _column_ms(self) -> int:
        steps = sum(asymptotic_fit.problem_of(self.part, self.n).steps) + 20 * self.part.size
        work = self.n * (self.part.size + 8) * steps * NANOSECONDS[self.part.loss]
        return self.pilot.column_ms + 100 + ceil((work + 50_000 * steps) / 10**6)

    @property
    def precision(self) -> ForecastPrecision:
        """Forecast precision of the coefficients."""
        return from_ratios(self.forecast["terms"], self.forecast["privacy_to_sampling"])

    @property
    def forecast(self) -> Mapping[str, Any]:
        """For each coefficient the expected privacy over its sampling standard error."""
        pilot = self.pilot.forecast_fit
        curvature = self.part.floor * 2 ** ((FLOORS[self.part.loss] - 1) / 2)
        scale = pilot.scale if self.part.loss == "huber" else 1.0
        ratios = forecast_ratios(self.pilot, pilot, scale * self._noise(curvature))
        return {
            "tuning": self.part.tuning or None,
            "notes": [*notes(self.pilot), SCALE_NOTE],
            "terms": list(self.pilot.design.names),
            "privacy_to_sampling": ratios.tolist(),
        }

    def _noise(self, curvature: float) -> float:
        part = self.part
        problem = asymptotic_fit.problem_of(part, self.n)
        amounts = part.epsilon_fit / EPSILON_UNITS, part.delta_fit / DELTA_UNITS
        return problem.score_bound / max(curvature, part.floor) * noise_factor(self.n, *amounts)

    def run(self) -> Recipe:
        """The pilot, and one step of whole columns."""
        ground, fitted = yield from self.pilot.fitted()
        scale = fitted.scale if self.part.loss == "huber" else 1.0
        start, back = fitted.theta, scale * fitted.transform.T
        point = PilotPoint(start, scale, fitted.transform, self.part.radius_squared)
        part = _contrasted(self.part, ground.coding, start, back)
        records = InfluenceMap(ground.coding, point, self.part.loss)
        (released,) = yield ColumnStep("influence", (part,), records)
        sd = self._noise(float(np.linalg.eigvalsh(fitted.curvature)[0]))
        q = len(start)
        moved = replace(
            fitted, theta=start + back @ released.values[:q], privacy=sd**2 * back @ back.T
        )
        return self._described(ground, moved, released.values[q:])

    def _described(
        self, ground: FitGround[Any], moved: StandardFit, p_values: FloatArray
    ) -> RegressionResult:
        result = self.pilot.result(ground, moved)
        result["warnings"].append(SCALE_NOTE)
        noisy = [float(p) for p in p_values]
        intervals = p_intervals(result["coefficients"], noisy, self.pilot.level)
        return RegressionResult(
            **result,
            noisy_p_values=noisy,
            noisy_p_intervals=intervals,
            calibration="asymptotic",
        )


def p_intervals(beta: Sequence[float], noisy: Sequence[float], level: float) -> list[Interval]:
    """β̃ ± z|β̃|/√(H₁⁻¹(1 − p̃)) of coefficients β̃ and their noisy p-values p̃: (low, high) of
    each.
    """
    b, p = np.array(beta), np.clip(noisy, *_INSIDE)
    half = ndtri((1 + level) / 2) * np.abs(b) / -ndtri(p / 2)
    return [(float(low), float(high)) for low, high in zip(b - half, b + half, strict=True)]


def _contrasted(
    part: AsymptoticFit, coding: Coding, start: FloatArray, back: FloatArray
) -> AsymptoticFit:
    """The part with the contrasts β_j = (L back)_j ϑ + (Lθ₀ + o)_j of the reported coefficients."""
    linear = back_transform(coding)
    contrasts = tuple(tuple(map(float, row)) for row in linear.matrix @ back)
    offsets = tuple(map(float, linear.coefficients(start)))
    return replace(part, contrasts=contrasts, offsets=offsets)


def split(offer: PrivacyCost) -> tuple[PrivacyCost, PrivacyCost]:
    """What the pilot costs, and (ε, δ) of all p-values."""
    epsilon = offer.epsilon * _TWENTIETHS["pilot"] // 20
    delta = offer.delta // 4
    pilot = PrivacyCost(epsilon, delta, max_rho(epsilon, delta))
    return pilot, PrivacyCost(offer.epsilon * _TWENTIETHS["p_values"] // 20, delta, 0)


def asymptotic_plan(
    pilot: Pilot,
    loss: Literal["huber", "logistic"],
    tuning: float,
    curvature: float,
    offer: PrivacyCost,
) -> AsymptoticPlan:
    """Plans around a pilot at split(offer)[0]. Raises InvalidQuery where n is too small for the
    theory.
    """
    pilot_cost, tests = split(offer)
    q = pilot.sizes.size
    part = AsymptoticFit(
        loss=loss,
        tuning=tuning,
        size=q,
        radius_squared=pilot.sizes.radius_squared,
        floor=LARGEST_FLOOR * curvature * 2 ** (-(FLOORS[loss] - 1) / 2),
        reach=REACH,
        slack=SLACK,
        contrasts=((0.0,) * q,) * q,
        offsets=(0.0,) * q,
        epsilon_fit=offer.epsilon - pilot_cost.epsilon - tests.epsilon,
        delta_fit=offer.delta - pilot_cost.delta - tests.delta,
        epsilon_test=max(tests.epsilon // q, 1),
        delta_test=max(tests.delta // q, 1),
    )
    _check_records(part, pilot.facts.n, curvature)
    cost = replace(pilot_cost, rho=pilot.rho)
    return AsymptoticPlan(pilot, cost, part)


def _check_records(part: AsymptoticFit, n: int, curvature: float) -> None:
    """B/(nλ) ≤ β/2 at the curvature λ of a well-conditioned design."""
    epsilon, delta = part.epsilon_fit / EPSILON_UNITS, part.delta_fit / DELTA_UNITS
    beta = smoothness(part.size, epsilon, delta)
    B = asymptotic_fit.problem_of(part, n).largest_curvature
    too_few(B / (n * curvature), beta)
