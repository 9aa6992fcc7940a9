# SPDX-License-Identifier: Apache-2.0
"""How well a released fit describes its records: R² and the residual standard deviation, from one
further step.

After the fit a tenth of ρ releases the Gram sum of v = (½, a, b) over the records in use:

    a = clip((y − centre)/A)     the response on a public range: three public scales on each side;
                                 0/1 responses whole
    b = clip(r/B)                the residual y − μ on three released residual scales on each side;
                                 of 0/1 responses B = 1

so with G = Σ v vᵀ, N = 4G₀₀, k = G₀₁/G₀₀ and D = G₁₁ − k² G₀₀

    R² = 1 − (B²/A²) G₂₂/D,   σ² = B² G₂₂/(N − q),   adjusted R² = 1 − (1 − R²)(N − 1)/(N − q)

with the intercept among the q coefficients. For 0/1 responses this is Efron's (1978) R².

Privacy: |a|, |b| ≤ 1, so ‖v‖² ≤ 9/4 and one GramSum of clip 3/2 (mechanisms.noisy_sum: Δ =
√2·9m/4). A and centre are public, B and the fit released before; a record out of use contributes 0.
The fit's steps and this one compose by zCDP.

Noise: s on the diagonal, s/√2 off it, so by the delta method, s²-fold,

    Var D = 1 + 2k² + k⁴,    Var R² = (1 − R²)² (1/G₂₂² + Var D/D²)

and sampling adds 4R²(1 − R²)²/N for normal errors (Olkin & Finn 1995) to a linear model's, where
each row is a unit. An interval is given where D and G₂₂ are above three standard deviations of
their noise. Where many residuals or responses are beyond the ranges, R² is that of what was
clipped.

What is left out: information criteria, as N ln σ² has the noise of N s/G₂₂, tens of units where a
difference of two matters.
"""

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import sqrt
from typing import TypeVar

import numpy as np

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Recipe
from reticent_server.domain.steps import (
    Block,
    FloatArray,
    GramSum,
    Released,
    Step,
    SumStep,
)
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.fit_plan import PlannedOnFit
from reticent_server.fitting.maps import FitState, on_lattice, predictor, response, standardised
from reticent_server.fitting.normal import CONFIDENCE, normal_interval
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.results import FitStatistics, RegressionResult
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.trust import clear
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import in_use

SHARE = 10  # of ρ, one part for the statistics
_REACH = 3.0  # scales on each side: .3 % of normal residuals are beyond, with .5 % of their squares
_CONSTANT = 0.5  # of v: at 1 the noise of squares is a third larger, at less a mean is poorly known
_CLIP = sqrt(_CONSTANT**2 + 2)
_MICROSECONDS = 0.03  # of a record: its predictor again
ResponseT = TypeVar("ResponseT")


@dataclass(frozen=True, slots=True, eq=False)
class FitMomentsMap:
    """(3, rows) v; whole: whether responses are 0 or 1. reach: of the response, of the residual, in
    standardised units.
    """

    coding: Coding
    point: FitState
    reach: tuple[float, float]
    whole: bool

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            eta = predictor(self.point, self.coding, standardised(self.coding, block), block)
            y = response(self.coding, block)
            r = self.point.score.evaluate(y, eta) if self.whole else y - eta
            centre = 0.5 if self.whole else 0.0
            v = np.stack(
                [np.full(block.rows, _CONSTANT), (y - centre) / self.reach[0], r / self.reach[1]]
            )
            v = np.clip(v, -1.0, 1.0)
        if self.coding.design.masked:
            v = np.where(in_use(self.coding.design, block), v, 0.0)
        return (v,)


@dataclass(frozen=True, slots=True, eq=False)
class StatisticsPlan(PlannedOnFit[ResponseT]):
    """A planned fit with its statistics. whole: whether responses are 0 or 1."""

    part: GramSum
    whole: bool

    @property
    def outline(self) -> Outline:
        return replace(
            self.base.outlined,
            rho=self.plan.rho + self.part.rho,
            parts=(self.part,),
            passes=self.plan.passes + 1,
            column_ms=self.plan.column_ms + int(self.plan.facts.n * _MICROSECONDS / 1000),
        )

    def expected_ms(self, n: int) -> float:
        """The fit's, and one pass more."""
        return self.plan.expected_ms(n) + self.plan.timing.pass_ms(n)

    def run(self) -> Recipe:
        """The fit, then one step; always a reply."""
        ground, fit = yield from self.plan.fitted()
        statistics = yield from self._statistics(ground, fit)
        return RegressionResult(**self.plan.result(ground, fit), statistics=statistics)

    def _statistics(
        self, ground: FitGround[ResponseT], fit: StandardFit
    ) -> Generator[Step, tuple[Released, ...], FitStatistics]:
        reach = (0.5, 1.0) if self.whole else (_REACH, _REACH * fit.scale)
        score = self.plan.model.family(ground).score(fit.scale, 0)
        theta = on_lattice(fit.theta, ground.coding.size)
        sizes = self.plan.sizes.of(ground.coding.size)
        point = FitState(theta, fit.transform, sizes.radius_squared, score)
        rows = FitMomentsMap(ground.coding, point, reach, self.whole)
        (released,) = yield SumStep("fit statistics", (self.part,), rows)
        unit = reach[1] * ground.coding.response_location.scale
        ratio = (reach[1] / reach[0]) ** 2
        alone = (
            self.plan.facts.schema.unit.max_rows == 1
        )  # rows of a person do not vary by themselves
        linear = alone and not self.whole
        return statistics_of(released, ratio, unit, ground.coding.size, linear=linear)


def statistics_of(
    released: Released, ratio: float, unit: float, q: int, *, linear: bool
) -> FitStatistics:
    """From the released Gram matrix. ratio: B²/A². unit: B in the units of the data. q:
    coefficients.
    """
    G, s = released.values, released.sd
    N, squares = max(float(G[0, 0]) / _CONSTANT**2, q + 1.0), float(G[2, 2])
    k = float(np.clip(G[0, 1] / (N * _CONSTANT**2), -1 / _CONSTANT, 1 / _CONSTANT))
    spread = float(G[1, 1]) - N * (_CONSTANT * k) ** 2
    spread_sd = s * sqrt(1 + 2 * k**2 + k**4)
    sure = bool(clear(squares, s))
    known = sure and bool(clear(spread, spread_sd))
    sigma = unit * sqrt(max(squares, 0.0) / (N - q))
    if not known:
        return FitStatistics(residual_standard_deviation=sigma if sure else None)
    lost = ratio * squares / spread
    rsquared = min(max(1 - lost, 0.0), 1.0)
    privacy = lost * sqrt((s / squares) ** 2 + (spread_sd / spread) ** 2)
    sampling = 4 * rsquared * lost**2 / N if linear else 0.0
    error = sqrt(privacy**2 + sampling)
    return FitStatistics(
        rsquared=rsquared,
        rsquared_adjusted=1 - (1 - rsquared) * (N - 1) / (N - q),
        rsquared_privacy_standard_error=privacy,
        rsquared_interval=normal_interval(rsquared, error, 0.0, 1.0) if linear else None,
        confidence_level=CONFIDENCE if linear else None,
        residual_standard_deviation=sigma,
    )


def statistics_part(facts: DatasetFacts, rho: int) -> GramSum:
    """The part at a tenth of `rho` (RHO_UNITS)."""
    part = GramSum(3, _CLIP, max(1, rho // SHARE), facts.schema.unit.max_rows)
    return exactly(part, _CONSTANT)
