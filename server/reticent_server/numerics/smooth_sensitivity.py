# SPDX-License-Identifier: Apache-2.0
"""The smooth sensitivity of an order statistic with public bounds, exactly, in O(n log n).

    SS_β(X_(h)) = max_{k ≥ 0} e^(−βk) A^(k)
                = max_{0 ≤ i ≤ h ≤ j ≤ n+1} (X_(j) − X_(i)) e^(−β(j−i−1))

with X_(0) the lower and X_(n+1) the upper bound (Nissim, Raskhodnikova & Smith 2007). For i < i′
and j < j′ the ratio of (i, j′) to (i, j) is at most that of (i′, j′) to (i′, j), since
(X_(j′) − x)/(X_(j) − x) increases in x. The best j therefore does not decrease in i, and halving
the rows finds all of them; a choice that rounding spoils by a factor 1 − e costs a factor 1 − e in
the rows beside it, no more.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray

IntArray = NDArray[np.int64]


def smooth_sensitivity(ordered: FloatArray, rank: int, beta: float, upper: float) -> float:
    """SS_β of X_(rank) up to a relative 10⁻¹². ordered: (n,) increasing within [0, upper]."""
    x = np.concatenate([[0.0], ordered, [upper]])
    last = len(x) - 1
    columns = np.full(rank + 1, last)
    columns[:1], values = _best(x, np.array([0]), np.array([rank]), np.array([last]), beta)
    best, stride = float(values[0]), 1 << rank.bit_length()
    while stride:
        rows = np.arange(stride, rank + 1, 2 * stride)
        if len(rows):
            above = rows + stride
            high = np.where(above <= rank, columns[np.minimum(above, rank)], last)
            columns[rows], values = _best(x, rows, columns[rows - stride], high, beta)
            best = max(best, float(values.max()))
        stride //= 2
    return best


def _best(
    x: FloatArray, rows: IntArray, low: IntArray, high: IntArray, beta: float
) -> tuple[IntArray, FloatArray]:
    """(rows,) the best column in low..high of each row, and its value."""
    lengths = high - low + 1
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    j = np.arange(int(lengths.sum())) + np.repeat(low - starts, lengths)
    i = np.repeat(rows, lengths)
    values = (x[j] - x[i]) * np.exp(-beta * (j - i - 1))
    largest = np.maximum.reduceat(values, starts)
    where = np.flatnonzero(values == np.repeat(largest, lengths))
    first = where[np.searchsorted(where, starts)]
    return j[first], largest
