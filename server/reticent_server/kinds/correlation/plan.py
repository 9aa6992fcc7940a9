# SPDX-License-Identifier: Apache-2.0
"""Spearman's correlation: one Gram sum of (a, z), z the record's pair of scores.

Privacy. ‖z‖ ≤ b, a public number of the scores, and the primitive enforces the norm √(a² + b²) of a
contribution: one GramSum, Δ = √2(a² + b²). Proof: mechanisms.noisy_sum.

With N, S, Q the released number, sums and products, C = Q_xy − S_xS_y/N, v_x = Q_xx/N − (S_x/N)²,
r = C/(N√(v_xv_y)). Noise, s on the diagonal and s/√2 off it: of C
η = s²/2·(1 + (m_x² + m_y²)/a²) + s²m_x²m_y²/a⁴, m = S/N; of a v, τ = s/N. Test:
z = C/√(Nv_xv_y + η), whose sampling part holds for independent columns of any law. Interval: the r₀
that (r − r₀)² ≤ z²(spread(r₀)/N + (η/(v_xv_y) + r₀²s²(v_x⁻² + v_y⁻²)/4)/N²) does not refuse; spread
is that of normal pairs, as of Fisher's interval. Variances are drawn to what public facts lead to
expect where noise hides them, as those of kinds.shared.group_means.

Everything but the Gram sum is post-processing. Sources: Fisher (1921); Bonett & Wright (2000).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Planned, Recipe
from reticent_server.domain.precision import ForecastPrecision, single
from reticent_server.domain.steps import (
    Block,
    FloatArray,
    GramSum,
    Released,
    SumStep,
)
from reticent_server.fitting.normal import half_width
from reticent_server.fitting.results import Interval
from reticent_server.kinds.correlation.result import CorrelationQuestion, CorrelationResult
from reticent_server.kinds.correlation.scores import Grades
from reticent_server.kinds.shared.named_tests import normal_p_value
from reticent_server.mechanisms import noisy_sum
from reticent_server.mechanisms.quantise import exactly
from reticent_server.numerics.evaluate import in_use

A = 0.5  # of (a, z): N enters by the means alone, which are near 0, and noise grows as a² + 1
_GRID = np.linspace(-1, 1, 4001)  # correlations that an interval is looked for among
_LEAST_VARIANCE = 1e-6  # of what is expected: a column that hardly varies divides by no zero


@dataclass(frozen=True, slots=True)
class CorrelationMap:
    """(3, rows) (a, z) of a record in use."""

    design: Design
    scores: Grades

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        used = in_use(self.design, block)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            z = np.where(used, self.scores.of(block), 0.0)
        return (np.concatenate([np.where(used, A, 0.0)[None, :], z]),)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreMoments:
    """Released: N, C, variances v (2,) drawn to what is expected, and the noise: η of C, s of an
    entry."""

    N: float
    C: float
    v: FloatArray
    eta: float
    s: float

    @property
    def r(self) -> float:
        """The correlation of the scores, within ±1."""
        return float(np.clip(self.C / (self.N * sqrt(self.v[0] * self.v[1])), -1.0, 1.0))

    def noise(self, r: FloatArray) -> FloatArray:
        """The variance of r's noise where r is the correlation."""
        own = self.eta / (self.v[0] * self.v[1])
        return np.asarray((own + r**2 * self.s**2 * (self.v**-2.0).sum() / 4) / self.N**2)


def moments(released: Released, expected_variance: float) -> ScoreMoments:
    """The moments of the released Gram sum of a CorrelationMap."""
    G, s = released.values, released.sd
    N = max(float(G[0, 0]) / A**2, 1.0)
    m = np.clip(G[0, 1:] / A / N, -1.0, 1.0)
    v = np.diagonal(G)[1:] / N - m**2
    tau2 = (s / N) ** 2
    v = v + tau2 / (tau2 + expected_variance**2) * (expected_variance - v)
    v = np.clip(v, expected_variance * _LEAST_VARIANCE, 1.0)
    eta = s**2 / 2 * (1 + float(m @ m) / A**2) + s**2 * float(m[0] * m[1]) ** 2 / A**4
    return ScoreMoments(N, float(G[1, 2] - N * m[0] * m[1]), v, eta, s)


@dataclass(frozen=True, slots=True)
class CorrelationPlan(Planned):
    """A planned correlation of scores."""

    deadline_shares: ClassVar = (0.04, 0.04)

    design: Design
    scores: Grades
    part: GramSum
    asked: CorrelationQuestion
    n: int

    @property
    def outline(self) -> Outline:
        return Outline(
            columns=self.design.columns,
            rho=self.part.rho,
            mechanism="discrete Gaussian sums",
            reference="Canonne, Kamath & Steinke (2020)",
            parts=(self.part,),
            gaussian_counts=(),
        )

    @property
    def precision(self) -> ForecastPrecision:
        """The expected precision of a correlation near 0."""
        return single(
            "correlation", float(self.forecast["privacy_standard_error"]), 1 / sqrt(self.n)
        )

    @property
    def forecast(self) -> Mapping[str, Any]:
        """The privacy standard error of a correlation near 0, every record in use."""
        noise = noisy_sum.noise_sd(self.part) / sqrt(2)
        return {"privacy_standard_error": noise / (self.n * self.scores.expected_variance)}

    def run(self) -> Recipe:
        """1. Moments of the scores. 2. The correlation, its test and its interval."""
        (released,) = yield SumStep(
            "moments", (self.part,), CorrelationMap(self.design, self.scores)
        )
        score_moments = moments(released, self.scores.expected_variance)
        z = score_moments.C / sqrt(
            score_moments.N * score_moments.v[0] * score_moments.v[1] + score_moments.eta
        )
        r = np.asarray(score_moments.r)
        noise = float(score_moments.noise(r))
        return CorrelationResult(
            statistic=float(z),
            p_value=normal_p_value(float(z), self.asked.alternative),
            effect=score_moments.r,
            effect_interval=self._interval(score_moments),
            confidence_level=self.asked.confidence_level,
            estimand=self.scores.estimand,
            method=self.scores.method,
            standard_error=sqrt(float(self.scores.spread(r)) / score_moments.N + noise),
            privacy_standard_error=sqrt(noise),
            number=float(released.values[0, 0]) / A**2,
            n=self.n,
        )

    def _interval(self, score_moments: ScoreMoments) -> Interval:
        """From the least to the largest correlation that is not refused."""
        z = half_width(1.0, self.asked.confidence_level)
        variance = self.scores.spread(_GRID) / score_moments.N + score_moments.noise(_GRID)
        kept = _GRID[(score_moments.r - _GRID) ** 2 <= z**2 * variance]
        return min(score_moments.r, float(kept.min(initial=1.0))), max(
            score_moments.r, float(kept.max(initial=-1.0))
        )


def plan_moments(
    facts: DatasetFacts, design: Design, scores: Grades, asked: CorrelationQuestion, rho: int
) -> CorrelationPlan:
    """A correlation of scores at `rho` (RHO_UNITS); design: mask and columns only."""
    part = GramSum(3, sqrt(A * A + scores.norm**2), rho, facts.schema.unit.max_rows)
    return CorrelationPlan(design, scores, exactly(part, A), asked, facts.n)
