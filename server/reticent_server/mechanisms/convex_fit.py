# SPDX-License-Identifier: Apache-2.0
"""The minimiser of a convex loss of bounded influence with Gaussian noise, after a PTR test.

Domain: n records, unit a row; the loss L_D of numerics.convex_fit with its public bounds K, B, τ,
D, r. Output: coefficients and the chosen least curvature m, or nothing. Tier: unconditional, No
Reply possible.

Let ϑ(D) be the solver's point, Δ = (2K/n + 2τ)/m, h_D the least curvature of balls around ϑ(D), and

    q(D) = max{k ≥ 1: h_D(r + kΔ) ≥ m + k(B/n + 2e₀) and ‖ϑ(D)‖ ≤ D − kΔ}, 0 if there is none
           or if ‖∇L_D(ϑ(D))‖ ≥ τ.

Claim. Let q(D) = k ≥ 1 and D′ be a neighbour. Then the solver converges on D′, ‖∇L_D′(ϑ(D′))‖ < τ;
‖ϑ(D) − ϑ(D′)‖ ≤ Δ; and q(D′) ≥ k − 1.

Proof. One record has a gradient of size ≤ K and a Hessian of size ≤ B, so at ϑ = ϑ(D) ‖∇L_D′(ϑ)‖ <
τ + 2K/n, and L_D′ is m-strongly convex on the ball S of radius r + Δ around ϑ: h_D(r + Δ) − B/n ≥
m. (Terms whose slope is not counted are convex; a counted Huber term is a parabola on all of S.)
1. At distance Δ from ϑ in a direction v, ⟨∇L_D′, v⟩ ≥ mΔ − (2K/n + τ) = τ > 0. So L_D′ has its
   minimiser ϑ* within Δ of ϑ, ‖ϑ*‖ ≤ ‖ϑ‖ + Δ ≤ D, and the ball of radius r around ϑ* lies in S: by
   numerics.convex_fit the solver's point has ‖∇L_D′‖ ≤ τ/2.
2. If ϑ(D′) were farther than Δ from ϑ, with direction v and the point ϑ_b between at distance Δ,
   then ⟨∇L_D′(ϑ_b), v⟩ ≥ τ, and as the loss is convex ‖∇L_D′(ϑ(D′))‖ ≥ ⟨∇L_D′(ϑ(D′)), v⟩ ≥ τ,
   against 1.
3. For k ≥ 2: the ball of radius r + (k − 1)Δ around ϑ(D′) lies in that of radius r + kΔ around ϑ,
   so h_D′(r + (k − 1)Δ) ≥ h_D(r + kΔ) − B/n ≥ m + (k − 1)(B/n + 2e₀) + 2e₀; and ‖ϑ(D′)‖ ≤ D − (k −
   1)Δ.

So q has sensitivity 1, and q ≥ 1 implies that ϑ + N(0, σ²I), of sensitivity Δ, is ρ_r-close on D
and every neighbour. By mechanisms.ptr test and release are δ-approximately (½ε₁² + ρ_r)-zCDP. m is
chosen before, from the public list m_1 > m_2 > …, by the exponential mechanism with score
min(q_j, cap) − c·j, of sensitivity 1: ε_a²/8 more (mechanisms.selection); it is public from then
on. The minimum with a cap, and a bisection for k (the conditions are monotone in k), change
nothing.

The noise is discrete: ϑ, projected to the ball of radius D, is rounded to multiples of g = Δ2⁻²⁰,
which raises the sensitivity to 2²⁰ + √q steps at most. Computed curvatures are off by e₀, computed
gradients by gradient_error (below τ/4), and Δ is 10⁻¹¹ larger than above for the rounding of η. The
number of the solver's steps is public; a bisection takes at most log₂ cap evaluations.

Errors: none that depend on the data. Source: Avella-Medina (2021); Dwork & Lei (2009).
"""

from functools import lru_cache
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.accounting.conversions import (
    epsilon_of,
    rho_of_bounded_range,
    rho_of_pure,
)
from reticent_server.domain.columns import ConvexFit
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms import ptr, selection
from reticent_server.mechanisms._sampler import DiscreteGaussian, smallest_scale
from reticent_server.mechanisms.selection import Ladder
from reticent_server.numerics.convex_fit import (
    ConvexProblem,
    Curvature,
    Records,
    converged,
    loss_named,
    records_within,
    solve,
)
from reticent_server.numerics.order_statistics import safe_distance

STEPS_IN_SENSITIVITY = 2**20  # granules in Δ: rounding ϑ adds √q steps to it, a millionth of √q
_ROUNDING = 1e-11  # of a coefficient, absolute: above what float64 loses in ϑ within the reach
# scales of Laplace noise: a margin that far above the threshold passes but for less than
# e⁻¹² = 6·10⁻⁶
_SURELY = 12.0


@lru_cache(maxsize=256)
def cost(part: ConvexFit) -> PrivacyCost:
    """δ-approximately (ε_a²/8 + ½ε₁² + ρ_r)-zCDP, and the (ε, 2δ) that this implies."""
    tested = rho_of_pure(part.epsilon_test) + rho_of_bounded_range(part.epsilon_choice)
    rho = tested + part.rho_release
    epsilon = epsilon_of(rho, part.delta / DELTA_UNITS)
    return PrivacyCost(
        epsilon=ceil(epsilon * (1 + 1e-6) * EPSILON_UNITS),
        delta=2 * part.delta,
        rho=rho,
        rho_delta=part.delta,
    )


def problem_of(part: ConvexFit, n: int) -> ConvexProblem:
    """The public side of the fit; its steps suffice for the smallest floor."""
    return ConvexProblem(
        loss=loss_named(part.loss, part.tuning),
        radius_squared=part.radius_squared,
        n=n,
        size=part.size,
        floor=min(part.floors),
        reach=part.reach,
        slack=part.slack,
    )


def sensitivity(problem: ConvexProblem, floor: float) -> float:
    """Δ at m = floor, with what rounding may add."""
    return (2 * problem.score_bound / problem.n + 2 * problem.tolerance) / floor + _ROUNDING


def noise_sd(part: ConvexFit, n: int, floor: float) -> float:
    """The noise's standard deviation for a coefficient at m = floor: public."""
    return _steps_scale(part) * _granule(sensitivity(problem_of(part, n), floor))


def margin_cap(part: ConvexFit) -> int:
    """A margin that passes but for e⁻¹²: lower than in other tests, for a larger m is then
    preferred."""
    threshold = ptr.threshold(part.epsilon_test, part.delta)
    return threshold + ceil(_SURELY * EPSILON_UNITS / part.epsilon_test)


def margins(
    part: ConvexFit, problem: ConvexProblem, records: Records, theta: FloatArray
) -> list[int]:
    """min(q, cap) for each floor."""
    if not converged(problem, records, theta):
        return [0] * len(part.floors)
    curvature = Curvature(problem, records, theta)
    cap = min(margin_cap(part), problem.n)
    size = float(np.linalg.norm(theta))
    return [_margin(problem, curvature, size, floor, cap) for floor in part.floors]


def _margin(
    problem: ConvexProblem, curvature: Curvature, size: float, floor: float, cap: int
) -> int:
    delta = sensitivity(problem, floor)
    change = problem.largest_curvature / problem.n + 2 * problem.eigenvalue_error

    def safe(k: int) -> bool:
        near = size <= problem.reach - k * delta
        return near and curvature(problem.slack + k * delta) >= floor + k * change

    return safe_distance(safe, cap)


def release(part: ConvexFit, values: Private[FloatArray]) -> Released:
    """Solves, chooses m, tests, and adds the noise."""
    rows = values.unwrap()
    problem = problem_of(part, rows.shape[1])
    records = records_within(problem, rows)
    theta = solve(problem, records)
    found = margins(part, problem, records, theta)
    ladder = choice(part)
    chosen = selection.select(Private(ladder.levels(scores(part, found))), ladder)
    if not ptr.passes(Private(found[chosen]), part.epsilon_test, part.delta):
        return Released(np.empty(0), 0.0, passed=False)
    floor = part.floors[chosen]
    noisy = _noisy(part, problem, Private(theta), floor)
    return Released(np.append(noisy, floor), noise_sd(part, problem.n, floor))


def scores(part: ConvexFit, found: list[int]) -> NDArray[np.int64]:
    """min(q_j, cap) − c·j: the larger m is preferred where its margin is about as good."""
    return selection.preferring_earlier(found, choice(part))


def choice(part: ConvexFit) -> Ladder:
    """The ladder of the choice, for scores of sensitivity 1."""
    return selection.ladder(rho_of_bounded_range(part.epsilon_choice) - 1)


def _noisy(
    part: ConvexFit, problem: ConvexProblem, theta: Private[FloatArray], floor: float
) -> FloatArray:
    g = _granule(sensitivity(problem, floor))
    inside = _projected(theta.unwrap(), problem.reach)
    steps = DiscreteGaussian(_steps_scale(part)).add(np.rint(inside / g).astype(np.int64))
    return np.asarray(steps * g)


def _projected(theta: FloatArray, reach: float) -> FloatArray:
    """The nearest point of the ball, which brings no two points farther apart."""
    size = float(np.linalg.norm(theta))
    return theta * min(1.0, reach / size) if size > 0 else theta


def _granule(delta: float) -> float:
    return delta / STEPS_IN_SENSITIVITY


def _steps_scale(part: ConvexFit) -> float:
    """σ in steps of g."""
    whole = STEPS_IN_SENSITIVITY + ceil(sqrt(part.size))
    return smallest_scale(whole, part.rho_release / RHO_UNITS)
