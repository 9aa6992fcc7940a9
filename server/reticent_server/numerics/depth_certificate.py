# SPDX-License-Identifier: Apache-2.0
"""What exp(−ηO_D) can lose between any two neighbours within k replacements: E_k, a bound.

With the bounds of numerics.depth.Projections for directions u_j, max_j running over the directions,

    α_k = max_j location_change_j(k)/s⁻_j,      κ_k = max_j scale_change_j(k)/s⁻_j,
    F_k = min_x max_j max(u_jᵀx − M⁻_j, M⁺_j − u_jᵀx)/s⁻_j,
    E_k = 2ηα_k + κ_k(2ηF_k + g) + d ln(1 + κ_k),

s⁻_j = least_scale_j(k+1), [M⁻_j, M⁺_j] = location_range_j(k+1), g the upper δ-quantile of
Gamma(d, 1).

*Claim*. Let D₁ be within k replacements of D and D₂ a neighbour of D₁. The laws with densities
∝ exp(−ηO_{D₁}) and ∝ exp(−ηO_{D₂}) are (E_k, δ)-close.
*Proof*. Both are within k + 1 of D, so every s_j of theirs is ≥ s⁻_j; |Δm_j| and |Δs_j| are at most
the changes. From |u_jᵀx − m₂|/s₂ ≤ (|u_jᵀx − m₁|/s₁)(s₁/s₂) + |Δm_j|/s₂ follows O₂ ≤ (1 + κ)O₁ + α,
and likewise with 1 and 2 exchanged. O₁ is convex with a minimum f₁ at x*, so O₁(x* + λ(y − x*)) ≥
λO₁(y) − (λ − 1)f₁ for λ ≥ 1; with λ = 1 + κ and x = x* + λ(y − x*), Z₂ ≤ e^(ηα) ∫ e^(−ηO₁(x)/λ) dx
≤ λ^d e^(ηα + ηκf₁) Z₁. Hence

    ln p₁/p₂ = η(O₂ − O₁) + ln Z₂/Z₁ ≤ 2ηα + κ(ηO₁ + ηf₁) + d ln(1 + κ).

vol{O₁ ≤ f₁ + t} has a concave d-th root in t (Brunn–Minkowski), so η(O₁(X) − f₁) is stochastically
smaller than Gamma(d, 1) under p₁: it exceeds g with probability ≤ δ. Finally f₁ ≤ F_k, as O₁ is
nowhere above the function that F_k minimises.

*Shift property*: E_{k−1} of a neighbour is ≤ E_k, since changes, s⁻ and the ranges have it and so
each of the three terms. E_k increases in k. It holds for computed values too: changes, s⁻ and
ranges are whole numbers, their ratios correctly rounded, and F_k is the exact optimum of its
program, correctly rounded (numerics.minimax), so that the computed α, κ and F have the property.
What is made of them in float64 is off by less than 2⁻⁴⁶ of it, or 10⁻¹¹ where E_k ≤ ε_r ≤ 100, and
2k·TOLERANCE more is added to E_k.

*Work*. Where E_k counts as finite, ηF_k ≤ MOST_LEVELS, which has the shift property for the same
reasons. As ηf₁ ≤ ηF_k, the mean number of proposals of a draw is then below (1.02 e (d +
MOST_LEVELS))^d (numerics.simplex_envelope).

Source: for the safety of such mechanisms, the paper on private projection-depth medians.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv

from reticent_server.numerics.depth import Projections, Whole
from reticent_server.numerics.minimax import Program, signed_basis, smallest_maximum

IntArray = NDArray[np.int64]

TOLERANCE = 1e-9  # a hundred times the rounding of E_k
# ηF_k on skewed data of 10⁸ records at ε = 1; beyond it a draw could take for ever
MOST_LEVELS = 2.0**14


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """E_k for directions (K, d) and what their projections can become; delta: of g.

    found: F_k by k, and the basis from which the next program starts.
    """

    directions: IntArray
    projections: Projections
    delta: float
    found: dict[int, float] = field(default_factory=dict)
    basis: list[int] = field(default_factory=list)

    def bound(self, k: int, eta: float) -> float:
        """E_k + 2k·TOLERANCE; infinite where a scale can vanish, or ηF_k is too large."""
        rates = self.rates(k)
        if rates is None:
            return inf
        F = self.outlyingness(k)
        if not eta * F <= MOST_LEVELS:
            return inf
        return loss(k, eta, *rates, F, self._dimension, self.delta)

    def safe(self, k: int, eta: float, epsilon: float) -> bool:
        """Whether bound(k, eta) ≤ epsilon; F_k is not computed where the rest is too large."""
        rates = self.rates(k)
        if rates is None or loss(k, eta, *rates, 0.0, self._dimension, self.delta) > epsilon:
            return False
        return self.bound(k, eta) <= epsilon

    @property
    def _dimension(self) -> int:
        return int(self.directions.shape[1])

    def rates(self, k: int) -> tuple[float, float] | None:
        """(α_k, κ_k), or None where they are infinite."""
        s = self.projections.least_scale(k + 1)
        changes = self.projections.location_change(k), self.projections.scale_change(k)
        if s is None or changes[0] is None or changes[1] is None or min(s) <= 0:
            return None
        return _largest_ratio(changes[0], s), _largest_ratio(changes[1], s)

    def outlyingness(self, k: int) -> float:
        """F_k, correctly rounded."""
        if k not in self.found:
            self.found[k] = self._smallest_maximum(k)
        return self.found[k]

    def _smallest_maximum(self, k: int) -> float:
        ends, s = self.projections.location_range(k + 1), self.projections.least_scale(k + 1)
        if ends is None or s is None or min(s) <= 0:
            return inf
        program = Program(self.directions, *ends, s)
        optimum = smallest_maximum(program, self.basis or start_of(self.directions))
        self.basis[:] = optimum.basis
        return float(optimum.value)


def start_of(directions: IntArray) -> tuple[int, ...]:
    """A basis for programs with these directions, which are planned to have one."""
    basis = signed_basis(directions)
    if basis is None:
        raise ArithmeticError("directions are planned to have a basis")
    return basis


def _largest_ratio(changes: Whole, scales: Sequence[int]) -> float:
    """max_j change_j/s_j, correctly rounded: division of whole numbers is, and rounding is
    monotone."""
    return max(change / s for change, s in zip(changes, scales, strict=True))


def loss(
    k: int, eta: float, alpha: float, kappa: float, F: float, dimension: int, delta: float
) -> float:
    """E_k + 2k·TOLERANCE from its terms."""
    g = float(gammainccinv(dimension, delta)) * (1 + 1e-9)
    moved = 2 * eta * alpha + kappa * (2 * eta * F + g) + dimension * log1p(kappa)
    return moved + 2 * k * TOLERANCE
