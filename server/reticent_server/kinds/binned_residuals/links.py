# SPDX-License-Identifier: Apache-2.0
"""How a fitted mean follows from the linear predictor, and between which bounds residuals of a bin
are summed.

A link has the mean μ(η), and for a bin [l, u] of fitted values a public range that residuals y − μ
are clipped to:

- identity: ±REACH s, s the scale of the residuals;
- logit: y ∈ [0, 1], so y − μ ∈ [−u, 1 − l], and nothing is clipped;
- log: from −min(u, REACH σ) to 1.5 REACH σ, σ² = s²μ^k + αμ² + d² at the bin's middle μ, k the
  variance's power, α the dispersion and d the step of a response of whole numbers. An exponential
  law is clipped beyond its 99.7 % quantile, a Poisson one beyond that.

Every range is cut to what declared bounds allow. Without a scale it is that alone.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, log, sqrt

import numpy as np
from scipy.special import expit

from reticent_server.domain.design import Term
from reticent_server.domain.steps import FloatArray
from reticent_server.errors import InvalidQuery
from reticent_server.fitting.results import Interval
from reticent_server.kinds.shared.ranges import REACH

SATURATED = 30.0  # of η: beyond it a share is 0 or 1 to 13 digits
UPWARDS = 1.5  # times REACH: an exponential law's upper tail is .3 % beyond


@dataclass(frozen=True, slots=True)
class Spread:
    """What public facts say of the residuals: s, k, α, and d. scale: None where nothing is
    known."""

    scale: float | None
    power: float
    dispersion: float
    step: float

    def at(self, mean: float) -> float | None:
        """σ at a fitted mean; infinite where it overflows."""
        if self.scale is None:
            return None
        mean = max(mean, 0.0)
        # no squares: one of a large scale raises, and would end what has been charged
        own = self.scale * mean ** (self.power / 2)
        return hypot(own, sqrt(self.dispersion) * mean, self.step)


class MeanFunction(ABC):
    """A link."""

    @abstractmethod
    def mean(self, eta: FloatArray) -> FloatArray:
        """(rows,) μ; what overflows is not finite."""

    def reach(self, low: float, high: float, response: Term) -> Interval:  # noqa: ARG002
        """The reach of η for the search of bins: what declared bounds allow, without what no fitted
        mean is worth."""
        return low, high

    @abstractmethod
    def range(self, low: float, high: float, spread: Spread) -> Interval:
        """The range of the residuals of a bin, before it is cut to what declared bounds allow."""

    def check(self, response: Term) -> None:  # noqa: B027 - nothing is wrong with a response in general
        """Raises InvalidQuery for a response that the link does not take."""


class _Identity(MeanFunction):
    def mean(self, eta: FloatArray) -> FloatArray:
        return eta

    def range(self, low: float, high: float, spread: Spread) -> Interval:  # noqa: ARG002
        if spread.scale is None:
            return -np.inf, np.inf
        return -REACH * spread.scale, REACH * spread.scale


class _Logit(MeanFunction):
    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(expit(eta))

    def reach(self, low: float, high: float, response: Term) -> Interval:  # noqa: ARG002
        return max(low, -SATURATED), min(high, SATURATED)

    def range(self, low: float, high: float, spread: Spread) -> Interval:  # noqa: ARG002
        return -high, 1.0 - low

    def check(self, response: Term) -> None:
        if response.lower < 0 or response.upper > 1:
            raise InvalidQuery("The logit link needs a response with bounds within 0 and 1.")


class _Log(MeanFunction):
    def mean(self, eta: FloatArray) -> FloatArray:
        return np.asarray(np.exp(eta))

    def reach(self, low: float, high: float, response: Term) -> Interval:
        """Up to e times the response's bound."""
        return max(low, -SATURATED), min(high, log(max(response.upper, 1.0)) + 1.0)

    def range(self, low: float, high: float, spread: Spread) -> Interval:
        sigma = spread.at((low + high) / 2)
        if sigma is None:
            return -high, np.inf
        return -min(high, REACH * sigma), UPWARDS * REACH * sigma

    def check(self, response: Term) -> None:
        if response.lower < 0:
            raise InvalidQuery("The log link needs a response with bounds that are not below 0.")


MEANS: Mapping[str, MeanFunction] = {"identity": _Identity(), "logit": _Logit(), "log": _Log()}
