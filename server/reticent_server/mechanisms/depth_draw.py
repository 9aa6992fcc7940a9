# SPDX-License-Identifier: Apache-2.0
"""A private projection-depth median: propose–test–release, then an exact draw from exp(−ηO_D).

Domain: d ≤ 8 columns of n records; unit a row. Output: a point of a public lattice, or nothing.
Tier: unconditional, No Reply possible.

Directions are fixed and public. Records are rounded to whole numbers first, directions are whole
numbers, so projections and their order statistics are exact. With the certificate E_k of
numerics.depth_certificate the margin is

    q(D) = #{k ≥ 0: E_0, …, E_k ≤ ε_r} = 1 + max{k: E_k ≤ ε_r}, 0 if E_0 > ε_r.

Proof. q(D) ≥ 1 means that the laws on D and on every neighbour are (ε_r, δ)-close (the
certificate's claim at k = 0). E_{k−1} of a neighbour is ≤ E_k, so q has sensitivity 1. By
mechanisms.ptr, test and draw are (ε₁ + ε_r, δ)-DP with δ₁ = δ, and δ-approximately
(½ε₁² + ½ε_r²)-zCDP. Where η is chosen from a public list η_1 > η_2 > …, the exponential mechanism
with score min(q_j, cap) − c·j, of sensitivity 1, does it before at ε_a (mechanisms.selection); test
and draw follow at the chosen η, which is public from then on: ε_a more, and ε_a²/8 in ρ.

The draw is exact (mechanisms.depth_proposals): every whole point has the probability that exp(−ηO),
rounded, gives it, on every table and at every η, without a limit on the number of proposals and
without a Markov chain. Once the test has passed nothing can fail: directions are planned to span
the space, and then there is a simplex for all scales above 0 (numerics.simplex_envelope). Where a
scale is 0 there is no reply: q is 0 then, on the table and on its neighbours, as no neighbour of a
table with q ≥ 1 has such a scale. The number of proposals depends on the data, hence so does the
time within the deadline; its mean is bounded where q ≥ 1.

Errors: none that depend on the data. Source: Zuo (2003); Brown et al. (2021).
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from reticent_server.accounting.conversions import rho_of_bounded_range, rho_of_pure
from reticent_server.domain.columns import DepthDraw
from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms import depth_proposals, ptr, selection
from reticent_server.mechanisms.depth_proposals import ProposalTarget
from reticent_server.mechanisms.selection import Ladder
from reticent_server.numerics.depth import Projections
from reticent_server.numerics.depth_certificate import Certificate, start_of
from reticent_server.numerics.depth_iqr import IqrProjections
from reticent_server.numerics.depth_mad import MadProjections
from reticent_server.numerics.depth_trimmed import TrimmedProjections
from reticent_server.numerics.lattices import to_lattice
from reticent_server.numerics.minimax import Program, smallest_maximum
from reticent_server.numerics.order_statistics import safe_distance
from reticent_server.numerics.simplex_envelope import envelope

_FARTHEST = 2**52  # steps: as far as whole numbers are exact in float64


class _Family(Protocol):
    def measure(self, data: FloatArray, directions: FloatArray, reach: int) -> Projections:
        """The statistics of data (d, n) along directions (K, d), for up to `reach` replacements."""


FAMILIES: Mapping[str, _Family] = {
    "iqr": IqrProjections,
    "mad": MadProjections,
    "trimmed": TrimmedProjections,
}


def cost(part: DepthDraw) -> PrivacyCost:
    """(ε_a + ε₁ + ε_r, δ), and δ-approximately (ε_a²/8 + ½ε₁² + ½ε_r²)-zCDP."""
    tested = rho_of_pure(part.epsilon_test) + rho_of_pure(part.epsilon_draw)
    return PrivacyCost(
        epsilon=part.epsilon_choice + part.epsilon_test + part.epsilon_draw,
        delta=part.delta,
        rho=rho_of_bounded_range(part.epsilon_choice) + tested,
        rho_delta=part.delta,
    )


def whole_numbers(part: DepthDraw, values: FloatArray) -> FloatArray:
    """(d, n) lattice steps around the middle of each lattice; at most 2³⁹ in size."""
    rows = zip(part.lattices, values, strict=True)
    return np.stack([to_lattice(lattice, row) - lattice.size // 2 for lattice, row in rows])


def measure(part: DepthDraw, data: FloatArray) -> Projections:
    """What the certificate and the draw need. data: (d, n) whole numbers."""
    directions = _directions(part).astype(np.float64)
    return FAMILIES[part.scale].measure(data, directions, _cap(part, data.shape[1]))


def margins(part: DepthDraw, projections: Projections, n: int) -> list[int]:
    """min(q, cap) at each η."""
    certificate = Certificate(_directions(part), projections, part.delta / DELTA_UNITS)
    return [_margin(part, certificate, eta, _cap(part, n)) for eta in part.etas]


def _margin(part: DepthDraw, certificate: Certificate, eta: float, cap: int) -> int:
    epsilon = part.epsilon_draw / EPSILON_UNITS
    return safe_distance(lambda i: certificate.safe(i - 1, eta, epsilon), cap)


def release(part: DepthDraw, values: Private[FloatArray]) -> Released:
    """Chooses η where there is a choice, tests, and draws."""
    data = whole_numbers(part, values.unwrap())
    projections = measure(part, data)
    n = data.shape[1]
    found = margins(part, projections, n)
    chosen = _choose(part, found) if len(part.etas) > 1 else 0
    passed = ptr.passes(Private(found[chosen]), part.epsilon_test, part.delta)
    if not passed or min(projections.scale) <= 0:
        return Released(np.empty(0), 0.0, passed=False)
    eta = part.etas[chosen]
    steps = depth_proposals.draw(law(_directions(part), projections, eta))
    return Released(np.append(_in_units(part, steps), eta), 0.0)


def scores(part: DepthDraw, margins: list[int]) -> NDArray[np.int64]:
    """min(q_j, cap) − c·j: the larger η is preferred where its margin is about as good."""
    return selection.preferring_earlier(margins, choice(part))


def _choose(part: DepthDraw, margins: list[int]) -> int:
    ladder = choice(part)
    return selection.select(Private(ladder.levels(scores(part, margins))), ladder)


def choice(part: DepthDraw) -> Ladder:
    """The ladder of the choice, for scores of sensitivity 1."""
    return selection.ladder(rho_of_bounded_range(part.epsilon_choice) - 1)


def _cap(part: DepthDraw, n: int) -> int:
    """No margin is larger than n/2: order statistics that far from the middle can be anywhere."""
    return min(ptr.margin_cap(part.epsilon_test, part.delta, n), n // 2 + 1)


def _directions(part: DepthDraw) -> NDArray[np.int64]:
    return np.array(part.directions, dtype=np.int64)


def law(directions: NDArray[np.int64], projections: Projections, eta: float) -> ProposalTarget:
    """The law ∝ exp(−ηO), which is drawn from: private."""
    location = projections.location
    program = Program(directions, location, location, projections.scale)
    optimum = smallest_maximum(program, start_of(directions))
    simplex = envelope(program, optimum, eta)
    return depth_proposals.target(program, simplex, Fraction(eta), projections.denominator)


def _in_units(part: DepthDraw, steps: list[int]) -> FloatArray:
    """The point of the lattices, in the units of the data."""
    points = [
        lattice.origin + lattice.step * (min(max(step, -_FARTHEST), _FARTHEST) + lattice.size // 2)
        for lattice, step in zip(part.lattices, steps, strict=True)
    ]
    return np.array(points)
