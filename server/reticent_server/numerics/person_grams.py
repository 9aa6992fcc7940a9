# SPDX-License-Identifier: Apache-2.0
"""The lengths of persons' Gram matrices A_u = Σ_t v_t v_tᵀ.

‖A_u‖_F² = Σ_{s,t} (v_sᵀv_t)². Everything is added element by element in the order of places and
coordinates, so that a person's length is bit-identical whatever block the person comes in.
"""

from collections.abc import Iterator

import numpy as np

from reticent_server.domain.steps import FloatArray


def gram_lengths(vectors: FloatArray, m: int) -> FloatArray:
    """(persons,) ‖A_u‖_F of vectors (size, places), m consecutive places a person; of m = 1 the
    squared lengths."""
    products = _of_places if m <= len(vectors) else _of_coordinates
    total = np.zeros(vectors.shape[1] // m)
    for times, product in products(vectors, m):
        total += times * product * product
    return np.sqrt(total)


def _of_places(v: FloatArray, m: int) -> Iterator[tuple[int, FloatArray]]:
    """(1 or 2, (persons,) v_sᵀv_t) for each pair of places, s ≤ t."""
    for s in range(m):
        for t in range(s, m):
            product = np.zeros(v.shape[1] // m)
            for row in v:
                product += row[s::m] * row[t::m]
            yield 1 if s == t else 2, product


def _of_coordinates(v: FloatArray, m: int) -> Iterator[tuple[int, FloatArray]]:
    """(1 or 2, (persons,) Σ_t v_jt v_kt) for each pair of coordinates, j ≤ k."""
    for j in range(len(v)):
        for k in range(j, len(v)):
            product = np.zeros(v.shape[1] // m)
            for t in range(m):
                product += v[j, t::m] * v[k, t::m]
            yield 1 if j == k else 2, product
