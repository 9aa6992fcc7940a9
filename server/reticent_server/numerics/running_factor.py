# SPDX-License-Identifier: Apache-2.0
"""The square-root factor of running sums, in integers.

With A the lower-triangular matrix of ones (sums up to each position), A = B² for the
lower-triangular Toeplitz matrix B with the entries b_k = C(2k, k)/4^k of (1 − x)^{−1/2}. A
mechanism that adds noise z to Bh and then multiplies by B answers all running sums of h with the
noise Bz, whose variance grows with the logarithm of the length; noise on h itself gives a variance
that grows with the length.

Source: Fichtenberger, Henzinger & Upadhyay (2023), Constant matters: fine-grained error bound on
differentially private continual observation; Li et al. (2015), The matrix mechanism.
"""

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

FACTOR_BITS = 16
"""Binary digits after the point of the factor's entries: rounding moves b_k by 2⁻¹⁷ at most,
against b_k ≥ .03 for k ≤ 300."""


@lru_cache(maxsize=64)
def coefficients(length: int) -> tuple[int, ...]:
    """(length,) whole numbers 2^FACTOR_BITS · b_k, rounded to the nearest."""
    return tuple(
        (2 * (comb(2 * k, k) << FACTOR_BITS) + (1 << 2 * k)) >> (2 * k + 1) for k in range(length)
    )


def running_factor(length: int) -> NDArray[np.int64]:
    """(length, length) lower-triangular Toeplitz Q ≈ 2^FACTOR_BITS · B; its entries are ≥ 0, its
    diagonal is 2^FACTOR_BITS."""
    column = np.array(coefficients(length), dtype=np.int64)
    rows, columns = np.indices((length, length))
    return np.where(rows >= columns, column[np.abs(rows - columns)], 0)


def squared_column_norm(length: int) -> int:
    """The largest ‖Q e_j‖² over the columns: that of the first, which holds every other's
    entries."""
    return sum(c * c for c in coefficients(length))
