"""What exp(−ηO_D) can lose between any two neighbours within k replacements: E_k, a bound.

With the bounds of numerics.depth.Projections for directions u_j, max_j running over the directions,

    α_k = max_j location_change_j(k)/s⁻_j      κ_k = max_j scale_change_j(k)/s⁻_j      s⁻_j = least_scale_j(k+1)
    F_k = min_x max_j max(u_jᵀx − M⁻_j, M⁺_j − u_jᵀx)/s⁻_j        [M⁻_j, M⁺_j] = location_range_j(k+1)
    E_k = 2ηα_k + κ_k(2ηF_k + g) + d ln(1 + κ_k)                 g the upper δ-quantile of Gamma(d, 1).

*Claim*. Let D₁ be within k replacements of D and D₂ a neighbour of D₁. The laws with densities
∝ exp(−ηO_{D₁}) and ∝ exp(−ηO_{D₂}) are (E_k, δ)-close.
*Proof*. Both are within k + 1 of D, so every s_j of theirs is ≥ s⁻_j; |Δm_j| and |Δs_j| are at most the changes.
From |u_jᵀx − m₂|/s₂ ≤ (|u_jᵀx − m₁|/s₁)(s₁/s₂) + |Δm_j|/s₂ follows O₂ ≤ (1 + κ)O₁ + α, and likewise with 1 and
2 exchanged. O₁ is convex with a minimum f₁ at x*, so O₁(x* + λ(y − x*)) ≥ λO₁(y) − (λ − 1)f₁ for λ ≥ 1; with
λ = 1 + κ and x = x* + λ(y − x*), Z₂ ≤ e^(ηα) ∫ e^(−ηO₁(x)/λ) dx ≤ λ^d e^(ηα + ηκf₁) Z₁. Hence

    ln p₁/p₂ = η(O₂ − O₁) + ln Z₂/Z₁ ≤ 2ηα + κ(ηO₁ + ηf₁) + d ln(1 + κ).

vol{O₁ ≤ f₁ + t} has a concave d-th root in t (Brunn–Minkowski), so η(O₁(X) − f₁) is stochastically smaller
than Gamma(d, 1) under p₁: it exceeds g with probability ≤ δ. Finally f₁ ≤ F_k, as O₁ is nowhere above the
function that F_k minimises.

*Shift property*: E_{k−1} of a neighbour is ≤ E_k, since changes, s⁻ and the ranges have it and so each of the
three terms. E_k increases in k. F_k comes from a linear program and the changes from float64 sums: their
errors move E_k by far less than `TOLERANCE`, and the 2k·TOLERANCE that is added restores the property for
computed values.

Source: for the safety of such mechanisms, the paper on private projection-depth medians.
"""

from dataclasses import dataclass
from math import inf, log1p

import numpy as np
from scipy.optimize import linprog
from scipy.special import gammainccinv

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.depth import Projections

TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """E_k for directions (K, d) and what their projections can become; delta: of g."""

    directions: FloatArray
    projections: Projections
    delta: float

    def bound(self, k: int, eta: float) -> float:
        """E_k + 2k·TOLERANCE; infinite where a scale can vanish."""
        found = self.rates(k)
        if found is None:
            return inf
        return loss(k, eta, *found, self.outlyingness(k), self._dimension, self.delta)

    def safe(self, k: int, eta: float, epsilon: float) -> bool:
        """Whether bound(k, eta) ≤ epsilon; F_k is not computed where the rest is too large."""
        found = self.rates(k)
        if found is None or loss(k, eta, *found, 0.0, self._dimension, self.delta) > epsilon:
            return False
        return self.bound(k, eta) <= epsilon

    @property
    def _dimension(self) -> int:
        return int(self.directions.shape[1])

    def rates(self, k: int) -> tuple[float, float] | None:
        """(α_k, κ_k), or None where they are infinite."""
        s = self.projections.least_scale(k + 1)
        changes = self.projections.location_change(k), self.projections.scale_change(k)
        if not ((s > 0).all() and np.isfinite([s, *changes]).all()):
            return None
        alpha, kappa = (float((change / s).max()) for change in changes)
        return alpha, kappa

    def outlyingness(self, k: int) -> float:
        """F_k, from above: the value at the program's solution."""
        lower, upper = self.projections.location_range(k + 1)
        if not np.isfinite([lower, upper]).all():
            return inf
        s = self.projections.least_scale(k + 1)
        return smallest_maximum(self.directions, lower, upper, s)


def loss(
    k: int, eta: float, alpha: float, kappa: float, F: float, dimension: int, delta: float
) -> float:
    """E_k + 2k·TOLERANCE from its terms."""
    g = float(gammainccinv(dimension, delta)) * (1 + 1e-9)
    moved = 2 * eta * alpha + kappa * (2 * eta * F + g) + dimension * log1p(kappa)
    return moved + 2 * k * TOLERANCE


def smallest_maximum(
    directions: FloatArray, lower: FloatArray, upper: FloatArray, s: FloatArray
) -> float:
    """min_x max_j max(u_jᵀx − lower_j, upper_j − u_jᵀx)/s_j; inf where the solver fails.

    The program is centred and scaled first, so that its numbers are of the order of 1.
    """
    x0 = np.linalg.lstsq(directions, (lower + upper) / 2, rcond=None)[0]
    centre = directions @ x0
    rows = directions * (float(np.median(s)) / float(np.abs(directions).max()) / s[:, None])
    top, bottom = (lower - centre) / s, (upper - centre) / s
    d = directions.shape[1]
    minus_one = -np.ones((len(rows), 1))
    found = linprog(
        np.append(np.zeros(d), 1.0),
        A_ub=np.block([[rows, minus_one], [-rows, minus_one]]),
        b_ub=np.concatenate([top, -bottom]),
        bounds=[(None, None)] * d + [(0, None)],
        method="highs",
    )
    if found.x is None:
        return inf
    at = rows @ found.x[:d]
    return float(np.maximum(at - top, bottom - at).max())
