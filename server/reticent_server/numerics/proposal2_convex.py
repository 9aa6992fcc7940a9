# SPDX-License-Identifier: Apache-2.0
"""Huber's Proposal 2 as a convex problem: a solver with a public number of steps, and its
influence.

With u_i = (z_i − m)/s and 1_i = 1{|u_i| < c}, location and scale θ = (m, s) minimise the jointly
convex

    F(θ) = mean[s ρ_c(u)] + κs/2,   ∇F = −(mean ψ, (mean ψ² − κ)/2),
    ∇²F = S/s,   S = [[mean 1, mean u1], [mean u1, mean u²1]],   λ_max(S) ≤ 1 + c²

over the box |m| ≤ D, |s − 1| ≤ D < 1. ∇F = 0 are the equations of Proposal 2; a record's influence
is

    s S⁻¹ v(t),   v(t) = (t, (t² − κ)/2),   t = ψ_c(u) ∈ [−c, c]

whatever the law's skewness. ‖S⁻¹v(t)‖² is a quartic in t: its supremum is at an end or at a real
root of its derivative.

`solve` takes projected gradient steps of length 1/B, B = (1 + c²)/(1 − D), from (0, 1). Let F be
μ-strongly convex within r of its minimiser θ* over the box, μ = floor/(1 + D):

1. F − F* ≤ B‖θ₀ − θ*‖²/(2t) ≤ BD²/t, so that after ⌈2BD²/(μr²)⌉ steps F − F* ≤ μr²/2 and the point
   is within r of θ*;
2. each step then multiplies the squared distance by 1 − μ/B at most: ⌈(B/μ) ln(r²/τ²)⌉ steps reach
   τ.

Records beyond |z| = D + c(1 + D) have |u| ≥ c in all of the box: they are moved there, which
changes nothing. Sums over records between two points are differences of sums over the sorted
records, all of moderate size.

Source: Huber & Ronchetti (2009), ch. 7.7 (the convex form); Beck & Teboulle (2009); Avella-Medina
(2021), Example 1.
"""

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.psi import Huber


def jacobian(u: FloatArray, c: float) -> FloatArray:
    """A (2, 2) = [[mean 1, mean u1], [2 mean u1, 2 mean u²1]] with 1 = 1{|u| < c}, u
    (n,) = (y − μ)/σ."""
    inner = np.abs(u) < c
    one, first, second = inner.mean(), float((u * inner).mean()), float((u * u * inner).mean())
    return np.array([[one, first], [2 * first, 2 * second]])


@dataclass(frozen=True, slots=True)
class Proposal2Problem:
    """What is public: c, n, the least curvature, D (reach) and r (slack)."""

    c: float
    n: int
    floor: float
    reach: float
    slack: float

    @property
    def kappa(self) -> float:
        """E ψ_c²(Z) of a standard normal Z, to which the scale's equation is set."""
        return Huber(self.c).mean_square

    @property
    def record_curvature(self) -> float:
        """1 + c², a bound of what one record adds to nS."""
        return 1 + self.c**2

    @property
    def lipschitz(self) -> float:
        """B."""
        return self.record_curvature / (1 - self.reach)

    @property
    def tolerance(self) -> float:
        """τ: a hundredth of what one record can move the solution by at the least."""
        return self.least_influence / (100 * self.n)

    @property
    def least_influence(self) -> float:
        """(1 − D) sup‖v‖/λ_max(S) ≤ sup ‖influence‖; ‖v‖ is largest at an end."""
        return (
            (1 - self.reach)
            * float(np.linalg.norm(_score(self.c, self.kappa)))
            / (self.record_curvature)
        )

    @property
    def steps(self) -> int:
        """Steps of gradient descent from `reach` to `slack`, then to `tolerance`, by
        the condition number."""
        condition = self.lipschitz * (1 + self.reach) / self.floor
        first = ceil(2 * condition * (self.reach / self.slack) ** 2)
        return first + ceil(2 * condition * max(log(self.slack / self.tolerance), 1.0))


def normal_curvature(c: float) -> float:
    """λ_min(S) at the normal law: S is diagonal, and E u²1 ≤ E 1."""
    family = Huber(c)
    return family.mean_square - c * c * (1 - family.mean_derivative)


def within(problem: Proposal2Problem, z: FloatArray) -> FloatArray:
    """Sorted records (n,), those far away moved as said above; what is not finite counts as 0."""
    far = problem.reach + problem.c * (1 + problem.reach)
    return np.sort(np.where(np.isfinite(z), np.clip(z, -far, far), 0.0))


def solve(problem: Proposal2Problem, z: FloatArray) -> tuple[float, float]:
    """(m, s) of sorted records."""
    n, c, kappa, D = problem.n, problem.c, problem.kappa, problem.reach
    once, twice = (np.concatenate([[0.0], np.cumsum(z**k)]) for k in (1, 2))
    length = 1 / (problem.lipschitz * n)
    m, s = 0.0, 1.0
    for _ in range(problem.steps):
        low, high = z.searchsorted((m - c * s, m + c * s)).tolist()
        inner, first, second = high - low, once[high] - once[low], twice[high] - twice[low]
        psi = (first - m * inner) / s + c * (n - high - low)
        square = (second - 2 * m * first + m * m * inner) / (s * s) + c * c * (n - inner)
        m = min(max(m + length * float(psi), -D), D)
        s = min(max(s + length * (float(square) - kappa * n) / 2, 1 - D), 1 + D)
    return m, s


def curvature(z: FloatArray, m: float, s: float, c: float) -> FloatArray:
    """S (2, 2) at (m, s)."""
    S = jacobian((z - m) / s, c)
    S[1] /= 2
    return S


def largest_influence(S: FloatArray, c: float, floor: float) -> float:
    """sup ‖S⁻¹v(t)‖ over |t| ≤ c, where the eigenvalues of S count as `floor` at least."""
    values, vectors = np.linalg.eigh(S)
    inverse = (vectors / np.maximum(values, floor)) @ vectors.T
    kappa, p, q = Huber(c).mean_square, inverse[:, 0], inverse[:, 1] / 2
    slope = [2 * q @ q, 3 * p @ q, p @ p - 2 * kappa * q @ q, -kappa * p @ q]
    t = np.concatenate([[-c, c, 0.0], np.clip(np.roots(slope).real, -c, c)])
    return float(np.linalg.norm(inverse @ _score(t, kappa), axis=0).max())


def _score(t: FloatArray | float, kappa: float) -> FloatArray:
    """v(t), (2,) or (2, k)."""
    return np.array([t, (np.square(t) - kappa) / 2])
