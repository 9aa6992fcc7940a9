# SPDX-License-Identifier: Apache-2.0
"""Scores of persons: the scores of a person's rows are added first, and their sum is clipped.

    s_u = Σ_t s_t,   k_u = min(1, C/‖s_u‖)          gradient Σ k_u s_u, meat Σ k_u² s_u s_uᵀ

A person that is replaced by another with any number of rows moves the gradient by at most 2C, the
meat by √2 C² (mechanisms.noisy_sum with `unit_rows` 1), where the scores of rows one by one would
move them by 2Cm and √2 C²m for their own C. A sum of m scores is about √m long, not m. So the noise
falls by about √m.

Rows of a clipped person enter the Jacobian with √k_u P_u v, P_u = I − ŝŝᵀ, ŝ = s_u/‖s_u‖, which is
never longer than v, so that its sum is k_u P_u J_u P_u, the derivative of the clipped score but for
a term that is not positive semi-definite. Without it standard errors come out at .94 of what they
should be (simulated).

In the last step, where that has less noise by the forecast, a person's Jacobian J_u = Σ_t w h v vᵀ
is one vector: its q diagonal entries and √2 times the others, so that its length is ‖J_u‖
(Frobenius). The vector is clipped at L, so Δ = 2L for any two persons (mechanisms.noisy_sum,
VectorSum with `unit_rows` 1), whatever the signs of h; noise of sd s an entry is s on the
Jacobian's diagonal and s/√2 off it, as of a GramSum. Rows one by one have Δ = √2 m R² sup|h|:
several times as much, as no person has m rows that all are the farthest. L is chosen as C is, from
a histogram of ‖J_u‖ beside that of ‖s_u‖. Before the last step Jacobians are sums over rows.

*The clip.* A histogram over persons of ‖s_u‖ on a public geometric grid, by a step of its own (Δ =
√2): C is the smallest edge that at most OUTSIDE (of skewed scores SKEWED) of the persons with a row
in use are above. In the steps before, C is a public multiple of √(mq) rms, rms the root mean square
of q that the model expects: a row's score w v q is about √q rms long. The same histogram gives the
number of persons with a row in use, and N_eff = (Σ‖s‖²)²/Σ‖s‖⁴, how many equal persons would have
scores that vary as theirs: a t law's degrees of freedom.

Privacy: every value is a function of one person's places and of public or released values.
"""

from dataclasses import dataclass, replace
from math import isqrt, sqrt

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
from reticent_server.fitting.budget import LENGTH_BINS
from reticent_server.fitting.maps import ScoreMap
from reticent_server.numerics.person_columns import person_sums

# of persons whose Jacobian is cut: it becomes that much smaller at most, and errors larger
REACH = 0.02
EARLY = 1.6  # of √(mq) rms: far from the solution a person's scores have one sign
OUTSIDE = (
    0.03  # of persons: more of them would move the target, fewer are lost in the histogram's noise
)
SKEWED = 0.01
"""The same of skewed scores, whose clipped sums are not 0 on average: with .03 slopes of a binomial
model were off by .7 standard errors at 5,000 persons of 8 rows, with .01 by .2.
"""
LOST = 0.07
"""Of C: how far in one direction the part that is cut off moves the sum of skewed scores, for each
cut person (simulated: .03 to .1 where the number of rows says nothing of the response, up to .15
where it goes with it).
"""
RECLIPPED = 0.06
"""By how much a row's predictor may differ, in rms of the score over the curvature, between the
solutions of the early clip and of the last one, of skewed scores: with 0 the last step left .7
standard errors of the way, with .06 none; .02 was too little.
"""
_LOWEST, _RATIO, _EDGES = (
    0.2,
    2**0.25,
    LENGTH_BINS - 2,
)  # of √(mq) rms: from .2 to 12.8, in steps of 19 %
SURE = 3.0
"""Standard deviations of the count beyond an edge that cannot be distinguished from 0. Within
regressions of 5,000 persons of 1 to 8 rows at ε = 1 have an error of 1.22 of the within estimator's
(190 tables), with 2 of 1.30 (110), at the same coverage. """
SKEWED_SURE = (
    1.0  # the same of skewed scores: with 2 at ε = 1 intervals of 95 % covered .91, with 1 .96
)


@dataclass(frozen=True, slots=True)
class Lengths:
    """The public grid of ‖s_u‖: bin 0 is 0 (no row in use), the next ones end at `edges`, the last
    one has no end.
    """

    unit: float

    @property
    def edges(self) -> FloatArray:
        """(E,) increasing."""
        return np.asarray(self.unit * _LOWEST * _RATIO ** np.arange(_EDGES))

    @property
    def bins(self) -> int:
        """The number of bins, with that of 0 and that beyond the last edge."""
        return LENGTH_BINS

    def codes(self, lengths: FloatArray) -> FloatArray:
        """(persons,) the bin of each length."""
        found = np.searchsorted(self.edges, lengths, side="left") + 1.0
        return np.where(lengths == 0, 0.0, np.where(np.isfinite(lengths), found, -1.0))

    def part(self, rho: int, m: int) -> CountSum:
        """The histogram, a count over persons."""
        return CountSum(self.bins, rho, 1, m)


@dataclass(frozen=True, slots=True)
class Clusters:
    """What a histogram of lengths says. clip: C. persons: those with a row in use. effective:
    N_eff. clipped: the share of them that is beyond C. reach: L, 0 where Jacobians are those of
    rows.
    """

    clip: float
    persons: float
    effective: float
    clipped: float
    reach: float = 0.0

    @property
    def lost(self) -> float:
        """By how much the sum of skewed scores may be off in one direction for what is cut."""
        return LOST * self.clip * self.clipped * self.persons

    @property
    def words(self) -> str:
        """What the clip does to the estimand."""
        return (
            f"; a person's scores are added and their sum is cut at the length {self.clip:.4g}, "
            "so that persons with "
            "many or large scores weigh less"
        )


def chosen(lengths: Lengths, released: Released, noise: float | None = None) -> Clusters:
    """C and the effective number of persons from a released histogram. noise: of skewed scores, the
    sd of the sum of clipped scores in clips; None where scores are not skewed.

    Of skewed scores no more persons are cut than would move the sum as far as its noise: a bias
    that does not fall with N.
    """
    counts, edges = released.values[1:], lengths.edges
    total = max(float(counts.sum()), 1.0)
    outside, sure = OUTSIDE, SURE
    if noise is not None:
        outside, sure = min(SKEWED, noise / LOST / total), SKEWED_SURE
    at, beyond = _first(released, outside, sure)
    C = float(edges[at])
    middles = np.minimum(np.append(edges, edges[-1]) / sqrt(_RATIO), C)
    kept = np.maximum(counts, 0.0)
    squares, fourths = (max(float(kept @ middles**k), 1e-300) for k in (2, 4))
    effective = min(squares**2 / fourths, total)
    return Clusters(C, total, effective, min(max(beyond / total, 0.0), 1.0))


def chosen_reach(lengths: Lengths, released: Released) -> float:
    """L from a released histogram."""
    return float(lengths.edges[_first(released, REACH, SKEWED_SURE)[0]])


def _first(released: Released, outside: float, sure: float) -> tuple[int, float]:
    """The first edge that at most the share `outside` of the persons are above, as far as the noise
    tells; how many are.
    """
    counts = released.values[1:]
    total = max(float(counts.sum()), 1.0)
    beyond = np.cumsum(counts[::-1])[::-1][1:]  # above each edge
    noise = released.sd * np.sqrt(np.arange(len(beyond), 0, -1))
    # with a low `sure`, noise alone is often above either: of their maximum the last edge was
    # chosen once in 20 fits
    least, more = outside * total, sure * noise
    most = least + more if sure < SURE else np.maximum(least, more)
    within = np.flatnonzero(beyond <= most)
    at = int(within[0]) if len(within) else len(beyond) - 1
    return at, float(beyond[at])


@dataclass(frozen=True, slots=True, eq=False)
class PersonScoreMap:
    """Gives what `scores` gives, of persons: sums of scores of m places; Jacobian roots of rows, of
    clipped persons with their derivative, with `whole` (q(q + 1)/2, persons) their sums; the sums
    again for the meat.
    """

    scores: ScoreMap
    person_rows: int
    clip: float
    whole: bool = False

    def __call__(self, block: Block) -> tuple[Contribution, ...]:
        score, *rest = self.scores(block)
        with np.errstate(all="ignore"):
            sums = score_sums(score, self.person_rows)
            if not rest:
                return (sums,)
            roots, *meat = rest
            assert isinstance(roots, Scaled)  # noqa: S101 - a ScoreMap's
            roots = self._clipped(roots, sums)
            jacobian = jacobians(roots, self.person_rows) if self.whole else roots
            return (sums, jacobian, *([sums] if meat else []))

    def _clipped(self, roots: Scaled, sums: FloatArray) -> Scaled:
        """All persons take the same work, clipped or not: how many are beyond C is private."""
        m, lengths = self.person_rows, lengths_of(sums)
        long = lengths > self.clip
        factors = np.where(long, self.clip / lengths, 1.0)
        directions = np.where(long, sums / lengths, 0.0)
        kept, along = np.empty_like(roots.vectors), np.zeros(len(roots.weights))
        product = np.empty_like(along)
        for own, direction, vector in zip(kept, directions, roots.vectors, strict=True):
            own[:] = np.repeat(
                direction, m
            )  # coordinate by coordinate: arrays that the cache holds
            along += np.multiply(own, vector, out=product)
        for own, vector in zip(kept, roots.vectors, strict=True):
            np.subtract(vector, np.multiply(own, along, out=product), out=own)
        return Scaled(kept, roots.weights * np.repeat(np.sqrt(factors), m))


@dataclass(frozen=True, slots=True, eq=False)
class PersonLengthsMap:
    """Gives (persons,) the bin of ‖s_u‖, with `reaches` that of ‖J_u‖ as well."""

    scores: ScoreMap
    person_rows: int
    lengths: Lengths
    reaches: Lengths | None

    def __call__(self, block: Block) -> tuple[NDArray[np.float64], ...]:
        score, *roots = self.scores(block)
        with np.errstate(all="ignore"):
            sums = score_sums(score, self.person_rows)
            codes = self.lengths.codes(lengths_of(sums))
            if self.reaches is None:
                return (codes,)
            assert isinstance(roots[0], Scaled)  # noqa: S101 - a ScoreMap's
            whole = jacobians(roots[0], self.person_rows)
            return codes, self.reaches.codes(lengths_of(whole))


def score_sums(score: Contribution, m: int) -> FloatArray:
    """(q, persons) s_u."""
    if isinstance(score, Scaled):
        return person_sums(score.vectors, m, score.weights)
    return person_sums(multiplied(score), m)


def triangle(q: int) -> int:
    """How many entries of a symmetric matrix (q, q) are different."""
    return q * (q + 1) // 2


def jacobians(roots: Scaled, m: int) -> FloatArray:
    """(q(q + 1)/2, persons) J_u by rows of its upper triangle, off the diagonal times √2; of
    weights below 0 with their sign.
    """
    q, weights = len(roots.vectors), roots.weights * np.abs(roots.weights)
    total = np.zeros((triangle(q), len(weights) // m))
    for place in range(m):  # arrays of persons, which the processor's cache holds
        v = np.ascontiguousarray(roots.vectors[:, place::m])
        weighted, end = v * weights[place::m], 0
        for i in range(q):
            first, end = end, end + q - i
            total[first:end] += weighted[i] * v[i:]
    diagonal = np.cumsum([0, *range(q, 1, -1)])
    total *= np.where(np.isin(np.arange(len(total)), diagonal), 1.0, sqrt(2))[:, None]
    return total


def as_matrix(released: Released) -> Released:
    """A released vector of `jacobians` as the matrix (q, q); sd: of a diagonal entry."""
    q = (isqrt(8 * len(released.values) + 1) - 1) // 2
    upper = np.zeros((q, q))
    upper[np.triu_indices(q)] = released.values
    half = upper / sqrt(2)
    return replace(released, values=np.where(np.eye(q) > 0, upper, half + half.T))


def lengths_of(vectors: FloatArray) -> FloatArray:
    """(persons,) ‖s_u‖, added in the order of the coordinates."""
    total = np.zeros(vectors.shape[1])
    for row in vectors:
        total += row * row
    return np.sqrt(total)
