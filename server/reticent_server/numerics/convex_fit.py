# SPDX-License-Identifier: Apache-2.0
"""Bounded-influence fits with a convex loss: the solver, and the least curvature of a ball.

    L(ϑ) = (1/n) Σ w_i ρ(y_i, o_i + u_iᵀϑ),   0 ≤ w_i ≤ 1,  w_i‖u_i‖² ≤ R²

with scores s = −∂ρ/∂η, |s| ≤ b, and slopes a = ∂²ρ/∂η² ∈ [0, a⁺], so ‖∇ of a record‖ ≤ K = bR and
∇L is Lipschitz with B = a⁺R²:

    Huber      s = max(−c, min(c, y − η))    a = 1{|y − η| ≤ c}    b = c,  a⁺ = 1
    logistic   s = y − μ(η), 0 ≤ y ≤ 1       a = μ(1 − μ)          b = 1,  a⁺ = 1/4

`Curvature` is h(r) = λ_min((1/n) Σ w_i u_iu_iᵀ inf{a_i(ϑ′): ‖ϑ′ − ϑ‖ ≤ r}), a decreasing function
of r.

Huber's y − o counts as one response, brought within ±(c + 2D max(‖u‖, 1)): beyond that the score is
±c at every ϑ with ‖ϑ‖ ≤ 2D, before and after. So no response or offset is so large that y − η is
lost in its rounding.

`solve` makes a fixed number of steps from 0, in two phases of Nesterov's method:

1. t₁ = ⌈√(8B/m) D/r⌉ steps for convex losses: L − L* ≤ 2BD²/(t₁ + 1)² ≤ mr²/4 where the minimiser
   ϑ* has ‖ϑ*‖ ≤ D (Beck & Teboulle 2009). If L is m-strongly convex on the ball of radius r around
   ϑ*, then L − L* ≥ m‖ϑ − ϑ*‖²/2 inside of it and > mr²/2 outside, so the point is inside.
2. t₂ = ⌈√(B/m) ln(4Bmr²/τ²)⌉ steps for strongly convex ones. The potential L − L* + (m/2)‖v − ϑ*‖²
   starts at ≤ 2·mr²/4; while it is ≤ mr²/2, point, estimate v and the point between them where the
   gradient is taken are in the ball, the lower bound that the method needs holds there, and each
   step multiplies it by 1 − √(m/B) at most (Nesterov 2004, Theorem 2.2.3). At the end L − L* ≤
   τ²/(8B), so ‖∇L‖ ≤ √(2B(L − L*)) ≤ τ/2.

The number of steps is public. In floating point sums of n terms carry errors up to γ_n = n2⁻⁵³ of
the sum of sizes, and a score is off by 2⁻⁵³ of |y| + (q + 2)|η|, η ≤ D‖u‖, where w‖u‖² ≤ R²
(logistic: μ′(η)|η| ≤ ¼ whatever o is); `gradient_error` and `eigenvalue_error` bound them, and the
arguments that rely on the solver use them.
"""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Literal, Protocol

import numpy as np
from scipy.special import expit

from reticent_server.domain.steps import FloatArray

LOGISTIC_SLOPE = 0.25  # sup of the logistic curvature p(1 − p), attained at p = ½
# float64's spacing at 1, twice its unit roundoff: the room of a factor 2 in the error bounds below
_ROUNDING = 2.0**-52
# the solver's error adds 2τ to 2K/n in the sensitivity: at most 2 % more noise; more digits take
# more steps
_SHARE_OF_GRADIENT = 50.0
_PIECE = 1 << 13  # rows at a time, 64 kB a column of float64; speed and memory only


class Loss(Protocol):
    """A convex loss of a response y and a linear predictor η, elementwise."""

    @property
    def score_bound(self) -> float:
        """The largest |ψ(y, η)| at any response and predictor."""

    @property
    def largest_slope(self) -> float:
        """The largest second derivative of the loss in η."""

    def bounded(
        self, y: FloatArray, offset: FloatArray, farthest: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """y and o that give the same scores at |η − o| ≤ farthest, none so large that η is lost in
        it."""
        ...

    def score(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(n,) ψ(y, η), the derivative of the loss by η with its sign changed."""

    def least_slope(self, y: FloatArray, eta: FloatArray, slack: FloatArray) -> FloatArray:
        """inf of a over η ± slack."""
        ...


@dataclass(frozen=True, slots=True)
class HuberLoss(Loss):
    """ρ_c(y − η)."""

    c: float
    largest_slope: float = 1.0

    @property
    def score_bound(self) -> float:
        """c."""
        return self.c

    def bounded(
        self, y: FloatArray, offset: FloatArray, farthest: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        with np.errstate(over="ignore"):
            return np.clip(y - offset, -self.c - farthest, self.c + farthest), np.zeros_like(offset)

    def score(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(n,) y − η, cut to ±c."""
        return np.clip(y - eta, -self.c, self.c)

    def least_slope(self, y: FloatArray, eta: FloatArray, slack: FloatArray) -> FloatArray:
        return (np.abs(y - eta) + slack <= self.c).astype(np.float64)


@dataclass(frozen=True, slots=True)
class LogisticLoss(Loss):
    """ln(1 + e^η) − yη, 0 ≤ y ≤ 1."""

    score_bound: float = 1.0
    largest_slope: float = LOGISTIC_SLOPE

    def bounded(
        self, y: FloatArray, offset: FloatArray, farthest: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        del farthest
        return np.clip(y, 0.0, 1.0), offset

    def score(self, y: FloatArray, eta: FloatArray) -> FloatArray:
        """(n,) y less the probability at η."""
        return np.asarray(y - expit(eta))

    def least_slope(self, y: FloatArray, eta: FloatArray, slack: FloatArray) -> FloatArray:
        del y
        mu = expit(-np.abs(eta) - slack)
        return np.asarray(mu * (1 - mu))


def loss_named(name: Literal["huber", "logistic"], tuning: float) -> Loss:
    """The loss of a part; tuning is Huber's."""
    return HuberLoss(tuning) if name == "huber" else LogisticLoss()


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """weights, response, offset (n,); vectors (q, n)."""

    weights: FloatArray
    response: FloatArray
    offset: FloatArray
    vectors: FloatArray


@dataclass(frozen=True, slots=True)
class ConvexProblem:
    """What is public: the loss, R², n, q, the least curvature m, D (reach) and r (slack)."""

    loss: Loss
    radius_squared: float
    n: int
    size: int
    floor: float
    reach: float
    slack: float

    @property
    def score_bound(self) -> float:
        """K."""
        return self.loss.score_bound * sqrt(self.radius_squared)

    @property
    def largest_curvature(self) -> float:
        """B."""
        return self.loss.largest_slope * self.radius_squared

    @property
    def gradient_error(self) -> float:
        """A bound of the rounding in a computed gradient at ‖ϑ‖ ≤ D."""
        sizes = self.score_bound + self.radius_squared * max(self.reach, 1.0)
        return _ROUNDING * sizes * (self.n + 64 * self.size)

    @property
    def eigenvalue_error(self) -> float:
        """e₀, a bound of the rounding in h(r): summation, products and the eigenvalue solver."""
        return _ROUNDING * self.largest_curvature * (self.n + 64 * self.size**2)

    @property
    def tolerance(self) -> float:
        """τ = max(K/(50n), 4 gradient_error)."""
        return max(self.score_bound / (_SHARE_OF_GRADIENT * self.n), 4 * self.gradient_error)

    @property
    def steps(self) -> tuple[int, int]:
        """t₁, t₂."""
        condition = self.largest_curvature / self.floor
        gap = 4 * self.largest_curvature * self.floor * self.slack**2 / self.tolerance**2
        first = ceil(sqrt(8 * condition) * self.reach / self.slack)
        return first, ceil(sqrt(condition) * max(log(gap), 1.0))


def records_within(problem: ConvexProblem, rows: FloatArray) -> Records:
    """Rows (q + 3, n) of weight, response, offset and vector, with the bounds of the module
    enforced.

    A record that is not finite has weight 0; a weight is lowered to min(1, R²/‖u‖²).
    """
    kept = np.isfinite(rows).all(axis=0)
    rows = np.where(kept, rows, 0.0)
    vectors = np.ascontiguousarray(rows[3:])
    norms = np.einsum("ij,ij->j", vectors, vectors)
    usable = np.isfinite(norms)
    vectors[:, ~usable] = 0.0
    limit = problem.radius_squared * (1 - 1e-12)
    weights = np.clip(rows[0], 0.0, limit / np.maximum(np.where(usable, norms, 0.0), limit))
    lengths = np.sqrt(np.maximum(np.where(usable, norms, 0.0), 1.0))
    response, offset = problem.loss.bounded(rows[1], rows[2], 2 * problem.reach * lengths)
    return Records(weights, response, np.ascontiguousarray(offset), vectors)


def gradient(problem: ConvexProblem, records: Records, theta: FloatArray) -> FloatArray:
    """∇L(ϑ) (q,)."""
    total = np.zeros(problem.size)
    for piece in _pieces(problem.n):
        u = records.vectors[:, piece]
        score = problem.loss.score(records.response[piece], records.offset[piece] + theta @ u)
        score *= records.weights[piece]
        total -= u @ score
    return total / problem.n


def _pieces(n: int) -> list[slice]:
    """Slices whose arrays stay in the processor's cache."""
    return [slice(start, start + _PIECE) for start in range(0, n, _PIECE)]


def solve(problem: ConvexProblem, records: Records) -> FloatArray:
    """ϑ (q,) after t₁ + t₂ steps from 0."""
    return second_phase(problem, records, first_phase(problem, records))


def first_phase(problem: ConvexProblem, records: Records) -> FloatArray:
    """ϑ (q,) after t₁ steps from 0, with the momentum for convex losses."""
    theta = before = np.zeros(problem.size)
    t = 1.0
    for _ in range(problem.steps[0]):
        following = (1 + sqrt(1 + 4 * t * t)) / 2
        theta, before = _step(problem, records, theta, before, (t - 1) / following), theta
        t = following
    return theta


def second_phase(problem: ConvexProblem, records: Records, start: FloatArray) -> FloatArray:
    """ϑ (q,) after t₂ steps from the point that the first phase has found, with that for strongly
    convex ones."""
    root = sqrt(problem.floor / problem.largest_curvature)
    momentum = (1 - root) / (1 + root)
    theta = before = start
    for _ in range(problem.steps[1]):
        theta, before = _step(problem, records, theta, before, momentum), theta
    return theta


def _step(
    problem: ConvexProblem, records: Records, theta: FloatArray, before: FloatArray, momentum: float
) -> FloatArray:
    """A gradient step of length 1/B from the point ahead."""
    ahead = theta + momentum * (theta - before)
    return np.asarray(ahead - gradient(problem, records, ahead) / problem.largest_curvature)


def converged(problem: ConvexProblem, records: Records, theta: FloatArray) -> bool:
    """Whether ‖∇L(ϑ)‖ < τ for certain."""
    size = float(np.linalg.norm(gradient(problem, records, theta)))
    return size <= 0.75 * problem.tolerance


def second_moments(
    problem: ConvexProblem, records: Records, theta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The means M of Hessians w a uuᵀ and Q of squared scores w²s² uuᵀ, (q, q), at ϑ."""
    M, Q = np.zeros((2, problem.size, problem.size))
    for piece in _pieces(problem.n):
        u, w, y = records.vectors[:, piece], records.weights[piece], records.response[piece]
        eta = records.offset[piece] + theta @ u
        M += (u * (w * problem.loss.least_slope(y, eta, np.zeros_like(eta)))) @ u.T
        Q += (u * (w * problem.loss.score(y, eta)) ** 2) @ u.T
    return M / problem.n, Q / problem.n


class Curvature:
    """h(r) of one data set around one point.

    A record's η moves by at most max(‖u‖, 1) r, which is ≥ ‖u‖r by more than what rounding moves
    it.
    """

    def __init__(self, problem: ConvexProblem, records: Records, theta: FloatArray) -> None:
        self._problem, self._records = problem, records
        u = records.vectors
        self._eta = records.offset + theta @ u
        self._lengths = np.sqrt(np.maximum(np.einsum("ij,ij->j", u, u), 1.0))

    def __call__(self, radius: float) -> float:
        """h(radius)."""
        records, q = self._records, self._problem.size
        total = np.zeros((q, q))
        for piece in _pieces(self._problem.n):
            u = records.vectors[:, piece]
            total += (u * (self.slopes(piece, radius) * records.weights[piece])) @ u.T
        return float(np.linalg.eigvalsh(total / self._problem.n)[0])

    def slopes(self, piece: slice, radius: float) -> FloatArray:
        """inf a_i over the ball, for some of the records."""
        slack = radius * self._lengths[piece]
        response = self._records.response[piece]
        return self._problem.loss.least_slope(response, self._eta[piece], slack)
