# SPDX-License-Identifier: Apache-2.0
"""What a line of the gauntlet is expected to show, and what chance may do to it.

A goal is *met* where the figure itself is within it, and *missed* where it is outside beyond
chance: by luck less than once in 10⁶ for a model that is at the goal's edge. Between the two a few
samples do not tell.

The coefficients of one fit may go together in any way, so a sample counts once. The share of a
fit's intervals that hold is a mean of Bernoulli variables, the mean of its squared z scores one of
χ²₁ variables; whatever their dependence, E exp(λ mean) is at most that of a single one (Jensen), so
Chernoff's bounds of R independent ones hold: exp(−R KL(share, p)), and exp(−R (r − 1 − ln r)/2) for
a mean square of r times the expected one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import fmean

from scipy.stats import binom

ANSWERED = "answered"
LUCK = 1e-6  # chance of a miss by luck alone: STYLE's limit for tests that depend on chance
LEAST_COVERAGE = 0.90  # of 95 % intervals, in each model
FAMILY_COVERAGE = (0.93, 0.97)  # in the mean over a family's models
RMS_Z = (0.85, 1.15)
WILD, SHORT = 10.0, 0.6  # times the sampling standard error without noise
# of samples with a wild or short standard error, or a needless flag, before chance is left out
TOLERATED = 0.02
# forecast over released ratio of privacy and sampling errors: 25 % either way
FORECAST = 0.75, 1.33
DOMINATED = 3.0  # that ratio above which forecasts need not be near, and flags are to be expected
LEVEL = 0.05  # of a test
DECLINED = 0.9  # share of coefficients that are flagged from which a model counts as declined


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one goal. met: by the figure itself; missed: beyond chance."""

    goal: str
    met: bool
    missed: bool


@dataclass(frozen=True, slots=True)
class IntervalCounts:
    """Of one model at one ε: samples with any interval, and those in which something happened."""

    fits: int
    wild: int
    short: int
    needless: int
    forecast_low: int
    forecast_high: int
    forecasts: int


def answered_verdict(flagged: float) -> Verdict:
    """Of the share of flagged coefficients or tests: met up to a half, missed where a model counts
    as declined.
    """
    return Verdict(ANSWERED, flagged <= 1 / 2, flagged >= DECLINED)


def coverage_verdict(coverage: float, fits: int) -> Verdict:
    low = coverage < LEAST_COVERAGE
    missed = low and fits * divergence(coverage, LEAST_COVERAGE) > -log(LUCK)
    return Verdict("coverage", not low, missed)


def rms_verdict(rms: float, fits: int) -> Verdict:
    """Too large only: a root mean square that is too small is told, and counts as met or not, never
    missed.
    """
    r = (rms / RMS_Z[1]) ** 2
    missed = r > 1 and fits * (r - 1 - log(r)) / 2 > -log(LUCK)
    return Verdict("rms z", RMS_Z[0] <= rms <= RMS_Z[1], missed)


def rare_verdict(goal: str, samples: int, of: int) -> Verdict:
    """Of what is to happen in no sample."""
    return Verdict(goal, samples == 0, samples > 0 and binom.sf(samples - 1, of, TOLERATED) < LUCK)


def forecast_verdict(ratio: float, counts: IntervalCounts) -> Verdict:
    """By the sign test: a median within the goal has half of the samples on each side of its
    edges.
    """
    outside = max(counts.forecast_low, counts.forecast_high)
    missed = outside > 0 and binom.sf(outside - 1, counts.forecasts, 0.5) < LUCK
    return Verdict("forecast", FORECAST[0] <= ratio <= FORECAST[1], missed)


def level_verdict(rejected: int, of: int) -> Verdict:
    """A test's level. met: within two standard errors of the simulation."""
    slack = 2 * sqrt(LEVEL * (1 - LEVEL) / max(of, 1))
    missed = rejected > 0 and binom.sf(rejected - 1, of, LEVEL) < LUCK
    return Verdict("level", rejected <= of * (LEVEL + slack), missed)


def divergence(p: float, q: float) -> float:
    """KL of Bernoulli(p) from Bernoulli(q), 0 < q < 1."""
    return sum(a * log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def family_verdict(coverages: Sequence[float], fits: int) -> Verdict:
    """Of the mean coverage of a family's lines, of which all at one ε share `fits` samples. Missed
    below only: conservative intervals are told, not failed.
    """
    mean = fmean(coverages)
    low, high = FAMILY_COVERAGE
    missed = mean < low and fits * divergence(mean, low) > -log(LUCK)
    return Verdict("mean coverage of the family", low <= mean <= high, missed)


def names(verdicts: Iterator[Verdict], *, missed: bool) -> list[str]:
    """The goals that are missed beyond chance, or that are not met."""
    return [v.goal for v in verdicts if (v.missed if missed else not v.met)]
