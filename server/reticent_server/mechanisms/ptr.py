# SPDX-License-Identifier: Apache-2.0
"""Propose–test–release: a private test of a safety margin before a release (Dwork & Lei 2009).

Domain: an integer margin q(D) ≥ 0 with |q(D) − q(D′)| ≤ 1 for neighbours, such that q(D) ≥ 1
implies that the release R is (ε_r, δ_r)-close on D and every neighbour of D. The test passes iff
q(D) + Z ≥ T = ⌈ln(1/δ₁)/ε₁⌉, Z discrete Laplace of scale 1/ε₁; when it fails nothing is released.
Tier: unconditional.

Proof. Z on an integer of sensitivity 1 is ε₁-DP, and P(Z ≥ T) = e^(−ε₁T)/(1 + e^(−ε₁)) ≤ δ₁. Let p,
p′ be the probabilities of passing on neighbours D, D′.

- q(D) ≥ 1 or q(D′) ≥ 1: then R is (ε_r, δ_r)-close on the two, p ≤ e^ε₁ p′ and 1 − p ≤ e^ε₁ (1 −
  p′), so P(M(D) ∈ S) = p R_D(S) + (1 − p) 1{∅ ∈ S} ≤ p (e^ε_r R_D′(S) + δ_r) + … ≤ e^(ε₁+ε_r)
  P(M(D′) ∈ S) + δ_r.
- q(D) = q(D′) = 0: p, p′ ≤ δ₁, so P(M(D) ∈ S) ≤ δ₁ + (1 − p) 1{∅ ∈ S} ≤ e^ε₁ P(M(D′) ∈ S) + δ₁.

Hence (ε₁ + ε_r, max(δ₁, δ_r))-DP. In zCDP: in the first case the test is ½ε₁²-zCDP and R is
δ_r-approximately ρ_r-zCDP; in the second both outputs are ∅ but for an event of probability δ₁; so
it is max(δ₁, δ_r)-approximately (½ε₁² + ρ_r)-zCDP (Bun & Steinke 2016).

A margin may be replaced by min(q, cap) for a public cap, which has the same properties.
Errors: none that depend on the data. Units: ε in EPSILON_UNITS, δ in DELTA_UNITS.
"""

from math import ceil, log

import numpy as np

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms._sampler import Laplace, smallest_laplace_scale

_SURELY = 30.0  # e⁻³⁰: how rarely a margin at its cap fails


def threshold(epsilon: int, delta: int) -> int:
    """T = ⌈ln(1/δ₁)/ε₁⌉."""
    return ceil(-log(delta / DELTA_UNITS) / (epsilon / EPSILON_UNITS) * (1 + 1e-12))


def margin_cap(epsilon: int, delta: int, n: int) -> int:
    """A margin beyond which more makes no difference; at most n."""
    return min(n, threshold(epsilon, delta) + ceil(_SURELY * EPSILON_UNITS / epsilon))


def noise_scale(epsilon: int) -> float:
    """1/ε₁, as the smallest scale that bills at most ε₁."""
    return smallest_laplace_scale(1, epsilon / EPSILON_UNITS)


def passes(margin: Private[int], epsilon: int, delta: int) -> bool:
    """Whether the test passes: public from here on. margin: at least 0."""
    q = np.array([margin.unwrap()], dtype=np.int64)
    return bool(Laplace(noise_scale(epsilon)).add(q)[0] >= threshold(epsilon, delta))
