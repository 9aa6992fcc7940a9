# SPDX-License-Identifier: Apache-2.0
"""Order statistics of a sample and of every sample within k replacements of it.

X_(1) ≤ … ≤ X_(n), and X_(i) = −∞ for i < 1, +∞ for i > n. Quantiles are single order statistics,
never interpolated. Replacing one record moves all order statistics weakly in one direction, each by
at most one rank: X_(i) ≤ X′_(i) ≤ X_(i+1) for all i, or X_(i−1) ≤ X′_(i) ≤ X_(i) for all i. (∗)

A *window* of rank q and reach c is the array (…, 2c + 1) of X_(q+r), r = −c..c. Differences and
comparisons of float64 values are monotone, so what follows holds of the rounded results too.

Each function of k has the *shift property*: its value at k − 1 on a neighbour is within its value
at k on the data, by (∗). Source: Nissim, Raskhodnikova & Smith (2007); Dwork & Lei (2009).
"""

from collections.abc import Callable, Sequence

import numpy as np

from reticent_server.domain.steps import FloatArray


def quartile_ranks(n: int) -> tuple[int, int, int]:
    """Ranks (from 1) of the lower quartile, the median and the upper quartile."""
    return -(-n // 4), -(-n // 2), -(-3 * n // 4)


def window(ordered: FloatArray, rank: int, reach: int) -> FloatArray:
    """(…, 2 reach + 1) from ordered (…, n), padded with ∓∞. rank: from 1."""
    n = ordered.shape[-1]
    low, high = rank - 1 - reach, rank + reach
    inside = ordered[..., max(low, 0) : min(high, n)]
    pad = [(0, 0)] * (ordered.ndim - 1)
    below = np.pad(inside, [*pad, (max(-low, 0), 0)], constant_values=-np.inf)
    return np.pad(below, [*pad, (0, max(high - n, 0))], constant_values=np.inf)


def partial_windows(rows: FloatArray, ranks: Sequence[int], reach: int) -> list[FloatArray]:
    """The windows (k, 2 reach + 1) of increasing ranks of unordered rows (k, n), reordered in
    place.

    Afterwards entries a..b of a row are its order statistics a..b, in any order, for ranks a < b.
    """
    n = rows.shape[1]
    ends = [(max(r - 1 - reach, 0), min(r + reach, n)) for r in ranks]
    rows.partition(
        sorted(
            {min(place, n - 1) for r, e in zip(ranks, ends, strict=True) for place in (*e, r - 1)}
        ),
        axis=1,
    )
    windows = []
    for rank, (low, high) in zip(ranks, ends, strict=True):
        rows[:, low:high].sort(axis=1)
        below, above = max(reach - rank + 1, 0), max(rank + reach - n, 0)
        inside = np.pad(rows[:, low:high], ((0, 0), (below, 0)), constant_values=-np.inf)
        windows.append(np.pad(inside, ((0, 0), (0, above)), constant_values=np.inf))
    return windows


def local_sensitivity(w: FloatArray, k: int) -> FloatArray:
    """A^(k) = max_{t=0..k+1} (X_(q+t) − X_(q+t−k−1)): the largest change of X_(q) by one
    replacement on any sample within k replacements. (…,) from a window of reach ≥ k + 1.

    Shift: with (∗) upwards, X′_(q+t) − X′_(q+t−k) ≤ X_(q+t+1) − X_(q+t−k), a term of A^(k); and
    downwards ≤ X_(q+t) − X_(q+t−k−1), another.
    """
    c = w.shape[-1] // 2
    upper = w[..., c : c + k + 2]
    lower = w[..., c - k - 1 : c + 1]
    return np.asarray((upper - lower).max(axis=-1))


def smallest_gap(lower: FloatArray, upper: FloatArray, k: int) -> FloatArray:
    """s⁻_k = min_{a+b=k} (X_(q3−a) − X_(q1+b)): no sample within k replacements has a smaller gap.

    (…,) from windows of q1 and q3 of reach ≥ k. Shift: one replacement moves X_(q3) down or X_(q1)
    up by a rank, never both.
    """
    return np.asarray(_gaps(_down(upper, k), _up(lower, k)).min(axis=-1))


def largest_gap(lower: FloatArray, upper: FloatArray, k: int) -> FloatArray:
    """s⁺_k = max_{a+b=k} (X_(q3+a) − X_(q1−b)): no sample within k replacements has a larger
    gap."""
    return np.asarray(_gaps(_up(upper, k), _down(lower, k)).max(axis=-1))


def _gaps(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """upper[a] − lower[k − a] for a = 0..k."""
    return np.asarray(upper - lower[..., ::-1])


def _up(w: FloatArray, k: int) -> FloatArray:
    c = w.shape[-1] // 2
    return w[..., c : c + k + 1]


def _down(w: FloatArray, k: int) -> FloatArray:
    """X_(q), X_(q−1), …, X_(q−k)."""
    c = w.shape[-1] // 2
    return w[..., c - k : c + 1][..., ::-1]


def safe_distance(safe: Callable[[int], bool], cap: int) -> int:
    """max{k ≤ cap: safe(1), …, safe(k)} for a `safe` that never becomes true again; 0 if not
    safe(1).

    Where safe(i) on the data implies safe(i − 1) on every neighbour, this has sensitivity 1, and so
    has its minimum with a public cap.
    """
    low, high = 0, cap
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if safe(middle) else (low, middle - 1)
    return low
