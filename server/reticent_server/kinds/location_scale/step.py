# SPDX-License-Identifier: Apache-2.0
"""A noisy Newton step for Proposal 2, and what is known after it: a Kalman filter of two
coordinates.

At θ = (μ, ln σ), in units (μ/σ, ln σ), let d be the way that is left to the solution and C its
covariance. A step releases the mean score (g₁, m) = (mean ψ, mean ψ²) and the entries e = mean
(1, t1, t²1), t = u/c, of the Jacobian, and with

    g = (g₁, κ ln(m/κ)),   G = [[e₁, c e₂], [2cκe₂/m, 2c²κe₃/m]],   κ = E ψ_c²(N(0, 1))

(the second equation in logarithms: it is nearly linear in ln σ where the scale is far too large) it
measures d as

    z = G⁻¹g,   cov(z − d) = N = G⁻¹(noise of g + noise of G times z)G⁻ᵀ.

θ moves by K z, K = C(C + N)⁻¹, within limits, and C becomes (I − K)C(I − K)ᵀ + KNKᵀ plus what a
step leaves of itself: the square of |way|²/2 in each coordinate, and whatever a limit has cut off.
So steps that are mostly noise move little and add up; C after the last step counts the noise and
what has not been reached. Where z is larger than C and N explain, C is raised by zzᵀ first: a bad
start is only a longer way.

After a long step the two coordinates move each on its own equation (e₂ = 0), as in the classical
alternating algorithm: how a change of σ acts on the first equation is far from linear then, and
Newton steps oscillate.

The entries are filtered as well: from the normal law's, with the noise of each release, and a drift
with each move.
"""

from dataclasses import dataclass
from math import exp, log

import numpy as np
from scipy.special import chdtri

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.trust.thresholds import SURPRISE
from reticent_server.kinds.location_scale.maps import STRETCH
from reticent_server.numerics.psi import Huber

START_SD = 1.0  # of (μ/σ, ln σ): a start from quartiles is nearer on any column without ties
_LONGEST = np.array([2.0, log(4)])  # a step's limits: scales, and a factor of the scale
_REMAINDER = 0.5  # of |way|²: second derivatives over first ones, of the normal law's equations
_DRIFT = 0.5  # change of an entry for a step of length 1: density at the cut, times its range
ENTRY_SD = 0.5  # of an entry before any release, about the normal law's
_LEAST_ENTRY = 0.1  # of the normal law's information: below it a step is not lengthened further
_CLEAR = 2.0  # standard deviations of noise, the same
_CORRELATED = 0.95  # largest |correlation| of the two equations' gradients
_FAR = 0.5  # length of the last step above which the equations are solved one by one
_LEAST_MOMENT = 1e-3  # of κ: the least mean ψ² that a logarithm is taken of, where noise is less


@dataclass(frozen=True, slots=True, eq=False)
class Position:
    """After t steps: θ = (μ, ln σ), covariance C (2, 2), entries (3,) with their variance; way: of
    the last step."""

    mu: float
    log_scale: float
    covariance: FloatArray
    entries: FloatArray
    variance: float
    way: FloatArray

    @property
    def scale(self) -> float:
        """σ, in the units of the data."""
        return exp(self.log_scale)


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredStep:
    """A step's released means: score (2,) of (ψ, aψ²/c), entries (3,), and the noise of an entry of
    each."""

    score: FloatArray
    noise: float
    entries: FloatArray
    entry_noise: float


def normal_entries(c: float) -> FloatArray:
    """(3,) e of a standard normal u."""
    b = Huber(c).mean_derivative
    return np.array([b, 0.0, Huber(c).mean_square / c**2 - (1 - b)])


def start_position(centre: float, scale: float, c: float) -> Position:
    """The public start: (centre, scale) with the sd START_SD, the Jacobian that of
    the normal law."""
    C = START_SD**2 * np.eye(2)
    return Position(centre, log(scale), C, normal_entries(c), ENTRY_SD**2, _LONGEST)


def moved(at: Position, measured: MeasuredStep, c: float) -> Position:
    """The position after a step's releases."""
    entries, variance = _filtered(at, measured)
    kappa, unit = Huber(c).mean_square, c / STRETCH
    least = max(_LEAST_MOMENT * kappa, _CLEAR * unit * measured.noise)
    m = max(unit * measured.score[1], least)
    rows = np.diag([1.0, kappa / m])
    far = float(np.linalg.norm(at.way)) > _FAR
    G = rows @ usable_jacobian(entries, variance, c, m, limit=0.0 if far else _CORRELATED)
    g = np.array([measured.score[0], kappa * log(m / kappa)])
    noise = (measured.noise * rows @ np.diag([1.0, unit])) ** 2
    C = _raised(
        at.covariance, G, noise + variance * rows @ entry_effect(at.covariance, c) @ rows, g
    )
    N = noise + variance * rows @ entry_effect(C, c) @ rows
    K = np.linalg.solve(G @ C @ G.T + N, G @ C).T
    way = K @ g
    bounded = np.clip(way, -_LONGEST, _LONGEST)
    left = (np.eye(2) - K @ G) @ C @ (np.eye(2) - K @ G).T + K @ N @ K.T
    left += np.outer(way - bounded, way - bounded)
    left += (_REMAINDER * float(bounded @ bounded)) ** 2 * np.eye(2)
    units = np.diag([exp(-bounded[1]), 1.0])
    return Position(
        mu=at.mu + at.scale * float(bounded[0]),
        log_scale=at.log_scale + float(bounded[1]),
        covariance=np.asarray(units @ left @ units),
        entries=entries,
        variance=variance + _DRIFT**2 * float(bounded @ bounded),
        way=bounded,
    )


def usable_jacobian(
    entries: FloatArray, variance: float, c: float, m: float, *, limit: float = _CORRELATED
) -> FloatArray:
    """A (2, 2) = [[e₁, c e₂], [2c e₂, 2c² e₃]] with c²e₃ ≤ m, the mean of ψ²; its diagonal no less
    than a tenth of the normal law's and twice its noise, |e₂| ≤ limit √(e₁e₃)."""
    least = np.maximum(_LEAST_ENTRY * normal_entries(c), _CLEAR * variance**0.5)
    a, d = max(entries[0], least[0]), min(max(entries[2], least[2]), m / c**2)
    most = limit * (a * d) ** 0.5
    b = float(np.clip(entries[1], -most, most))
    return np.array([[a, c * b], [2 * c * b, 2 * c * c * d]])


def _filtered(at: Position, measured: MeasuredStep) -> tuple[FloatArray, float]:
    """Entries and their variance with a step's release."""
    gain = at.variance / (at.variance + measured.entry_noise**2)
    return at.entries + gain * (measured.entries - at.entries), (1 - gain) * at.variance


def entry_effect(C: FloatArray, c: float) -> FloatArray:
    """Covariance (2, 2) of (error of A) d, d of covariance C, for entries with independent errors
    of variance 1."""
    first, second = C[0, 0] + c**2 * C[1, 1], 2 * c**2 * C[0, 1]
    return np.array([[first, second], [second, 4 * c**2 * first]])


def _raised(C: FloatArray, G: FloatArray, N: FloatArray, g: FloatArray) -> FloatArray:
    """C, with the way that g asks for where gᵀ(GCGᵀ + N)⁻¹g is larger than chance makes it."""
    if float(g @ np.linalg.solve(G @ C @ G.T + N, g)) <= chdtri(2, SURPRISE.value):
        return C
    z = np.linalg.solve(G, g)
    return np.asarray(C + np.outer(z, z))
