"""A residual scale from a noisy histogram of |r| on half-octave bins around the current scale s.

Bins: |r| < s2⁻⁵; [s2^(−5+k/2), s2^(−5+(k+1)/2)), k = 0..12; |r| ≥ s2^1.5: 15 in all. The edges are
powers of √2 times s, so that a record's bin is a function of |r|/s alone.
"""

import numpy as np

from reticent_server.domain.steps import FloatArray

BINS = 15
_LOWEST = -5.0
_MAD_TO_SD = 0.6744897501960817
_EDGES = 2.0 ** (_LOWEST + 0.5 * np.arange(BINS - 1))
_BELOW, _BEYOND = 4.0**_LOWEST / 2, 2.0**1.75
_LARGEST_SHRINK, _LARGEST_GROWTH = 1 / 64, 1.2


def scale_codes(z: FloatArray) -> FloatArray:
    """(rows,) bins 0..14 of z = r/s, NaN (counted nowhere) for NaN. z: (rows,).

    Half octaves of |z| are octaves of z²: its exponent is the bin.
    """
    size = np.clip(z, -_BEYOND, _BEYOND)
    size *= size
    np.maximum(size, _BELOW, out=size)
    exponents = np.frexp(size)[1]
    size *= 0.0
    size += exponents
    size -= 2 * _LOWEST
    return np.asarray(size)


def median_ratio(counts: FloatArray, total: float) -> float:
    """median|r|/(.6745 s) from noisy counts (15,), clipped to [1/64, 1.2].

    The counts are projected to the known or released total, their running sum is made monotone, and
    the median is interpolated linearly within its bin (from 0 in the first, to the edge of the last).
    """
    projected = counts + (total - counts.sum()) / BINS
    cumulative = np.concatenate([[0.0], _monotone(np.cumsum(projected))])
    edges = np.concatenate([[0.0], _EDGES, [_EDGES[-1] * np.sqrt(2)]])
    half = total / 2
    k = int(np.clip(np.searchsorted(cumulative, half, side="left"), 1, BINS))
    low, high = cumulative[k - 1], cumulative[k]
    inside = (half - low) / (high - low) if high > low else 0.5
    median = edges[k - 1] + (edges[k] - edges[k - 1]) * min(max(inside, 0.0), 1.0)
    return float(np.clip(median / _MAD_TO_SD, _LARGEST_SHRINK, _LARGEST_GROWTH))


def _monotone(cumulative: FloatArray) -> FloatArray:
    """The mean of the running maximum from the left and the running minimum from the right."""
    upper = np.maximum.accumulate(cumulative)
    lower = np.minimum.accumulate(cumulative[::-1])[::-1]
    return np.asarray(np.maximum((upper + lower) / 2, 0.0))
