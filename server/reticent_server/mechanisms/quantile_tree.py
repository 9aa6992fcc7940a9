"""Quantiles of one column by recursive exponential mechanisms on a public grid.

Domain: tables of n records, each with one code (a cell of a public, non-decreasing grid of
candidates) or none. Neighbours: one record (or the ≤ m of one unit) replaced. Output: one candidate
for each probability, in non-decreasing order. Tier: unconditional.

Recipe (Kaplan, Schnapp & Stemmer 2022). Select the middle probability on all cells, split cells and
records at the selected cell, and go on in both halves. In a sub-problem with cells lo..hi, the local
rank aimed at is r·N, N being the number of records in those cells and r = (p − p_lo)/(p_hi − p_lo);
the score of cell k is u(k) = −|#{records in lo..k} − r N|.

Proof. Fix a level and the selections above it; its sub-problems have disjoint ranges of cells. A
record that leaves (or enters) a sub-problem moves #{lo..k} by 0 or 1 and rN by r, so u by at most
s = max(r, 1 − r) ≤ 1; one that moves within a sub-problem leaves N as it is, so moves u by at most
1. One replacement therefore moves the scores of one sub-problem by ≤ 1, or of two by ≤ s₁, s₂: in
squares at most F = max(1, s₁² + s₂²) over pairs, and for m records at most m²F (triangle inequality
in the L2 norm over sub-problems). A selection with Gumbel noise of scale b is bounded-range with
ε = 2Δu/b, hence ε²/8 = Δu²/(2b²)-zCDP (Dong, Durfee & Rogers 2020; Cesar & Rogers 2021), and the
level costs m²F/(2b²). Levels compose. Scores are integers: u is multiplied by r's denominator. (A
sub-problem of a single cell may share it with its neighbour: its selection is constant.)

Errors: none that depend on the data. Units: those of the candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, QuantileTree, Released
from reticent_server.mechanisms import selection
from reticent_server.mechanisms._sampler import NoisyMax, smallest_scale
from reticent_server.mechanisms.noisy_sum import count_codes

IntArray = NDArray[np.int64]

_DENOMINATOR = 10_000


@dataclass(frozen=True, slots=True)
class _Node:
    """A sub-problem before its cells are known: which probabilities, between which."""

    first: int
    last: int
    below: Fraction
    above: Fraction

    @property
    def middle(self) -> int:
        return (self.first + self.last) // 2

    def rank(self, probabilities: Sequence[Fraction]) -> Fraction:
        """r of the node's middle probability."""
        return (probabilities[self.middle] - self.below) / (self.above - self.below)

    def children(self, probabilities: Sequence[Fraction]) -> list["_Node | None"]:
        p, k = probabilities[self.middle], self.middle
        left = _Node(self.first, k - 1, self.below, p) if k > self.first else None
        right = _Node(k + 1, self.last, p, self.above) if k < self.last else None
        return [left, right]


def levels(probabilities: Sequence[float]) -> list[list[_Node]]:
    """The recursion's sub-problems, level by level: public, from the probabilities alone."""
    exact = exact_probabilities(probabilities)
    level, found = [_Node(0, len(exact) - 1, Fraction(0), Fraction(1))], []
    while level:
        found.append(level)
        level = [c for node in level for c in node.children(exact) if c is not None]
    return found


def exact_probabilities(probabilities: Sequence[float]) -> list[Fraction]:
    """The probabilities as fractions; ValueError unless they increase strictly inside (0, 1)."""
    exact = [Fraction(p).limit_denominator(_DENOMINATOR) for p in probabilities]
    bounds = [Fraction(0), *exact, Fraction(1)]
    if not exact or any(a >= b for a, b in pairwise(bounds)):
        raise ValueError("probabilities increase strictly inside (0, 1), in steps of 1e-4 at least")
    return exact


def squared_sensitivity(probabilities: Sequence[float]) -> list[Fraction]:
    """F of each level."""
    exact = exact_probabilities(probabilities)
    return [_level_factor([node.rank(exact) for node in level]) for level in levels(probabilities)]


def _level_factor(ranks: Sequence[Fraction]) -> Fraction:
    largest = sorted((max(r, 1 - r) ** 2 for r in ranks), reverse=True)[:2]
    return max(Fraction(1), sum(largest, Fraction(0))) if len(ranks) > 1 else Fraction(1)


def scale(part: QuantileTree) -> float:
    """b: the Gumbel scale in units of one rank, the same at every level, total cost part.rho."""
    share = float(sum(squared_sensitivity(part.probabilities), Fraction(0))) * part.unit_rows**2
    exact = smallest_scale(NoisyMax, _DENOMINATOR, part.rho / RHO_UNITS / share) / _DENOMINATOR
    return exact * (1 + 1e-12)


def billed_rho(part: QuantileTree) -> float:
    """Σ over levels of m²F/(2b²), from what the sampler bills for a score sensitivity of 1."""
    one = selection.billed_rho(scale(part) * _DENOMINATOR, _DENOMINATOR)
    factors = sum(squared_sensitivity(part.probabilities), Fraction(0))
    return one * float(factors) * part.unit_rows**2


def encode(part: QuantileTree, codes: FloatArray) -> IntArray:
    """(cells,) exact numbers of records by cell, of one block."""
    return count_codes(codes, len(part.candidates))


def release(part: QuantileTree, total: Private[IntArray]) -> Released:
    """Runs the recursion on the exact counts; nothing but the selected candidates leaves it."""
    cumulative = np.concatenate([[0], np.cumsum(total.unwrap())]).astype(np.int64)
    exact = exact_probabilities(part.probabilities)
    chosen = np.zeros(len(exact), dtype=np.int64)
    root = levels(part.probabilities)[0][0]
    tasks: list[tuple[_Node, int, int]] = [(root, 0, len(part.candidates) - 1)]
    while tasks:
        node, low, high = tasks.pop()
        cell = low + _select(cumulative[low : high + 2], node.rank(exact), scale(part))
        chosen[node.middle] = cell
        left, right = node.children(exact)
        if left is not None:
            tasks.append((left, low, cell))
        if right is not None:
            tasks.append((right, min(cell + 1, high), high))
    return Released(values=np.asarray(part.candidates)[chosen], sd=0.0)


def _select(cumulative: IntArray, r: Fraction, b: float) -> int:
    """Selects among the cells of a sub-problem. cumulative: counts at the cells' lower ends, and N."""
    return selection.select(Private(scores_of(cumulative, r)), b * r.denominator)


def scores_of(cumulative: IntArray, r: Fraction) -> IntArray:
    """−|D·#{lo..k} − a·N| for r = a/D: (cells,) int64 of sensitivity D·max(r, 1−r), or D within."""
    inside = cumulative[1:] - cumulative[0]
    return np.asarray(-np.abs(r.denominator * inside - r.numerator * inside[-1]), dtype=np.int64)
