"""Noisy Newton steps for Proposal 2: a generator that sees released values only.

Each of T ≤ 3 steps releases the mean score (mean ψ, a mean ψ²/c − R) and the entries of the Jacobian

    A = [[mean 1, mean u1], [2 mean u1, 2 mean u²1]]

and moves μ ← μ + σδ₁, ln σ ← ln σ + δ₂ with δ = A⁻¹(mean ψ, mean ψ² − κ), κ = E ψ_c²(N(0, 1)). The last step
also releases the second moments Q of the score. The covariance of (μ, ln σ) is

    A⁻¹(Q/n + sd²·diag(1, c²/a²))A⁻ᵀ, with the noise of A times δ added,

and the last two points are averaged by the inverse of their privacy variance.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt

import numpy as np

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.steps import (
    CountSum,
    FloatArray,
    GramSum,
    Part,
    Released,
    Step,
    SumStep,
    VectorSum,
)
from reticent_server.estimators.location_scale.maps import STRETCH, LocationScaleMap, score_radius
from reticent_server.fitting.budget import allocate
from reticent_server.fitting.identifiability import any_present
from reticent_server.numerics.matrices import psd_part
from reticent_server.numerics.psi import Huber

TUNINGS = (1.0, 1.25, 1.5, 2.0, 2.5)
QUIET, NOISY = (0.08, 0.27, 0.65), (0.3, 0.7)
NOISY_RATIO = 0.4
_JACOBIAN, _MEAT, _COUNT = 0.1, 0.03, 0.05
_GRADIENTS = 0.82
_LONGEST, _LARGEST_RATIO = 1.0, 8.0
_SETTLED = log(2)
_CLEAR = 3.0
_LEAST_SHARE, _LEAST_INSIDE = 0.02, 0.1


@dataclass(frozen=True, slots=True)
class LocationScaleSettings:
    """c, and ρ (RHO_UNITS) of the scores and Jacobians (T,), of the meat, and of the count (0: none)."""

    c: float
    scores: tuple[int, ...]
    jacobians: tuple[int, ...]
    meat: int
    count: int
    n: int
    unit_rows: int

    @property
    def steps(self) -> int:
        return len(self.scores)

    @property
    def rho(self) -> int:
        return sum((*self.scores, *self.jacobians, self.meat, self.count))

    def parts(self, step: int) -> tuple[Part, ...]:
        m = self.unit_rows
        parts: list[Part] = [
            VectorSum(2, score_radius(self.c), self.scores[step], m),
            VectorSum(3, sqrt(3), self.jacobians[step], m),
        ]
        if step == self.steps - 1:
            parts.append(GramSum(2, score_radius(self.c), self.meat, m))
        if step == 0 and self.count:
            parts.append(CountSum(1, self.count, m))
        return tuple(parts)


def plan_settings(
    n: int, unit_rows: int, rho: int, *, tuning: float | None, masked: bool
) -> LocationScaleSettings:
    """Splits `rho`; c, where it is not given, has the least forecast variance of the location."""
    count = _COUNT if masked else 0.0
    gradients = 1 - _JACOBIAN - _MEAT - count
    c = tuning or min(TUNINGS, key=lambda c: sum(v * v for v in forecast(n, unit_rows, rho, c)))
    sampling, privacy = forecast(n, unit_rows, rho, c)
    fractions = QUIET if privacy < NOISY_RATIO * sampling else NOISY
    steps = len(fractions)
    weights = (
        *(gradients * f for f in fractions),
        *((_JACOBIAN / steps,) * steps),
        *((count,) if masked else ()),
        _MEAT,
    )
    parts = allocate(rho, weights)
    return LocationScaleSettings(
        c=c,
        scores=parts[:steps],
        jacobians=parts[steps : 2 * steps],
        meat=parts[-1],
        count=parts[-2] if masked else 0,
        n=n,
        unit_rows=unit_rows,
    )


def forecast(n: int, unit_rows: int, rho: int, c: float) -> tuple[float, float]:
    """Sampling and privacy standard error of the location in scales, at the normal law."""
    family = Huber(c)
    noise = 2 * score_radius(c) * unit_rows / (n * sqrt(2 * _GRADIENTS * rho / RHO_UNITS))
    return sqrt(family.mean_square / n) / family.mean_derivative, noise / family.mean_derivative


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """After a step: θ = (μ, ln σ); sampling and privacy covariance (2, 2) of (μ/σ, ln σ).

    information: (2,) the Jacobian's diagonal as released, with noise of information_sd (2,). settled: whether
    the scale is: a step by a factor of two or more is far from a root, where its standard error means
    nothing. location_sd: of the noise in μ, in the column's units. jacobian: A, as it was used.
    """

    theta: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    information: FloatArray
    information_sd: FloatArray
    settled: bool
    location_sd: float
    jacobian: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LocationScaleFitted:
    """location, scale; sampling and privacy covariance (2, 2) of the two; identified; count as released;
    jacobian: A (2, 2) of the last step."""

    location: float
    scale: float
    sampling: FloatArray
    privacy: FloatArray
    identified: tuple[bool, bool]
    count: float
    jacobian: FloatArray


Fitting = Generator[Step, tuple[Released, ...], LocationScaleFitted]


def fit(
    design: Design, column: str, settings: LocationScaleSettings, start: tuple[float, float]
) -> Fitting:
    """Runs the recipe from the public start (μ, σ)."""
    mu, s = start
    points: list[Point] = []
    n, present = float(settings.n), True
    for t in range(settings.steps):
        last = t == settings.steps - 1
        count = t == 0 and settings.count > 0
        score_map = LocationScaleMap(design, column, mu, s, settings.c, last, count)
        released = yield SumStep(f"proposal 2 step {t + 1}", settings.parts(t), score_map)
        if count:
            n = float(np.clip(released[-1].values[0], _LEAST_SHARE * settings.n, settings.n))
            present = any_present(released[-1])
        meat = released[2].values / n if last else np.zeros((2, 2))
        points.append(_step(mu, s, settings.c, released, meat, n))
        mu, s = float(points[-1].theta[0]), exp(float(points[-1].theta[1]))
    found = _averaged(points, settings.c, n)
    return found if present else replace(found, identified=(False, False))


def _step(
    mu: float, s: float, c: float, released: Sequence[Released], meat: FloatArray, n: float
) -> Point:
    score, entries = released[0].values / n, released[1].values / n
    noise, jacobian_noise = released[0].sd / n, released[1].sd / n
    unit = c / STRETCH
    means = np.array([score[0], unit * (score[1] + score_radius(c)) - Huber(c).mean_square])
    A, found, sd = _jacobian(entries, jacobian_noise, c)
    gain = np.linalg.inv(A)
    delta = gain @ means
    bounded = np.array(
        [
            np.clip(delta[0], -_LONGEST * c, _LONGEST * c),
            np.clip(delta[1], -log(_LARGEST_RATIO), log(_LARGEST_RATIO)),
        ]
    )
    units = np.diag([1.0, unit])
    Q = units @ psd_part(meat - np.outer(score, score)) @ units
    spread = units @ units * noise**2 + _jacobian_error(delta, jacobian_noise, c)
    privacy = np.asarray(gain @ spread @ gain.T)
    return Point(
        theta=np.array([mu + s * bounded[0], log(s) + bounded[1]]),
        sampling=np.asarray(gain @ (Q / n) @ gain.T),
        privacy=privacy,
        information=found,
        information_sd=sd,
        settled=bool(abs(delta[1]) < _SETTLED),
        location_sd=s * sqrt(float(privacy[0, 0])),
        jacobian=A,
    )


def _jacobian(
    entries: FloatArray, sd: float, c: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A usable A; its diagonal as released (2,), and the noise of that (2,)."""
    one, first, second = entries[0], c * entries[1], c * c * entries[2]
    found, noise = np.array([one, second]), sd * np.array([1.0, c * c])
    a, d = np.maximum(found, np.maximum(3 * _LEAST_INSIDE * _normal(c), 2 * noise))
    b = float(np.clip(first, -0.7 * sqrt(a * d), 0.7 * sqrt(a * d)))
    return np.array([[a, b], [2 * b, 2 * d]]), found, noise


def _normal(c: float) -> FloatArray:
    """(2,) the diagonal at the normal law."""
    return np.array([Huber(c).mean_derivative, _inner_square(c)])


def _identified(points: Sequence[Point], c: float) -> tuple[bool, bool]:
    """Whether the Jacobians' diagonals, pooled over the points, stand out of their noise and of a tenth of the
    normal law's, and the scale has settled."""
    found = np.mean([p.information for p in points], axis=0)
    sd = np.sqrt(np.sum([p.information_sd**2 for p in points], axis=0)) / len(points)
    inside = found > np.maximum(_LEAST_INSIDE * _normal(c), 2 * sd)
    return bool(inside[0]), bool(inside[1]) and points[-1].settled


def _inner_square(c: float) -> float:
    """E u² 1{|u| < c} of a standard normal u."""
    return Huber(c).mean_square - c * c * (1 - Huber(c).mean_derivative)


def _jacobian_error(delta: FloatArray, sd: float, c: float) -> FloatArray:
    """Covariance of (noise of A) δ: entries (1, u1/c, u²1/c²) have independent noise sd."""
    rows = np.array([[delta[0], c * delta[1], 0.0], [0.0, 2 * c * delta[0], 2 * c * c * delta[1]]])
    return np.asarray(sd**2 * rows @ rows.T)


def _averaged(points: Sequence[Point], c: float, n: float) -> LocationScaleFitted:
    """Averages the last two points by the inverse of the location's privacy variance, f ≤ ½.

    A scale that does not stand out of the noise of the location around which it was measured is not
    estimable: on a constant column it is that noise.
    """
    before, last = points[-2], points[-1]
    clear = exp(float(last.theta[1])) > _CLEAR * before.location_sd
    v = [float(p.privacy[0, 0]) for p in (before, last)]
    f = min(0.5, v[1] / (v[0] + v[1])) if before.settled and last.settled else 0.0
    identified = _identified((before, last), c)
    theta = (1 - f) * last.theta + f * before.theta
    scale = exp(float(theta[1]))
    privacy = (1 - f) ** 2 * last.privacy + f**2 * before.privacy
    return LocationScaleFitted(
        location=float(theta[0]),
        scale=scale,
        sampling=scale**2 * last.sampling,
        privacy=scale**2 * privacy,
        identified=(identified[0], identified[1] and clear),
        count=n,
        jacobian=last.jacobian,
    )
