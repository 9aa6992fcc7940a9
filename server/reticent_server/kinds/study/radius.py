# SPDX-License-Identifier: Apache-2.0
"""The radius of a study's moments: noise against what clipping leaves out, from a released
histogram of ‖u‖².

In white coordinates a slope has the sampling variance 1/N, the noise s²/(2N²) and a bias of
½τ(|a||b| + |aᵀb|)/N at most, where τ = Σ(‖u‖² − R²)₊ is the trace of what is clipped away. Were all
of it along one direction, any one alike, the root mean square of a slope's bias would be
τ/((q + 1)N); tails have several directions, and on six tables (wages, houses, visits to the doctor,
census incomes) it was a quarter to a tenth of that (`typical`: an eighth). R² minimises

    s(R)²/2 + (τ/(8(q + 1)))²       over R² = q·2^(k/8).

*The tail.* A histogram's noise hides the far bins one by one, and those make τ. So the number of
records beyond an edge is followed outwards as far as it, or one bin, is clear of its noise; beyond
the last such edge e the tail is taken for a Pareto tail, N_e(L/e)^(−α), with the α of the last
twofold step, N_{e/2}/N_e = 2^α, and

    Σ(‖u‖² − R²)₊ = N_e e/(α − 1)·(R²/e)^(1 − α)        for R² ≥ e.

*Persons.* Where a person's rows count together (maps), ‖u‖² is ‖A‖_F in all of this, and its
typical size stands in the place of q: of m rows without anything in common ‖A‖_F² is about mq² +
m(m − 1)q. Their trace is about mq, and so many times longer what is clipped of it.

No more than 12q unless the noise adds less than 5 % to an interval: on tables with rare levels and
heavy tails a wider radius cost noise and removed little bias. No more than lets the noise's norm
s√(2q) be a quarter of N.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray

EDGES = (
    *(0.5 * 2.0 ** (k / 2) for k in range(9)),
    *(16.0 * 2.0**k for k in range(8)),
)
"""Of ‖u‖²/q: from half of what a white row has to 2,048 times it; wider beyond 8, where counts are
small."""
_CANDIDATES = tuple(2.0 ** (k / 8) for k in range(65))  # of R²/q
_LEAST_TAIL = (
    3.0  # R²/q, where noise allows it: twice what white rows of six columns have at the median
)
# standard deviations that a number of records beyond an edge must be above 0: ln τ is then known to
# ±.3
_CLEAR = 5.0
_SHORTEST = 2  # index of the first edge (R² = q) at which a tail may begin
_HEAVIEST, _LIGHTEST = 1.5, 8.0  # α: house prices in dollars have 1.5; normal rows more than 8
# α of wages and visits to the doctor; half of what is taken for α, as a step of noisy counts says
# little
_TYPICAL = 2.2
_DIRECTIONS = 8.0  # by what a tail of several directions biases a slope less than a tail of one
# sampling errors: more is the tail of a column whose formulas have no intervals (leaning); others
# had 1.4 at most
_LARGEST = 3.0
_WIDEST = 12.0  # R²/q where the noise is felt
_UNFELT = 0.1  # squared noise over squared sampling error: 5 % of an interval's width
_NORM = 0.25  # of the noise's operator norm to N, at the most


@dataclass(frozen=True, slots=True)
class Radius:
    """R², and τ = Σ(‖u‖² − R²)₊ as far as the histogram shows it."""

    squared: float
    excess: float

    def typical(self, q: int, records: float) -> float:
        """What clipping moves a coefficient by, root mean square, in its sampling standard
        errors."""
        return min(self.excess / (_DIRECTIONS * (q + 1) * sqrt(max(records, 1.0))), _LARGEST)


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """counts: bins up to the last edge e at which the number of records beyond is clear; that
    number, and α."""

    counts: FloatArray
    edge: float
    beyond: float
    alpha: float
    q: float

    @classmethod
    def seen(cls, counts: FloatArray, noise: float, q: float) -> "Tail":
        """counts: (len(EDGES) + 1,) with noise of sd `noise`. q: what EDGES are multiples of."""
        above = np.cumsum(counts[::-1])[::-1][1:]  # beyond each edge
        error = noise * np.sqrt(np.arange(len(EDGES), 0, -1))
        clear = np.flatnonzero((above > _CLEAR * error) | (counts[1:] > _CLEAR * noise))
        above = np.maximum(np.maximum(above, counts[1:]), 0.0)
        k = max(int(clear[-1]) if len(clear) else _SHORTEST, _SHORTEST)
        j = int(np.searchsorted(EDGES, EDGES[k] / 2 * (1 - 1e-9)))
        if not len(clear):
            return cls(counts, EDGES[k] * q, float(above[k]), _LIGHTEST, q)
        step = log(max(above[j] / max(above[k], 1.0), 1.0)) / log(EDGES[k] / EDGES[j])
        inner = np.where(np.arange(len(counts)) <= k, counts, 0.0)
        alpha = min(max((step + _TYPICAL) / 2, _HEAVIEST), _LIGHTEST)
        return cls(inner, EDGES[k] * q, float(above[k]), alpha, q)

    def excess(self, squared: float) -> float:
        """Σ(‖u‖² − R²)₊."""
        scale = self.beyond * self.edge / (self.alpha - 1)
        if squared >= self.edge:
            return float(scale * (squared / self.edge) ** (1 - self.alpha))
        inside = excess(self.counts, self.q, squared)
        return max(inside + scale + self.beyond * (self.edge - squared), 0.0)


def choose_radius(
    counts: FloatArray,
    noise: float,
    q: int,
    records: float,
    unit: float,
    length: float | None = None,
    trace: float = 1.0,
) -> Radius:
    """The radius. counts: (len(EDGES) + 1,) with noise of sd `noise`. unit: s at R² = 1. length: a
    typical one, of rows q. trace: of what a length is that of, relative to it; 1 of a row."""
    typical = q if length is None else length
    tail = Tail.seen(counts, noise, typical)
    least = np.inf
    chosen = Radius(typical * _CANDIDATES[0], trace * tail.excess(typical * _CANDIDATES[0]))
    for factor in _CANDIDATES:
        squared, sd = typical * factor, typical * factor * unit
        felt = sd**2 / (2 * records) > _UNFELT and factor > _WIDEST
        if felt or sd * sqrt(2 * q) > _NORM * records:
            break
        tau = trace * tail.excess(squared)
        error = sd**2 / 2 + (tau / (_DIRECTIONS * (q + 1))) ** 2
        if error < least or factor < _LEAST_TAIL:
            chosen, least = Radius(squared, tau), error
    return chosen


def widest_radius(q: int, records: float, unit: float, length: float | None = None) -> float:
    """R² for the heaviest tails: what a forecast counts on where nothing is known of them."""
    typical = q if length is None else length
    loud = [
        typical * f
        for f in _CANDIDATES
        if f <= _WIDEST and typical * f * unit * sqrt(2 * q) <= _NORM * records
    ]
    return float(max(loud, default=typical * _CANDIDATES[0]))


def counted(lengths: FloatArray, q: float) -> FloatArray:
    """(len(EDGES) + 1,) numbers of squared lengths ‖u‖² by bin."""
    at = np.searchsorted(q * np.array(EDGES), lengths, side="right")
    return np.bincount(at, minlength=len(EDGES) + 1).astype(np.float64)


def excess(counts: FloatArray, q: float, squared: float) -> float:
    """Σ(‖u‖² − R²)₊ of counts by bin, a record at its bin's geometric middle."""
    edges = q * np.array(EDGES)
    inner = np.sqrt(edges[1:] * edges[:-1])
    middles = np.concatenate([[edges[0] / 2], inner, [edges[-1]]])
    return float(np.sum(counts * np.maximum(middles - squared, 0.0)))
