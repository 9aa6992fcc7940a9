# SPDX-License-Identifier: Apache-2.0
"""Proposal 2 by noisy Newton steps: a generator that sees released values only.

Each of a fixed number of steps releases the mean score and the Jacobian's entries at a position and
moves it (step). The last also releases the second moments Q of the score; of these mean ψ² is κ at
the solution and is not taken from the release. With A the filtered Jacobian, the covariance of
(μ/σ, ln σ) is

    V = A⁻¹(Q/n)A⁻ᵀ         of sampling,
    C + bbᵀ + A⁻¹E(V)A⁻ᵀ    of privacy, and of the distance that is left to the solution,

b what the noise of the number of records in use does to the second equation (all steps share it),
E(V) what the noise of A makes of a sampling error (step.entry_effect).

Location and scale are one solution: both are estimable or neither is. They are not
  - where a value is held by so many records that Proposal 2 has no positive root (plan): σ shrinks
    from step to step, and the information of the records within the cut goes to 0;
  - where the information does not stand out of its noise, or the position is not known to a
    fraction of a scale.
"""

from collections.abc import Generator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.design import Design
from reticent_server.domain.steps import FloatArray, Released, Step, SumStep
from reticent_server.fitting.identifiability import any_present
from reticent_server.fitting.public.standardise import Location
from reticent_server.fitting.trust.thresholds import (
    LAST_LOCATION_STEP,
    LOCATION_INFORMATION,
    RESOLVED,
)
from reticent_server.kinds.location_scale.maps import (
    FOURTH,
    STRETCH,
    THIRD,
    LocationScaleMap,
)
from reticent_server.kinds.location_scale.settings import LocationScaleSettings
from reticent_server.kinds.location_scale.step import (
    MeasuredStep,
    Position,
    entry_effect,
    moved,
    normal_entries,
    start_position,
    usable_jacobian,
)
from reticent_server.numerics.matrices import eigen
from reticent_server.numerics.psi import Huber

_LEAST_SHARE = 0.002  # of n: the least number of records in use that sums are divided by
# relative, of ψ's third and fourth moments about the normal law's before the release
_MEAT_SD = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class LocationScaleFitted:
    """location, scale; sampling and privacy covariance (2, 2) of the two; estimable; settled:
    whether the last step was short; count as released; jacobian: A (2, 2)."""

    location: float
    scale: float
    sampling: FloatArray
    privacy: FloatArray
    estimable: bool
    settled: bool
    count: float
    jacobian: FloatArray


Fitting = Generator[Step, tuple[Released, ...], LocationScaleFitted]


def fit(design: Design, column: str, settings: LocationScaleSettings, start: Location) -> Fitting:
    """Runs the recipe from the public start."""
    c, n, count_sd, present = settings.c, float(settings.n), 0.0, True
    at = start_position(start.centre, start.scale, c)
    for t in range(settings.steps):
        count = t == 0 and settings.count > 0
        score_map = LocationScaleMap(design, column, at.mu, at.scale, c, count)
        released = yield SumStep(f"proposal 2 step {t + 1}", settings.parts(t), score_map)
        if count:
            n = float(np.clip(released[-1].values[0], _LEAST_SHARE * settings.n, settings.n))
            count_sd, present = released[-1].sd / n, any_present(released[-1])
        at = moved(at, _measured(released, n, c), c)
    return _fitted(at, _meat(released, n, c), c, n, count_sd, present=present)


def _measured(released: tuple[Released, ...], n: float, c: float) -> MeasuredStep:
    score, entries = released[0], released[1]
    return MeasuredStep(
        c * score.values[:2] / n, c * score.sd / n, entries.values / n, entries.sd / n
    )


def _meat(released: tuple[Released, ...], n: float, c: float) -> FloatArray:
    """Q (2, 2) of (ψ, ψ² − κ): κ, and what the release and the normal law say of ψ's third and
    fourth moments."""
    family, score = Huber(c), released[0]
    kappa = family.mean_square
    first, second, odd, even = score.values / n
    third = c**3 * (first + odd / THIRD)
    fourth = c**4 * (second / STRETCH - even / FOURTH) - kappa**2
    sd = c**4 * score.sd / n * sqrt(1 / STRETCH**2 + 1 / FOURTH**2)
    prior, most = _normal_fourth(c) - kappa**2, kappa * (c * c - kappa)
    gain = (_MEAT_SD * prior) ** 2 / ((_MEAT_SD * prior) ** 2 + sd**2)
    q = float(np.clip(prior + gain * (fourth - prior), 0.1 * prior, most))
    r = float(np.clip(gain * third, -sqrt(kappa * q), sqrt(kappa * q)))
    return np.array([[kappa, r], [r, q]])


def _normal_fourth(c: float) -> float:
    """E ψ_c⁴ of a standard normal u: 3b − 2φ(c)(c³ + 3c) + c⁴(1 − b)."""
    b, density = Huber(c).mean_derivative, np.exp(-c * c / 2) / sqrt(2 * np.pi)
    return float(3 * b - 2 * density * (c**3 + 3 * c) + c**4 * (1 - b))


def _fitted(
    at: Position, Q: FloatArray, c: float, n: float, count_sd: float, *, present: bool
) -> LocationScaleFitted:
    A = usable_jacobian(at.entries, at.variance, c, Huber(c).mean_square)
    inverse, scale = np.linalg.inv(A), at.scale
    b = inverse[:, 1] * Huber(c).mean_square * count_sd
    sampling = inverse @ (Q / n) @ inverse.T
    blurred = at.variance * inverse @ entry_effect(sampling, c) @ inverse.T
    privacy = at.covariance + np.outer(b, b) + blurred
    settled = bool(np.max(np.abs(at.way)) < LAST_LOCATION_STEP.value)
    spread = sqrt(float(np.max(np.diag(privacy + sampling))))
    return LocationScaleFitted(
        location=at.mu,
        scale=scale,
        sampling=scale**2 * np.asarray(sampling),
        privacy=scale**2 * privacy,
        estimable=present and settled and spread < LAST_LOCATION_STEP.value and _informed(at, c),
        settled=settled,
        count=n,
        jacobian=A,
    )


def _informed(at: Position, c: float) -> bool:
    """Whether the least eigenvalue of [[e₁, e₂], [e₂, e₃]], relative to the normal law's, stands
    out of its noise and is not a small part of it."""
    e1, e2, e3 = at.entries
    unit = 1 / np.sqrt(normal_entries(c)[[0, 2]])
    values, vectors = eigen(np.array([[e1, e2], [e2, e3]]) * np.outer(unit, unit))
    v, w = vectors[:, 0] * unit
    noise = sqrt(at.variance * (v**4 + 4 * v**2 * w**2 + w**4))
    return bool(values[0] > max(LOCATION_INFORMATION.value, RESOLVED.value * noise))
