# SPDX-License-Identifier: Apache-2.0
"""Quantile regression at one τ: the model of a planned fit (fitting.fit_plan).

Constants, relative to residual scales s and to q coefficients:

    R² = .8q … 8q  the noise that a record's leverage adds is R times the score's bound; Koenker's
                   weights are 1. The widest at which the noise is forecast below .35 of the
                   sampling error (6 % of an interval's width) and the bandwidth need not grow
    b              max(.15, (q/n)^{2/9}, the width at which the Jacobian's noise is .35 of what it
                   measures)

The exponent is that of a kernel of the fourth order; .3 in place of .15 left the intercept of
skewed errors wrong by more than its error at n = 20,000.

Source: Fernandes, Guerre & Horta (2021); Koenker (2005), section 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from scipy.special import ndtri

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.fitting import trust
from reticent_server.fitting.budget import Signal, Sizes
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.heavy_terms import lost_shares
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.kinds.quantile_regression.score import QuantileFamily, QuantileScore
from reticent_server.kinds.shared.answers import ROBUST_QUANTILES
from reticent_server.kinds.shared.linear.response import (
    PublicResponse,
    ResponseModel,
)

RADII = (0.8, 1.2, 1.8, 2.7, 4.0, 6.0, 8.0)
"""R²/q, of which one is planned. On 54,875 wages weights move the slope of schooling by 26 standard
errors of QuantReg at .8, 3.4 at 3, .4 at 6 and .2 at 8; on houses with logarithms every slope by
less than .2 from 4 on.
"""
_FELT = 0.35  # forecast noise over sampling error
_BORNE = 1.0  # the same, where narrower weights take much of a term
_LAST_STEP = 0.5  # of ρ, for the last step's gradient: about what fitting.budget plans
_LEAST_BANDWIDTH, _MOST_BANDWIDTH = 0.15, 1.5  # residual scales; wider, the solution is no quantile
_FOURTH_ORDER = 2 / 9  # exponent of q/n: smoothing's bias b⁴ below the sampling error
_JACOBIAN_NOISE = 0.35  # of what it measures
_JACOBIAN_SHARE = 0.08  # of ρ, as fitting.budget plans it
_NANOSECONDS = 30  # of a record's score: a normal distribution function


@dataclass(frozen=True, slots=True)
class QuantileModel(ResponseModel):
    """At the level τ; satisfies fitting.fit_plan.Model. bandwidth: b, planned from public sizes.
    weighted: whether records count by their weights.
    """

    tau: float
    bandwidth: float = _LEAST_BANDWIDTH
    radius: float = RADII[0]
    weighted: bool = False
    leaves_out: bool = True
    mechanism: str = "noisy Newton (smoothed check loss), discrete Gaussian sums"
    reference: str = "Fernandes, Guerre & Horta (2021); Avella-Medina, Bradshaw & Loh (2023)"

    @property
    def answers(self) -> str:
        """The sentence for quantiles with bounded leverage."""
        return ROBUST_QUANTILES

    @property
    def tuning(self) -> float | None:
        """None: residuals are not cut."""
        return None

    @property
    def nanoseconds(self) -> int:
        """Of Φ and φ, of each record."""
        return _NANOSECONDS

    def level(self, response: PublicResponse, *, intercept: bool) -> float:
        """The τ-quantile of a normal response."""
        centre = 0.0 if intercept else response.location.centre / response.location.scale
        return centre + float(ndtri(self.tau))

    def tuned(self, sizes: Sizes, rho: int, ground: FitGround[PublicResponse]) -> "QuantileModel":
        """With the radius and the bandwidth for the smallest error, always."""
        radius = planned_radius(sizes, rho, self.tau, heavy_below(ground, sizes.size))
        return replace(
            self, radius=radius, bandwidth=planned_bandwidth(sizes, rho, self.tau, radius)
        )

    def family(self, ground: FitGround[PublicResponse]) -> QuantileFamily:
        """The smoothed scores at τ and the bandwidth."""
        return QuantileFamily(self.tau, self.bandwidth, ground.spread, self.weighted)

    def signal(self, ground: FitGround[PublicResponse]) -> Signal:  # noqa: ARG002 - one interface
        """Bound and expected curvature of the score at the last bandwidth."""
        score = QuantileScore(self.tau, self.bandwidth, 1.0, fine=True)
        bound = score.curvature_bound
        rms = sqrt(self.tau * (1 - self.tau))
        return Signal(
            score.bound, score.density, scaled=True, curvature_bound=bound, rms=rms, skewed=True
        )

    def notes(self, ground: FitGround[PublicResponse]) -> list[str]:
        """What is to be said where many responses have one value."""
        return list(trust.quantiles(ground.response.tie).sentences)

    def adjusted(self, coding: Coding, fit: StandardFit) -> StandardFit:  # noqa: ARG002 - one interface
        """The fit itself."""
        return fit

    def described(
        self,
        ground: FitGround[PublicResponse],
        fit: StandardFit,
        radius_squared: float,
        result: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Its level and bandwidth; without intervals where too many responses are equal
        (fitting.trust).
        """
        judged = trust.quantiles(ground.response.tie).applied(result)
        lost = lost_shares(ground.coding, ground.coordinates, radius_squared)
        moved = trust.heavy(lost)
        return {
            **judged,
            "warnings": [*judged["warnings"], *([moves(moved)] if moved else [])],
            "scale": fit.scale * ground.coding.response_location.scale,
            "estimand": self.estimand(radius_squared),
            "tau": self.tau,
            "bandwidth": self.bandwidth,
        }

    def estimand(self, radius_squared: float) -> str:
        """The target in words; with `weighting` of the reply it can be computed on any table."""
        return (
            f"Weighted regression quantile at {self.tau:g}, check loss smoothed over "
            f"{self.bandwidth:.3g} residual "
            f"scales; weights min(1, {radius_squared:g}/|Ax|^2) with the matrix A of `weighting`"
        )


def moves(names: list[str]) -> str:
    """What to say where much of a term's variance is downweighted."""
    return (
        f"Records far from the middle of {', '.join(names)} count less: where the model is an "
        "approximation the coefficients are "
        "those of the weighted fit, not of all records alike. A larger epsilon or a logarithm "
        "brings them nearer."
    )


def heavy_below(ground: FitGround[PublicResponse], size: int) -> float:
    """The narrowest R²/q at which no term is heavy, by public rows: 0 or one of RADII, the widest
    where terms are heavy at all of them.
    """
    for radius in RADII:
        if not trust.heavy(lost_shares(ground.coding, ground.coordinates, radius * size)):
            return radius
    return RADII[-1]


def planned_radius(sizes: Sizes, rho: int, tau: float, heavy: float = 0.0) -> float:
    """R²/q for a fit at `rho` (RHO_UNITS); heavy: of heavy_below, up to which more noise is
    borne.
    """
    narrowest = planned_bandwidth(sizes, rho, tau, RADII[0])
    bound = QuantileScore(tau, 1.0, 1.0, fine=True).bound
    noise = 2 / sqrt(2 * _LAST_STEP * rho / RHO_UNITS)
    sampling = sqrt(sizes.expected_n * sizes.unequal * tau * (1 - tau))
    clips = {r: _sized(sizes, r, tau).gradient_clip(bound) for r in RADII}
    felt = max(_FELT * sampling / noise, clips[RADII[0]])
    borne = _BORNE * sampling / noise
    fine = [
        radius
        for radius in RADII
        if (clips[radius] <= felt and planned_bandwidth(sizes, rho, tau, radius) <= narrowest)
        or (clips[radius] <= borne and radius <= heavy)
    ]
    return max(fine, default=RADII[0])


def _sized(sizes: Sizes, radius: float, tau: float) -> Sizes:
    return replace(sizes, radius_squared=radius * sizes.size, rms=sqrt(tau * (1 - tau)))


def planned_bandwidth(sizes: Sizes, rho: int, tau: float, radius: float) -> float:
    """b for a fit at `rho` (RHO_UNITS) and R² = radius·q."""
    q, n = sizes.size, sizes.expected_n
    sized = replace(sizes, radius_squared=radius * q)
    flat = QuantileScore(tau, 1.0, 1.0, fine=True)  # its slope's bound, for one unit of b
    jacobian = sqrt(2) * sized.radius_squared * flat.curvature_bound * sizes.unit_rows
    noise = jacobian * sqrt(q) / sqrt(2 * _JACOBIAN_SHARE * rho / RHO_UNITS)
    signal = n * sized.mean_norm * QuantileScore(tau, _JACOBIAN_NOISE, 1.0, fine=True).density
    smooth = (q * sizes.unequal / n) ** _FOURTH_ORDER  # (Σa)²/Σa² records have as much sampling
    widest = max(_LEAST_BANDWIDTH, smooth, noise / (signal * _JACOBIAN_NOISE))
    return float(min(widest, _MOST_BANDWIDTH))
