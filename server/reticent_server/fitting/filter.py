# SPDX-License-Identifier: Apache-2.0
"""Where the fit is and how far off it may be: a Kalman filter over noisy Newton steps.

With d = θ* − θ the way that is left, C its covariance (prior, then posterior), a step's released
mean score is

    g = H d + e,   H = J/unit,   cov e = sd²I + (what H is wrong by)·d

and the step is θ ← θ + Gg with G = CHᵀ(HCHᵀ + N)⁻¹, C ← (I − GH)C(I − GH)ᵀ + GNGᵀ: steps that are
mostly noise move little, steps that tell the way move all of it, and what the last step has not
reached is in C. H is expected where no Jacobian is released, which is in all steps but the last one
or two: from the public rows and from C itself, which says how far residuals are still off (Stein's
lemma; Score.expected), so that a direction whose rows all lie beyond the cut is known to move
slowly. In the frame B, BJB = I, its error has entries of standard deviation √(τᵢτⱼ) (half of the
variance off the diagonal), and a shape error that the public rows may have.

Source: Kalman (1960); Avella-Medina, Bradshaw & Loh (2023) for noisy Newton steps.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.fitting.public.coordinates import second_moment
from reticent_server.fitting.whitening import Whitening
from reticent_server.numerics.matrices import floored, power

# relative eigenvalue at which an expected curvature is inverted: smaller ones are rounding
SMALLEST = 1e-9
_DRIFT = 0.03  # relative change of E between the step at which it was measured and the end
_FAR = 0.7  # see missed_curvature
_USABLE = (0.05, 5.0)  # eigenvalues of a measured curvature relative to the expected one
_SLOWEST = 0.8  # share of the way left by a step that is taken into account
LEAST_NOISE = 1e-14  # of a covariance that is inverted
_BENT_STEPS, _LONGEST = 20, 1.0  # Gauss-Newton steps of a bent score, and the longest of them, in u


@dataclass(frozen=True, slots=True, eq=False)
class StepCurvature:
    """H of a step, J per unit of the score.

    J: (q, q) in u. E: its correction in the frame B. back: B⁻¹ (q, q), symmetric, BJ̄B = I for the
    expected J̄. error: (q,) τ² and shape: (q,) the relative error of each axis, both in the frame
    B.
    """

    J: FloatArray
    E: FloatArray
    unit: float
    back: FloatArray
    error: FloatArray
    shape: FloatArray

    @property
    def H(self) -> FloatArray:  # noqa: N802 - as in the module's equations
        """(q, q) the change of the mean score for a change of θ, in u."""
        return self.J / self.unit


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """What is known of J relative to the public rows': E (q, q) in the frame B, error τ² (q,) and
    shape (q,).
    """

    E: FloatArray
    error: FloatArray
    shape: FloatArray


def no_correction(whitening: Whitening, shape: float) -> Correction:
    """Before a Jacobian is released: E = I, with the errors that a whitening and the rows' shape
    leave.
    """
    errors = np.hypot(shape, whitening.unsettled)
    return Correction(np.eye(len(errors)), whitening.error**2, errors)


def corrected_curvature(
    J: FloatArray, unit: float, known: Correction, back: FloatArray | None = None
) -> StepCurvature:
    """The curvature at a step from the public rows' J (q, q). back: its root, where that is
    known."""
    back = power(J, 0.5, SMALLEST) if back is None else back
    return StepCurvature(back @ known.E @ back, known.E, unit, back, known.error, known.shape)


def measured(
    known: Correction,
    back: FloatArray,
    released: FloatArray,
    sd: float,
    far: FloatArray | float = 0.0,
    upto: int | None = None,
) -> tuple[Correction, FloatArray]:
    """After a released Jacobian (q, q) with noise sd; and its noise (q,) in the frame B. back: B⁻¹.

    Entry by entry by the precision of both; eigenvalues are kept within [.05, 5]. far: (q,) of
    `missed_curvature`. upto: axes that are taken from it; in a rare direction all rows may lie
    beyond the cut on the way, and within it at the end.
    """
    B = np.linalg.inv(back)
    noise = sd * np.sum(B**2, axis=1)
    gain = _gain(known, noise, far, upto)
    E = known.E + np.minimum.outer(gain, gain) * (B @ released @ B - known.E)
    return replace(_surer(known, gain), E=floored(E, *_USABLE)), noise


def measured_as_expected(
    known: Correction, noise: FloatArray, far: FloatArray | float = 0.0, upto: int | None = None
) -> Correction:
    """The same where the released Jacobian is the one expected, in a forecast: E stays I. noise:
    (q,) in the frame B.
    """
    return _surer(known, _gain(known, noise, far, upto))


def _gain(
    known: Correction, noise: FloatArray, far: FloatArray | float, upto: int | None
) -> FloatArray:
    """(q,) of each axis."""
    variance = known.error + known.shape**2
    gain = variance / (variance + noise**2 + np.asarray(far) ** 2)
    gain[len(gain) if upto is None else upto :] = 0.0
    return np.asarray(gain)


def _surer(known: Correction, gain: FloatArray) -> Correction:
    """With the errors that a gain (q,) leaves."""
    shape = np.hypot(known.shape * np.sqrt(1 - gain), _DRIFT)
    return Correction(known.E, (1 - gain) * known.error, shape)


def missed_curvature(C: FloatArray, back: FloatArray, unit: float) -> FloatArray:
    """(q,) by how much a Jacobian misses, in the frame B, the mean curvature along the way N(0, C)
    that is left.

    Records that lie far along an axis have residuals beyond the cut while the fit is off there: by
    d standard deviations of a residual, E h u² is less than E h E u² by about .7 d² (while d is
    small).
    """
    return missed_share(np.diag(back @ C @ back), unit)


def missed_share(way: FloatArray, unit: float) -> FloatArray:
    """(q,) the same from the squared way (q,) in the frame B."""
    return np.asarray(_FAR * np.minimum(way / unit**2, 1.0))


def prior(whitening: Whitening, offset: float) -> FloatArray:
    """C (q, q) before any step: no row's predictor is off by much more than `offset`.

    M^(1/2)(E‖u‖²uuᵀ)⁻¹M^(1/2)·offset²: 1/(q + 2) of it for a white direction, less for one of long
    rows.
    """
    return np.asarray(offset**2 * prior_of(whitening.rows))


def prior_of(U: FloatArray) -> FloatArray:
    """The same for an offset of 1, of rows U (rows, q)."""
    norms = np.sum(U**2, axis=1)
    root = power(second_moment(U), 0.5, SMALLEST)
    fourth = (U * norms[:, None]).T @ U / len(U) + SMALLEST * np.eye(U.shape[1])
    return np.asarray(root @ np.linalg.solve(fourth, root))


def within(way: FloatArray) -> FloatArray:
    """A way (q,), or the part of it that is as long as may be."""
    return way * min(1.0, _LONGEST / max(float(np.linalg.norm(way)), SMALLEST))


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The way (q,) that a step goes, C after it."""

    way: FloatArray
    covariance: FloatArray


def moved(
    C: FloatArray,
    curvature: StepCurvature,
    noise: FloatArray,
    g: FloatArray,
    reach: FloatArray | None = None,
) -> Moved:
    """A step from a covariance C (q, q) with the mean score g (q,). noise: (q, q), its covariance.

    reach: (q, q) the covariance that the gain is made for, where it is not C.
    """
    H, wide = curvature.H, C if reach is None else reach
    N = noise + curvature_error(C, curvature) + LEAST_NOISE * np.eye(len(C))
    G = np.asarray(np.linalg.solve(H @ wide @ H.T + N, H @ wide).T)
    return Moved(np.asarray(G @ g), after(C, G, H, N))


def moved_far(
    C: FloatArray,
    curvature: StepCurvature,
    noise: FloatArray,
    g: FloatArray,
    expected: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    farther: float = 1.0,
) -> Moved:
    """A step of a score that is far from linear in the way d: the most likely d under N(0, C) and g
    ~ N(expected(d), N).

    By Gauss-Newton steps, each within a bound. farther: the gain is made for so many times C, so
    that it holds the way back less than C alone would (a mean that levels off tells little of long
    ways). What the expected curvature is wrong by goes with the way that was gone.
    """
    way, left = np.zeros(len(g)), np.zeros_like(C)
    for _ in range(_BENT_STEPS):
        mean, H = expected(way)
        error = _score_error(np.outer(mean, mean) + H @ left @ H.T, curvature)
        N = noise + error + LEAST_NOISE * np.eye(len(C))
        wide = farther * C
        G = np.asarray(np.linalg.solve(H @ wide @ H.T + N, H @ wide).T)
        change = G @ (g - mean + H @ way) - way
        way = way + within(change)
        left = after(C, G, H, N)
    return Moved(way, left)


def limited(step: Moved) -> Moved:
    """A step that changes the predictor of a typical record by 1 at most; what is cut off is added
    to C.

    With a log link the scores of a fit that is far too high are all alike, and lead back by about 1
    in a step: a step that noise has made long would cost all steps after it.
    """
    rest = step.way - within(step.way)
    return Moved(step.way - rest, step.covariance + np.outer(rest, rest))


def unfinished(step: Moved, before: FloatArray | None) -> Moved:
    """A step that goes on the way (q,) of the one before it says that this was too short.

    Steps that leave the share r of what is left each, r = dᵀd₀/(‖d₀‖² + tr C), leave d r/(1 − r)
    after this one (Aitken): it is added to C.
    """
    if before is None:
        return step
    length = float(before @ before) + float(np.trace(step.covariance))
    r = min(max(float(step.way @ before) / length, 0.0), _SLOWEST)
    rest = r / (1 - r) * step.way
    return Moved(step.way, np.asarray(step.covariance + np.outer(rest, rest)))


def after(C: FloatArray, G: FloatArray, H: FloatArray, N: FloatArray) -> FloatArray:
    """C (q, q) after a step of the gain G from a score of slope H and noise N, all (q, q)."""
    left = np.eye(len(C)) - G @ H
    return np.asarray(left @ C @ left.T + G @ N @ G.T)


def curvature_error(C: FloatArray, curvature: StepCurvature) -> FloatArray:
    """(q, q) covariance of what H is wrong by, times the way that is left."""
    return _errors(np.diag(curvature.back @ C @ curvature.back), curvature) / curvature.unit**2


def _score_error(M: FloatArray, curvature: StepCurvature) -> FloatArray:
    """(q, q) the same, where the second moment of the mean score along the way is M (q, q)."""
    B = np.linalg.inv(curvature.back)
    return _errors(np.diag(B @ M @ B), curvature)


def _errors(way: FloatArray, curvature: StepCurvature) -> FloatArray:
    """(q, q) from the squared way (q,) in the frame B."""
    spread = spread_of_error(way, curvature.error, curvature.shape)
    return np.asarray((curvature.back * spread) @ curvature.back)


def spread_of_error(way: FloatArray, error: FloatArray, shape: FloatArray) -> FloatArray:
    """(q,) the variance, on each axis of the frame B, of what H is wrong by times a way of these
    squares (q,). error, shape: as of a Correction.
    """
    tau = np.sqrt(error)
    return np.asarray(tau * (np.sum(tau * way) + tau * way) / 2 + shape**2 * way)
