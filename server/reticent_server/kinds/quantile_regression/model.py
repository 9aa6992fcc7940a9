"""Quantile regression at one τ: the model of a planned fit (fitting.fit_plan)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from scipy.special import ndtri

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.budget import Signal, Sizes
from reticent_server.fitting.coding import Coding, Location
from reticent_server.fitting.fit_plan import Ground
from reticent_server.fitting.recipe import StandardFit
from reticent_server.kinds.linear_regression.response import PublicResponse, public_response
from reticent_server.kinds.quantile_regression.score import QuantileFamily, QuantileScore

RADIUS = 0.8  # R²/q
_LEAST_BANDWIDTH = 0.15
_JACOBIAN_NOISE = 0.35
_JACOBIAN_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class QuantileModel:
    tau: float
    bandwidth: float = 0.3
    mechanism: str = "noisy Newton (smoothed check loss), discrete Gaussian sums"
    reference: str = "Fernandes, Guerre & Horta (2021); Avella-Medina, Bradshaw & Loh (2023)"

    @property
    def radius(self) -> float:
        return RADIUS

    @property
    def tuning(self) -> float | None:
        return None

    @property
    def nanoseconds(self) -> int:
        return 30

    def check(self, response: Term) -> None:
        """Any response will do."""

    def response(self, term: Term, values: FloatArray) -> PublicResponse:
        return public_response(term, values)

    def location(self, response: PublicResponse, *, intercept: bool) -> Location:
        return response.location if intercept else Location(0.0, response.location.scale)

    def level(self, response: PublicResponse, *, intercept: bool) -> float:
        if intercept:
            return float(ndtri(self.tau))
        return response.location.centre / response.location.scale

    def tuned(self, sizes: Sizes, rho: int, response: PublicResponse) -> "QuantileModel":  # noqa: ARG002
        return replace(self, bandwidth=planned_bandwidth(sizes, rho, self.tau))

    def family(self, ground: Ground[PublicResponse]) -> QuantileFamily:
        return QuantileFamily(self.tau, self.bandwidth, ground.spread)

    def signal(self, ground: Ground[PublicResponse]) -> Signal:
        score = QuantileScore(self.tau, self.bandwidth, 1.0, fine=True)
        return Signal(
            score.bound,
            float(score._density(FloatArray_one)[0]),
            scaled=True,
            curvature_bound=score.curvature_bound,
        )

    def notes(self, ground: Ground[PublicResponse]) -> list[str]:
        return []

    def adjusted(self, coding: Coding, fit: StandardFit) -> StandardFit:
        return fit

    def described(
        self,
        ground: Ground[PublicResponse],
        fit: StandardFit,
        radius_squared: float,
        found: Mapping[str, Any],
    ) -> dict[str, Any]:
        return {"scale": fit.scale * ground.coding.response_location.scale, "estimand": "x"}


import numpy as np

FloatArray_one = np.ones(1)


def planned_bandwidth(sizes: Sizes, rho: int, tau: float) -> float:
    q, n = sizes.size, sizes.expected_n
    R2 = RADIUS * q
    density = QuantileScore(tau, 0.5, 1.0, fine=True)._density(FloatArray_one)[0]
    kappa = replace(sizes, radius_squared=R2).mean_norm
    noise = sqrt(2) * R2 * 0.399 * sizes.unit_rows / sqrt(2 * _JACOBIAN_SHARE * rho / RHO_UNITS)
    jac = noise * sqrt(q) / (n * kappa * density * _JACOBIAN_NOISE)
    return float(min(max(_LEAST_BANDWIDTH, (q / n) ** (2 / 9), jac), 1.5))
