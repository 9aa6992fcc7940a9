# SPDX-License-Identifier: Apache-2.0
"""The interquartile range or the median to within a bin of a public partition, by PTR.

Domain: one column of n records; unit a row. Output: the centre of the bin that holds the statistic,
or nothing. Tier: unconditional, No Reply possible.

Let [s⁻_i, s⁺_i] hold the statistic of every sample within i replacements: gaps of order statistics
for the range, X_(h−i) and X_(h+i) for the median. For a partition with offset g, j its bin with
s⁻_0,

    q_g(D) = max{k : [s⁻_k, s⁺_k] ⊂ bin j}.

Proof. q_g(D) ≥ 1 implies that every neighbour's statistic is in bin j, so that the release, the
centre of the bin, is the same constant on D and on every neighbour: (0, 0)-close. If q_g(D) = k ≥ 1
then by the shift property [s⁻_{k−1}, s⁺_{k−1}] of a neighbour lies in [s⁻_k, s⁺_k] of D, hence in
bin j, which is the neighbour's bin too: q_g has sensitivity 1. One PTR test is (ε₁, δ₁)-DP
(mechanisms.ptr). A second, with the partition moved by half a bin, is made where the first fails;
both are charged: (2ε₁, 2δ₁)-DP and 2δ₁-approximately ε₁²-zCDP.

Bins are decided by comparisons that are monotone in float64, so rounding breaks nothing.
Errors: none that depend on the data. Source: Dwork & Lei (2009); Dwork & Smith (2009), §3.2.
"""

import numpy as np

from reticent_server.accounting.conversions import rho_of_pure
from reticent_server.domain.columns import StableBin
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released
from reticent_server.mechanisms import ptr
from reticent_server.numerics.lattices import to_lattice
from reticent_server.numerics.order_statistics import (
    largest_gap,
    quartile_ranks,
    safe_distance,
    smallest_gap,
    window,
)
from reticent_server.numerics.partitions import bin_of, centre, edges

# of the bins, in widths: what is near an edge of one partition is in the middle of a bin of the
# other
SHIFTS = (0.0, 0.5)


def cost(part: StableBin) -> PrivacyCost:
    """(2ε₁, 2δ₁), and 2δ₁-approximately 2·½ε₁²-zCDP."""
    return PrivacyCost(
        epsilon=2 * part.epsilon,
        delta=2 * part.delta,
        rho=2 * rho_of_pure(part.epsilon),
        rho_delta=2 * part.delta,
    )


def margin(part: StableBin, ordered: FloatArray, shift: float) -> tuple[int, int]:
    """(min(q_g, cap), the statistic's bin). ordered: (n,) lattice steps in increasing order."""
    cap = ptr.margin_cap(part.epsilon, part.delta, len(ordered))
    bounds = _Bounds(part, ordered, cap)
    number = bin_of(part.bins, shift, bounds(0)[0])

    def safe(k: int) -> bool:
        return all(bin_of(part.bins, shift, value) == number for value in bounds(k))

    return safe_distance(safe, cap), number


class _Bounds:
    """(s⁻_k, s⁺_k) of one sorted column."""

    def __init__(self, part: StableBin, ordered: FloatArray, cap: int) -> None:
        q1, h, q3 = quartile_ranks(len(ordered))
        self._median = part.statistic == "median"
        ranks = (h, h) if self._median else (q1, q3)
        self._lower, self._upper = (window(ordered, rank, cap) for rank in ranks)
        self._cap = cap

    def __call__(self, k: int) -> tuple[float, float]:
        if self._median:
            return float(self._lower[self._cap - k]), float(self._upper[self._cap + k])
        gaps = smallest_gap, largest_gap
        low, high = (float(gap(self._lower, self._upper, k)) for gap in gaps)
        return low, high


def release(part: StableBin, values: Private[FloatArray]) -> Released:
    """Two tests at most; nothing but their outcome and a bin's centre leaves."""
    ordered = np.sort(to_lattice(part.lattice, values.unwrap()[0]))
    for shift in SHIFTS:
        q, number = margin(part, ordered, shift)
        if ptr.passes(Private(q), part.epsilon, part.delta):
            steps = (centre(part.bins, shift, number), *edges(part.bins, shift, number))
            return Released(np.array([_in_units(part, value) for value in steps]), 0.0)
    return Released(np.empty(0), 0.0, passed=False)


def _in_units(part: StableBin, steps: float) -> float:
    """A length for the range, a place for the median; both within what the bounds allow."""
    within = min(max(steps, 0.0), float(part.lattice.size))
    origin = part.lattice.origin if part.statistic == "median" else 0.0
    return origin + part.lattice.step * within
