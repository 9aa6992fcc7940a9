# SPDX-License-Identifier: Apache-2.0
"""The dispersion's own score of a negative binomial, bent and centred: what estimates α of
V = μ + αμ².

With r = 1/α the derivative of a count's log-likelihood by ln α, and a smooth cut of it,

    h = r [Ψ(r) − Ψ(y + r) − ln(r/(r + μ)) − 1 + (y + r)/(r + μ)]      Ψ = digamma
    χ = c tanh(h/c) − m(η),   m = E c tanh(h/c),   |χ| ≤ c + sup |m|    mean 0 where α is right
    S = E[c tanh(h/c) h]                                               −∂E χ/∂ln α there (Bartlett)

h grows like y, so without the cut one record would decide. At c = 2√I, I the information at the
start, .85 to .98 of the information is left (computed for α from .1 to 2 and means from 1.6 to
150). A corner at c in place of the tanh has a tenth less noise, but leaves corners in m as well,
which splines miss.

m and S are functions of η alone. They are sums over counts, one by one and then in bins 2 % wide,
at values of η .1 apart between which cubic splines interpolate; all of it is public.

Source: Lawless (1987), Canadian Journal of Statistics 15; Aeberhard, Cantoni & Heritier (2014),
Biometrics 70.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, log, sqrt

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import betainc, digamma

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.families import NegativeBinomial

LEAST, LARGEST = 0.01, 20.0
"""α: below, counts are Poisson's to one part in 100 of a mean of 1; beyond, more than .9 of counts
with mean 3 are 0."""
_CUT = 2.0  # c, in √I at the start
# of η between values that are summed: with .1 the cut's kinks left errors of 2·10⁻⁴ in m
_KNOTS = 0.04
_FINE = 4096  # values of η that records are interpolated between: within 10⁻⁶ of the spline
_AWAY = 0.15  # of η: of the size of what predictors are off by at the noise that matters
_WIDEST, _CLOSE = 8.0, 1e-5  # a solution's factor of α, and how close it is in ln α
_ONE_BY_ONE = 64  # counts that are summed one by one
_BINS = 400  # beyond these, up to _TAIL standard deviations: 2 % wide where counts reach 10⁵
_TAIL = 40.0  # standard deviations above the mean, exponential tails of the smallest r: e⁻⁴⁰


@dataclass(frozen=True, slots=True)
class DispersionScore:
    """At α, with the cut c, for responses up to `upper`."""

    alpha: float
    cut: float
    upper: float

    def value(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(rows,) χ."""
        grid, mean, _ = self._tables
        return np.asarray(self._cut(y, np.exp(eta)) - np.interp(eta, grid, mean))

    def slope(self, eta: FloatArray) -> FloatArray:
        """(rows,) S."""
        grid, _, slope = self._tables
        return np.asarray(np.interp(eta, grid, slope))

    @property
    def bound(self) -> float:
        """sup |χ|."""
        return self.cut + float(np.abs(self._tables[1]).max())

    @property
    def most(self) -> float:
        """sup S."""
        return float(self._tables[2].max())

    def expected(self, eta: FloatArray, alpha: float) -> float:
        """The mean of E χ over values of η (k,) where counts have another α."""
        y, p, _ = _counts(eta, alpha, self.upper)
        return float(np.sum(p * self.value(np.broadcast_to(y, p.shape), eta[:, None]))) / len(eta)

    def solved(self, eta: FloatArray, mean: float) -> float:
        """α at which that is `mean`, within a factor of eight; counts' means spread as η (k,)."""
        low, high = (log(within(self.alpha * ratio)) for ratio in (1 / _WIDEST, _WIDEST))

        def excess(log_alpha: float) -> float:
            return self.expected(eta, exp(log_alpha)) - mean

        if excess(low) >= 0:
            return exp(low)
        if excess(high) <= 0:
            return exp(high)
        return exp(float(brentq(excess, low, high, xtol=_CLOSE)))

    def away(self, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(k,) of values of η: ∂E χ/∂η̂ and ∂²E χ/∂η̂², the counts' law being at η, by
        differences."""
        y, p, _ = _counts(eta, self.alpha, self.upper)
        up, down = (
            np.sum(p * self.value(np.broadcast_to(y, p.shape), (eta + side)[:, None]), axis=1)
            for side in (_AWAY, -_AWAY)
        )
        return np.asarray((up - down) / (2 * _AWAY)), np.asarray((up + down) / _AWAY**2)

    def _cut(self, y: FloatArray, mu: FloatArray) -> FloatArray:
        return _bent(score(y, mu, self.alpha), self.cut)

    @property
    def _tables(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return _tables(self.alpha, self.cut, self.upper)


def score(y: FloatArray, mu: FloatArray, alpha: float) -> FloatArray:
    """h of counts y ≥ 0 at means μ > 0."""
    r = 1 / alpha
    parts = digamma(r) - digamma(y + r) + np.log1p(mu / r) - 1 + (y + r) / (mu + r)
    return np.asarray(r * parts)


def _bent(h: FloatArray, cut: float) -> FloatArray:
    return np.asarray(cut * np.tanh(h * (1 / cut)))


def planned_cut(alpha: float, eta: float, upper: float) -> float:
    """c for a fit that starts at α and η."""
    _, p, h = _counts(np.array([eta]), alpha, upper)
    return _CUT * sqrt(float(np.sum(p * h * h)))


@lru_cache(maxsize=64)  # a step's map asks for the same in each block
def _tables(alpha: float, cut: float, upper: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """η (fine,), m and S there."""
    low, high = NegativeBinomial(alpha).predictor_limits(upper)
    knots = np.linspace(low, high, int((high - low) / _KNOTS) + 2)
    _, p, h = _counts(knots, alpha, upper)
    psi = _bent(h, cut)
    fine = np.linspace(low, high, _FINE)
    mean, slope = (CubicSpline(knots, np.sum(p * v, axis=1))(fine) for v in (psi, psi * h))
    return fine, np.asarray(mean), np.asarray(np.maximum(slope, 0.0))


def _counts(
    eta: FloatArray, alpha: float, upper: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Counts (k,), each the middle of its bin, their probabilities and h (values of η, k)."""
    mu = np.exp(eta)[:, None]
    top = 2 * max(upper, 1.0)
    end = top + _TAIL * sqrt(top + alpha * top * top)
    wide = np.unique(np.round(np.geomspace(_ONE_BY_ONE, max(end, 2 * _ONE_BY_ONE), _BINS)))
    ends = np.concatenate([np.arange(_ONE_BY_ONE), wide])
    r = 1 / alpha
    below = betainc(r, ends + 1, 1 / (1 + alpha * mu))
    p = np.diff(below, axis=1, prepend=0.0)
    middle = (np.append(-1.0, ends[:-1]) + 1 + ends) / 2
    return middle, p, score(middle, mu, alpha)


def within(alpha: float) -> float:
    """α within the public range."""
    return min(max(alpha, LEAST), LARGEST)


_LARGEST_CHANGE = log(4.0)


def moved(alpha: float, mean: float, slope: float) -> float:
    """α after a Newton step in ln α, by a factor of four at most."""
    change = min(max(mean / max(slope, 1e-12), -_LARGEST_CHANGE), _LARGEST_CHANGE)
    return within(alpha * exp(change))
