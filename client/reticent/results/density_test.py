# SPDX-License-Identifier: Apache-2.0
"""Whether a density jumps at a public cut-off, from released counts by bin.

Where persons can move to the better side of a cut-off, their number jumps there, and a regression
discontinuity compares persons who differ. On each side the counts c_j of bins with middles x_j are
regressed on (1, u, u²), u = (x_j − c)/h, with weights max(0, 1 − |u|); the difference of the two
levels at the cut-off, over its standard error, is compared with the normal law. The variance of a
count is that of a Poisson number of the same mean and of its privacy noise. The quadratic fit is
the local linear one with its bias taken out at the same bandwidth ("robust bias correction").

Source: McCrary (2008), "Manipulation of the running variable in the regression discontinuity
design"; Cattaneo, Jansson & Ma (2020), "Simple local polynomial density estimators".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

FloatArray = NDArray[np.float64]
_TERMS = 3
"""Of a fit on one side: 1, u, u²."""
_Z = float(ndtri(0.975))
_NEAR = 1e-9
"""Of a bin's width, by which a cut-off may miss its edge: rounding."""


@dataclass(frozen=True, slots=True)
class DensityTest:
    """below, above: expected numbers of records per unit of the column on both sides of the
    cut-off. difference: above − below, with its standard error of sampling and noise and its 95 %
    interval. bins: on each side.
    """

    below: float
    above: float
    difference: float
    standard_error: float
    interval: tuple[float, float]
    statistic: float
    pvalue: float
    bins: tuple[int, int]


def density_test(
    edges: FloatArray, counts: FloatArray, noise: float, cutoff: float, bandwidth: float
) -> DensityTest:
    """The test at one of the inner edges. edges: (k + 1,) increasing; counts: (k,) released, with
    noise of this standard deviation. Raises ValueError for a cut-off that is no edge, or fewer than
    four bins on a side within the bandwidth.
    """
    place = int(np.argmin(np.abs(edges - cutoff)))
    inner = 0 < place < len(edges) - 1
    if not inner or abs(edges[place] - cutoff) > _NEAR * np.diff(edges).max():
        raise ValueError("the cut-off must be an inner edge of the bins: name it among them")
    sides = [
        _level(edges, counts, noise, cutoff, bandwidth, side)
        for side in (slice(None, place), slice(place, None))
    ]
    (below, var_below, n_below), (above, var_above, n_above) = sides
    difference, error = above - below, float(np.sqrt(var_below + var_above))
    return DensityTest(
        below=below,
        above=above,
        difference=difference,
        standard_error=error,
        interval=(difference - _Z * error, difference + _Z * error),
        statistic=difference / error,
        pvalue=float(2 * ndtr(-abs(difference) / error)),
        bins=(n_below, n_above),
    )


def _level(
    edges: FloatArray,
    counts: FloatArray,
    noise: float,
    cutoff: float,
    bandwidth: float,
    side: slice,
) -> tuple[float, float, int]:
    """The density at the cut-off from one side, its variance, and the number of bins."""
    width, middle = np.diff(edges)[side], ((edges[1:] + edges[:-1]) / 2)[side]
    u = (middle - cutoff) / bandwidth
    kernel = np.maximum(1 - np.abs(u), 0.0)
    inside = kernel > 0
    if inside.sum() <= _TERMS:
        raise ValueError(
            "the test needs four bins or more within the bandwidth on each side: finer bins, or a "
            "wider bandwidth"
        )
    X, w = np.vander(u[inside], _TERMS, increasing=True), kernel[inside]
    weights = np.linalg.solve((X * w[:, None]).T @ X, (X * w[:, None]).T)  # (terms, bins)
    density = counts[side][inside] / width[inside]
    fitted = np.maximum(X @ (weights @ density), 0.0) * width[inside]
    variance = (np.maximum(fitted, 1.0) + noise**2) / width[inside] ** 2
    return float(weights[0] @ density), float(weights[0] ** 2 @ variance), int(inside.sum())
