"""The bounded quasi-likelihood score of one record, in the form that the recipe needs.

    score         w v q(y, η),   v = m(η) u,   q = [ψ_c(z) − a]·g(η)/m(η),   z = (y − μ)/(s√V)
    information   w h(η) v vᵀ,   h = d·(g/m)²

so that a Fisher-scoring step is θ ← θ + unit·J⁻¹g. The leverage m keeps q and h bounded by
public constants (η₀ is a public start, and 1/√μ₀ the unit of m):

    binomial   m = 1,           |q| ≤ 1 (½ at η = 0 without tuning),  h = d μ(1 − μ) ≤ ¼
    Poisson    m = √(μ/μ₀),     |q| ≤ c + sup|a|,                      h = d ≤ 1
    Gamma      m = 1,           |q| ≤ c + |a|,                         h = d ≤ E r² = 1
    negative binomial  m = g/g₀, |q| ≤ c + sup|a|,                     h = d ≤ 1

For the Poisson family s ≥ 1 is an overdispersion, and a and d are those of Y = s²·Poisson(μ/s²), which has
mean μ and variance s²μ: at s = 1 the family itself, else consistent for that law and nearly so for other
overdispersed counts. For Gamma s = √φ. For the negative binomial s = √α, a public number, and g = √(μ/(1 + αμ)): with
the score of maximum likelihood before the cut, this is the truncated maximum likelihood estimator of
Avella-Medina (2021), Corollary 2.
Source: Cantoni & Ronchetti (2001).
"""

from dataclasses import dataclass
from math import exp, inf, log
from typing import Literal

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.families import Binomial, Family, Gamma, NegativeBinomial, Poisson

FamilyName = Literal["binomial", "poisson", "gamma", "negative_binomial"]
_GRID = 2001


@dataclass(frozen=True, slots=True)
class QuasiScore:
    """A family at the tuning constant c (∞ for the binomial only) and the scale s; η in `limits`.

    start: η₀, which only the leverages of counts use.
    """

    family: FamilyName
    c: float
    scale: float
    limits: tuple[float, float]
    start: float = 0.0

    @property
    def law(self) -> Family:
        """The family, at the dispersion that s stands for."""
        match self.family:
            case "binomial":
                return Binomial()
            case "poisson":
                return Poisson()
            case "gamma":
                return Gamma(self.scale**2)
            case "negative_binomial":
                return NegativeBinomial(self.scale**2)

    @property
    def unit(self) -> float:
        """The change of η for one unit of J⁻¹g."""
        match self.family:
            case "binomial":
                return 1.0
            case "poisson":
                return self.scale * exp(-0.5 * self.start)
            case "gamma":
                return self.scale
            case "negative_binomial":
                return 1 / float(self.law.gain(np.array([self.start]))[0])

    @property
    def varies(self) -> bool:
        """Whether m(η) is other than 1."""
        return self.family in {"poisson", "negative_binomial"}

    def leverage(self, eta: FloatArray) -> FloatArray:
        """m(η)."""
        if self.family == "negative_binomial":
            return np.asarray(self.law.gain(eta) * self.unit)
        return Poisson().gain(eta - self.start) if self.varies else np.ones_like(eta)

    def evaluate(self, y: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(q, h) of records with responses y (rows,) and clipped predictors η (rows,)."""
        law = self.law
        if self.family == "binomial" and self.c == inf:
            mu = law.mean(eta)
            return np.asarray(y - mu), np.asarray(mu * (1 - mu))
        moments = law.moments(self._lattice(eta), self.c)
        psi = np.clip(self.standardised(y, eta), -self.c, self.c) - moments.mean
        if self.family == "binomial":
            gain = law.gain(eta)
            return np.asarray(psi * gain), np.asarray(moments.slope * gain * gain)
        return np.asarray(psi), moments.slope

    def standardised(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """z, the residual in units of s."""
        unit = self.scale if self.family == "poisson" else 1.0
        return np.asarray(self.law.residual(y, eta) / unit)

    def _lattice(self, eta: FloatArray) -> FloatArray:
        """The predictor of the Poisson variable that is counted in steps of s²."""
        return eta - 2 * log(self.scale) if self.family == "poisson" else eta

    def residual_square(self, y: FloatArray, eta: FloatArray, k: float) -> FloatArray:
        """ψ_k²(z): its mean gives the next scale."""
        z = np.clip(self.standardised(y, eta), -k, k)
        return np.asarray(z * z)

    def score_bound(self) -> float:
        """sup |q| over η in `limits` and responses y ≥ 0 (y ∈ [0, 1] for the binomial)."""
        low, high = self.limits
        if self.family == "binomial" and self.c == inf:
            return float(max(Binomial().mean(np.array([high, -low]))))
        eta = np.linspace(low, high, _GRID if high > low else 1)
        top = 1.0 if self.family == "binomial" else inf
        ends = [np.zeros_like(eta), np.full_like(eta, top if top < inf else 1e30)]
        with np.errstate(over="ignore"):
            return float(max(np.max(np.abs(self.evaluate(y, eta)[0])) for y in ends))

    def information_bound(self) -> float:
        """sup h over η in `limits` (1 where h is not known to be smaller)."""
        low, high = self.limits
        if self.family != "binomial":
            return 1.0
        nearest = np.array([min(max(0.0, low), high)])
        return float(Binomial().gain(nearest)[0] ** 2)
