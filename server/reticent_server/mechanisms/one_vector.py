# SPDX-License-Identifier: Apache-2.0
"""Parts of a step that are made of one vector of a record: what they cost together, and that they
are so made.

A record has a vector x ∈ R^d. The step releases some of

    vector     Σ q,     q = round(αx/g)   VectorSum  ρ_g  ‖q‖ ≤ C_q
    meat       Σ p pᵀ,  p = round(q·κ)    GramSum    ρ_m  of the vector's integers, at fewer bits
    curvature  Σ b bᵀ,  b = round(βx/h)   GramSum    ρ_J  or Σ ±b bᵀ (signed)
    used       a count of one bin         CountSum   ρ_c  of the records whose x may not be 0

and each part's ρ_j is what its noise would cost alone: Δ_j²/(2σ_j²) for the largest change Δ_j.
Their sum is charged where no more is known; but no pair of records attains all of them. Where x
turns round, x′ = −x, the vector moves by all of Δ, and the meat and an unsigned curvature of ±x are
the same; where x′ ⊥ x the matrices move most, and the vector by 1/√2 of Δ.

*The joint distance.* Given all releases so far, a step's noise is independent from entry to entry,
so the step is ρ-zCDP for the largest N(D)² = Σ_j ρ_j ‖D_j‖²/Δ_j² over pairs of neighbours, D_j
being what they change of part j (mechanisms.noisy_sum: norm L2 or Frobenius). N is a norm, so m
rows of a unit change at most m times what one record does, and every Δ_j has that m: take m = 1. In
units of C, with y = αx/|αx|·‖·‖ ≤ 1 the vector's contribution, a record u of length 1 along x, and
b = βu, |β| ≤ 1:

    N² = A ‖y − y′‖² + B ‖yyᵀ − y′y′ᵀ‖² + J ‖bbᵀ − b′b′ᵀ‖²,    A = ρ_g/4,  B = ρ_m/2,  J = ρ_J/2.

*Both records in use.* Let k = yᵀy′, s = ‖y‖², s′ = ‖y′‖² and c = uᵀu′, so k = ±c√(ss′) and |k| ≤
|c|. The first two terms are A(s + s′ − 2k) + B(s² + s′² − 2k²), which grow with s and s′ at a fixed
k; the third, β⁴ + β′⁴ − 2β²β′²c², is convex in (β², β′²) and has its maximum at a corner: 1 or 2(1
− c²) ≤ 2(1 − k²). So N² ≤ max over k ∈ [−1, 1] of

    2A(1 − k) + 2B(1 − k²) + J max(1, 2(1 − k²))  =  max(G(ρ_g, ρ_m) + ρ_J/2,  G(ρ_g, ρ_m + ρ_J)),
    G(a, b) = max over k of a(1 − k)/2 + b(1 − k²)
            = a where 4b ≤ a (k = −1),  else a/2 + b + a²/(16b)  (k = −a/(4b)),

attained by y, y′ of length 1. A meat of up to a quarter of the vector's ρ is free. With a signed
curvature (Δ² = 4C⁴) the third term is at most 4·ρ_J/4 at any k, and N² ≤ G(ρ_g, ρ_m) + ρ_J
(attained where the meat is free).

*One in use, one not* (where they are counted). The other record's y and b are 0: N² ≤ ρ_g/4 + ρ_m/2
+ ρ_J/2 + ρ_c, a signed ρ_J/4. Without a count this is below the case above, of which it is the part
β′ = 0, y′ = 0.

*In integers.* q/C_q = y + e for a y along x, ‖y‖ ≤ 1, with ‖e‖ ≤ δ = 2√d/C (mechanisms.quantise:
rounding is √d/2 steps; a record that is too long is scaled down along x, then rounded, and cut by
less than 1 a coordinate should that still be too long). For b the same with its own C. For p, κ =
(1 − 2√d 2⁻²⁶)g/h with h the meat's own step: ‖κq‖ ≤ C_p − √d/2 + √d 2⁻¹² − √d 2⁻¹⁰ as ‖q‖ ≤ C_q, so
‖p‖ ≤ C_p, and p/C_p = f y + e with f ≤ 1, ‖e‖ ≤ 2√d/C_p. (The factor bends the meat by 4√d 2⁻²⁶ of
it.) A matrix (y + e)(y + e)ᵀ is off by at most 2δ + δ². What rounding adds to the D_j of two
records is thus within ε_j, 2δ of a vector, 2(2δ + δ²) of a matrix, and as N is a norm

    N² ≤ (√(largest N² of exact vectors) + √(Σ ρ_j ε_j²/Δ_j²))²,

with Δ_j = 2 of the vector, √2 of a matrix, 2 of a signed one.
The charge is that, or Σρ_j where it is less. Without a vector nothing has to be along x, and ε = 0.

*Enforced here, not trusted*: the meat is made of the vector's integers (its contribution is not
read), the curvature's array of vectors is the same object as the vector's, so that contributions
differ by a number a record only, and records that the count leaves out are made 0. Tier:
unconditional. Attacked by tests/privacy/test_one_vector_privacy.py, where a search attains the
charge.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import Scratch
from reticent_server.domain.steps import (
    Contribution,
    CountSum,
    FloatArray,
    GramSum,
    OneVector,
    Part,
    Placed,
    Scaled,
    VectorSum,
)
from reticent_server.mechanisms.noisy_sum import IntArray, added, count_codes
from reticent_server.mechanisms.quantise import (
    GRAM_BITS,
    VECTOR_BITS,
    granule,
    integers,
    with_zeros,
)

PartT = TypeVar("PartT", VectorSum, GramSum, CountSum)

_ROOM = 1 + 1e-12  # relative: the rounding of what is computed here, in float64
_SHORTER = 2.0 ** (1 - VECTOR_BITS)  # by which a meat's integers are shorter, times √d


def rho(
    size: int,
    *,
    vector: int = 0,
    meat: int = 0,
    curvature: int = 0,
    used: int = 0,
    signed: bool = False,
) -> int:
    """What the parts cost together, in RHO_UNITS, rounded up. size: d. The others: each part's ρ, 0
    without it."""
    turned = _turned(vector, meat) + curvature / (1 if signed else 2)
    across = turned if signed else _turned(vector, meat + curvature)
    out = vector / 4 + meat / 2 + curvature / (4 if signed else 2) + used if used else 0.0
    exact = max(turned, across, out)
    rounding = _rounding(size, vector, meat, curvature, signed=signed) if vector else 0.0
    joint = ceil(Fraction((sqrt(exact) + sqrt(rounding)) ** 2 * _ROOM))
    return min(joint, vector + meat + curvature + used)


def _turned(a: float, b: float) -> float:
    """G(a, b)."""
    return float(a if 4 * b <= a else a / 2 + b + a**2 / (16 * b))


def _rounding(size: int, vector: int, meat: int, curvature: int, *, signed: bool) -> float:
    """Σ ρ_j ε_j²/Δ_j²."""
    fine, coarse = (2 * sqrt(size) / 2**bits for bits in (VECTOR_BITS, GRAM_BITS))
    matrix = (2 * (2 * coarse + coarse**2)) ** 2
    return float(vector * fine**2 + meat * matrix / 2 + curvature * matrix / (4 if signed else 2))


def rho_of(parts: Sequence[Part], joint: OneVector) -> int:
    """What the joint parts of a step cost together. ValueError for parts that cannot be of one
    vector."""
    vector = _part(parts, joint.vector, VectorSum)
    meat = _part(parts, joint.meat, GramSum)
    curvature = _part(parts, joint.curvature, GramSum)
    used = _part(parts, joint.used, CountSum)
    if any(part.whole for part in (meat, curvature) if part):
        raise ValueError("a whole Gram sum has a price of its own")
    sizes = {part.size for part in (vector, meat, curvature) if part}
    if meat and not (vector and meat.clip == vector.clip and not meat.signed):
        raise ValueError("a meat is that of the step's vector")
    if len(sizes) != 1 or (used and used.bins != 1):
        raise ValueError("these parts are not of one vector")
    return rho(
        sizes.pop(),
        vector=vector.rho if vector else 0,
        meat=meat.rho if meat else 0,
        curvature=curvature.rho if curvature else 0,
        used=used.rho if used else 0,
        signed=bool(curvature and curvature.signed),
    )


def _part(parts: Sequence[Part], place: int | None, kind: type[PartT]) -> PartT | None:
    part = None if place is None else parts[place]
    if part is None or isinstance(part, kind):
        return part
    raise ValueError("a part is not what it is of its step's vector")


def encode(
    parts: Sequence[Part],
    contributions: Sequence[Contribution],
    joint: OneVector,
    scratch: Scratch,
    norms: Mapping[int, FloatArray],
) -> dict[int, IntArray]:
    """The exact integer sums of the joint parts over one block, by their places.

    norms: of arrays of vectors, by their identity. TypeError for contributions that are not of one
    vector.
    """
    encoded: dict[int, IntArray] = {}
    left_out = None
    if joint.used is not None:
        codes = contributions[joint.used]
        if isinstance(codes, Scaled | Placed):
            raise TypeError("a count takes codes")
        encoded[joint.used] = count_codes(codes, 1)
        with np.errstate(invalid="ignore"):
            left_out = ~((codes >= 0) & (codes < 1))
    vectors = None
    for place in (joint.vector, joint.curvature):
        if place is None:
            continue
        part, scaled = parts[place], contributions[place]
        if not (isinstance(scaled, Scaled) and isinstance(part, VectorSum | GramSum)):
            raise TypeError("joint parts are of vectors with weights")
        if vectors is not None and scaled.vectors is not vectors:
            raise TypeError("joint parts are of one array of vectors")
        vectors = scaled.vectors
        q = integers(part, scaled, scratch, norms.get(id(vectors)))
        _leave_out(q, left_out)
        encoded[place] = added(part, q, scaled.weights)
        meat = _part(parts, joint.meat, GramSum)
        if isinstance(part, VectorSum) and meat and joint.meat is not None:
            encoded[joint.meat] = added(meat, _fewer_bits(part, meat, q, scratch))
    return encoded


def _leave_out(q: FloatArray, left_out: NDArray[np.bool_] | None) -> None:
    if left_out is not None and left_out.any():
        q[:, left_out] = 0.0


def _fewer_bits(vector: VectorSum, meat: GramSum, q: FloatArray, scratch: Scratch) -> FloatArray:
    """p = round(κq), with the zeros that may follow a Gram sum's integers."""
    shorter = 1 - _SHORTER * sqrt(vector.size)
    whole = with_zeros(meat, scratch, "meat", q.shape[1])
    p = np.multiply(q, shorter * granule(vector) / granule(meat), out=whole[: vector.size])
    np.rint(p, out=p)
    return whole
