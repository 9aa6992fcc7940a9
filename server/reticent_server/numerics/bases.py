# SPDX-License-Identifier: Apache-2.0
"""Functions of polynomial and spline bases on a public interval: elementwise, for values of any
shape.

Legendre: P_k(t), t = (2x − l − u)/(u − l), by k P_k = (2k − 1) t P_{k−1} − (k − 1) P_{k−2};
|P_k| ≤ 1 on [l, u]. B-spline: B_{j,p} by the Cox–de Boor recursion on a clamped knot vector;
0 ≤ B ≤ 1, and they add up to 1. Values outside [l, u] count as its nearer end; NaN stays NaN.

Source: de Boor (2001), A Practical Guide to Splines, ch. IX and X.
"""

from itertools import pairwise

import numpy as np

from reticent_server.domain.steps import FloatArray


def legendre(values: FloatArray, order: int, lower: float, upper: float) -> FloatArray:
    """P_order, elementwise on values (any shape) in [lower, upper], scaled to [−1, 1]; order ≥ 0,
    lower < upper."""
    half = upper / 2 - lower / 2
    t = np.clip((values - lower) / half - 1, -1.0, 1.0)
    before, now = np.zeros_like(t), 1 + 0 * t
    for k in range(1, order + 1):
        before, now = now, ((2 * k - 1) * t * now - (k - 1) * before) / k
    return np.asarray(now)


def bspline(values: FloatArray, index: int, knots: tuple[float, ...]) -> FloatArray:
    """The basis function of that index (from 0) on a clamped knot vector.

    knots: increasing, the first and the last repeated degree + 1 times each, the others simple.
    """
    degree = knots.count(knots[0]) - 1
    x = np.clip(values, knots[0], knots[-1])
    own = knots[index : index + degree + 2]
    parts = [_piece(x, low, high, last=knots[-1]) for low, high in pairwise(own)]
    for p in range(1, degree + 1):
        parts = [
            _up(x, own[i], own[i + p]) * parts[i]
            + (1 - _up(x, own[i + 1], own[i + p + 1])) * parts[i + 1]
            for i in range(degree + 1 - p)
        ]
    return np.asarray(parts[0] + 0 * x)


def _piece(x: FloatArray, low: float, high: float, last: float) -> FloatArray:
    """1 on [low, high), and at the interval's upper end on the last piece that is not empty."""
    inside = (x >= low) & (x < high)
    if low < high == last:
        inside |= x == last
    return np.asarray(inside, dtype=np.float64)


def _up(x: FloatArray, low: float, high: float) -> FloatArray:
    """(x − low)/(high − low) within [0, 1]: where it is not, its factor is 0, as where the knots
    coincide."""
    return np.clip((x - low) / (high - low), 0.0, 1.0) if high > low else np.zeros_like(x)
