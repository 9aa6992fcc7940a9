# SPDX-License-Identifier: Apache-2.0
"""Sums of contributions that lie in one place of many, e_g ⊗ v, without writing them out.

A record's contribution x ∈ R^d, d = kG, has v ∈ R^k in the places of its group g and the same
number e in all others (domain.steps.Placed). What is added is bit for bit what mechanisms.quantise
and noisy_sum add of x written out, so that their proof is this one's: with s = 1/granule,
round(s·x_j) is round(s·v_j) or round(s·e), which is 0 for e = 0, and

    ‖x‖² = ‖v‖² + (kG − k)e² in a group,   kGe² in none

is computed to a relative error of d2⁻⁵³ as quantise asks. A record that is not surely short by it
(one that is not finite among them) is left out here and written out. A group that is none of 0..G−1
is none, so no map can put a record in two places.

The sum of a coordinate is that of its group's integers, and round(s·e) for every other record. In a
Gram sum e = 0, so that the product of two coordinates of different groups is 0 for every record:
only the blocks of one group are computed. Sums are of integers below 2⁵³ and exact in any order.
Attack: tests/privacy/test_placed_privacy.py.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import FloatArray, GramSum, Placed, VectorSum
from reticent_server.mechanisms.quantise import granule, squared_norms, too_long

IntArray = NDArray[np.int64]


def encode(
    part: VectorSum | GramSum, contributions: Placed, scratch: Scratch = FRESH
) -> tuple[IntArray, FloatArray]:
    """The exact integer sum (size,) or (size, size) over the records that are surely short, and
    (size, records) the contributions of the others. Raises ValueError for another size, TypeError
    for a Gram sum that is not of blocks."""
    vectors, G, e = contributions.vectors, contributions.groups, contributions.elsewhere
    if len(vectors) * G != part.size or part.groups != G:
        raise ValueError("contributions do not have the planned size")
    if isinstance(part, GramSum) and (part.signed or e):
        raise TypeError("a Gram sum of groups has no signs, and nothing in other places")
    unit, k = np.float64(1 / granule(part)), len(vectors)
    inside = (contributions.group >= 0) & (contributions.group < G)
    with np.errstate(all="ignore"):
        norms = squared_norms(vectors, scratch)
        if e:
            norms += e**2 * (k * G - k * inside)
        long = too_long(part, unit, norms, scratch)
        q = np.rint(vectors * unit)
        place = np.where(inside & ~long, contributions.group, G)
        if isinstance(part, GramSum):
            total = _gram(q, place, G)
        else:
            other = int(np.rint(e * unit)) if np.isfinite(e) else 0
            total = _vector(q, place, G, other, int(np.count_nonzero(~long)))
    return total, contributions.of(long).written_out()


def _vector(q: FloatArray, place: NDArray[np.int64], G: int, other: int, records: int) -> IntArray:
    """(kG,): of integers (k, rows), and `other` of each of the records in the places that it is not
    in."""
    sums = np.concatenate([_by_place(place, G, row) for row in q])
    if not other:
        return sums
    return sums + other * (records - np.tile(_by_place(place, G), len(q)))


def _gram(q: FloatArray, place: NDArray[np.int64], G: int) -> IntArray:
    """(kG, kG): for every two coordinates the diagonal of their block."""
    k, g = len(q), np.arange(G)
    total = np.zeros((k, G, k, G), dtype=np.int64)
    for i in range(k):
        for j in range(i, k):
            total[i, g, j, g] = total[j, g, i, g] = _by_place(place, G, q[i] * q[j])
    return total.reshape(k * G, k * G)


def _by_place(place: NDArray[np.int64], G: int, values: FloatArray | None = None) -> IntArray:
    """(G,) sums of integers, or numbers of records, by place; those at G are left out."""
    return np.bincount(place, values, minlength=G + 1)[:G].astype(np.int64)
