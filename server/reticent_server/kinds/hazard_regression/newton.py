# SPDX-License-Identifier: Apache-2.0
"""Newton steps of a hazard regression in (ln λ, β), and the covariance of the last one:
post-processing.

With g = (g_α, g_β) the released scores, D_j = Σ Λ_j, B_j = Σ w u Λ_j, A = Σ w u uᵀ ΣΛ (sums over
persons; D, B, A released) the derivative is −[[D, B], [Bᵀ, A]], so with ū_j = B_j/D_j

    P = A − Σ_j D_j ū_j ū_jᵀ,   g* = g_β − Σ_j ū_j g_αj,   dβ = P⁻¹g*,   d ln λ = D⁻¹g_α − ū dβ

g* does not depend on errors of ln λ. Of B only two or three combinations of its rows are released
(maps.along): ū_j = h_jᵀ(HᵀDH)⁻¹HᵀB with the rows h_j of H. What noise there is in g_αj comes with
ū_j into g*, and what error there is in ln λ_j with what is left of B_j. With e² the variance of D_j
times that error, from the release of the baseline, and s_α² of g_αj,

    g* = g_β − Σ_j κ_j ū_j g_αj,   P = A − Σ_j κ_j D_j ū_j ū_jᵀ,   κ_j = (e² + D_j)/(e² + D_j + s_α²)

is the combination of the least variance; (1 − κ_j)² e² ū_j ū_jᵀ is added to the noise of g*. P is
multiplied by 1 + Σg_αj/ΣD_j: expected events become those that were seen, as the hazards' common
error has P too large or too small.

Covariance: L (M + N) Lᵀ, L the linear map from g to (d ln λ, dβ), M the scores' second moment with
D and B in the baseline's blocks (as at the true hazards) and the released one of w u Σm in β's; N
the noise of g. P is known with the noise of A, s on the diagonal: it adds (s²/2)(|dβ|² I + dβ dβᵀ)
to the noise of g*; that of B adds s_B² |(HᵀDH)⁻¹Hᵀg_α|² I. Source: Holford (1980); Andersen & Gill
(1982); of the noise: mechanisms.noisy_sum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.covariance import calmed_meat
from reticent_server.fitting.identifiability import Directions, split_variance
from reticent_server.fitting.trust import clear
from reticent_server.kinds.hazard_regression.maps import BASELINE_SCALE, CROSS_SCALE, MANY, along
from reticent_server.numerics.matrices import eigen, floored, rebuild

_LEAST_SHARE = 0.1
"""Of the mean eigenvalue: the least of the first step's, which is damped all the same."""
_LENGTHENED = 1.1
"""Times: a first step. Its curvature is A, with the baseline's part, so that it ended 14 % short of
the slopes (24 % with an offset that goes with one), and the last step .2 (.6) standard errors short
(simulated, n = 20,000). To release ΣB_j with it had more noise: slopes were a tenth worse at
n = 5,000. Not with few intervals, of small tables, whose first step is noise."""
_LONGEST = 1.5  # in ln λ: of a first step, beyond which its linear approximation says little
_MOST_SCALED = 2.0  # times: of P, beyond which the sum of g_α is noise
_LEAST_EVENTS = 1.0  # D of an interval, at the least: one event
_OF_TWO = 2.0  # e² in variances of one release: ln λ_j is of events seen and expected
_LEAST = 1e-3  # smallest eigenvalue of a meat relative to its mean, as of fitting.covariance


@dataclass(frozen=True, slots=True, eq=False)
class FirstStep:
    """dβ (k,) and d ln λ (J,)."""

    slopes: FloatArray
    log_hazards: FloatArray


def first_step(vector: Released, root: Released, events: FloatArray) -> FirstStep:
    """From β = 0, damped as by a prior N(0, I) of β in whitened units. events: (J,) expected, about
    D."""
    J = len(events)
    baseline, slopes = vector.values[:J] / BASELINE_SCALE, vector.values[J:]
    k = len(slopes)
    P = floored(root.values, max(_LEAST_SHARE * np.trace(root.values) / k, root.sd, _LEAST_EVENTS))
    inverse: FloatArray = np.asarray(np.linalg.inv(P))
    noise = inverse @ (vector.sd**2 * np.eye(k) + P) @ inverse
    way: FloatArray = np.asarray(np.linalg.solve(np.eye(k) + noise, inverse @ slopes))
    far = _LENGTHENED if J >= MANY else 1.0
    return FirstStep(far * way, np.clip(baseline / events, -_LONGEST, _LONGEST))


@dataclass(frozen=True, slots=True, eq=False)
class LastStep:
    """d ln λ (J,) and dβ (k,); covariances (J + k, J + k) of both, of persons and of noise;
    directions of β in u."""

    log_hazards: FloatArray
    slopes: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    directions: Directions


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """D (J,), ū (J, k) and κū, P (k, k) with its noise sd; moved: |(HᵀDH)⁻¹Hᵀκg_α|², by which the
    noise of B counts."""

    D: FloatArray
    means: FloatArray
    used: FloatArray
    P: FloatArray
    sd: float
    resolved: NDArray[np.bool_]
    axes: FloatArray
    moved: float


def last_step(
    released: tuple[Released, ...], known: FloatArray, known_sd: float, *, present: bool
) -> LastStep:
    """From `score`, `root`, `cross`, `meat` as released. known: (J,) another measure of D with its
    noise sd."""
    vector, root, cross, meat = released
    J, k = len(known), len(root.values)
    g_a, g_b = vector.values[:J] / BASELINE_SCALE, vector.values[J:]
    blocks = _blocks(root, cross, (known, known_sd), (g_a, vector.sd / BASELINE_SCALE))
    inverse: FloatArray = np.asarray(np.linalg.inv(blocks.P))
    score = g_b - blocks.used.T @ g_a
    slopes = inverse @ score
    L = _linear_map(blocks, inverse)
    M = _second_moment(blocks, meat)
    a = np.append(np.full(J, vector.sd / BASELINE_SCALE), np.full(k, vector.sd))
    extra = blocks.sd**2 / 2 * (slopes @ slopes * np.eye(k) + np.outer(slopes, slopes))
    extra += cross.sd**2 * blocks.moved * np.eye(k)
    left = blocks.means - blocks.used
    extra += _OF_TWO * known_sd**2 * left.T @ left
    privacy = L @ np.diag(a**2) @ L.T + L[:, J:] @ extra @ L[:, J:].T
    sampling = L @ M @ L.T
    total = (privacy + sampling)[J:, J:]
    E = blocks.axes
    vectors = E @ split_variance(E.T @ total @ E, ~blocks.resolved)
    directions = Directions(vectors, blocks.resolved & present)
    return LastStep(g_a / blocks.D - blocks.means @ slopes, slopes, sampling, privacy, directions)


def _blocks(
    root: Released,
    cross: Released,
    measured: tuple[FloatArray, float],
    baseline: tuple[FloatArray, float],
) -> _Blocks:
    (known, known_sd), (g_a, sd_a) = measured, baseline
    J, k = len(known), len(root.values)
    sd = cross.sd / CROSS_SCALE
    precise, other = 1 / max(sd, 1e-9) ** 2, 1 / max(known_sd, 1e-9) ** 2
    D = (precise * cross.values[:J] / CROSS_SCALE + other * known) / (precise + other)
    D = np.maximum(D, max(_LEAST_EVENTS, 1 / np.sqrt(precise + other)))
    H = along(J)
    inner = np.linalg.inv(H.T @ (H * D[:, None]))
    B = cross.values[J:].reshape(-1, k)
    means = H @ (inner @ B)
    off = _OF_TWO * known_sd**2 + D
    kappa = off / (off + sd_a**2)
    used = kappa[:, None] * means
    noise = cross.sd**2 * float(np.trace(inner)) * np.eye(k)  # of the squares taken off
    P = root.values - used.T @ (means * D[:, None]) + noise
    values, axes = eigen(P)
    wide = root.sd + cross.sd**2 * float(np.trace(inner))
    resolved = clear(values, wide)
    seen = float(np.clip(1 + g_a.sum() / D.sum(), 1 / _MOST_SCALED, _MOST_SCALED))
    P = seen * rebuild(np.maximum(values, max(wide, _LEAST_EVENTS)), axes)
    moved = float(np.sum((inner @ (H.T @ (kappa * g_a))) ** 2))
    return _Blocks(D, means, used, P, root.sd, resolved, axes, moved)


def _linear_map(blocks: _Blocks, inverse: FloatArray) -> FloatArray:
    """L (J + k, J + k)."""
    J, k = blocks.means.shape
    slopes = np.hstack([-inverse @ blocks.used.T, inverse])
    own = np.hstack([np.diag(1 / blocks.D), np.zeros((J, k))])
    return np.vstack([own - blocks.means @ slopes, slopes])


def _second_moment(blocks: _Blocks, meat: Released) -> FloatArray:
    """M (J + k, J + k): positive semi-definite, with what is left of β's block after the baseline's
    as measured."""
    J, k = blocks.means.shape
    shared = blocks.means.T @ (blocks.means * blocks.D[:, None])
    expected = blocks.P + shared
    whole = calmed_meat(meat.values, meat.sd, expected)
    left = whole - shared
    left = floored(left, _LEAST * float(np.trace(whole)) / k)
    cross = blocks.means * blocks.D[:, None]
    M = np.zeros((J + k, J + k))
    M[:J, :J] = np.diag(blocks.D)
    M[:J, J:], M[J:, :J] = cross, cross.T
    M[J:, J:] = left + shared
    return M
