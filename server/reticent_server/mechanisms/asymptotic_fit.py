# SPDX-License-Identifier: Apache-2.0
"""The minimiser of a convex loss, and p-values, with noise by their influence: the seed mechanism.

Domain: n records, unit a row. Output: coefficients ϑ̂ of numerics.convex_fit and p-values of k
public contrasts. Always replies. Tier: conditional.

    ϑ̂ + γ f(ε, δ) Z,  γ = K/λ_min(M_n),  f(ε, δ) = 5√(2 ln n ln(2/δ))/(εn),  Z ~ N(0, I)
    α_j + γ_αj f(ε_j, δ_j) Z,  α_j = 2Φ(−√n|U_j|),  U_j = (a_jᵀϑ̂ + b_j)/√V_jj,
        γ_αj = 2√n φ*(√n|U_j|) γ_Uj

M_n and Q_n are the means of the records' Hessians and of their squared scores at ϑ̂,
V = M_n⁻¹Q_nM_n⁻¹, and γ_Uj = K‖M_n⁻¹a_j‖/√V_jj bounds the influence of a record on ϑ̂'s contrast.
φ* (numerics.smooth_p_value) takes the place of φ, whose scale is not smooth. By Theorems 1 and 4 of
the source the first is (ε, δ)-DP and the others (ε_j, δ_j)-DP under its Conditions 1–3 and for
n ≥ n₀: M_n is then bounded away from 0 for the table and all tables nearby, so that γ is within a
constant of smooth. Nothing here tests that. Composition: sums of ε and of δ; for zcdp accounts each
is δ-approximately ½ε²-zCDP (Bun & Steinke 2016).

Contrasts are brought to a largest entry of 1, with their offsets: α is a function of their ratio.
One that is 0 or not finite (a contrast is made of what a pilot released) tests nothing: its α is 1,
with the largest noise.

The scales depend on the data: they leave this module only as noise. λ_min counts as `floor` at
least, V_jj as a millionth of its bound at least. Noise is discrete, of at least 2¹⁴ steps. Errors:
none that depend on the data. Source: Avella-Medina (2021), Theorems 1, 4.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from reticent_server.accounting.conversions import rho_of_pure
from reticent_server.domain.columns import AsymptoticFit
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms._sampler import DiscreteGaussian
from reticent_server.numerics.convex_fit import (
    ConvexProblem,
    loss_named,
    records_within,
    second_moments,
    solve,
)
from reticent_server.numerics.smooth_p_value import noise_factor, p_value_noise

# of a noise's scale: rounding to a step then adds 2⁻¹⁴ of it, as the module's docstring says
_LEAST_STEPS = 2.0**14
_P_STEP = 2.0**-48  # granule of a p-value: below any that is told (10⁻¹²)
# of a number in [0, 1]: such a p-value tells nothing, and more noise is no safer
_LARGEST_P_NOISE = 8.0
# a released p-value lies within [10⁻¹², 1 − 10⁻¹²]: post-processing that keeps normal quantiles
# finite
_LEAST_P = 1e-12
# of V_jj's bound, in standard deviations: the millionth of the docstring, which keeps t finite
_LEAST_VARIANCE = 1e-6
_FARTHEST = 1e6  # of t, which is then as good as infinite: 2Φ(−t) is 0 in float64 from 39 on


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredFit:
    """Private. theta (q,), the noise of its coefficients, α and its noise (k,)."""

    theta: FloatArray
    noise: float
    alpha: FloatArray
    alpha_noise: FloatArray


def cost(part: AsymptoticFit) -> PrivacyCost:
    """Sums over the fit and the k p-values."""
    k = len(part.contrasts)
    delta = part.delta_fit + k * part.delta_test
    return PrivacyCost(
        epsilon=part.epsilon_fit + k * part.epsilon_test,
        delta=delta,
        rho=rho_of_pure(part.epsilon_fit) + k * rho_of_pure(part.epsilon_test),
        rho_delta=delta,
    )


def problem_of(part: AsymptoticFit, n: int) -> ConvexProblem:
    """The public side of the fit."""
    return ConvexProblem(
        loss=loss_named(part.loss, part.tuning),
        radius_squared=part.radius_squared,
        n=n,
        size=part.size,
        floor=part.floor,
        reach=part.reach,
        slack=part.slack,
    )


def measure(part: AsymptoticFit, rows: FloatArray) -> MeasuredFit:
    """The fit, the p-values, and the scales of their noise."""
    problem = problem_of(part, rows.shape[1])
    records = records_within(problem, rows)
    theta = solve(problem, records)
    M, Q = second_moments(problem, records, theta)
    values, vectors = np.linalg.eigh(M)
    inverse = (vectors / np.maximum(values, part.floor)) @ vectors.T
    least = max(float(values[0]), part.floor)
    factor = noise_factor(problem.n, *_amounts(part.epsilon_fit, part.delta_fit))
    alpha, alpha_noise = _p_values(part, problem, theta, inverse, Q)
    return MeasuredFit(theta, problem.score_bound / least * factor, alpha, alpha_noise)


def _p_values(
    part: AsymptoticFit,
    problem: ConvexProblem,
    theta: FloatArray,
    inverse: FloatArray,
    Q: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    a, b, sound = _hypotheses(part)
    directions = a @ inverse
    bound = problem.score_bound * np.linalg.norm(directions, axis=1)
    variance = np.einsum("ij,jk,ik->i", directions, Q, directions)
    root = np.sqrt(np.maximum(variance, (_LEAST_VARIANCE * bound) ** 2))
    t = np.minimum(sqrt(problem.n) * np.abs(a @ theta + b) / root, _FARTHEST)
    epsilon, delta = _amounts(part.epsilon_test, part.delta_test)
    noise = p_value_noise(t, bound / root, problem.n, epsilon, delta)
    noise = np.where(sound, np.minimum(noise, _LARGEST_P_NOISE), _LARGEST_P_NOISE)
    return np.where(sound, 2 * ndtr(-t), 1.0), noise


def _hypotheses(part: AsymptoticFit) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """a_j (k, size) and b_j (k,) with a largest entry of a_j of 1, and whether there is such a
    hypothesis."""
    a = np.array(part.contrasts, dtype=np.float64).reshape(-1, part.size)
    b = np.array(part.offsets, dtype=np.float64)
    with np.errstate(all="ignore"):
        size = np.abs(a).max(axis=1)
        a, b = a / size[:, None], b / size
        sound = np.isfinite(a).all(axis=1) & ~np.isnan(b)
    plain = np.eye(1, part.size)
    limit = _FARTHEST**2
    return (
        np.where(sound[:, None], a, plain),
        np.clip(np.where(sound, b, 0.0), -limit, limit),
        sound,
    )


def release(part: AsymptoticFit, values: Private[FloatArray]) -> Released:
    """(q + k,) noisy coefficients within ±reach, and noisy p-values inside of (0, 1); sd 0."""
    rows = values.unwrap()
    measured = measure(part, rows)
    g = granule(part, rows.shape[1])
    theta = np.clip(measured.theta, -part.reach, part.reach)
    noisy = noise(theta, np.full(part.size, measured.noise), g)
    p = noise(measured.alpha, measured.alpha_noise, _P_STEP)
    return Released(
        np.append(np.clip(noisy, -part.reach, part.reach), np.clip(p, _LEAST_P, 1 - _LEAST_P)), 0.0
    )


def granule(part: AsymptoticFit, n: int) -> float:
    """g: 2⁻²⁰ of the smallest noise that a table can have; public."""
    problem = problem_of(part, n)
    factor = noise_factor(n, *_amounts(part.epsilon_fit, part.delta_fit))
    return problem.score_bound / problem.largest_curvature * factor * 2.0**-20


def noise(values: FloatArray, sds: FloatArray, step: float) -> FloatArray:
    """values + discrete Gaussian noise of these standard deviations, on multiples of `step`."""
    whole = np.rint(values / step).astype(np.int64)
    scales = np.maximum(sds / step, _LEAST_STEPS)
    drawn = [DiscreteGaussian(float(s)).add(v) for s, v in zip(scales, whole[:, None], strict=True)]
    return np.array([float(v[0]) for v in drawn]) * step


def _amounts(epsilon: int, delta: int) -> tuple[float, float]:
    return epsilon / EPSILON_UNITS, delta / DELTA_UNITS
