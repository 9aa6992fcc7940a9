# SPDX-License-Identifier: Apache-2.0
"""Scores of persons: the scores of a person's rows are added first, and their sum is clipped.

    s_u = Σ_t s_t,   k_u = min(1, C/‖s_u‖)          gradient Σ k_u s_u, meat Σ k_u² s_u s_uᵀ

A person that is replaced by another with any number of rows moves the gradient by at most 2C, the meat by √2 C²
(mechanisms.noisy_sum with `unit_rows` 1), where the scores of rows one by one would move them by 2Cm and √2 C²m for
their own C. A sum of m scores is about √m long, not m. So the noise falls by about √m.

The Jacobian stays a sum over rows, with the bound times m: rows of a clipped person enter with √k_u P_u v,
P_u = I − ŝŝᵀ, ŝ = s_u/‖s_u‖, which is never longer than v, so that its sum is k_u P_u J_u P_u, the derivative of the
clipped score but for a term that is not positive semi-definite. Without it standard errors come out at .94 of what
they should be (simulated).

*The clip.* A histogram over persons of ‖s_u‖ on a public geometric grid, by a step of its own (Δ = √2): C is the
smallest edge that at most OUTSIDE of the persons with a row in use are above. In the steps before, C is a public
multiple of √(mq), as the rms of a row's score is about √q. The same histogram gives the number of persons with a row in use,
and N_eff = (Σ‖s‖²)²/Σ‖s‖⁴, how many equal persons would have scores that vary as theirs: a t law's degrees of freedom.

Privacy: every value is a function of one person's places and of public or released values.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import (
    Block,
    Contribution,
    CountSum,
    FloatArray,
    Released,
    Scaled,
    multiplied,
)
from reticent_server.fitting.maps import ScoreMap
from reticent_server.numerics.person_columns import person_sums

EARLY = 1.6  # of √(mq): far from the solution a person's scores have one sign
OUTSIDE = (
    0.03  # of persons: more of them would move the target, fewer are lost in the histogram's noise
)
_LOWEST, _RATIO, _EDGES = 0.2, 2**0.25, 25  # of √(mq): from .2 to 12.8, in steps of 19 %
_SURE = 2.0  # standard deviations of the count beyond an edge that is not told from none


@dataclass(frozen=True, slots=True)
class Lengths:
    """The public grid of ‖s_u‖: bin 0 is 0 (no row in use), the next ones end at `edges`, the last one has no end."""

    unit: float

    @property
    def edges(self) -> FloatArray:
        """(E,) increasing."""
        return np.asarray(self.unit * _LOWEST * _RATIO ** np.arange(_EDGES))

    @property
    def bins(self) -> int:
        return _EDGES + 2

    def codes(self, lengths: FloatArray) -> FloatArray:
        """(persons,) the bin of each length."""
        found = np.searchsorted(self.edges, lengths, side="left") + 1.0
        return np.where(lengths == 0, 0.0, np.where(np.isfinite(lengths), found, -1.0))

    def part(self, rho: int, m: int) -> CountSum:
        """The histogram, a count over persons."""
        return CountSum(self.bins, rho, 1, m)


@dataclass(frozen=True, slots=True)
class Clusters:
    """What a histogram of lengths says. clip: C. persons: those with a row in use. effective: N_eff.
    clipped: the share of them that is beyond C."""

    clip: float
    persons: float
    effective: float
    clipped: float

    @property
    def words(self) -> str:
        """What the clip does to the estimand."""
        return (
            f"; a person's scores are added and their sum is cut at the length {self.clip:.4g}, so that persons with "
            "many or large scores weigh less"
        )


def chosen(lengths: Lengths, released: Released) -> Clusters:
    """C and the effective number of persons from a released histogram."""
    counts, edges = released.values[1:], lengths.edges
    total = max(float(counts.sum()), 1.0)
    beyond = np.cumsum(counts[::-1])[::-1][1:]  # above each edge
    noise = released.sd * np.sqrt(np.arange(len(beyond), 0, -1))
    within = np.flatnonzero(beyond <= np.maximum(OUTSIDE * total, _SURE * noise))
    at = int(within[0]) if len(within) else len(edges) - 1
    C = float(edges[at])
    middles = np.minimum(np.append(edges, edges[-1]) / sqrt(_RATIO), C)
    kept = np.maximum(counts, 0.0)
    squares, fourths = (max(float(kept @ middles**k), 1e-300) for k in (2, 4))
    effective = min(squares**2 / fourths, total)
    return Clusters(C, total, effective, min(max(float(beyond[at]) / total, 0.0), 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class PersonScoreMap:
    """Gives what `scores` gives, of persons: sums of scores of m places; Jacobian roots of rows, of clipped persons
    with their derivative; the sums again for the meat."""

    scores: ScoreMap
    person_rows: int
    clip: float

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        score, *rest = self.scores(block)
        with np.errstate(all="ignore"):
            sums = person_sums(multiplied(score), self.person_rows)
            if not rest:
                return (sums,)
            roots, *meat = rest
            assert isinstance(roots, Scaled)  # noqa: S101 - a ScoreMap's
            return (sums, self._clipped(roots, sums), *([sums] if meat else []))

    def _clipped(self, roots: Scaled, sums: FloatArray) -> Scaled:
        """All persons take the same work, clipped or not: how many are beyond C is private."""
        m, lengths = self.person_rows, lengths_of(sums)
        long = lengths > self.clip
        factors = np.repeat(np.where(long, self.clip / lengths, 1.0), m)
        directions = np.repeat(np.where(long, sums / lengths, 0.0), m, axis=1)
        along = np.sum(directions * roots.vectors, axis=0)
        vectors = roots.vectors - directions * along
        return Scaled(vectors, roots.weights * np.sqrt(factors))


@dataclass(frozen=True, slots=True, eq=False)
class PersonLengthsMap:
    """Gives (persons,) the bin of ‖s_u‖."""

    scores: ScoreMap
    person_rows: int
    lengths: Lengths

    def __call__(self, block: Block) -> tuple[NDArray[np.float64], ...]:
        score, *_ = self.scores(block)
        with np.errstate(all="ignore"):
            sums = person_sums(multiplied(score), self.person_rows)
            return (self.lengths.codes(lengths_of(sums)),)


def lengths_of(vectors: FloatArray) -> FloatArray:
    """(persons,) ‖s_u‖, added in the order of the coordinates."""
    total = np.zeros(vectors.shape[1])
    for row in vectors:
        total += row * row
    return np.sqrt(total)
