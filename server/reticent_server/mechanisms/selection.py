# SPDX-License-Identifier: Apache-2.0
"""Selection from a public finite list: the exponential mechanism, in exact whole numbers.

Domain: K ≤ 2²⁰ candidates, K public, each with a *level* j_k, a whole number computed from private
data; a lower level is better. Neighbours: tables whose levels differ by at most s each. Output: one
index. Tier: unconditional. An index k is drawn with probability w(j_k)/Σ_l w(j_l), where with
j = oQ + r, 0 ≤ r < Q = 2^q,

    w(j) = m(r) 2^(−o),   m(r) a whole number in (2⁴¹, 2⁴²] with m(r) = 2^(42 − r/Q) e^(±ξ).

Proof. w is a function of the level alone and |ln w(j) + j ln 2/Q − 42 ln 2| ≤ ξ, so for
|j − j′| ≤ s, j ≠ j′, the log-ratio of w(j) and w(j′) is at most L(s) = s ln 2/Q + 2ξ. ln P(k) − ln
P′(k) is that of candidate k less a constant: it lies, for all k, in an interval of length
ε = 2L(s). The mechanism is thus bounded-range with parameter ε: it is ε-DP and ε²/8 = L(s)²/2-zCDP
(McSherry & Talwar 2007; Dong, Durfee & Rogers 2020; Cesar & Rogers 2021). Levels that are all the
same cost nothing.

*Support*. Every index has a positive probability on every table, whatever the levels.

*Exact draw*. Let o* be the least o_k and e_k = o_k − o*. Index k is proposed with probability ∝
⌈m_k 2^(−e_k)⌉, by a uniform whole number below the sum of these (K 2⁴² < 2⁶³), and kept with
probability m_k 2^(−e_k)/⌈m_k 2^(−e_k)⌉, by uniform bits; else it is drawn again. A round keeps with
probability ≥ 1 − K 2⁻⁴¹ > 1 − 2⁻²¹, so the time of a draw does not depend on the levels.

*ξ*. m(r) = T − ⌊TC/2³⁷⌉ with r 2^(32−q) = 2¹⁶a + b, T = ⌊2^(42 − a/2¹⁶)⌉ and C = ⌊2³⁷(1 −
2^(−b/2³²))⌉: relative errors of 2⁻⁴² of T, 2⁻³⁷ of the difference (half a unit of C, half of the
product, and of the float64 powers that are rounded, 2⁻⁵⁰). ξ = 2⁻³⁶ covers them.

A score u of sensitivity Δ is turned into levels ⌊−u·steps/Δ⌋: whole numbers that differ by at most
`steps`.

Errors: none that depend on the data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.mechanisms import _sampler

IntArray = NDArray[np.int64]

MOST_CANDIDATES = 1 << 20  # K: with weights of 2⁴² their sum stays below 2⁶³
_MANTISSA_BITS = 42  # K 2⁴² < 2⁶³ for K = 2²⁰
_DIGIT_BITS = 16  # of each half of r: two tables of 2¹⁶ numbers
_CORRECTION_BITS = 37  # T·C < 2⁴²·2^(37 − 16.5) < 2⁶³
_ERROR = 2.0**-36  # ξ, proved above
_LEAST_STEPS = 1 << 14  # rounding levels down to whole numbers costs 2⁻¹⁴ of the budget
_MOST_BITS = 2 * _DIGIT_BITS  # q: a level's residue has two digits
_UPWARDS = 1 + 2.0**-48  # more than the rounding of a few float64 operations
_WORD = 64  # bits
_LARGEST_PREFERENCE = 1 << 30  # so that levels of scores stay below 2⁶²


@dataclass(frozen=True, slots=True)
class Ladder:
    """How fast probabilities fall: by 2^(−1/Q) a level, Q = 2^bits; `steps` levels for one
    sensitivity."""

    steps: int
    bits: int

    def loss(self, moved: int) -> float:
        """L(s) for levels that differ by at most `moved`: half of ε; rounded up."""
        if moved == 0:
            return 0.0
        return (moved * log(2) / (1 << self.bits) + 2 * _ERROR) * _UPWARDS

    @property
    def scale(self) -> float:
        """b: P ∝ exp(u/b) for a score u in units of its sensitivity; infinite without steps."""
        return (1 << self.bits) / (self.steps * log(2)) if self.steps else inf

    def levels(self, scores: IntArray) -> IntArray:
        """Levels of whole-number scores of sensitivity 1 (larger is better)."""
        return -scores * self.steps


@lru_cache(maxsize=1024)
def ladder_of_loss(loss: float) -> Ladder:
    """The ladder with the most steps whose L(steps) is at most `loss` = ε/2.

    Below about 2⁻³⁵, where ξ leaves nothing, it has no steps: every index is as likely, at no cost.
    """
    for bits in range(_DIGIT_BITS, _MOST_BITS + 1):
        steps = int((loss / _UPWARDS - 2 * _ERROR) * (1 << bits) / log(2))
        while steps > 0 and Ladder(steps, bits).loss(steps) > loss:
            steps -= 1
        if steps >= _LEAST_STEPS:
            return Ladder(steps, bits)
    return Ladder(max(steps, 0), _MOST_BITS)


def ladder(rho: int) -> Ladder:
    """The ladder at which one selection costs at most `rho` (RHO_UNITS)."""
    return ladder_of_loss(sqrt(2 * rho / RHO_UNITS) / _UPWARDS)


def billed_rho(moved: int, ladder: Ladder) -> float:
    """L(s)²/2, rounded up (not in units)."""
    return ladder.loss(moved) ** 2 / 2 * _UPWARDS


def preferring_earlier(scores: Sequence[int], ladder: Ladder) -> IntArray:
    """Scores u_j − c·j, c one scale of the noise: of candidates that are about as good, the
    first."""
    step = min(ceil(ladder.scale), _LARGEST_PREFERENCE) if ladder.steps else 0
    return np.array([score - step * j for j, score in enumerate(scores)], dtype=np.int64)


def select(levels: Private[IntArray], ladder: Ladder) -> int:
    """The selected index. levels: (K,) int64, 1 ≤ K ≤ MOST_CANDIDATES, below 2⁶² in size."""
    octaves, mantissas = weights(levels.unwrap(), ladder.bits)
    shifts = octaves - octaves.min()
    ceilings = -(-mantissas >> np.minimum(shifts, _MANTISSA_BITS + 1))
    bounds = np.cumsum(ceilings)
    while True:
        k = int(np.searchsorted(bounds, _sampler.below(int(bounds[-1])), side="right"))
        if _kept(int(mantissas[k]), int(shifts[k]), int(ceilings[k])):
            return k


def weights(levels: IntArray, bits: int) -> tuple[IntArray, IntArray]:
    """(o, m) of levels: w = m 2^(−o), exactly."""
    residues = (levels & ((1 << bits) - 1)) << (_MOST_BITS - bits)
    high, low = _tables()
    top = high[residues >> _DIGIT_BITS]
    correction = top * low[residues & ((1 << _DIGIT_BITS) - 1)]
    return levels >> bits, top - ((correction + (1 << (_CORRECTION_BITS - 1))) >> _CORRECTION_BITS)


def _kept(mantissa: int, shift: int, ceiling: int) -> bool:
    """True with probability m 2^(−e)/⌈m 2^(−e)⌉, exactly, in about one step however large e is."""
    while shift > _WORD:
        if _sampler.words(1)[0]:
            return False
        shift -= _WORD
    return _sampler.below(ceiling << shift) < mantissa


@lru_cache(maxsize=1)
def _tables() -> tuple[IntArray, IntArray]:
    """T by a, and C by b."""
    digits = np.arange(1 << _DIGIT_BITS, dtype=np.float64)
    high = np.exp2(_MANTISSA_BITS - digits * 2.0**-_DIGIT_BITS)
    low = -np.expm1(-log(2) * digits * 2.0**-_MOST_BITS) * 2.0**_CORRECTION_BITS
    return np.rint(high).astype(np.int64), np.rint(low).astype(np.int64)
