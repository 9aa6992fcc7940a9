"""What a generalised linear model asks of its family, and the quasi-likelihood score that families share.

    score       w v q(y, η),   v = m(η) u,   q = [ψ_c(z) − a]·g(η)/m(η),   z = (y − μ)/(s√V)
    curvature   w h(η) v vᵀ,   h = d·(g/m)²                    (Fisher scoring: h ≥ 0 does not depend on y)

so that a step is θ ← θ + unit·J⁻¹g. The leverage m keeps q and h bounded by public constants.
Source: Cantoni & Ronchetti (2001).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray, Released, VectorSum
from reticent_server.fitting.budget import Signal
from reticent_server.fitting.score import OFFSET, Ball, Residuals, Score, whole_ball
from reticent_server.numerics import families as laws
from reticent_server.numerics.glm_robust import estimated_dispersion

SCALE_CUT = 1.5  # cut of the residuals whose mean square gives the scale, in scales
_GRID = 2001  # points of η at which the score's bound is taken
_SCALE_STEP = 4.0  # largest factor of a step of the scale
_LEAST_SCALE, _LARGEST_SCALE = 0.02, 1.5  # bounds of the scale relative to its public start


@dataclass(frozen=True, slots=True)
class Start:
    """Public: η₀, the link of a typical mean; the scale s₀; curvature, a guess of the mean of h at the solution."""

    eta: float
    scale: float
    curvature: float


@dataclass(frozen=True, slots=True)
class QuasiScore:
    """A law at the tuning constant c (∞: no cut) and the scale s; η in `limits`.

    unit, limits, signed, varies: as in fitting.score. start: η₀, the unit of leverages.
    """

    law: laws.Family
    c: float
    scale: float
    unit: float
    limits: tuple[float, float]
    start: float
    residual_unit: float = 1.0
    shift: float = 0.0
    curvature_bound: float = 1.0
    varies: bool = False
    signed: bool = False

    @property
    def mean_square(self) -> float:
        """Var ψ_c/d at the start."""
        found = self.law.moments(np.array([self.start + self.shift]), self.c)
        return float((found.square[0] - found.mean[0] ** 2) / found.slope[0])

    @property
    def bound(self) -> float:
        """sup |q| over η in `limits` and responses y ≥ 0."""
        low, high = self.limits
        eta = np.linspace(low, high, _GRID if high > low else 1)
        with np.errstate(over="ignore"):
            ends = (self.evaluate(np.full_like(eta, y), eta) for y in (0.0, 1e30))
            return float(max(np.max(np.abs(q)) for q in ends))

    def leverage(self, eta: FloatArray) -> FloatArray:
        """m(η) = g(η)/g(η₀)."""
        at_start = float(self.law.gain(np.array([self.start]))[0])
        return np.asarray(self.law.gain(eta) / at_start) if self.varies else np.ones_like(eta)

    def evaluate(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        return self.with_curvature(y, eta)[0]

    def with_curvature(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        moments = self.law.moments(eta + self.shift, self.c)
        psi = np.clip(self.residual(y, eta), -self.c, self.c) - moments.mean
        return np.asarray(psi), moments.slope

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """z, in units of s."""
        return np.asarray(self.law.residual(y, eta) / self.residual_unit)

    def expected(self, eta: FloatArray, variance: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        return np.asarray(self.law.moments(eta + self.shift, self.c).slope)

    def ball(self, direction: FloatArray, radius: float) -> Ball:
        return whole_ball(len(direction), radius * self.bound)


@dataclass(frozen=True, slots=True)
class CutSquares:
    """The scale at which the mean of ψ_k²(z) is what the law says, by one bounded sum a step.

    Contributions ψ_k²(z) − k²/2 lie in ±k²/2. start: s₀; least: the smallest scale, in units of s₀.
    """

    start: float
    least: float
    k: float = SCALE_CUT

    @property
    def words(self) -> str:
        return f"mean squares of residuals cut at {self.k:g} of it"

    def part(self, rho: int, unit_rows: int) -> VectorSum:
        return VectorSum(1, self.k**2 / 2, rho, unit_rows)

    def contribution(self, score: Score, y: FloatArray, eta: FloatArray) -> FloatArray:
        z = np.clip(_quasi(score).residual(y, eta), -self.k, self.k)
        return np.asarray(z * z - self.k**2 / 2)[None, :]

    def scale(self, score: Score, released: Released, count: float) -> float:
        return self.next(_quasi(score), float(released.values[0]) / count + self.k**2 / 2)

    def next(self, score: QuasiScore, mean: float) -> float:
        """The scale at which the cut residuals have this mean square."""
        largest = self.k**2
        square = float(np.clip(mean, 1e-4 * largest, 0.98 * largest))
        ratio = sqrt(estimated_dispersion(score.law, square, self.k) / score.law.dispersion)
        s = score.scale * min(max(ratio, 1 / _SCALE_STEP), _SCALE_STEP)
        least = max(self.least, self.start * _LEAST_SCALE)
        return min(max(s, least), max(self.start * _LARGEST_SCALE, least))

    def solve(self, residuals: FloatArray) -> float:
        raise TypeError("a scale of a generalised linear model is solved with its score")


def _quasi(score: Score) -> QuasiScore:
    if not isinstance(score, QuasiScore):
        raise TypeError("a quasi-likelihood score is needed")
    return score


class GlmFamily(ABC):
    """A family of generalised linear models with its link; one object for each.

    name, link: as in queries and replies. tuning: default c. radius: default R²/q. dispersed: whether a
    query states the dispersion.
    """

    name: str
    link: str
    tuning: float
    radius: float
    dispersed: bool = False
    menu: tuple[float, ...] = ()

    @abstractmethod
    def problem(self, response: Term) -> str | None:
        """What is wrong with a response's declared bounds; None if nothing."""

    @abstractmethod
    def start(self, y: FloatArray, response: Term, dispersion: float | None) -> Start:
        """From the responses (rows,) of public rows."""

    @abstractmethod
    def score(self, c: float, scale: float, start: Start, upper: float) -> Score:
        """The score at a scale. upper: the response's declared bound."""

    def residuals(self, start: Start) -> Residuals | None:
        """How the scale is measured; None where it is known."""
        return None

    def joint(self, *, intercept: bool) -> bool:  # noqa: ARG002 - one interface
        """Whether the last step is solved jointly in θ and ln s (fitting.nuisance)."""
        return False

    def signal(self, c: float, start: Start, upper: float) -> Signal:
        """What the score is at a settled fit."""
        score = self.score(c, start.scale, start, upper)
        return Signal(score.bound, start.curvature, self.residuals(start) is not None)

    def cut(self, c: float) -> str:
        """In an estimand's words, what the cut of residuals is."""
        return ", no cut of residuals" if c == inf else f", Pearson residuals cut at {c:g}"


@dataclass(frozen=True, slots=True)
class FittedFamily:
    """A family with its constants, as a fit asks for it (fitting.score.Family)."""

    family: GlmFamily
    c: float
    begun: Start
    upper: float
    intercept: bool

    @property
    def start(self) -> float:
        return self.begun.scale

    @property
    def offset(self) -> float:
        return OFFSET

    @property
    def residuals(self) -> Residuals | None:
        return self.family.residuals(self.begun)

    @property
    def joint(self) -> bool:
        return self.family.joint(intercept=self.intercept)

    def score(self, scale: float, remaining: int) -> Score:  # noqa: ARG002 - one interface
        return self.family.score(self.c, scale, self.begun, self.upper)
