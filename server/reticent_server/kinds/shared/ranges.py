# SPDX-License-Identifier: Apache-2.0
"""The public range that a column is clipped to in sums: from its declared bounds and its released
quantiles.

A record's contribution has to be bounded, and the noise grows with the bound, so values beyond a
likely range are taken as its nearest end. On each side of the released median the range reaches
REACH/z_p times as far as the outermost released quantile, z_p that quantile's normal score, but not
beyond the declared bounds: to REACH standard deviations of a normal column, and beyond the 99.5 %
quantile of one with an exponential tail. Without released quantiles it is the declared bounds. What
is estimated then is about clipped values, and a reply says the range.

Everything here is a function of public facts: it costs accuracy at worst and never privacy.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from reticent_server.domain.facts import ColumnProfile, DatasetFacts
from reticent_server.domain.schema import Column
from reticent_server.fitting.public.standardise import NORMAL_IQR

# standard deviations of a normal column: .14 % of it is clipped, and its variance loses 1 %
REACH = 3.2
_LEAST = 1e-9  # of the declared width: a narrower range is one that rounding would see
_FAR = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles that a profile's noise leaves in place
# probabilities at which a released law is averaged: finer than its quantiles
_GRID = (np.arange(200) + 0.5) / 200


@dataclass(frozen=True, slots=True)
class ClipRange:
    """[lower, upper] in the units of the data, lower < upper; expected: a public guess of the
    column's mean; sd: its standard deviation by released figures (None: there are none)."""

    lower: float
    upper: float
    expected: float
    sd: float | None = None

    @property
    def centre(self) -> float:
        """The middle of the range."""
        return (self.lower + self.upper) / 2

    @property
    def half(self) -> float:
        """Half of the width."""
        return (self.upper - self.lower) / 2

    @property
    def tilt(self) -> float:
        """The expected mean as a place in the range: −1 at its lower end, 1 at its upper."""
        return min(1.0, max(-1.0, (self.expected - self.centre) / self.half))

    def minus(self, other: "ClipRange") -> "ClipRange":
        """The range of differences of a value of this range and one of the other."""
        return ClipRange(
            self.lower - other.upper, self.upper - other.lower, self.expected - other.expected
        )


def clip_range(facts: DatasetFacts, column: Column, reach: float = REACH) -> ClipRange:
    """The range of a column with an order, by the rule above; reach: in the place of REACH."""
    known = facts.profile.columns.get(column.name) if facts.profile else None
    ends = _likely_ends(known, reach) if known and known.quantiles else None
    lower, upper = ends or (column.lower, column.upper)
    lower, upper = max(lower, column.lower), min(upper, column.upper)
    if upper - lower <= _LEAST * (column.upper - column.lower):
        lower, upper = column.lower, column.upper
    if not lower < upper:
        lower, upper = lower - 1.0, lower + 1.0
    expected = _mean(known) if known and known.quantiles else (lower + upper) / 2
    return ClipRange(lower, upper, min(max(expected, lower), upper), public_sd(facts, column))


def declared_range(facts: DatasetFacts, column: Column) -> ClipRange:
    """The declared bounds, with the mean that a profile leads to expect: nothing is clipped. Bounds
    that coincide are given a width of 2."""
    if not column.upper > column.lower:
        return ClipRange(column.lower - 1.0, column.upper + 1.0, column.lower)
    known = clip_range(facts, column)
    return ClipRange(column.lower, column.upper, known.expected, known.sd)


def share_below(facts: DatasetFacts, column: Column, value: float) -> float:
    """The share of the records below a value: by released quantiles or counts, else as of a column
    that is even between its bounds.
    """
    ends, at = [column.lower, column.upper], [0.0, 1.0]
    known = facts.profile.columns.get(column.name) if facts.profile else None
    if known and known.quantiles:
        inner = np.clip(known.quantiles, column.lower, column.upper)
        ends[1:1], at[1:1] = inner.tolist(), list(known.probabilities[: len(inner)])
    elif known and known.counts and sum(known.counts) > 0:
        counts = np.maximum(known.counts, 0.0)
        below = known.first + np.arange(len(counts)) < value
        return float(counts[below].sum() / counts.sum())
    return float(np.interp(value, ends, at))


def spread(facts: DatasetFacts, column: Column, span: ClipRange) -> float:
    """A public standard deviation: what the range or the released quartiles say, the larger one."""
    known = facts.profile.columns.get(column.name) if facts.profile else None
    q = known.quantiles if known and known.quantiles else ()
    p = known.probabilities[: len(q)] if known else ()
    middle = float(np.diff(np.interp((0.25, 0.75), p, q))[0]) / NORMAL_IQR if len(q) > 1 else 0.0
    return max(span.half / REACH, middle)


def skewness(facts: DatasetFacts, column: Column) -> float:
    """The distance of the 5 or 95 % quantile, the farther, from the median in interquartile ranges;
    infinite where the profile does not tell these."""
    known = facts.profile.columns.get(column.name) if facts.profile else None
    q = known.quantiles if known and known.quantiles else ()
    p = known.probabilities[: len(q)] if known else ()
    if not q or p[0] > _FAR[0] or p[-1] < _FAR[-1]:
        return float("inf")
    low, first, middle, third, high = np.interp(_FAR, p, q)
    return float(max(high - middle, middle - low) / max(third - first, np.finfo(float).tiny))


def public_sd(facts: DatasetFacts, column: Column) -> float | None:
    """The standard deviation of a column by its released quantiles, or of a dummy by its counts;
    None without these."""
    known = facts.profile.columns.get(column.name) if facts.profile else None
    if known is None:
        return None
    if known.quantiles:
        places = known.probabilities[: len(known.quantiles)]
        return float(np.interp(_GRID, places, known.quantiles).std())
    if known.counts is None or (column.levels and len(column.levels) > 2):
        return None
    counts = np.maximum(known.counts, 0.0)
    if not counts.sum() > 0:
        return None
    values = known.first + np.arange(len(counts))
    mean = float(np.average(values, weights=counts))
    return float(np.sqrt(np.average((values - mean) ** 2, weights=counts)))


def _likely_ends(known: ColumnProfile, reach: float) -> tuple[float, float] | None:
    """None where a single quantile was reliable."""
    q = known.quantiles or ()
    p = known.probabilities[: len(q)]
    if len(q) < 2 or not p[0] < 0.5 < p[-1]:
        return None
    middle = float(np.interp(0.5, p, q))
    low, high = reach / -float(ndtri(p[0])), reach / float(ndtri(p[-1]))
    return middle - low * (middle - q[0]), middle + high * (q[-1] - middle)


def _mean(known: ColumnProfile) -> float:
    q = known.quantiles or ()
    return float(np.interp(_GRID, known.probabilities[: len(q)], q).mean())
