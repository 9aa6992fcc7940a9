# SPDX-License-Identifier: Apache-2.0
"""Huber's Proposal 2 with noise by its joint influence: location and scale of n records,
asymptotic.

Domain: n records z, unit a row. Output: (m, s), the location and scale of
numerics.proposal2_convex. Always replies. Tier: conditional.

    (m̂, ŝ) + γ f(ε, δ) Z,   Z ~ N(0, I₂),
    γ = ŝ sup{‖S_n⁻¹v(t)‖: |t| ≤ c},   f(ε, δ) = 5√(2 ln n ln(2/δ))/(εn)

γ is the gross-error sensitivity of the pair: both rows of S_n⁻¹ count, so that it holds on skewed
laws too, where the bounds of location and scale taken one by one do not. The conditions of Theorem
1 of the source, p = 2:

1. v is bounded by ‖v(c)‖ or κ/2, and its derivative in (m, s), 1{|u| < c}(1, u)(1, u)ᵀ/s, by (1 +
   c²)/s, s ≥ 1 − D;
2. S_n is bounded away from 0 for the table and all tables nearby: an assumption. Not so where more
   than a part of the records has one value;
3. the mean of that derivative is smooth in (m, s): an assumption, as for Huber's regression. It
   holds where the records have a bounded density around m ± cs.

Under these γ is within a constant of smooth for n ≥ n₀ and the release (ε, δ)-DP. Nothing here
tests them. For zcdp accounts it is δ-approximately ½ε²-zCDP (Bun & Steinke 2016). The scale depends
on the data and leaves this module only as noise; eigenvalues of S_n count as `floor` at least.
Noise is discrete. Errors: none that depend on the data. Source: Avella-Medina (2021), Theorem 1 and
Example 1.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.accounting.conversions import rho_of_pure
from reticent_server.domain.columns import AsymptoticLocationScale
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms.asymptotic_fit import noise
from reticent_server.numerics.proposal2_convex import (
    Proposal2Problem,
    curvature,
    largest_influence,
    solve,
    within,
)
from reticent_server.numerics.smooth_p_value import noise_factor


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredLocationScale:
    """Private. theta (2,), and the standard deviation of the noise of each."""

    theta: FloatArray
    noise: float


def cost(part: AsymptoticLocationScale) -> PrivacyCost:
    """(ε, δ) of the part."""
    return PrivacyCost(part.epsilon, part.delta, rho_of_pure(part.epsilon), part.delta)


def problem_of(part: AsymptoticLocationScale, n: int) -> Proposal2Problem:
    """The public side of the fit."""
    return Proposal2Problem(part.tuning, n, part.floor, part.reach, part.slack)


def factor(part: AsymptoticLocationScale, n: int) -> float:
    """f(ε, δ)."""
    return noise_factor(n, part.epsilon / EPSILON_UNITS, part.delta / DELTA_UNITS)


def measure(part: AsymptoticLocationScale, rows: FloatArray) -> MeasuredLocationScale:
    """The solution of (1, n) records, and the scale of its noise."""
    n = rows.shape[1]
    problem = problem_of(part, n)
    z = within(problem, rows[0])
    m, s = solve(problem, z)
    gamma = s * largest_influence(curvature(z, m, s, part.tuning), part.tuning, part.floor)
    return MeasuredLocationScale(np.array([m, s]), gamma * factor(part, n))


def release(part: AsymptoticLocationScale, values: Private[FloatArray]) -> Released:
    """(2,) noisy location and scale within the box; sd 0."""
    rows = values.unwrap()
    measured = measure(part, rows)
    centre, n = np.array([0.0, 1.0]), rows.shape[1]
    step = problem_of(part, n).least_influence * factor(part, n) * 2.0**-20
    noisy = noise(measured.theta, np.full(2, measured.noise), step)
    return Released(np.clip(noisy, centre - part.reach, centre + part.reach), 0.0)
