# SPDX-License-Identifier: Apache-2.0
"""Quantiles of one column by recursive exponential mechanisms on a public grid.

Domain: tables of n records, each with one code (a cell of a public, increasing grid of candidates)
or none. Neighbours: one record (or the ≤ m of one unit) replaced. Output: one candidate for each
probability, in non-decreasing order. Tier: unconditional, for every order of the records.

Recipe (Kaplan, Schnapp & Stemmer 2022). Select the middle probability on all cells, split cells and
records at the selected cell, and go on in both halves. In a sub-problem with cells lo..hi, the
local rank aimed at is r·N, N being the number of records in those cells and
r = (p − p_lo)/(p_hi − p_lo). With A_k = #{records in lo..k}, the ranks of cell k are the interval
[A_{k−1}, A_k] (of an empty cell one point), and its level is ⌊d D_k⌋, d the ladder's steps
(mechanisms.selection) and D_k the distance of r N from that interval,

    D_k = max(0, A_{k−1} − r N, r N − A_k).

*Ties.* By its upper end alone a cell of 54 % of the records would be as far from the median as an
empty cell is whose A_k is 4 % of them off, and the empty ones beside it would be selected. By its
interval it has level 0. The intervals of a sub-problem's cells cover [0, N], so that one of its
cells always has level 0.

Values that tie (a column that is 75 % zeros) would all fall on one side of a split. Each cell is
therefore R sub-cells with the same candidate, over which its c records are spread: sub-cell
number i gets ⌊c/R⌋, and one more if it is among the first c mod R in a fixed public order of the
sub-cells. One more record in a cell is one more in one of its sub-cells, so counts of sub-cells are
those of a table whose neighbours are the neighbours of this one. They depend on the numbers of
records by cell alone: not on the order in which records are stored, nor on a key.

A split lies at the upper end of the sub-cell that is selected, so of two neighbours with the same
candidate the one whose upper end is nearer to the rank is the better: between them the intervals
meet at M_k = ⌊(A_k + A_{k+1})/2⌋, in the middle of the second, and elsewhere at M_k = A_k. In all
that follows a sub-cell is a cell, and M_k takes the place of A_k in D_k. As M_k is a half of two
sums of counts, rounded down, and a record moves each of the two by −1, 0 or 1, it moves M_k by −1,
0 or 1 too, in the direction in which it moves them; persons of whole weights, which move both by no
less than −a and no more than b, a and b whole, move it by no more either.

Proof. Fix a level of the recursion and the selections above it: they say which range of cells each
of its sub-problems has, and these are disjoint. Let E_k = M_k − r N for k = lo − 1..hi, with
M_{lo−1} = 0. A record that leaves (or enters) a sub-problem moves each M_k by 0 or 1, all in one
direction, and r N by r in the same direction, so each E_k, that of no cell at all too, by at most
s = max(r, 1 − r) ≤ 1; one that moves within a sub-problem leaves N as it is, so moves each E_k by
at most 1. The level of a cell is a function of the two ends alone, D_k = max(0, E_{k−1}, −E_k): the
larger of numbers each of which moves by at most t moves by at most t. So D_k moves by at most what
an end does, s or 1, though a record may move both ends; and of the m rows of a unit, one replaced
after the other, by at most m t. Levels, being rounded down to whole numbers, move by at most ⌈s d⌉,
or d: that is the bound of an upper end alone. It is attained by empty cells, whose two ends are
one, beside a cell that has the rank on both tables and weighs next to nothing. A selection whose
levels move by t costs L(t)²/2 in zCDP (mechanisms.selection), one whose levels stay costs nothing,
and the sub-problems of a level are independent given those above: one replacement costs at most

    ½ max(L(d)², L(⌈s₁d⌉)² + L(⌈s₂d⌉)²)

over pairs of sub-problems, and m of them at most m² times that (L(mt) ≤ mL(t), and the triangle
inequality in the L2 norm over sub-problems). Levels of the recursion compose. (A sub-problem of a
single cell may share it with its neighbour: its selection is constant.)

*Persons of equal weight* (`shared`). A person has T codes, none to m, and each of them weighs ⌊W/T⌋
of W = 2²⁶, so a person weighs at most W; M_k and N above are of sums of weights, levels are
⌊d·D_k/W⌋, and neighbours replace one person. Given the others, spreading ties gives a person's
weight in a cell to the cell's sub-cells, none of them less than 0. Let a_j and b_j be the shares of
W that the person has in sub-problem j before and after, Σ a_j ≤ 1, Σ b_j ≤ 1. M_k/W moves by z,
−a_j ≤ z ≤ b_j (0 for no cell at all), and E_k/W by z − r (b_j − a_j), for every k between
−(1 − r) a_j − r b_j and r a_j + (1 − r) b_j. Each end of a cell, and
so D_k/W, moves by at most t_j = max(r a_j + (1 − r) b_j, (1 − r) a_j + r b_j). Σ t_j² is
convex in (a, b), so at most what it is at a corner, where each of a and b is in one sub-problem or
in none: max(1, s₁² + s₂²), the bound of a row. Levels move by ⌈t_j d⌉ < t_j d + 1 at most, so by
the triangle inequality over the J sub-problems of a level it costs at most

    ½ (max(L(d), (L(⌈s₁d⌉)² + L(⌈s₂d⌉)²)^½) + √J L(1))²,

and ½ L(d)² where J = 1, as t ≤ 1 and d is whole: a median costs what it does with one row a person.
The weights are a function of one person's places, and whatever the map gives, a person weighs at
most W.

*Weights* (`weighted`). A record has one code, or none, and weighs ⌊aW⌋ there, its share a cut to
[0, 1]. That is a person whose weights add up to at most W: nothing above asks that they are whole
or equal. A record of weight 0 that becomes one of weight W attains the bound, as one that enters
does.

*No records* (`may_be_empty`, of whole records). All K cells of an empty table have level 0, so a
recursion would reply with one of them at random. Its first selection then has one candidate more,
∅, of the level ⌊s d N⌋ − B Q: N is the number of all records in cells, r and s are those of the
first sub-problem, and B = ⌈log2 20K⌉, so that ∅ begins with the weight of 20K cells of level 0, a
public factor that is the same on neighbours. A record that leaves or enters moves s d N by s d, so
the level by at most ⌈s d⌉; one that moves inside the table leaves it as it is; and m rows, one
replaced after the other, move it by at most m times that. These are the bounds of the cells' levels
above, so the selection costs what it does without ∅, inside the table and where a record leaves it.
Where ∅ is selected every value is NaN and nothing else is selected, which costs nothing. ∅ is
selected from an empty table with probability 2^B/(2^B + K) ≥ 20/21, and from N records, of whose
cells one has level 0, with probability below 40K 2^(−⌊s d N⌋/Q), for a median at ε about
40K e^(−εN/4).

Errors: ValueError for shared codes of another shape, and for shares of a table that may be empty;
none that depend on the data. Units: those of the candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import EPSILON_UNITS, RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, QuantileTree, Released
from reticent_server.mechanisms import selection
from reticent_server.mechanisms.noisy_sum import count_codes
from reticent_server.mechanisms.selection import Ladder

IntArray = NDArray[np.int64]

_DENOMINATOR = 10_000  # probabilities in steps of 10⁻⁴
_UPWARDS = 1 + 2.0**-44  # more than the rounding of a sum over the levels
_EMPTY_ODDS = 20  # to 1 that an empty table that may be empty is reported as empty
_WEIGHT_BITS = 26
"""log2 W: of 1,000 rows each weighs what it should to 10⁻⁵; 2²⁰ persons of a block add up to
2⁴⁶ < 2⁵³, exact in float64, and 2³⁰ in all to 2⁵⁶."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A sub-problem before its cells are known: which probabilities, between which."""

    first: int
    last: int
    below: Fraction
    above: Fraction

    @property
    def middle(self) -> int:
        """The index of the probability that the node selects."""
        return (self.first + self.last) // 2

    def rank(self, probabilities: Sequence[Fraction]) -> Fraction:
        """r of the node's middle probability."""
        return (probabilities[self.middle] - self.below) / (self.above - self.below)

    def children(self, probabilities: Sequence[Fraction]) -> list["_Node | None"]:
        """The sub-problems below and above the middle; None where there is no probability."""
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


def ladder(part: QuantileTree) -> Ladder:
    """The ladder of every selection: d levels for one rank, at a total cost of at most part.rho.

    Raises ValueError for shares of a table that may be empty.
    """
    if part.may_be_empty and part.fractional:
        raise ValueError("a table that may be empty has whole records")
    return _ladder(part.probabilities, part.rho, part.unit_rows, part.fractional)


@lru_cache(maxsize=256)
def _ladder(probabilities: tuple[float, ...], rho: int, unit_rows: int, shared: bool) -> Ladder:
    ranks = _ranks(probabilities)
    whole = sum(max(1.0, _largest_pair([float(max(r, 1 - r)) ** 2 for r in at])) for at in ranks)
    loss = sqrt(2 * rho / RHO_UNITS / whole) / unit_rows
    ladder = selection.ladder_of_loss(loss)
    while (
        ladder.steps
        and (billed := _billed(probabilities, unit_rows, ladder, shared) * RHO_UNITS) > rho
    ):
        # rounding s·d up to whole levels: as coarse as the ladder's steps; more at once where these
        # are few
        loss *= min(1 - 2.0**-14, sqrt(rho / billed))
        ladder = selection.ladder_of_loss(loss)
    return ladder


def scale(part: QuantileTree) -> float:
    """b: a selection's noise in ranks (probabilities fall by e over b ranks); infinite where rho is
    too small."""
    return ladder(part).scale


def error_scales(part: QuantileTree) -> list[float]:
    """(k,) of each released quantile the scale, in ranks, of a Laplace law that is as wide as the
    error of its rank.

    A selection's own error is as of Laplace's law at `scale`; the rank it aims at is r of the way
    between those of the sub-problem's ends, and moves with their errors. These are taken as one:
    no correlation makes it wider.
    """
    exact, b = exact_probabilities(part.probabilities), scale(part)
    found = {Fraction(0): 0.0, Fraction(1): 0.0}
    for level in levels(part.probabilities):
        for node in level:
            r = float(node.rank(exact))
            ends = (1 - r) * found[node.below] + r * found[node.above]
            found[exact[node.middle]] = sqrt(1 + ends**2)
    return [b * found[p] for p in exact]


def billed_rho(part: QuantileTree) -> float:
    """What the recursion costs at its ladder; at most part.rho (not in units)."""
    return _billed(part.probabilities, part.unit_rows, ladder(part), part.fractional)


def leaving_rho(part: QuantileTree) -> int:
    """What a record that leaves or enters the table costs, in RHO_UNITS, rounded up: m² Σ over the
    levels of ½ max L(⌈s d⌉)².

    It is in one sub-problem of each level, before or after, and none of the others changes.
    """
    climb, total = ladder(part), 0.0
    for ranks in _ranks(part.probabilities):
        moves = [ceil(max(r, 1 - r) * climb.steps) for r in ranks]
        total += max(climb.loss(move) ** 2 for move in moves)
    return ceil(part.unit_rows**2 * total / 2 * _UPWARDS * RHO_UNITS)


def moving_epsilon(part: QuantileTree) -> int:
    """What a record that moves between two trees of one probability costs in pure DP, in
    EPSILON_UNITS, rounded up.

    It leaves one tree and enters another: two selections whose levels move by ⌈s d⌉, each of
    bounded range 2L.
    """
    ((r,),), climb = _ranks(part.probabilities), ladder(part)
    loss = climb.loss(ceil(max(r, 1 - r) * climb.steps))
    return ceil(4 * part.unit_rows * loss * _UPWARDS * EPSILON_UNITS)


def _billed(
    probabilities: tuple[float, ...], unit_rows: int, ladder: Ladder, shared: bool
) -> float:
    """m² Σ over the recursion's levels of ½ max(L(d)², L(⌈s₁d⌉)² + L(⌈s₂d⌉)²); of shared weights
    with √J L(1) more."""
    total = 0.0
    for ranks in _ranks(probabilities):
        moves = [ceil(max(r, 1 - r) * ladder.steps) for r in ranks]
        apart = _largest_pair([ladder.loss(move) ** 2 for move in moves])
        level = max(ladder.loss(ladder.steps) ** 2, apart)
        rounding = sqrt(len(ranks)) * ladder.loss(1) if shared and len(ranks) > 1 else 0.0
        total += (sqrt(level) + rounding) ** 2 if rounding else level
    return unit_rows**2 * total / 2 * _UPWARDS


@lru_cache(maxsize=256)
def _ranks(probabilities: tuple[float, ...]) -> tuple[tuple[Fraction, ...], ...]:
    """r of the sub-problems, level by level."""
    exact = exact_probabilities(probabilities)
    return tuple(tuple(node.rank(exact) for node in level) for level in levels(probabilities))


def _largest_pair(squares: Sequence[float]) -> float:
    """The sum of the two largest; 0 where there are not two."""
    return sum(sorted(squares)[-2:]) if len(squares) > 1 else 0.0


def encode(part: QuantileTree, codes: FloatArray) -> IntArray:
    """(cells,) exact numbers of records by cell, of one block; of shared weights their sums, in 1/W
    of a person.

    codes: (rows,), shared (m, persons), weighted (2, rows). Raises ValueError for another shape.
    """
    each = 2 if part.weighted else part.person_rows
    if codes.ndim != 1 + part.fractional or (part.fractional and len(codes) != each):
        raise ValueError("codes are one of each row, or those of each person")
    cells = len(part.candidates)
    if part.weighted:
        return _of_shares(codes[0], codes[1], cells)
    return _weights(codes, cells) if part.shared else count_codes(codes, cells)


def _weights(codes: FloatArray, cells: int) -> IntArray:
    """(cells,) Σ over persons of ⌊W/T⌋ for each of the T codes of theirs that are in a cell. codes:
    (m, persons)."""
    with np.errstate(invalid="ignore"):
        valid = (codes >= 0) & (codes < cells)
    T = np.count_nonzero(valid, axis=0)
    each = np.broadcast_to((1 << _WEIGHT_BITS) // np.maximum(T, 1), codes.shape)
    kept = codes[valid].astype(np.int64)
    return np.bincount(kept, weights=each[valid], minlength=cells).astype(np.int64)


def _of_shares(codes: FloatArray, shares: FloatArray, cells: int) -> IntArray:
    """(cells,) Σ ⌊aW⌋ of the records in each cell. codes, shares: (rows,)."""
    with np.errstate(invalid="ignore"):
        valid = (codes >= 0) & (codes < cells)
    a = np.clip(np.nan_to_num(shares[valid], nan=0.0), 0.0, 1.0)
    each = np.floor(a * (1 << _WEIGHT_BITS))
    kept = codes[valid].astype(np.int64)
    return np.bincount(kept, weights=each, minlength=cells).astype(np.int64)


def spread(counts: IntArray, repeats: int) -> IntArray:
    """(cells · repeats,) numbers of records by sub-cell. counts: (cells,); repeats: R, a power of
    two."""
    turn = _turns(repeats)
    shares = counts[:, None] // repeats + (turn < counts[:, None] % repeats)
    return np.asarray(shares.ravel(), dtype=np.int64)


@lru_cache(maxsize=16)
def _turns(repeats: int) -> IntArray:
    """(R,) when each sub-cell's turn is: its number with its bits reversed, so that any few are
    spread evenly."""
    turn = np.zeros(1, dtype=np.int64)
    while len(turn) < repeats:
        turn = np.concatenate([2 * turn, 2 * turn + 1])
    return turn


def release(part: QuantileTree, total: Private[IntArray]) -> Released:
    """Runs the recursion on the exact counts; nothing but the selected candidates leaves it."""
    counts = spread(total.unwrap(), part.repeats)
    cumulative = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    exact, steps = exact_probabilities(part.probabilities), ladder(part)
    chosen = np.zeros(len(exact), dtype=np.int64)
    root = levels(part.probabilities)[0][0]
    tasks: list[tuple[_Node, int, int]] = [(root, 0, len(counts) - 1)]
    while tasks:
        node, low, high = tasks.pop()
        inside = meeting(cumulative[low : high + 2], low, part.repeats)
        found = levels_of(inside, node.rank(exact), steps.steps, part.fractional)
        if part.may_be_empty and node is root:
            found = np.append(found, empty_level(part, int(cumulative[-1])))
        cell = low + selection.select(Private(found), steps)
        if cell == len(counts):
            return Released(values=np.full(len(exact), np.nan), sd=0.0)
        chosen[node.middle] = cell
        left, right = node.children(exact)
        if left is not None:
            tasks.append((left, low, cell))
        if right is not None:
            tasks.append((right, min(cell + 1, high), high))
    return Released(values=part.candidates.points[chosen // part.repeats], sd=0.0)


def meeting(cumulative: IntArray, low: int, repeats: int) -> IntArray:
    """M (cells + 1,), where the intervals of the cells from `low` on meet. cumulative: counts at
    the cells' lower ends, and the count of all."""
    ends, counts = cumulative.copy(), np.diff(cumulative)
    joined = (low + np.arange(1, len(counts))) % repeats > 0
    ends[1:-1] += np.where(joined, counts[1:] // 2, 0)
    return np.asarray(ends, dtype=np.int64)


def levels_of(cumulative: IntArray, r: Fraction, steps: int, shared: bool = False) -> IntArray:
    """⌊d·max(0, M_{k−1} − r N, r N − M_k)⌋ (cells,), exactly. cumulative: where the intervals
    begin, and N; shared: in 1/W."""
    ends = cumulative - cumulative[0]
    wanted = r * int(ends[-1]) * steps
    floor, ceiling = wanted.numerator // wanted.denominator, ceil(wanted)
    if shared:
        above = _in_persons(ends[:-1], steps, ceiling)
        under = _in_persons(ends[1:], -steps, -floor)
    else:
        ends *= steps
        above, under = ends[:-1] - ceiling, floor - ends[1:]
    return np.asarray(np.maximum(np.maximum(above, under), 0), dtype=np.int64)


def empty_level(part: QuantileTree, records: int) -> int:
    """⌊s d N⌋ − B Q: the level of ∅ where N records are in cells."""
    (r,), climb = _ranks(part.probabilities)[0], ladder(part)
    odds = (_EMPTY_ODDS * part.sub_cells - 1).bit_length()
    return int(max(r, 1 - r) * climb.steps * records) - (odds << climb.bits)


def _in_persons(inside: IntArray, steps: int, less: int) -> IntArray:
    """⌊(inside·steps − less)/W⌋, exactly, without products above 2⁶³. less: any whole number."""
    low = (1 << _WEIGHT_BITS) - 1
    rest = ((inside & low) * steps - (less & low)) >> _WEIGHT_BITS
    return np.asarray((inside >> _WEIGHT_BITS) * steps - (less >> _WEIGHT_BITS) + rest)
