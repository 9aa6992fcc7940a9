# SPDX-License-Identifier: Apache-2.0
"""Squared lengths of many short vectors, which are the columns of a matrix."""

import numpy as np

from reticent_server.domain.steps import FloatArray


def squared_lengths(vectors: FloatArray, out: FloatArray) -> FloatArray:
    """(rows,) ‖x_i‖² of vectors (size, rows): squares added in the order of the components.

    A column's result is the same whatever stands beside it. einsum adds row to row, in one call
    that does not hold the interpreter; a single column it would add in another order.
    """
    if vectors.shape[1] > 1:
        return np.einsum("ij,ij->j", vectors, vectors, out=out)
    out.fill(0.0)
    for row in vectors:
        out += row * row
    return out
