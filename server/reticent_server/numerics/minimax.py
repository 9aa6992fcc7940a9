# SPDX-License-Identifier: Apache-2.0
"""The least of a maximum of affine functions, exactly: rational arithmetic, no tolerance.

    f* = min_x max_j max(u_jᵀx − M⁻_j, M⁺_j − u_jᵀx)/s_j      u_j, M⁻ ≤ M⁺, s > 0 whole numbers

This is the linear program min f subject to r_iᵀ(x, f) ≤ c_i over the 2K rows (u_j, −s_j), c = M⁻_j,
and (−u_j, −s_j), c = −M⁺_j. A *basis* is d + 1 rows, independent, with multipliers λ ≥ 0 such that
Σλ_i r_i = (0, …, 0, −1): then f ≥ −Σλ_i c_i for every feasible (x, f), with equality at the point
where all rows of the basis hold with equality. The dual simplex method takes a row that this point
violates into the basis, in the place of one that keeps λ ≥ 0; f does not fall. A point that
violates no row is the optimum. Rows to take are looked for in float64 first; that the last point
violates none is decided exactly. After MOST_PIVOTS pivots rows are chosen by Bland's rule, by which
no basis comes twice: the method ends on every input.

Whether d + 1 rows are a basis depends on the signed u_j alone: λ_i s_i is in proportion to the
kernel of the u_i. So there is a basis that is one for all s, M⁻, M⁺ (`signed_basis`), and an
optimum of one program is a start for others.

Source: Bertsimas & Tsitsiklis (1997), §4.5; Bland (1977).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from reticent_server.numerics.rational_matrices import (
    Matrix,
    Vector,
    dot,
    exchanged,
    inverse,
    times,
)

IntArray = NDArray[np.int64]

MOST_PIVOTS = 1000  # measured: below 60 on all data tried
_PRICE = 1e-9  # violations below this share of f are left to the exact comparison


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """directions (K, d) int64; lower, upper, scale (K,) whole numbers of any size, scale > 0."""

    directions: IntArray
    lower: Sequence[int]
    upper: Sequence[int]
    scale: Sequence[int]

    @property
    def count(self) -> int:
        """K."""
        return len(self.directions)

    def row(self, i: int) -> list[int]:
        """r_i: i < K for the first kind, K + j for the second."""
        j, sign = i % self.count, 1 if i < self.count else -1
        return [sign * int(u) for u in self.directions[j]] + [-self.scale[j]]

    def limit(self, i: int) -> int:
        """c_i."""
        return self.lower[i] if i < self.count else -self.upper[i - self.count]


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """point x (d,) and value f*, exactly. basis: d + 1 rows; inverse: of their matrix."""

    point: Vector
    value: Fraction
    basis: tuple[int, ...]
    inverse: Matrix


def smallest_maximum(program: Program, start: Sequence[int]) -> Optimum:
    """The optimum. start: a basis, as of `signed_basis` or of another program with these
    directions."""
    basis = list(start)
    solved = inverse([program.row(i) for i in basis])
    if solved is None:
        raise ArithmeticError("the rows of a basis are independent")
    pivots = 0
    while True:
        *point, value = times(solved, [program.limit(i) for i in basis])
        taken = _violated(program, point, value, first=pivots >= MOST_PIVOTS)
        if taken is None:
            return Optimum(point, value, tuple(basis), solved)
        share = _shares(solved, program.row(taken))
        left = _leaving(basis, solved[-1], share)
        solved = exchanged(solved, left, share)
        basis[left] = taken
        pivots += 1


def _shares(solved: Matrix, row: Sequence[int]) -> Vector:
    """w with row = Σ w_i · (row i of the basis)."""
    return [dot(row, column) for column in zip(*solved, strict=True)]


def _leaving(basis: Sequence[int], last: Vector, share: Vector) -> int:
    """Whose multiplier falls to 0 first: min λ_i/w_i over w_i > 0, λ = −last; of ties the smallest
    row."""
    ratios = [
        (-v / w, basis[i], i) for i, (v, w) in enumerate(zip(last, share, strict=True)) if w > 0
    ]
    return min(ratios)[2]


def _violated(program: Program, point: Vector, value: Fraction, *, first: bool) -> int | None:
    """The row that is violated most as far as float64 tells, else the first that is; None if none
    is."""
    if not first:
        guess = _most_violated(program, point, value)
        if guess is not None and dot(program.row(guess), [*point, value]) > program.limit(guess):
            return guess
    at, common = products(program.directions, point)
    f = value * common
    for j, (left, s) in enumerate(zip(at, program.scale, strict=True)):
        if left - program.lower[j] * common > s * f:
            return j
    for j, (left, s) in enumerate(zip(at, program.scale, strict=True)):
        if program.upper[j] * common - left > s * f:
            return program.count + j
    return None


def _most_violated(program: Program, point: Vector, value: Fraction) -> int | None:
    """By float64, at the distance from the point rounded to whole numbers, which is exact in
    them."""
    centre = [round(v) for v in point]
    rest = np.array([float(v - c) for v, c in zip(point, centre, strict=True)])
    at = program.directions.astype(object) @ np.array(centre, dtype=object)
    near = program.directions @ rest
    f, size = float(value), np.array([float(s) for s in program.scale])
    above = (np.array([float(a - m) for a, m in zip(at, program.lower, strict=True)]) + near) / size
    below = (np.array([float(m - a) for a, m in zip(at, program.upper, strict=True)]) - near) / size
    excess = np.concatenate([above, below]) - f
    worst = int(excess.argmax())
    return worst if excess[worst] > _PRICE * abs(f) else None


def products(directions: IntArray, point: Vector) -> tuple[list[int], int]:
    """u_jᵀx (K,) as whole numbers of 1/common, and common."""
    common = lcm(*(v.denominator for v in point))
    x = np.array([int(v * common) for v in point], dtype=object)
    return (directions.astype(object) @ x).tolist(), common


def signed_basis(directions: IntArray) -> tuple[int, ...] | None:
    """A basis with multipliers > 0, whatever s and M are: the first d independent u_j, and the
    first of the others, u = Σ c_j u_j, whose c_j are all different from 0, with the signs of −c_j.
    None where there is none.
    """
    K, d = directions.shape
    whole = [[int(v) for v in row] for row in directions]
    first: list[int] = []
    for j in range(K):
        if len(first) < d and _rank([whole[i] for i in (*first, j)]) > len(first):
            first.append(j)
    solved = inverse([whole[j] for j in first]) if len(first) == d else None
    for k in range(K) if solved else ():
        share = _shares(solved or [], whole[k])
        if all(share):
            return (*(j + (K if c > 0 else 0) for j, c in zip(first, share, strict=True)), k)
    return None


def _rank(rows: Sequence[Sequence[int]]) -> int:
    """The rank of at most d independent rows and one more."""
    gram = [[dot(a, b) for b in rows] for a in rows]
    return len(rows) if inverse(gram) is not None else len(rows) - 1
