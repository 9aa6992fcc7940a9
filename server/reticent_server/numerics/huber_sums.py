# SPDX-License-Identifier: Apache-2.0
"""S(θ) = Σ ψ_c(x_i − θ) with Huber's ψ_c, exactly, at many points: records, c and θ are whole
numbers.

With A = #{x_i ≤ θ + c}, B = #{x_i ≤ θ − c} and P the running sums of the sorted records,

    S(θ) = n c − (A(θ + c) − P_A) + (B(θ − c) − P_B),

since ψ_c(x − θ) is c less what θ + c exceeds x by, plus what θ − c exceeds x by.
"""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def huber_sums(x: IntArray, c: int, points: IntArray) -> IntArray:
    """S (m,) at the points (m,) for records x (n,), all whole numbers.

    |S| ≤ n c has to be below 2⁶³. Products and running sums may be larger: int64 counts modulo 2⁶⁴,
    where additions and multiplications are exact, and so is what they come to in the end.
    """
    ordered = np.sort(x)
    running = np.concatenate([[0], np.cumsum(ordered)])
    sums = np.full(len(points), len(x) * c, dtype=np.int64)
    for side, sign in ((points + c, -1), (points - c, 1)):
        count = np.searchsorted(ordered, side, side="right")
        sums += sign * (count * side - running[count])
    return sums
