# SPDX-License-Identifier: Apache-2.0
"""Small matrices of exact rationals: inverses, and what a change of one row makes of them."""

from collections.abc import Sequence
from fractions import Fraction

Rational = int | Fraction
Vector = list[Fraction]
Matrix = list[Vector]


def inverse(rows: Sequence[Sequence[Rational]]) -> Matrix | None:
    """The inverse of a square matrix; None where it has none."""
    n = len(rows)
    work = [
        [Fraction(v) for v in row] + [Fraction(int(i == j)) for j in range(n)]
        for i, row in enumerate(rows)
    ]
    for k in range(n):
        pivot = next((i for i in range(k, n) if work[i][k]), None)
        if pivot is None:
            return None
        work[k], work[pivot] = work[pivot], work[k]
        head = work[k][k]
        work[k] = [v / head for v in work[k]]
        for i in range(n):
            factor = work[i][k]
            if i != k and factor:
                work[i] = [v - factor * w for v, w in zip(work[i], work[k], strict=True)]
    return [row[n:] for row in work]


def times(matrix: Matrix, vector: Sequence[Rational]) -> Vector:
    """matrix · vector."""
    return [dot(row, vector) for row in matrix]


def dot(left: Sequence[Rational], right: Sequence[Rational]) -> Fraction:
    """Σ left_i right_i."""
    return Fraction(sum(a * b for a, b in zip(left, right, strict=True)))


def exchanged(inverse: Matrix, column: int, share: Sequence[Fraction]) -> Matrix:
    """The inverse after one row of the matrix has become Σ share_i · row_i; share of that row not
    0."""
    rows = []
    for row in inverse:
        new = row[column] / share[column]
        rows.append(
            [
                new if i == column else v - s * new
                for i, (v, s) in enumerate(zip(row, share, strict=True))
            ]
        )
    return rows
