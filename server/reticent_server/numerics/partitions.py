# SPDX-License-Identifier: Apache-2.0
"""Public partitions of the line: the bin of a value, and a bin's centre. Monotone in the value."""

from functools import lru_cache
from math import floor, inf, isfinite

import numpy as np

from reticent_server.domain.columns import GeometricBins, UniformBins
from reticent_server.domain.steps import FloatArray

Bins = GeometricBins | UniformBins
# bin number of an infinite end: beyond every finite bin, and its negative is still an int64
_FAR = 2**62


def bin_of(bins: Bins, shift: float, value: float) -> int:
    """The bin's number; −∞ and +∞ have bins of their own in a uniform partition."""
    if isinstance(bins, GeometricBins):
        return int(np.searchsorted(_edges(bins, shift), value, side="right")) - 1
    if not isfinite(value):
        return _FAR if value > 0 else -_FAR
    return floor(value / bins.width - shift)


def centre(bins: Bins, shift: float, number: int) -> float:
    """The geometric or arithmetic middle; 0 for what is smaller than every edge."""
    if isinstance(bins, GeometricBins):
        return 0.0 if number < 0 else float(bins.lowest * bins.ratio ** (number + shift + 0.5))
    return (number + shift + 0.5) * bins.width


def edges(bins: Bins, shift: float, number: int) -> tuple[float, float]:
    """The bin's ends, 0 and infinity where it has none."""
    if isinstance(bins, UniformBins):
        return (number + shift) * bins.width, (number + shift + 1) * bins.width
    inner = _edges(bins, shift)
    low = 0.0 if number < 0 else float(inner[number])
    return low, float(inner[number + 1]) if number + 1 < len(inner) else inf


@lru_cache(maxsize=64)
def _edges(bins: GeometricBins, shift: float) -> FloatArray:
    return np.asarray(bins.lowest * bins.ratio ** (np.arange(bins.count) + shift))
