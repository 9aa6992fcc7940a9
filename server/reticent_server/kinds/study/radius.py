# SPDX-License-Identifier: Apache-2.0
"""The radius of a study's moments: noise against what clipping leaves out, from a released histogram of ‖u‖².

In white coordinates a slope has the sampling variance 1/N, the noise s²/(2N²) and a bias ½τ(|a||b| + |aᵀb|)/N at most,
where τ = Σ(‖u‖² − R²)₊ is the trace of what is clipped away. Of a direction that is not special the bias is τ/(q + 1)N
(root mean square over directions), so R² minimises

    s(R)²/2 + (τ/(q + 1))²       over R² = q·2^(k/4).

τ is from the histogram; bins below three standard deviations of its noise count as empty, as a far bin that is taken for
full would make the radius, and with it the noise, too large. No more than 12q unless the noise adds less than 5 % to
an interval: on tables with rare levels and heavy tails a wider radius cost noise and removed no bias (benchmarks of
houses and census incomes). No more than lets the noise's norm s√(2q) be a quarter of N.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray

EDGES = tuple(
    0.5 * 2.0 ** (k / 2) for k in range(25)
)  # of ‖u‖²/q: from half of what a white row has to 2,048 times it
_CANDIDATES = tuple(2.0 ** (k / 4) for k in range(33))  # of R²/q
_CLEAR = 3.0  # standard deviations from which on a bin counts
_WIDEST = 12.0  # R²/q where the noise is felt
_UNFELT = 0.1  # squared noise over squared sampling error: 5 % of an interval's width
_NORM = 0.25  # of the noise's operator norm to N, at the most


@dataclass(frozen=True, slots=True)
class Radius:
    """R², and τ = Σ(‖u‖² − R²)₊ as far as the histogram shows it."""

    squared: float
    excess: float


def choose_radius(counts: FloatArray, noise: float, q: int, records: float, unit: float) -> Radius:
    """The radius. counts: (len(EDGES) + 1,) with noise of sd `noise`. unit: s at R² = 1."""
    clear = np.where(counts > _CLEAR * noise, counts, 0.0)
    chosen, least = Radius(q * _CANDIDATES[0], excess(clear, q, q * _CANDIDATES[0])), np.inf
    for factor in _CANDIDATES:
        squared, sd = q * factor, q * factor * unit
        felt = sd**2 / (2 * records) > _UNFELT and factor > _WIDEST
        if felt or sd * sqrt(2 * q) > _NORM * records:
            break
        tau = excess(clear, q, squared)
        error = sd**2 / 2 + (tau / (q + 1)) ** 2
        if error < least:
            chosen, least = Radius(squared, tau), error
    return chosen


def counted(lengths: FloatArray, q: int) -> FloatArray:
    """(len(EDGES) + 1,) numbers of squared lengths ‖u‖² by bin."""
    at = np.searchsorted(q * np.array(EDGES), lengths, side="right")
    return np.bincount(at, minlength=len(EDGES) + 1).astype(np.float64)


def excess(counts: FloatArray, q: int, squared: float) -> float:
    """Σ(‖u‖² − R²)₊ of counts by bin, a record at its bin's geometric middle."""
    edges = q * np.array(EDGES)
    inner = np.sqrt(edges[1:] * edges[:-1])
    middles = np.concatenate([[edges[0] / 2], inner, [edges[-1]]])
    return float(np.sum(counts * np.maximum(middles - squared, 0.0)))
