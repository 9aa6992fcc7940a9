# SPDX-License-Identifier: Apache-2.0
"""The secret division of a table's records into blocks, of equal size or one more.

A block of a public size each gets records by a uniformly random order of all positions. Proof that
the order of the rows does not matter: let D and D′ hold the records of neighbours, each in any
order, so that after a permutation σ of the positions they differ in at most m of them. For a
division P of D the same blocks of D′ are those of the division σ(P), but for the at most m blocks
that hold a differing record. P and σ(P) have the same law, because a uniform permutation composed
with a fixed one is uniform. A release that is private for every fixed P
(mechanisms.subsample_aggregate) is therefore private as a mixture over P, by quasi-convexity of
Rényi divergences, as in mechanisms.secret_rows. Nothing is charged less for the division being
secret. Sizes depend on n and the number of blocks alone.

Source: van Erven & Harremoës (2014), Theorem 13.
"""

from secrets import token_bytes

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def secret_order(n: int) -> IntArray:
    """(n,) positions in a uniformly random order.

    By sorting independent random numbers of 64 bits, all drawn again while two of them are equal:
    the order of numbers that all differ is exactly uniform.
    """
    while True:
        keys = np.frombuffer(token_bytes(8 * n), dtype=np.uint64)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        if not np.any(ordered[1:] == ordered[:-1]):
            return np.asarray(order, dtype=np.int64)


def division(order: IntArray, blocks: int) -> IntArray:
    """(blocks, size) positions of each block, −1 where a block has one record less than others."""
    size = -(-len(order) // blocks)
    filled = np.full((size, blocks), -1, dtype=np.int64)
    filled.ravel()[: len(order)] = order
    return np.ascontiguousarray(filled.T)
