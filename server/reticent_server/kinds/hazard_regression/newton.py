# SPDX-License-Identifier: Apache-2.0
"""Newton steps of a hazard regression in (ln λ, β), and the covariance of the last one: post-processing.

With g = (g_α, g_β) the released scores, D_j = Σ Λ_j, B_j = Σ w u Λ_j, A = Σ w u uᵀ ΣΛ (sums over persons; D, B, A
released) the derivative is −[[D, B], [Bᵀ, A]], so with ū_j = B_j/D_j

    P = A − Σ_j D_j ū_j ū_jᵀ,   g* = g_β − Σ_j ū_j g_αj,   dβ = P⁻¹g*,   d ln λ = D⁻¹g_α − ū dβ

g* does not depend on small errors of ln λ. Of B only two combinations of its rows are released, their sum and
their trend: ū_j = h_jᵀ(HᵀDH)⁻¹HᵀB with h_j = (1, τ_j). What is not linear in j is of second order.

Covariance: L (M + N) Lᵀ, L the linear map from g to (d ln λ, dβ), M the scores' second moment with D and B in the
baseline's blocks (as at the true hazards) and the released one of w u Σm in β's; N the noise of g. P is
known with the noise of A, s on the diagonal: it adds (s²/2)(|dβ|² I + dβ dβᵀ) to the noise of g*; that of B adds s_B² |(HᵀDH)⁻¹Hᵀg_α|² I.
Source: Holford (1980); Andersen & Gill (1982); of the noise: mechanisms.noisy_sum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.fitting.covariance import calmed_meat
from reticent_server.fitting.identifiability import RESOLVED, Directions, split_variance
from reticent_server.kinds.hazard_regression.maps import BASELINE_SCALE, CROSS_SCALE, trend
from reticent_server.numerics.matrices import eigen, floored, rebuild

_LEAST_SHARE = 0.1
"""Of the mean eigenvalue: the least of the first step's, which is damped all the same."""
_LONGEST = 1.5  # in ln λ: of a first step, beyond which its linear approximation says little
_LEAST_EVENTS = 1.0  # D of an interval, at the least: one event
_LEAST = 1e-3  # smallest eigenvalue of a meat relative to its mean, as of fitting.covariance


@dataclass(frozen=True, slots=True, eq=False)
class FirstStep:
    """dβ (k,) and d ln λ (J,)."""

    slopes: FloatArray
    log_hazards: FloatArray


def first_step(vector: Released, root: Released, events: FloatArray) -> FirstStep:
    """From β = 0, damped as by a prior N(0, I) of β in whitened units. events: (J,) expected, about D."""
    J = len(events)
    baseline, slopes = vector.values[:J] / BASELINE_SCALE, vector.values[J:]
    k = len(slopes)
    P = floored(root.values, max(_LEAST_SHARE * np.trace(root.values) / k, root.sd, _LEAST_EVENTS))
    inverse: FloatArray = np.asarray(np.linalg.inv(P))
    noise = inverse @ (vector.sd**2 * np.eye(k) + P) @ inverse
    way: FloatArray = np.asarray(np.linalg.solve(np.eye(k) + noise, inverse @ slopes))
    return FirstStep(way, np.clip(baseline / events, -_LONGEST, _LONGEST))


@dataclass(frozen=True, slots=True, eq=False)
class LastStep:
    """d ln λ (J,) and dβ (k,); covariances (J + k, J + k) of both, of persons and of noise; directions of β in u."""

    log_hazards: FloatArray
    slopes: FloatArray
    sampling: FloatArray
    privacy: FloatArray
    directions: Directions


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """D (J,), ū (J, k), P (k, k) with its noise sd, the noise's factor HᵀDH's inverse times Hᵀg, by which ū's counts."""

    D: FloatArray
    means: FloatArray
    P: FloatArray
    A: FloatArray
    sd: float
    resolved: NDArray[np.bool_]
    axes: FloatArray
    moved: float


def last_step(
    released: tuple[Released, ...], known: FloatArray, known_sd: float, *, present: bool
) -> LastStep:
    """From `score`, `root`, `cross`, `meat` as released. known: (J,) another measure of D with its noise sd."""
    vector, root, cross, meat = released
    J, k = len(known), len(root.values)
    g_a, g_b = vector.values[:J] / BASELINE_SCALE, vector.values[J:]
    blocks = _blocks(root, cross, known, known_sd, g_a)
    inverse: FloatArray = np.asarray(np.linalg.inv(blocks.P))
    score = g_b - blocks.means.T @ g_a
    slopes = inverse @ score
    L = _linear_map(blocks, inverse)
    M = _second_moment(blocks, meat)
    a = np.append(np.full(J, vector.sd / BASELINE_SCALE), np.full(k, vector.sd))
    extra = blocks.sd**2 / 2 * (slopes @ slopes * np.eye(k) + np.outer(slopes, slopes))
    extra += cross.sd**2 * blocks.moved * np.eye(k)
    privacy = L @ np.diag(a**2) @ L.T + L[:, J:] @ extra @ L[:, J:].T
    sampling = L @ M @ L.T
    total = (privacy + sampling)[J:, J:]
    E = blocks.axes
    vectors = E @ split_variance(E.T @ total @ E, ~blocks.resolved)
    directions = Directions(vectors, blocks.resolved & present)
    return LastStep(g_a / blocks.D - blocks.means @ slopes, slopes, sampling, privacy, directions)


def _blocks(
    root: Released, cross: Released, known: FloatArray, known_sd: float, g_a: FloatArray
) -> _Blocks:
    J, k = len(known), len(root.values)
    sd = cross.sd / CROSS_SCALE
    precise, other = 1 / max(sd, 1e-9) ** 2, 1 / max(known_sd, 1e-9) ** 2
    D = (precise * cross.values[:J] / CROSS_SCALE + other * known) / (precise + other)
    D = np.maximum(D, max(_LEAST_EVENTS, 1 / np.sqrt(precise + other)))
    H = np.column_stack([np.ones(J), trend(J)]) if J > 1 else np.ones((1, 1))
    inner = np.linalg.inv(H.T @ (H * D[:, None]))
    B = cross.values[J:].reshape(2, k)[: H.shape[1]]
    means = H @ (inner @ B)
    noise = cross.sd**2 * float(np.trace(inner)) * np.eye(k)  # of the squares taken off
    P = root.values - means.T @ (means * D[:, None]) + noise
    values, axes = eigen(P)
    wide = root.sd + cross.sd**2 * float(np.trace(inner))
    resolved = values > RESOLVED * wide
    P = rebuild(np.maximum(values, max(wide, _LEAST_EVENTS)), axes)
    moved = float(np.sum((inner @ (H.T @ g_a)) ** 2))
    return _Blocks(D, means, P, root.values, root.sd, resolved, axes, moved)


def _linear_map(blocks: _Blocks, inverse: FloatArray) -> FloatArray:
    """L (J + k, J + k)."""
    J, k = blocks.means.shape
    slopes = np.hstack([-inverse @ blocks.means.T, inverse])
    own = np.hstack([np.diag(1 / blocks.D), np.zeros((J, k))])
    return np.vstack([own - blocks.means @ slopes, slopes])


def _second_moment(blocks: _Blocks, meat: Released) -> FloatArray:
    """M (J + k, J + k): positive semi-definite, with what is left of β's block after the baseline's as measured."""
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
