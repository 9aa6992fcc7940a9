# SPDX-License-Identifier: Apache-2.0
"""Means and standard deviations with intervals that count sampling and noise.

With N records, mean m and variance s², whose noise has the variances η and τ², and the fourth
central moment μ₄ as the released histogram tells it,

    Var(m) = s²/N + η,   Var(s²) = (μ₄ − s⁴)/N + τ².

The interval of s is that of s² by its root. s² may come out as 0 by noise alone, so τ is added to
it in Var(m). Everything is post-processing of released values.
"""

from dataclasses import dataclass
from math import sqrt

from reticent_server.fitting.normal import half_width, normal_interval
from reticent_server.kinds.describe.figures import Deviation, Figure
from reticent_server.kinds.shared.ranges import ClipRange


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """N, m ∈ [−1, 1], s² ∈ [0, 1], η, τ² and μ₄, in half-widths from the centre of `span`.

    sure: whether N is above what noise alone may say; where it is not, intervals are all that is
    possible.
    """

    N: float
    m: float
    s2: float
    eta: float
    tau2: float
    fourth: float
    span: ClipRange
    sure: bool

    @property
    def mean(self) -> Figure:
        """In the units of the data."""
        value = self.span.centre + self.span.half * self.m
        error = self.span.half * sqrt((self.s2 + sqrt(self.tau2)) / self.N + self.eta)
        ends = (self.span.lower, self.span.upper)
        if not self.sure:
            error = max(error, self.span.half)
            return Figure(value=value, standard_error=error, confidence_interval=ends)
        interval = normal_interval(value, error, *ends)
        return Figure(value=value, standard_error=error, confidence_interval=interval)

    @property
    def standard_deviation(self) -> Deviation:
        """In the units of the data; without a value where noise has left no variance, or no
        records."""
        s2, half = self.s2, self.span.half
        if not self.sure:
            return Deviation(value=None, confidence_interval=(0.0, half))
        sampling = max(self.fourth - s2**2, 0.0) / self.N
        reach = half_width(sqrt(sampling + self.tau2))
        low, high = (half * sqrt(min(max(s2 + end, 0.0), 1.0)) for end in (-reach, reach))
        value = half * sqrt(s2) if s2 > 0 else None
        return Deviation(value=value, confidence_interval=(low, high))
