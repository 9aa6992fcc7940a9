# SPDX-License-Identifier: Apache-2.0
"""Exponential families for robust quasi-likelihood: links, Pearson residuals, and their moments.

With r = (y − μ)/√(φV(μ)) and Huber's ψ_c, Cantoni & Ronchetti's (2001) score of one record is

    [ψ_c(r) − a] w(x) V^(−1/2) μ′(η) x/√φ,   a = E ψ_c(r)   (Fisher consistency)

and its expected Jacobian d w (μ′²/(φV)) x xᵀ, d = E[ψ_c(r) r] ≥ 0. c = ∞ gives a = 0, d = 1: the
(weighted) maximum likelihood score of the canonical families. Moments are taken under the family at
the mean μ(η); everything is elementwise, on arrays of one shape, so a record's values do not depend
on the others. η is to be clipped to `predictor_limits` by the caller.

Source: Cantoni & Ronchetti (2001), Appendix A, with the Poisson and Gamma sums rewritten so that
nothing large cancels.
"""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Protocol

import numpy as np
from scipy.special import betainc, expit, gammainc, gammaln, pdtr

from reticent_server.domain.steps import FloatArray

# of η: a probability within 10⁻¹³ of 0 or 1, beyond what any table tells; keeps exp(η) within the
# floats
LOGIT_LIMIT = 30.0
# of η with a log link: a mean count of 6·10⁻⁶, less than one event in 10⁵ records
_LOG_LOWEST = -12.0


@dataclass(frozen=True, slots=True, eq=False)
class ResidualMoments:
    """a = E ψ_c(r), d = E[ψ_c(r) r] and E ψ_c²(r), each in the shape of η."""

    mean: FloatArray
    slope: FloatArray
    square: FloatArray


class Family(Protocol):
    """One family with its link, at a known dispersion φ, a function of the predictor η.

    V is the variance of a response of mean μ over φ.
    """

    @property
    def name(self) -> str:
        """As in queries."""

    @property
    def dispersion(self) -> float:
        """φ, 1 where the family has none."""

    def predictor_limits(self, upper: float) -> tuple[float, float]:
        """The public range of η for responses up to `upper`."""

    def mean(self, eta: FloatArray) -> FloatArray:
        """μ(η), in the shape of η."""

    def gain(self, eta: FloatArray) -> FloatArray:
        """V^(−1/2) μ′(η), without φ."""

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """Pearson's residual r(y, η), in the shape of η."""

    def observed(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """The observed over the expected information: −√φ ∂(r·gain)/∂η over gain².
        Its mean is 1 where the model holds."""

    def moments(self, eta: FloatArray, c: float) -> ResidualMoments:
        """Moments of the residual cut at ±c, under the family."""


@dataclass(frozen=True, slots=True)
class Binomial:
    """y ∈ {0, 1} with the logit link: V = μ(1 − μ) = μ′. Values between 0 and 1 are allowed."""

    name: str = "binomial"
    dispersion: float = 1.0

    def predictor_limits(self, upper: float) -> tuple[float, float]:  # noqa: ARG002 - one interface
        """±LOGIT_LIMIT, whatever the bound."""
        return -LOGIT_LIMIT, LOGIT_LIMIT

    def mean(self, eta: FloatArray) -> FloatArray:
        """The probability 1/(1 + e^{−η})."""
        return np.asarray(expit(eta))

    def gain(self, eta: FloatArray) -> FloatArray:
        """√(μ(1 − μ)), by |η| so that it does not overflow."""
        half = np.exp(-0.5 * np.abs(eta))
        return np.asarray(half / (1 + half * half))

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(y − μ)/√(μ(1 − μ))."""
        return np.asarray((y - expit(eta)) / self.gain(eta))

    def observed(self, y: FloatArray, eta: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """1: the logit link is canonical."""
        return np.ones_like(eta)

    def moments(self, eta: FloatArray, c: float) -> ResidualMoments:
        """Exact: y has two values."""
        if c == inf:
            return _unbounded(eta)
        mu, up, down = expit(eta), np.exp(-0.5 * eta), -np.exp(0.5 * eta)
        high, low = np.minimum(up, c), np.maximum(down, -c)
        return ResidualMoments(
            mean=np.asarray(mu * high + (1 - mu) * low),
            slope=np.asarray(mu * high * up + (1 - mu) * low * down),
            square=np.asarray(mu * high**2 + (1 - mu) * low**2),
        )


@dataclass(frozen=True, slots=True)
class Poisson:
    """Counts with the log link: V = μ = μ′."""

    name: str = "poisson"
    dispersion: float = 1.0

    def predictor_limits(self, upper: float) -> tuple[float, float]:
        """From a mean that gives no events to log of twice the bound."""
        return _LOG_LOWEST, log(2 * max(upper, 1.0))

    def mean(self, eta: FloatArray) -> FloatArray:
        """e^η."""
        return np.asarray(np.exp(eta))

    def gain(self, eta: FloatArray) -> FloatArray:
        """√μ."""
        return np.asarray(np.exp(0.5 * eta))

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(y − μ)/√μ."""
        root = np.exp(0.5 * eta)
        return np.asarray(y / root - root)

    def observed(self, y: FloatArray, eta: FloatArray) -> FloatArray:  # noqa: ARG002 - one interface
        """1: the log link is canonical."""
        return np.ones_like(eta)

    def moments(self, eta: FloatArray, c: float) -> ResidualMoments:
        """From E[Y − μ; Y ≤ k] = −μf(k) and E[(Y − μ)²; Y ≤ k] = μF(k − 1) − μ(k − μ)f(k)."""
        if c == inf:
            return _unbounded(eta)
        mu = np.exp(eta)
        root = np.sqrt(mu)
        j1, j2 = np.floor(mu - c * root), np.floor(mu + c * root)
        f1, f2 = _poisson_mass(j1, mu, eta), _poisson_mass(j2, mu, eta)
        below, above = _poisson_cdf(j1, mu), 1 - _poisson_cdf(j2, mu)
        middle = (
            _poisson_cdf(j2 - 1, mu) - _poisson_cdf(j1 - 1, mu) - (j2 - mu) * f2 + (j1 - mu) * f1
        )
        return ResidualMoments(
            mean=np.asarray(c * (above - below) + root * (f1 - f2)),
            slope=np.asarray(c * root * (f1 + f2) + middle),
            square=np.asarray(c**2 * (above + below) + middle),
        )


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """Counts with the log link and V = μ + αμ²: Poisson counts whose means vary as a Gamma, μ′ = μ.

    With r = (y − μ)/√V and g = μ′/√V the maximum likelihood score is r g x = (y − μ)/(1 + αμ) x,
    which the cut of r truncates. Unlike the families above α is no dispersion factor: it changes
    the shape of V, and for an unknown α this is no exponential family. dispersion: α > 0.
    """

    dispersion: float = 1.0
    name: str = "negative_binomial"

    def predictor_limits(self, upper: float) -> tuple[float, float]:
        """From a mean that gives no events to log of twice the bound."""
        return _LOG_LOWEST, log(2 * max(upper, 1.0))

    def mean(self, eta: FloatArray) -> FloatArray:
        """e^η."""
        return np.asarray(np.exp(eta))

    def gain(self, eta: FloatArray) -> FloatArray:
        """√(μ/(1 + αμ)), α the dispersion."""
        mu = np.exp(eta)
        return np.asarray(np.sqrt(mu / (1 + self.dispersion * mu)))

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(y − μ)/√(μ + αμ²), α the dispersion."""
        mu = np.exp(eta)
        return np.asarray((y - mu) / np.sqrt(mu + self.dispersion * mu * mu))

    def observed(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(1 + αy)/(1 + αμ), α the dispersion."""
        return np.asarray((1 + self.dispersion * y) / (1 + self.dispersion * np.exp(eta)))

    def moments(self, eta: FloatArray, c: float) -> ResidualMoments:
        """From E[Y; Y ≤ k] = μF₁(k − 1) and E[Y(Y − 1); Y ≤ k] = (1 + α)μ²F₂(k − 2), F_j the law
        with the shape 1/α + j and the same chance.
        """
        if c == inf:
            return _unbounded(eta)
        mu = np.exp(eta)
        root = np.sqrt(mu + self.dispersion * mu * mu)
        low, high = (self._partial(np.floor(mu + side * c * root), mu) for side in (-1, 1))
        below, above = low[0], 1 - high[0]
        first = (high[1] - low[1]) - mu * (high[0] - low[0])
        second = (high[2] - low[2]) - 2 * mu * (high[1] - low[1]) + mu**2 * (high[0] - low[0])
        lower = low[1] - mu * low[0]
        upper = -(high[1] - mu * high[0])
        middle = second / root**2
        return ResidualMoments(
            mean=np.asarray(c * (above - below) + first / root),
            slope=np.asarray(c * (upper - lower) / root + middle),
            square=np.asarray(c**2 * (above + below) + middle),
        )

    def _partial(self, k: FloatArray, mu: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(E[1; Y ≤ k], E[Y; Y ≤ k], E[Y²; Y ≤ k])."""
        nu, chance = 1 / self.dispersion, 1 / (1 + self.dispersion * mu)
        F0, F1, F2 = (
            np.where(k < j, 0.0, betainc(nu + j, np.maximum(k - j, 0.0) + 1, chance))
            for j in range(3)
        )
        return F0, mu * F1, (1 + self.dispersion) * mu**2 * F2 + mu * F1


@dataclass(frozen=True, slots=True)
class Gamma:
    """Positive responses with the log link and dispersion φ: V = μ², μ′ = μ, Y/μ ~ Gamma(1/φ)φ."""

    dispersion: float = 1.0
    name: str = "gamma"

    def predictor_limits(self, upper: float) -> tuple[float, float]:
        """Up to log of twice the bound, and LOGIT_LIMIT below that."""
        top = log(2 * max(upper, 1e-300))
        return top - LOGIT_LIMIT, top

    def mean(self, eta: FloatArray) -> FloatArray:
        """e^η."""
        return np.asarray(np.exp(eta))

    def gain(self, eta: FloatArray) -> FloatArray:
        """1: the standard deviation grows as the mean does."""
        return np.ones_like(eta)

    def residual(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(y/μ − 1)/√φ."""
        return np.asarray((y * np.exp(-eta) - 1) / sqrt(self.dispersion))

    def observed(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """y/μ."""
        return np.asarray(y * np.exp(-eta))

    def moments(self, eta: FloatArray, c: float) -> ResidualMoments:
        """The same for every η: with T = Y/μ, E[T^k; T ≤ t] = E T^k · P(Gamma(ν + k) ≤ νt)."""
        moments = gamma_moments(self.dispersion, self.dispersion, c)
        return ResidualMoments(*(np.full(np.shape(eta), v) for v in moments))


def gamma_moments(dispersion: float, unit: float, c: float) -> tuple[float, float, float]:
    """(E ψ_c(r), E[ψ_c(r) r], E ψ_c²(r)) of r = (T − 1)/√unit, T ~ Gamma with mean 1, variance
    φ.
    """
    if c == inf:
        return 0.0, dispersion / unit, dispersion / unit
    nu, s = 1 / dispersion, sqrt(unit)
    low, high = max(0.0, 1 - c * s), 1 + c * s
    F0, F1, F2 = (
        np.array([gammainc(nu + k, nu * low), gammainc(nu + k, nu * high)]) for k in range(3)
    )
    raw = [F0, F1, (1 + dispersion) * F2]
    totals = (1.0, 1.0, 1 + dispersion)
    middle = [m[1] - m[0] for m in raw]
    below, above = F0[0], 1 - F0[1]
    first = middle[1] - middle[0]
    second = middle[2] - 2 * middle[1] + middle[0]
    lower = raw[1][0] - raw[0][0]
    upper = (totals[1] - raw[1][1]) - (totals[0] - raw[0][1])
    return (
        float(c * (above - below) + first / s),
        float(c * (upper - lower) / s + second / unit),
        float(c**2 * (above + below) + second / unit),
    )


def _unbounded(eta: FloatArray) -> ResidualMoments:
    ones = np.ones(np.shape(eta))
    return ResidualMoments(np.zeros(np.shape(eta)), ones, ones)


def _poisson_cdf(k: FloatArray, mu: FloatArray) -> FloatArray:
    return np.asarray(np.where(k < 0, 0.0, pdtr(np.maximum(k, 0.0), mu)))


def _poisson_mass(k: FloatArray, mu: FloatArray, log_mu: FloatArray) -> FloatArray:
    j = np.maximum(k, 0.0)
    return np.asarray(np.where(k < 0, 0.0, np.exp(j * log_mu - mu - gammaln(j + 1))))
