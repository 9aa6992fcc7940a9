# SPDX-License-Identifier: Apache-2.0
"""Shares and likelihood ratios of noisy counts, with intervals that count sampling and noise.

A share x/(x + y) of two disjoint noisy counts, with independent noise of variances a and b, has the
residual x − p(x + y) = (1 − p)x − py, whose mean is 0 at the true p and whose variance is

    N p(1 − p) + a(1 − p)² + b p²,   N = x + y.

The interval is all p in [0, 1] whose residual is within z standard deviations, the ends of a
quadratic: Wilson's interval where there is no noise, Fieller's where the noise is all. x is cut to
[0, N] first, which can only lengthen the set inside [0, 1]. Where N is not clear of its noise
(fitting.trust.clear) the interval is [0, 1]: nothing is known of the share.

A likelihood ratio s/f of two independent shares has the ends of Zou and Donner's MOVER on the log
scale, of the intervals of s and f. An end that they do not bound is 0 or None.

Post-processing of released counts. Sources: Wilson (1927); Fieller (1954); Zou & Donner (2008),
Statistics in Medicine 27, 1693.
"""

from dataclasses import dataclass
from math import exp, hypot, inf, log, sqrt

from scipy.special import ndtri

from reticent_server.fitting.results import Interval, OpenInterval
from reticent_server.fitting.trust import clear


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """A released number of records, and the variance of its noise."""

    value: float
    noise: float

    def __add__(self, other: "NoisyCount") -> "NoisyCount":
        """Of disjoint records with independent noise."""
        return NoisyCount(self.value + other.value, self.noise + other.noise)


@dataclass(frozen=True, slots=True)
class NoisyShare:
    """An estimate in [0, 1] with its interval, which holds it."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """An estimate from 0 with its interval; None where it, or the upper end, is not bounded."""

    value: float | None
    interval: OpenInterval


def share(x: NoisyCount, y: NoisyCount, level: float) -> NoisyShare:
    """x/(x + y), by the rule above."""
    both = x + y
    N = both.value
    if not clear(N, sqrt(both.noise)):
        return NoisyShare(min(max(x.value / max(N, 1.0), 0.0), 1.0), (0.0, 1.0))
    S = min(max(x.value, 0.0), N)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    A = N**2 + z2 * (N - both.noise)
    B = -2 * S * N - z2 * (N - 2 * x.noise)
    C = S**2 - z2 * x.noise
    if A <= 0:
        return NoisyShare(S / N, (0.0, 1.0))
    root = sqrt(max(B**2 - 4 * A * C, 0.0))
    low, high = (-B - root) / (2 * A), (-B + root) / (2 * A)
    return NoisyShare(S / N, (min(max(low, 0.0), S / N), max(min(high, 1.0), S / N)))


def likelihood_ratio(s: NoisyShare, f: NoisyShare) -> LikelihoodRatio:
    """s/f, by the rule above."""
    value = s.value / f.value if f.value > 0 else None
    below = hypot(_log_step(s.value, s.interval[0]), _log_step(f.interval[1], f.value))
    above = hypot(_log_step(s.interval[1], s.value), _log_step(f.value, f.interval[0]))
    if value is None:
        return LikelihoodRatio(None, (s.interval[0] / f.interval[1], None))
    low = value * exp(-below) if below < inf else 0.0
    high = s.interval[1] / f.interval[0] if value == 0 and f.interval[0] > 0 else None
    if value > 0 and above < inf:
        high = value * exp(above)
    return LikelihoodRatio(value, (low, high))


def _log_step(high: float, low: float) -> float:
    """log(high/low); infinite where low is 0."""
    return log(high / low) if low > 0 and high > 0 else inf
