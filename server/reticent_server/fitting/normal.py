# SPDX-License-Identifier: Apache-2.0
"""Normal intervals of single estimates."""

from scipy.special import ndtri

CONFIDENCE = (
    0.95  # of the intervals of kinds that have no level of their own: the field's convention
)


def half_width(sd: float, level: float = CONFIDENCE) -> float:
    """Half of the interval of an estimate with standard deviation `sd`, in its units."""
    return float(ndtri((1 + level) / 2)) * sd


def normal_interval(value: float, sd: float, lower: float, upper: float) -> tuple[float, float]:
    """value ± half_width(sd), cut to [lower, upper], what the quantity can be."""
    half = half_width(sd)
    low, high = (min(max(end, lower), upper) for end in (value - half, value + half))
    return low, high
