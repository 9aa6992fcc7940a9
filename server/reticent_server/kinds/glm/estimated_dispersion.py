# SPDX-License-Identifier: Apache-2.0
"""A negative binomial with its dispersion: the fit of kinds.glm, and a last step that measures α
with its error.

At the released coefficients θ̂ and the α₁ that the fit has come to, with χ and S as in
kinds.glm.dispersion_score and a the weight of a record (1 or its share; 0 where it is not in use):

    score     a χ                    |·| ≤ B = c + sup|m|       VectorSum  Δ = 2B
    spread    (a²χ²/B², a S/sup S)   ‖·‖ ≤ √2                   VectorSum  Δ = 2√2

    M(α̂ eᵈ) = X/(n k),   X = Σaχ, sd its noise,   k = Σ a S/(n S₁),
    se² = (Σa²χ² + sd²)/(n k M′)² + 2d² tr C²/(tr C)² + bᵀPb

M(α) is E χ where counts have the dispersion α, over the public rows' predictors, whose S is S₁;
M′ = dM/dln α at α̂. A straight line with the slope S in its place left α wrong by 5 % where α₁ is
off by a third, as it is at small ε.

d = ½ tr C E[∂²E χ/∂η̂²]/E S, over the public rows, is what the noise of the coefficients, C (q, q)
in u, adds to the dispersion: predictors that are off by N(0, v) look like counts with α + (1 + α)v.
b = E[x̃ ∂E χ/∂η̂]/E S is what is linear in their noise, of covariance P; what is linear in their
sampling error is left out: ∂E χ/∂θ = −E[χψᵀ], ψ the coefficients' scores (Bartlett), so that it
makes the variance smaller. The interval is that of ln α, and is given where S̄ is three standard
deviations of its noise above 0 and α̂ is above the least.

Privacy (unconditional; neighbours replace one record): each part's contributions are functions of
one record and of earlier releases; the primitives enforce the norms (mechanisms.noisy_sum). The
fit's steps (fitting.fit_plan) and this one compose by zCDP.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from math import exp, hypot, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.design import Design
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Outline, Recipe
from reticent_server.domain.steps import (
    Block,
    FloatArray,
    Part,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.errors import InvalidQuery
from reticent_server.fitting import trust
from reticent_server.fitting.coding import Coding
from reticent_server.fitting.fit_plan import PlannedOnFit, plan_fit
from reticent_server.fitting.maps import (
    FitState,
    on_lattice,
    predictor,
    response,
    standardised,
    used_shares,
)
from reticent_server.fitting.regression_model import FitGround
from reticent_server.fitting.results import RegressionResult
from reticent_server.fitting.standard_fit import StandardFit
from reticent_server.fitting.trust import clear
from reticent_server.kinds.glm.dispersion_score import DispersionScore, within
from reticent_server.kinds.glm.families.base import Start
from reticent_server.kinds.glm.families.estimated_dispersion import ESTIMATED
from reticent_server.kinds.glm.plan import asked_model
from reticent_server.kinds.glm.query import Glm
from reticent_server.numerics.families import NegativeBinomial

# of ρ: with .05 intervals of α were a fifth wider at n = 5,000, ε = 1, those of coefficients 3 %
# narrower
_SHARE = 0.10
_SCORE = 0.75  # of it, for χ: the other sums need to be known to a tenth only
_ROWS = 1024  # public rows of which predictors are made
_PLACES = 64  # of them that means are taken over
_STEP = 0.05  # of ln α, of a difference
_LARGEST_EXPONENT = 100.0  # of an interval's end: beyond it the end says nothing
_MOST_ADDED = 0.7  # of ln α: beyond it the fit is further off than a square tells
_TINY = 1e-12  # keeps quotients within the floats
_MICROSECONDS = 0.3  # of a record: a digamma function and its predictor again; measured .15
_LAW_MS = 500.0  # measured 220 to 360 at 10⁴ records, where the fit takes 250
_PERSONS = (
    "A dispersion is estimated where the protected unit has exactly one row; here it may have "
    "none, or more. Give dispersion=."
)
POISSON_LIKE = (
    "The counts are hardly more dispersed than a Poisson law's: the dispersion is at most what "
    "is shown, and has no "
    "interval."
)
UNKNOWN = "The dispersion has no interval: its information is below the noise at this epsilon."


@dataclass(frozen=True, slots=True, eq=False)
class DispersionMap:
    """Gives a χ (1, rows), and (a²χ²/B², a S/sup S) (2, rows)."""

    coding: Coding
    point: FitState
    score: DispersionScore

    def __call__(self, block: Block) -> tuple[FloatArray, ...]:
        with np.errstate(all="ignore"):  # a warning would tell of a cell
            eta = predictor(self.point, self.coding, standardised(self.coding, block), block)
            chi = self.score.value(response(self.coding, block), eta)
            slope = self.score.slope(eta) * (1 / self.score.most)
        used = used_shares(self.coding, block)
        if used is not None:
            chi, slope = np.where(used > 0, chi * used, 0.0), slope * used
        return chi[None, :], np.stack([(chi * (1 / self.score.bound)) ** 2, slope])


@dataclass(frozen=True, slots=True)
class Dispersion:
    """α̂ with the standard errors of ln α̂, all told and from noise alone; known: whether S̄ is
    above its noise."""

    alpha: float
    error: float
    privacy: float
    known: bool

    def described(self, level: float) -> dict[str, Any]:
        """What a reply says of it."""
        if not (self.known and trust.dispersed(self.alpha)):
            return {"dispersion": self.alpha}
        reach = min(float(ndtri((1 + level) / 2)) * self.error, _LARGEST_EXPONENT)
        return {
            "dispersion": self.alpha,
            "dispersion_standard_error": self.alpha * self.error,
            "dispersion_privacy_standard_error": self.alpha * self.privacy,
            "dispersion_interval": tuple(self.alpha * exp(side * reach) for side in (-1, 1)),
        }

    @property
    def warnings(self) -> list[str]:
        """Why there is no interval."""
        if not self.known:
            return [UNKNOWN]
        return [] if trust.dispersed(self.alpha) else [POISSON_LIKE]


@dataclass(frozen=True, slots=True, eq=False)
class PublicPredictors:
    """η (k,) of public rows X̃ (k, q), at the released coefficients."""

    X: FloatArray
    eta: FloatArray


def public_predictors(
    score: DispersionScore, ground: FitGround[Start], fit: StandardFit
) -> PublicPredictors:
    """The predictors of rows that are taken at equal steps of their predictors."""
    rows = np.linalg.solve(ground.coordinates.transform, ground.coordinates.rows[:_ROWS].T)
    X = np.asarray(rows.T, dtype=np.float64)
    eta = X @ fit.theta + (0.0 if ground.offset is None else ground.offset[:_ROWS])
    low, high = NegativeBinomial(score.alpha).predictor_limits(score.upper)
    order = np.argsort(eta)[:: max(1, len(eta) // _PLACES)]
    return PublicPredictors(X[order], np.asarray(np.clip(eta[order], low, high)))


@dataclass(frozen=True, slots=True)
class Misfit:
    """What noisy coefficients add to ln α̂: d, and the standard deviation of what they do to it."""

    added: float
    sd: float


def misfit(score: DispersionScore, public: PublicPredictors, fit: StandardFit) -> Misfit:
    """From public rows and released values."""
    back = np.linalg.inv(fit.transform)
    C = back.T @ fit.privacy @ back
    v, squares = float(np.trace(C)), float(np.sum(C * C))
    S = max(float(np.mean(score.slope(public.eta))), _TINY)
    tilt, bend = score.away(public.eta)
    along = np.mean(public.X * tilt[:, None], axis=0) / S
    added = min(max(v * float(np.mean(bend)) / (2 * S), 0.0), _MOST_ADDED)
    bent = added * sqrt(2 * squares) / max(v, _TINY)
    return Misfit(added, hypot(bent, sqrt(max(float(along @ fit.privacy @ along), 0.0))))


def dispersion_of(
    score: DispersionScore,
    eta: FloatArray,
    released: tuple[Released, ...],
    off: Misfit,
    *,
    settled: bool,
) -> Dispersion:
    """From the released sums; at the public rows' predictors η (k,). settled: whether the
    coefficients are."""
    first, second = released
    total, sd = float(first.values[0]), first.sd
    squares = max(float(second.values[0]), second.sd) * score.bound**2
    information, noise = float(second.values[1]) * score.most, second.sd * score.most
    known = settled and bool(clear(information, noise))
    count = max(information, noise) / max(float(np.mean(score.slope(eta))), _TINY)
    alpha = score.solved(eta, total / count)
    up, down = (score.expected(eta, alpha * exp(side * _STEP)) for side in (1, -1))
    S = count * max((up - down) / (2 * _STEP), _TINY)
    alpha = within(alpha * exp(-off.added))
    privacy = hypot(sd / S, off.sd)
    return Dispersion(alpha, hypot(sqrt(squares) / S, privacy), privacy, known)


@dataclass(frozen=True, slots=True, eq=False)
class DispersedPlan(PlannedOnFit[Start]):
    """A planned fit with its dispersion. shares: ρ of the two parts of the last step."""

    amounts: tuple[int, int]

    @property
    def outline(self) -> Outline:
        return replace(
            self.base.outlined,
            rho=self.plan.rho + sum(self.amounts),
            reference=f"{self.plan.reference}; Lawless (1987)",
            passes=self.plan.passes + 1,
            column_ms=self.plan.column_ms + int(self.plan.facts.n * _MICROSECONDS / 1000),
        )

    def expected_ms(self, n: int) -> float:
        """The fit's, with the passes more, and what the law of the dispersion takes whatever n
        is."""
        return self.plan.expected_ms(n) + self.plan.timing.pass_ms(n) + _LAW_MS

    @property
    def shares(self) -> dict[str, float]:
        """What part of ρ goes where."""
        own = sum(self.amounts) / self.rho
        return {
            **{name: share * (1 - own) for name, share in self.plan.shares.items()},
            "dispersion": own,
        }

    @property
    def forecast(self) -> Mapping[str, Any]:
        return {**self.plan.forecast, "shares": self.shares}

    def run(self) -> Recipe:
        """The fit, then one step; always a reply."""
        ground, fit = yield from self.plan.fitted()
        found = yield from self._measured(ground, fit)
        result = self.plan.result(ground, fit) | found.described(self.plan.level)
        result["warnings"] = [*result["warnings"], *found.warnings]
        return RegressionResult(**result | {"shares": self.shares, "scale": sqrt(found.alpha)})

    def _measured(
        self, ground: FitGround[Start], fit: StandardFit
    ) -> Generator[Step, tuple[Released, ...], Dispersion]:
        score = ESTIMATED.residuals(ground.response).at(fit.scale**2)
        law = self.plan.model.family(ground).score(fit.scale, 0)
        theta = on_lattice(fit.theta, ground.coding.size)
        sizes = self.plan.sizes.of(ground.coding.size)
        point = FitState(theta, fit.transform, sizes.radius_squared, law)
        first, second = self.amounts
        parts: tuple[Part, ...] = (
            VectorSum(1, score.bound, first),
            VectorSum(2, sqrt(2), second),
        )
        sums = yield SumStep("dispersion", parts, DispersionMap(ground.coding, point, score))
        public = public_predictors(score, ground, fit)
        off = misfit(score, public, fit)
        return dispersion_of(score, public.eta, sums, off, settled=fit.verdict.intervals)


def plan_dispersed(facts: DatasetFacts, design: Design, query: Glm, rho: int) -> DispersedPlan:
    """Plans at `rho` (RHO_UNITS) from public facts alone. Raises InvalidQuery."""
    if facts.schema.unit.many_rows:
        raise InvalidQuery(_PERSONS)
    model = replace(asked_model(replace(query, dispersion=1.0)), law=ESTIMATED, dispersion=None)
    own = max(2, int(_SHARE * rho))
    first = max(1, int(_SCORE * own))
    plan = plan_fit(facts, design, model, query.confidence_level, rho - own)
    return DispersedPlan(plan, (first, own - first))
