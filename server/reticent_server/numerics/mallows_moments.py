"""Moments of Mallows weights w = min(1, R²/‖u‖²) on a normal design u = (1, N(0, I_p)).

What a plan needs to weigh efficiency against sensitivity; `mallows` has E[w‖u‖²]/q.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaln

from reticent_server.numerics.mallows import mean_weighted_norm


@dataclass(frozen=True, slots=True)
class WeightMoments:
    """weight: E w. norm: κ = E[w‖u‖²]/q. squared_norm: E[w²‖u‖²]/q."""

    weight: float
    norm: float
    squared_norm: float

    @property
    def inflation(self) -> float:
        """Variance of the weighted fit over the unweighted one, E[w²‖u‖²]q/(E[w‖u‖²])²."""
        return self.squared_norm / self.norm**2


@lru_cache(maxsize=4096)
def weight_moments(slopes: int, radius_squared: float, intercept: bool = True) -> WeightMoments:
    """For p = slopes normal columns (and the intercept); q = p + intercept ≥ 1."""
    one, q = (1.0 if intercept else 0.0), slopes + intercept
    if slopes == 0:
        w = min(1.0, radius_squared)
        return WeightMoments(w, w, w * w)
    largest = slopes + 12 * np.sqrt(2 * slopes) + 60

    def mean(f: Callable[[float], float]) -> float:
        return float(quad(f, 0, largest, limit=200, points=_kink(radius_squared - one, largest))[0])

    def density(t: float) -> float:
        if t <= 0:
            return 0.0
        half = slopes / 2
        return float(np.exp((half - 1) * np.log(t / 2) - t / 2 - gammaln(half)) / 2)

    def weight(t: float) -> float:
        return min(1.0, radius_squared / (one + t)) if one + t > 0 else 1.0

    return WeightMoments(
        weight=mean(lambda t: density(t) * weight(t)),
        norm=mean_weighted_norm(slopes, radius_squared, intercept),
        squared_norm=mean(lambda t: density(t) * weight(t) ** 2 * (one + t)) / q,
    )


def _kink(at: float, largest: float) -> list[float] | None:
    return [at] if 0 < at < largest else None
