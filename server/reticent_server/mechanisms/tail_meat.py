# SPDX-License-Identifier: Apache-2.0
"""A meat of the last entries of a step's vector: what the two cost together.

A record has a vector y, ‖y‖ ≤ 1 in units of the vector's clip C. The step releases Σ y (VectorSum,
ρ_g) and Σ z zᵀ (GramSum, ρ_m, of clip C_m ≤ C), where z is made of the last entries y_β of y: in
units of C_m, z = y_β/√f with f = C_m²/C², scaled down to length 1 where it is longer. (A hazard
regression's score has the baseline's entries before those of the regressors, whose own bound is
smaller: f = R²/(a² + R²).)

*Claim.* The meat is free up to ρ_m = ρ_g (f/4) min(1, 2f); what goes beyond adds itself at most.

*Proof.* As in mechanisms.one_vector the loss is the largest N² = A‖y − y′‖² + B‖zzᵀ − z′z′ᵀ‖² over
two records, A = ρ_g/4 and B = ρ_m/2, and a norm, so m rows count m times. N² grows with B, so take
B = θ A f/2 with θ = min(1, 2f). Let P = ‖y_β‖², Q = ‖y′_β‖², c the cosine between y_β and y′_β, and
Z = min(P/f, 1), Z′ = min(Q/f, 1) the squared lengths of z and z′. The other entries move by at most
√(1 − P) + √(1 − Q), so

    N²/A ≤ 2 + 2√((1 − P)(1 − Q)) − 2c√(PQ) + (θf/2)(Z² + Z′² − 2ZZ′c²).

Its derivative in c is −2√(PQ) − 2θf ZZ′c. As ZZ′ ≤ √(ZZ′) ≤ √(PQ)/f that is at most 0 for all c in
[−1, 1], so c = −1 is worst. With P = cos²φ, Q = cos²ψ and d = φ − ψ it is there

    2 + 2 cos d + (θf/2)(Z − Z′)²,    |Z − Z′| ≤ |P − Q|/f = |sin(φ + ψ) sin d|/f ≤ |sin d|/f.

The last term is at most (θ/2f) sin²d ≤ sin²d ≤ 2(1 − cos d), so N² ≤ 4A = ρ_g. For more meat,
B = B₀ + B₁ with B₀ that of the claim: ‖zzᵀ − z′z′ᵀ‖² ≤ 2, so B₁ adds at most what that part of ρ_m
is. ∎

For f ≥ ½ no more is free: at P = Q = f the bound is 4 + 2f(θ − 1)x where c = −1 + x, x small.

*In integers.* y is q/C_q, q the vector's own integers, of which ‖q‖ ≤ C_q holds exactly
(mechanisms.quantise). The meat is quantised of g·q_β, so p/C_p = s z + e with s ≤ 1 the same for
every record (which is a larger f, up to which the claim grows) and ‖e‖ ≤ δ = 2√k/C_p. A matrix is
off by 2δ + δ² at most, two of them by ε = 2(2δ + δ²), and N² ≤ (√(N² of z) + √(ρ_m ε²/2))². The
charge is that, or ρ_g + ρ_m where it is less.

*Enforced here, not trusted*: the meat is made of the vector's integers; its contribution is not
read. Tier: unconditional. Attacked by tests/privacy/test_tail_meat_privacy.py, where a search
attains the charge. Errors: ValueError for parts that this is not proved for; TypeError for places.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor, sqrt

import numpy as np

from reticent_server.domain.scratch import Scratch
from reticent_server.domain.steps import Contribution, GramSum, OneVector, Part, Placed, VectorSum
from reticent_server.mechanisms.noisy_sum import IntArray, added
from reticent_server.mechanisms.quantise import GRAM_BITS, granule, quantise

_ROOM = 1 + 1e-12  # relative: the rounding of what is computed here, in float64
_SPARE = 1 - 2.0**-40  # relative: of f, that of two clips and their squares
_PLANNED = 1 - 2.0**-32  # of what is free: more than the rounding of a clip that is planned later


def share(vector: VectorSum, meat: GramSum) -> float:
    """(f/4) min(1, 2f), rounded down: of the vector's ρ, what a meat may cost and be free."""
    f = float(Fraction(meat.clip) ** 2 / Fraction(vector.clip) ** 2) * _SPARE
    return f / 4 * min(1.0, 2 * f)


def rho_of(parts: Sequence[Part], joint: OneVector) -> int:
    """What the vector and the meat of its last entries cost together, in RHO_UNITS, rounded up."""
    return rho(*_parts(parts, joint))


def rho(vector: VectorSum, meat: GramSum) -> int:
    """The same of the parts themselves."""
    beyond = max(0.0, meat.rho - vector.rho * share(vector, meat))
    coarse = 2 * sqrt(meat.size) / 2**GRAM_BITS
    rounding = meat.rho * (2 * (2 * coarse + coarse**2)) ** 2 / 2
    exact = ceil(Fraction((sqrt(vector.rho + beyond) + sqrt(rounding)) ** 2 * _ROOM))
    return min(exact, vector.rho + meat.rho)


def with_free_meat(vector: VectorSum, meat: GramSum, rho_together: int) -> tuple[int, int]:
    """ρ of a vector, the most that with its free meat costs at most `rho_together`, and of that
    meat; at least 1 each. vector, meat: their sizes and clips."""
    of = share(vector, meat) * _PLANNED
    coarse = 2 * sqrt(meat.size) / 2**GRAM_BITS
    grown = (1 + sqrt(of / 2) * 2 * (2 * coarse + coarse**2)) ** 2 * _ROOM
    own = max(1, floor((rho_together - 1) / grown * _PLANNED))
    return own, max(1, floor(own * of))


def _parts(parts: Sequence[Part], joint: OneVector) -> tuple[VectorSum, GramSum]:
    if joint.tail is None or joint.vector is None or len(joint.places) != 2:
        raise ValueError("a meat of last entries is of one vector, and alone with it")
    vector, meat = parts[joint.vector], parts[joint.tail]
    if not (isinstance(vector, VectorSum) and isinstance(meat, GramSum)):
        raise ValueError("a part is not what it is of its step's vector")  # noqa: TRY004 - one error for all that is not proved
    rows = {(part.unit_rows, part.person_rows, part.groups) for part in (vector, meat)}
    if meat.signed or meat.whole or meat.size > vector.size or meat.clip > vector.clip:
        raise ValueError("a meat is that of the vector's last entries")
    if len(rows) != 1 or vector.groups != 1:
        raise ValueError("a meat is that of the vector's own records")
    return vector, meat


def encode(
    parts: Sequence[Part], contributions: Sequence[Contribution], joint: OneVector, scratch: Scratch
) -> dict[int, IntArray]:
    """The exact integer sums of both over one block, by their places."""
    vector, meat = _parts(parts, joint)
    assert joint.vector is not None and joint.tail is not None  # noqa: S101, PT018 - as _parts has it
    given = contributions[joint.vector]
    if isinstance(given, Placed):
        raise TypeError("a vector with a meat is written out")
    q = quantise(vector, given, scratch)
    sums = {joint.vector: added(vector, q)}
    last = np.multiply(q[-meat.size :], granule(vector))
    return sums | {joint.tail: added(meat, quantise(meat, last, scratch))}
