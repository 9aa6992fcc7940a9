# SPDX-License-Identifier: Apache-2.0
"""Projection depth over finitely many directions.

    O_D(x) = max_j |u_jᵀx − m_j|/s_j,   PD_D(x) = 1/(1 + O_D(x)),

m_j a location and s_j a scale of the projections u_jᵀX. O is convex, and a maximum of affine
functions. s_j may be in any units, as only the ratio enters, and u_j need not have length 1.
Source: Stahel (1981); Donoho (1982); Zuo (2003).
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from reticent_server.domain.steps import FloatArray

CHUNK = 8  # directions at a time: their projections of 10⁶ records are 64 MB

Whole = list[int]


class Projections(Protocol):
    """Locations m_j and scales s_j of K projections, and what neighbours can make of them, exactly.

    Amounts are whole numbers of 1/denominator; None where one of them can be infinite. Each
    function of k has the *shift property*: at k − 1 on a neighbour it is no worse than at k here.
    They are defined for k ≤ reach, `location_change` and `scale_change` for k < reach.
    """

    @property
    def denominator(self) -> int:
        """The same for neighbours: a function of n."""
        ...

    @property
    def location(self) -> Whole:
        """(K,) m_j."""
        ...

    @property
    def scale(self) -> Whole:
        """(K,) s_j."""
        ...

    def location_change(self, k: int) -> Whole | None:
        """(K,) the most that one replacement moves m_j on any sample within k replacements."""
        ...

    def scale_change(self, k: int) -> Whole | None:
        """(K,) the same for s_j."""
        ...

    def least_scale(self, k: int) -> Whole | None:
        """(K,) no sample within k replacements has a smaller s_j. Not above 0 where it can
        vanish."""
        ...

    def location_range(self, k: int) -> tuple[Whole, Whole] | None:
        """(K,) and (K,): m_j of every sample within k replacements lies between them."""
        ...


def whole_numbers(values: FloatArray) -> Whole | None:
    """Float64 values that are whole numbers, as such; None unless all are finite."""
    return [int(v) for v in values.tolist()] if np.isfinite(values).all() else None


def certain(values: Whole | None) -> Whole:
    """Values of a sample as it is, which are finite."""
    if values is None:
        raise ArithmeticError("a statistic of the sample is not finite")
    return values


def projected(data: FloatArray, directions: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """A few directions at a time: their rows and the projections (rows, n), free to be changed.

    data (d, n) and directions (K, d) hold whole numbers whose projections stay below 2⁵³, so these
    are exact in any order of addition: a record's does not depend on the other records.
    """
    for start in range(0, len(directions), CHUNK):
        rows = slice(start, start + CHUNK)
        yield rows, directions[rows] @ data


def outlyingness(
    points: FloatArray, directions: FloatArray, location: FloatArray, scale: FloatArray
) -> FloatArray:
    """(m,) O at the points (d, m)."""
    size = np.abs(directions @ points - location[:, None])
    return np.asarray((size / scale[:, None]).max(axis=0))


def depth(
    points: FloatArray, directions: FloatArray, location: FloatArray, scale: FloatArray
) -> FloatArray:
    """(m,) PD at the points (d, m)."""
    return 1 / (1 + outlyingness(points, directions, location, scale))
