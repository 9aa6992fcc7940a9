"""What a planned fit will be worth, from public facts alone: each coefficient's privacy noise beside its
sampling error.

The fit is gone through with every release at its expected value: white columns taken as normal and white
(the recipe whitens them, so correlations do not matter), rare dummies as independent with their released
frequencies, errors as normal, the Jacobian where the recipe expects it. The squared error before step t
follows the recursion of `schedule`, with the noise of `covariance` in place of η²S²/f,

    e_t² = (γ + (1 − k₀/k_t)²) e_{t−1}² + tr(noise of step t),   S_{t+1}² = min(.04 + e_t², 1.44 S_t²)

γ = .03, k_t what the first step's floor makes of k₀. Only M's noise is more than an expected value
(_prior_noise). The noise of step t depends on g = J d, for which |d|² = e_{t−1}²/S_t² + sd_g² tr(J⁻²). The last two steps are averaged as in the recipe. The ratio of a
coefficient's privacy and sampling standard errors does not depend on the residual scale.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import betaincinv

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.design import Design
from reticent_server.domain.facts import Profile
from reticent_server.domain.steps import FloatArray
from reticent_server.estimators.newton.coding import Coding
from reticent_server.estimators.newton.covariance import (
    StepRecord,
    privacy_covariance,
    sampling_covariance,
)
from reticent_server.estimators.newton.jacobian import (
    FIRST_FLOOR,
    first_curvature,
    later_curvature,
    noise_norm,
)
from reticent_server.estimators.newton.report import back_transform
from reticent_server.estimators.newton.schedule import ERROR_FLOOR, SCALE_GROWTH, START_ERROR
from reticent_server.estimators.newton.settings import Dimensions, Settings
from reticent_server.estimators.standardise import dummy_frequency
from reticent_server.numerics.mallows_moments import weight_moments

_CONTRACTION = 0.03
_LEAST_SHARE = 0.05
_CLOSE, _TRIALS = 1.02, 16
_SEMICIRCLE = 2 * betaincinv(1.5, 1.5, (np.arange(32) + 0.5) / 32) - 1  # quantiles
DOMINATED = 3.0
_USELESS, _TWO_SIDED = 0.25, 1.96


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """ratios: (q,) privacy over sampling standard error in the reported order, NaN where the profile
    does not say how rare a dummy is. error: the expected L2 distance from the fit without noise, of
    the standardised coefficients in units of the response's scale."""

    ratios: FloatArray
    error: float

    @property
    def worst(self) -> float:
        """The largest ratio that can be forecast; 0 where none can."""
        return float(np.nanmax(self.ratios, initial=0.0))


def forecast_fit(
    coding: Coding, settings: Settings, sizes: Dimensions, profile: Profile | None
) -> Forecast:
    """Goes through a planned fit in expectation."""
    n = sizes.n * share_in_use(coding.design, profile, sizes.n)
    expected = _expected(coding, sizes, profile)
    e, S, records = START_ERROR, 1.0, list[StepRecord]()
    for t in range(settings.steps):
        subset = settings.subset(t)
        added = n / subset.stride if subset else n
        record = _record(settings, sizes, expected.M, added, t, (e, S), records)
        kept = 1 - record.k0 / max(float(record.curvature.J[0, 0]), record.k0)
        e = (_CONTRACTION + kept**2) * e + float(np.trace(privacy_covariance([record], [1.0])))
        if t < settings.steps - 1:
            S = min(ERROR_FLOOR + e, SCALE_GROWTH * S)
        records.append(record)
    meat = settings.family.mean_square * expected.meat
    sampling = sampling_covariance(records[-1], meat, n)
    back = back_transform(coding)
    variances = (np.diag(back.covariance(C)) for C in (_last(records, settings), sampling))
    privacy, own = (np.maximum(v, np.finfo(float).tiny) for v in variances)
    known = expected.known[list(coding.reported_order)]
    return Forecast(np.where(known, np.sqrt(privacy / own), np.nan), sqrt(e))


def share_in_use(design: Design, profile: Profile | None, n: int) -> float:
    """The released share of records without a missing value, as if columns missed them
    independently; a `where` is taken to hold for all."""
    share = 1.0
    for name in design.missing_columns:
        column = profile.columns.get(name) if profile else None
        missing = (column.missing or 0.0) if column else 0.0
        share *= min(max(1 - missing / n, _LEAST_SHARE), 1.0)
    return share


def least_rho(
    worst: Callable[[int], float], target: float, start: int, limits: tuple[int, int]
) -> int | None:
    """The amount, within 2 %, at which worst(ρ) falls to `target`; None where it does not within the
    limits. It falls about as ρ^(−1/2), with small jumps where another number of steps is planned."""
    low, high = limits
    at, reached = min(max(start, low), high), False
    for _ in range(_TRIALS):
        ratio = worst(at)
        if ratio <= target:
            high, reached = at, True
        else:
            low = at
        if high <= low * _CLOSE:
            break
        guess = int(at * (1 + _CLOSE) / 2 * (ratio / target) ** 2)
        at = guess if low < guess < high else _between(low, high, reached=reached)
    return high if reached else None


def _between(low: int, high: int, *, reached: bool) -> int:
    """The geometric mean of two amounts; the upper one where it has not been tried."""
    return int(sqrt(low) * sqrt(high)) if reached else high


@dataclass(frozen=True, slots=True, eq=False)
class _Expected:
    """In standardised terms with white columns white: M (q, q), the Jacobian in units of k₀; meat
    (q, q) for E ψ² = 1; known (q,): False for a dummy of unknown frequency."""

    M: FloatArray
    meat: FloatArray
    known: FloatArray


def _expected(coding: Coding, sizes: Dimensions, profile: Profile | None) -> _Expected:
    slopes = sizes.white_size - int(sizes.intercept)
    moments = weight_moments(slopes, sizes.white_radius_squared, sizes.intercept)
    mean, square = moments.weight, moments.weight**2
    norm, squared_norm = moments.norm or 1.0, moments.squared_norm
    found = [dummy_frequency(term, profile) for term in coding.rare]
    places = zip(found, coding.rare_locations, strict=True)
    away = [(w.scale**2 if f is None else abs(f - w.centre), 1 / w.scale) for f, w in places]
    second = _second_moment(sizes, away)
    white = np.zeros(second.shape, dtype=bool)
    white[: sizes.white_size, : sizes.white_size] = True
    return _Expected(
        M=np.where(white, second, mean / norm * second),
        meat=np.where(white, squared_norm * second, square * second),
        known=np.array([True] * sizes.white_size + [f is not None for f in found]),
    )


def _second_moment(sizes: Dimensions, away: Sequence[tuple[float, float]]) -> FloatArray:
    """(q, q) of white columns and independent dummies, each (share away from the usual value, 1/b)."""
    second = np.eye(sizes.size)
    if not away:
        return second
    share, size = np.array(away).T
    mean = share * size
    rare = slice(sizes.white_size, None)
    second[rare, rare] = np.outer(mean, mean) + np.diag(share * (1 - share) * size**2)
    if sizes.intercept:
        second[0, rare] = second[rare, 0] = mean
    return second


def _record(
    settings: Settings,
    sizes: Dimensions,
    M: FloatArray,
    n: float,
    t: int,
    error: tuple[float, float],
    before: Sequence[StepRecord],
) -> StepRecord:
    """Step t with what it releases at its expected value, per record in use. error: (e_{t−1}², S_t²)."""
    e, S = error
    k0, q, unit = settings.curvature_norm(t), sizes.size, sizes.unit_rows / n
    R = sqrt(sizes.radius_squared)
    clip = R * settings.family_at(t).bound
    gradient_sd = 2 * clip * unit / sqrt(2 * settings.gradients[t] / RHO_UNITS)
    sd = sqrt(2) * R**2 * unit / sqrt(2 * settings.jacobians[t] / RHO_UNITS)
    sd *= settings.relaxation(t)
    J, plain = k0 * M, np.eye(q)
    curvature = later_curvature(J, sd, k0, M, plain) if t else first_curvature(J, sd, k0)
    d = e / S + gradient_sd**2 * float(np.sum(np.linalg.inv(curvature.J) ** 2))
    prior = _prior_noise(before[0]) if before else 0.0
    gradient = curvature.J @ np.full(q, sqrt(d / q))
    return StepRecord(sqrt(S), gradient, gradient_sd, k0, curvature, prior)


def _prior_noise(first: StepRecord) -> float:
    """sd_M √(mean of m⁻²), m the eigenvalues of an M that was released with this noise.

    Its part of the covariance is as M⁻³, that of the gradient as M⁻¹. The eigenvalues of symmetric noise
    follow the semicircle law on ±ν (Wigner 1958); what they add to 1 is floored as the recipe does.
    """
    sd, q = first.curvature.noise / first.k0, len(first.gradient)
    m = np.maximum(1 + noise_norm(sd, q) * _SEMICIRCLE, FIRST_FLOOR * noise_norm(sd, q))
    return sd * float(np.sqrt(np.mean(m**-2.0)))


def _last(records: Sequence[StepRecord], settings: Settings) -> FloatArray:
    """The privacy covariance of the last step or, as in the recipe, of the average of the last two."""
    steps = list(records[-2:])
    noise = [float(np.trace(privacy_covariance([s], [1.0]))) for s in steps]
    f = min(0.5, noise[1] / (noise[0] + noise[1])) if settings.averaged else 0.0
    return privacy_covariance(steps, [f, 1 - f])


def forecast_notes(fit: Forecast, coding: Coding, terms: Sequence[str]) -> list[str]:
    """What the forecast means for the intervals, in sentences."""
    found = []
    reach = _TWO_SIDED * fit.error / sqrt(coding.size)
    if reach > _USELESS:
        found.append(
            "The answer will be useless: from privacy noise alone, intervals are forecast to reach "
            f"{reach:.2g} standard deviations of the response for each of a term, to either side."
        )
    noisy = [t for t, r in zip(terms, fit.ratios, strict=True) if r > DOMINATED]
    if noisy:
        found.append(
            f"Privacy noise will dominate: intervals of {', '.join(noisy)} will be up to "
            f"{sqrt(1 + fit.worst**2):.2g} times as wide as sampling alone would make them."
        )
    unknown = [t for t, r in zip(terms, fit.ratios, strict=True) if np.isnan(r)]
    if unknown:
        found.append(f"No profile says how rare these dummies are: {', '.join(unknown)}.")
    if coding.design.where is not None:
        found.append(
            "The forecast takes `where` to hold for all records; where it holds for a share s, "
            "the privacy noise is larger by 1/sqrt(s), relative to the sampling error."
        )
    return found
