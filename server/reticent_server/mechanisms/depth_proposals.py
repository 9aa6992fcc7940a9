# SPDX-License-Identifier: Apache-2.0
"""Exact draws from a density ∝ exp(−ηO), O the outlyingness of a depth: rejection under a simplex.

Domain: exact whole-number locations and scales of projections, a simplex under O
(numerics.simplex_envelope), η > 0. Output: the whole numbers nearest to a draw x, coordinate by
coordinate.

A proposal is a facet i and standard exponentials E_0, …, E_d: x = c + (1/η) Σ_{m≠i} E_m D_m has
density ∝ e^(−ηh), and is kept where η(O(x) − h(x)) ≤ E_i, which has probability e^(−η(O − h)). With
l_j(c) and the slopes a_jᵀD_m that is

    |ηl_j(c) + Σ_{m≠i} E_m a_jᵀD_m| ≤ Σ_m E_m + ηh_min    for all directions j.

*Exactness*. A uniform number is known by its first bits, k 2⁻ᵇ ≤ U < (k + 1)2⁻ᵇ, and so E = −ln U,
x and the inequalities are known to lie in intervals, which are computed in rational arithmetic
(logarithms by the decimal module, correctly rounded, widened by a unit). The facet, whether x is
kept, and the whole numbers nearest to it are decided where both ends of their intervals agree; else
all uniform numbers get 64 more random bits. What is returned is therefore a function of infinitely
many random bits with exactly the law ∝ exp(−ηO), rounded: every whole point has a positive
probability on every table, whatever η is and however far the scale spreads the draw.

Before that, float64 passes over proposals that are not kept for certain. It takes E from 64 bits, k
between 2⁴⁰ and 2⁶⁴ − 2⁴⁰, with a relative error below 2⁻³⁹; with d + 2 ≤ 10 terms, each correctly
rounded, both sides of an inequality are off by less than e = 2⁻³⁷ of the sum of the sizes of their
terms. A proposal with another k is never passed over. So float64 decides about time, not about the
law.

The number of proposals depends on the data; simplex_envelope bounds its mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import floor

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray
from reticent_server.mechanisms import _sampler
from reticent_server.numerics.minimax import Program, products
from reticent_server.numerics.rational_matrices import Vector, dot
from reticent_server.numerics.simplex_envelope import Simplex

Words = NDArray[np.uint64]
Interval = tuple[Fraction, Fraction]

_BATCHES = (256, 1024, 4096)  # proposals; the last is 16 MB at 500 directions
# of a uniform that a proposal is first compared with; more are drawn where these do not decide
_BITS = 64
_EDGE = 1 << 40  # of words that float64 is trusted with
_ERROR = 2.0**-37  # e, above


@dataclass(frozen=True, slots=True, eq=False)
class ProposalTarget:
    """The law ∝ exp(−ηO) of x/denominator, exactly, and in float64 what proposals are held against.

    program: of min O. slopes (K, d + 1): a_jᵀD_m. heights (K,): ηl_j(c). lowest: ηh_min. bounds:
    the running sums of the facets' probabilities λ, but the last.
    """

    program: Program
    simplex: Simplex
    eta: Fraction
    denominator: int
    slopes: FloatArray
    heights: FloatArray
    lowest: float
    bounds: tuple[Fraction, ...]


def target(
    program: Program, simplex: Simplex, eta: Fraction, denominator: int = 1
) -> ProposalTarget:
    """The law of points in units of 1/denominator of the program's."""
    columns = [_scaled(program, edge) for edge in simplex.edges]
    heights = _heights(program, simplex)
    return ProposalTarget(
        program=program,
        simplex=simplex,
        eta=eta,
        denominator=denominator,
        slopes=np.array(columns).T,
        heights=np.array([float(eta * v) for v in heights]),
        lowest=float(eta * simplex.lowest),
        bounds=tuple(accumulate(simplex.shares[:-1])),
    )


def _scaled(program: Program, vector: Vector) -> list[float]:
    """u_jᵀv/s_j, correctly rounded."""
    numerators, common = products(program.directions, vector)
    return [value / (s * common) for value, s in zip(numerators, program.scale, strict=True)]


def _heights(program: Program, simplex: Simplex) -> Vector:
    """l_j(c), exactly."""
    numerators, common = products(program.directions, simplex.centre)
    ends = zip(numerators, program.lower, program.scale, strict=True)
    return [Fraction(value - m * common, s * common) for value, m, s in ends]


def draw(law: ProposalTarget) -> list[int]:
    """(d,) whole numbers."""
    batch = 0
    while True:
        size = _BATCHES[min(batch, len(_BATCHES) - 1)]
        words = _sampler.words((law.slopes.shape[1] + 1) * size).reshape(-1, size)
        for k in np.flatnonzero(possible(law, words)).tolist():
            accepted = decided(law, Bits(tuple(words[:, k].tolist()), _BITS))
            if accepted is not None:
                return accepted
        batch += 1


def possible(law: ProposalTarget, words: Words) -> NDArray[np.bool_]:
    """(size,) False only for proposals that are surely not kept. words: (d + 2, size), the facets'
    first."""
    facets = np.zeros(words.shape[1], dtype=np.int64)
    unsure = ((words[1:] < _EDGE) | (words[1:] > 2**_BITS - _EDGE)).any(axis=0)
    for bound in law.bounds:
        cut = np.uint64(floor(bound * 2**_BITS))
        facets += words[0] > cut
        unsure |= words[0] == cut
    E = _exponentials(words[1:])
    total = E.sum(axis=0)
    E[facets, np.arange(len(facets))] = 0.0
    middle = np.abs(law.slopes @ E + law.heights[:, None])
    middle -= _ERROR * (np.abs(law.slopes) @ E + np.abs(law.heights)[:, None])
    limit = total * (1 + _ERROR) + law.lowest + _ERROR * abs(law.lowest)
    return np.asarray(unsure | (middle.max(axis=0) <= limit))


def _exponentials(words: Words) -> FloatArray:
    """−ln((k + ½)2⁻⁶⁴), from the nearer end of [0, 1)."""
    upper = words >= 2 ** (_BITS - 1)
    near = (np.where(upper, ~words, words).astype(np.float64) + 0.5) * 2.0**-_BITS
    return np.asarray(np.where(upper, -np.log1p(-near), -np.log(near)))


@dataclass(frozen=True, slots=True)
class Bits:
    """The first bits of d + 2 uniform numbers: word_i 2^(−count) ≤ U_i < (word_i + 1)
    2^(−count)."""

    words: tuple[int, ...]
    count: int

    def more(self) -> "Bits":
        """The same numbers, with 64 further random bits each."""
        further = _sampler.words(len(self.words)).tolist()
        words = tuple((w << _BITS) + f for w, f in zip(self.words, further, strict=True))
        return Bits(words, self.count + _BITS)


def decided(law: ProposalTarget, bits: Bits) -> list[int] | None:
    """The whole numbers nearest to the proposal of these random numbers; None where it is not
    kept."""
    while True:
        facet = _facet(law, bits)
        E = [_exponential(word, bits.count) for word in bits.words[1:]]
        if facet is not None and all(high is not None for _, high in E):
            sure = [(low, high) for low, high in E if high is not None]
            kept = _kept(law, facet, sure)
            if kept is False:
                return None
            point = _nearest(law, facet, sure)
            if kept and point is not None:
                return point
        bits = bits.more()


def _facet(law: ProposalTarget, bits: Bits) -> int | None:
    """How many of the bounds are ≤ U; None where the bits do not tell."""
    ends = [bound * 2**bits.count for bound in law.bounds]
    surely = sum(end <= bits.words[0] for end in ends)
    perhaps = sum(end < bits.words[0] + 1 for end in ends)
    return surely if surely == perhaps else None


def _exponential(word: int, count: int) -> tuple[Fraction, Fraction | None]:
    """The interval of −ln U; without an upper end where U may be 0."""
    low = _minus_log(word + 1, count)[0]
    return max(low, Fraction(0)), _minus_log(word, count)[1] if word else None


def _minus_log(number: int, count: int) -> Interval:
    """−ln(number 2^(−count)) between two rationals."""
    context = _context(count)
    value = context.subtract(
        context.multiply(Decimal(count), context.ln(Decimal(2))), context.ln(Decimal(number))
    )
    room = Fraction(count + 1) * Fraction(10) ** (3 - context.prec)
    return Fraction(value) - room, Fraction(value) + room


@lru_cache(maxsize=8)
def _context(count: int) -> Context:
    """A third of a digit a bit, and 20 digits more."""
    return Context(prec=count // 3 + 20)


def _kept(law: ProposalTarget, facet: int, E: Sequence[Interval]) -> bool | None:
    """Whether all inequalities hold; None where the intervals do not tell."""
    sure = True
    for j in _doubtful(law, facet, E):
        height = law.eta * _height(law, j)
        slopes = [_slope(law, j, edge) for edge in law.simplex.edges]
        for sign in (1, -1):
            shares = [Fraction(1) if m == facet else 1 - sign * v for m, v in enumerate(slopes)]
            low, high = _combined(shares, E, law.eta * law.simplex.lowest - sign * height)
            if high < 0:
                return False
            sure = sure and low >= 0
    return True if sure else None


def _height(law: ProposalTarget, j: int) -> Fraction:
    u, m, s = law.program.directions[j].tolist(), law.program.lower[j], law.program.scale[j]
    return (dot(u, law.simplex.centre) - m) / s


def _slope(law: ProposalTarget, j: int, edge: Vector) -> Fraction:
    return dot(law.program.directions[j].tolist(), edge) / law.program.scale[j]


def _doubtful(law: ProposalTarget, facet: int, E: Sequence[Interval]) -> list[int]:
    """The directions whose inequality float64 cannot confirm."""
    sizes = np.array([float(high) for _, high in E])
    slack = sizes.sum() * (1 - _ERROR) + law.lowest - _ERROR * abs(law.lowest)
    slack -= sum(float(high - low) for low, high in E)
    sizes[facet] = 0.0
    size = np.abs(law.slopes @ sizes + law.heights)
    size += _ERROR * (np.abs(law.slopes) @ sizes + np.abs(law.heights))
    size += np.abs(law.slopes) @ np.array([float(high - low) for low, high in E])
    return np.flatnonzero(~(size <= slack)).tolist()


def _combined(shares: Sequence[Fraction], E: Sequence[Interval], constant: Fraction) -> Interval:
    """constant + Σ share_m E_m."""
    low = sum((s * e[s < 0] for s, e in zip(shares, E, strict=True)), constant)
    high = sum((s * e[s > 0] for s, e in zip(shares, E, strict=True)), constant)
    return low, high


def _nearest(law: ProposalTarget, facet: int, E: Sequence[Interval]) -> list[int] | None:
    """The whole numbers nearest to x; None where the intervals do not tell."""
    candidates = []
    for k, centre in enumerate(law.simplex.centre):
        edges = enumerate(law.simplex.edges)
        shares = [Fraction(0) if m == facet else edge[k] / law.eta for m, edge in edges]
        ends = (floor(v / law.denominator + Fraction(1, 2)) for v in _combined(shares, E, centre))
        low, high = ends
        if low != high:
            return None
        candidates.append(low)
    return candidates
