# SPDX-License-Identifier: Apache-2.0
"""Noisy integer sums: the release primitive of VectorSum, GramSum, CountSum and PowerSum.

Domain: tables of n records, n public. Neighbours: one record (or the ≤ m records of one unit,
`unit_rows` = m) replaced. Output: the exact integer sum of clipped and quantised contributions plus
discrete Gaussian noise. Tier: unconditional, for every table and every n.

Proof. mechanisms.quantise makes q_i ∈ Z^d of a record's contribution, q_i = round(v_i/g), and
enforces ‖q_i‖₂ ≤ C_q for every record, whatever the map function gave (a longer contribution is
scaled down, one that is not finite is zero). Sums of integers are exact below 2^53 in float64 and
then kept in int64, so for neighbours the sums differ by exactly Σ (q_i − q′_i) over the replaced
records (Casacuberta et al. 2022):

- VectorSum: ‖Σ q − Σ q′‖₂ ≤ 2 C_q m = Δ. Noise N_Z(0, σ² I): ρ = Δ²/(2σ²) (Canonne, Kamath &
  Steinke 2020, Theorem 4).
- GramSum: for one record ‖q qᵀ − q′ q′ᵀ‖_F² = |q|⁴ + |q′|⁴ − 2 (qᵀq′)² ≤ 2 C_q⁴, so the Frobenius
  norm of the difference is at most Δ = √2 C_q² m. The diagonal gets noise of scale σ, the entries
  above it σ/√2. With a = Σ_j D_jj² and b = Σ_{j<k} D_jk², a + 2b = ‖D‖_F² ≤ Δ², and the product of
  the two noises is a/(2σ²) + b/(2(σ/√2)²) = (a + 2b)/(2σ²) ≤ Δ²/(2σ²) = ρ zCDP. (Equal noise on the
  upper triangle has the same bound and √2 more noise off the diagonal.)
- signed GramSum: with signs s, s′ ∈ {−1, 1}, ‖s q qᵀ − s′ q′ q′ᵀ‖_F² = |q|⁴ + |q′|⁴ − 2ss′ (qᵀq′)²
  ≤ 4 C_q⁴, attained by q′ = q, s′ = −s, so Δ = 2 C_q² m; the rest is as above.
- with groups (mechanisms.placed): the entries of a Gram sum for coordinates of different groups are
  0 in every table and released as 0, without noise. The others' distance is that of all, at most Δ.
- whole GramSum: a person's Σ_t q_t q_tᵀ is positive semi-definite and at most C_q² long, so Δ = √2
  C_q² with `unit_rows` 1 (proof: mechanisms.person_grams).
- CountSum: one record adds 1 to at most one bin, so Δ = √2 m (with a single bin, m).
- PowerSum: Δ = 2²⁵ m, the diameter of what a record can contribute (proof: mechanisms.power_sum).

A sum over a subset of positions that does not depend on the records (domain.steps.SumStep) has some
of these terms and no others, so the same Δ.

Units: `Released.values` is in the units of the contributions (the integers times g, or g²).
Errors: none that depend on the data. Source: Canonne, Kamath & Steinke (2020).
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import (
    Contribution,
    CountSum,
    FloatArray,
    GramSum,
    Placed,
    PowerSum,
    Released,
    Scaled,
    VectorSum,
)
from reticent_server.mechanisms import placed, power_sum
from reticent_server.mechanisms._sampler import DiscreteGaussian, smallest_scale
from reticent_server.mechanisms.person_grams import quantise_persons
from reticent_server.mechanisms.quantise import (
    TILE,
    PartT,
    exactly,
    granule,
    integers,
    norm_limit,
    quantise,
)

IntArray = NDArray[np.int64]
SumPart = VectorSum | GramSum | CountSum | PowerSum

# 2²⁰ rows of integers or products of at most 2³⁰ add up to 2⁵⁰ < 2⁵³: a block's sum is exact in
# float64
MAX_BLOCK_ROWS = 1 << 20
_TOO_LONG = "block too long for exact sums"
_SEEN = 0.25  # of the noise: a bias of that size takes an interval's level of .95 to .943
# rows of one matrix product, what the processor's cache holds; speed only, sums are exact
_PRODUCT_ROWS = 1 << 12
# rows from which on half as long pieces are cheapest; speed only
_TALL = 16


def sensitivity(part: SumPart) -> float:
    """Δ of the integer sum: L2 for vectors and counts, Frobenius for Gram sums."""
    match part:
        case VectorSum():
            return 2.0 * norm_limit(part) * part.unit_rows
        case GramSum(signed=True):
            return 2.0 * norm_limit(part) ** 2 * part.unit_rows
        case GramSum():
            return float(np.nextafter(sqrt(2), 2)) * norm_limit(part) ** 2 * part.unit_rows
        case CountSum(bins=1):
            return float(part.unit_rows)
        case CountSum():
            return float(np.nextafter(sqrt(2), 2)) * part.unit_rows
        case PowerSum():
            return float(power_sum.LIMIT * part.unit_rows)


def scale(part: SumPart) -> float:
    """σ of the discrete Gaussian, in integer steps: the smallest that costs at most `part.rho`."""
    return smallest_scale(sensitivity(part), part.rho / RHO_UNITS)


def off_diagonal_scale(part: GramSum) -> float:
    """σ/√2, as the smallest scale that bills at most `part.rho` for Δ/√2: C_q² m, signed √2 C_q²
    m."""
    factor = float(np.nextafter(sqrt(2), 2)) if part.signed else 1.0
    bound = factor * norm_limit(part) ** 2 * part.unit_rows
    return smallest_scale(bound, part.rho / RHO_UNITS)


def noise_sd(part: SumPart) -> float:
    """σ in the units of the contributions (a Gram sum's diagonal; σ/√2 off it)."""
    return scale(part) * _unit(part)


def unrounded(part: PartT, unit: float, n: int) -> PartT:
    """The part for which whole multiples of `unit` are whole numbers of steps (quantise.exactly),
    where half a step of each of n records could be seen beside the noise; else the part itself."""
    each = granule(part) / 2 * (part.clip if isinstance(part, GramSum) else 1.0)
    return exactly(part, unit) if n * each > _SEEN * noise_sd(part) else part


def _unit(part: SumPart) -> float:
    match part:
        case VectorSum():
            return granule(part)
        case GramSum():
            return granule(part) ** 2
        case CountSum():
            return 1.0
        case PowerSum():
            return power_sum.granule(part)


def encode(
    part: SumPart,
    contributions: Contribution,
    scratch: Scratch = FRESH,
    norms: FloatArray | None = None,
) -> IntArray:
    """The exact integer sum over one block: (size,), (size, size) or (bins,) int64.

    contributions: (size, rows), (rows,) codes for a CountSum, (rows,) numbers for a PowerSum; not
    modified. norms: those of its vectors (quantise.squared_norms), where they are known. Raises
    ValueError for another size.
    """
    if _rows(contributions) > MAX_BLOCK_ROWS:
        raise ValueError(_TOO_LONG)
    if isinstance(contributions, Placed):
        return _placed(part, contributions, scratch)
    match part:
        case VectorSum() | GramSum():
            if part.groups > 1:
                raise TypeError("a sum of groups takes contributions with places")
            if isinstance(part, GramSum) and part.whole:
                return added(part, quantise_persons(part, contributions, scratch))
            q = integers(part, contributions, scratch, norms)
            weights = contributions.weights if isinstance(contributions, Scaled) else None
            return added(part, q, weights)
        case CountSum():
            if isinstance(contributions, Scaled):
                raise TypeError("a count takes codes")
            return count_codes(contributions, part.bins)
        case PowerSum():
            if isinstance(contributions, Scaled):
                raise TypeError("powers take numbers")
            return power_sum.encode(part, contributions, scratch)


def _placed(part: SumPart, contributions: Placed, scratch: Scratch) -> IntArray:
    if not isinstance(part, VectorSum | GramSum) or (isinstance(part, GramSum) and part.whole):
        raise TypeError("codes, numbers and whole Gram sums have no places")
    total, others = placed.encode(part, contributions, scratch)
    return total + added(part, quantise(part, others)) if others.size else total


def added(part: VectorSum | GramSum, q: FloatArray, weights: FloatArray | None = None) -> IntArray:
    """Σ q (size,), or Σ ±q qᵀ (size, size), of integers (size, rows); of an unsigned Gram sum rows
    of zeros may follow. weights: give a signed sum its signs."""
    if q.shape[1] > MAX_BLOCK_ROWS:
        raise ValueError(_TOO_LONG)
    if isinstance(part, VectorSum):
        return np.asarray(q @ np.ones(q.shape[1]), dtype=np.int64)
    if not part.signed:
        return _gram(q)[: part.size, : part.size]
    if weights is None:
        raise TypeError("a signed Gram sum takes weights")
    signs = np.where(weights < 0, -1.0, 1.0)
    total = np.zeros((len(q), len(q)))
    for piece in _pieces(q):
        total += q[:, piece] @ (q[:, piece] * signs[piece]).T
    return total.astype(np.int64)


def _rows(contributions: Contribution) -> int:
    of = contributions.vectors if isinstance(contributions, Scaled | Placed) else contributions
    return int(of.shape[-1])


def _pieces(q: FloatArray) -> list[slice]:
    most = _PRODUCT_ROWS if len(q) < _TALL else _PRODUCT_ROWS // 2
    return [slice(start, start + most) for start in range(0, q.shape[1], most)]


def _gram(q: FloatArray) -> IntArray:
    """q qᵀ, exactly, from pieces that stay in cache.

    numpy computes half of a product with its own transpose. One row more than a multiple of TILE
    is added by itself: with the others it would cost as much as four.
    """
    total = np.zeros((len(q), len(q)))
    most = len(q) - (len(q) % TILE == 1)
    for piece in _pieces(q):
        total[:most, :most] += q[:most, piece] @ q[:most, piece].T
        if most < len(q):
            total[-1] += q[:, piece] @ q[-1, piece]
    total[:-1, -1] = total[-1, :-1]
    return total.astype(np.int64)


def count_codes(codes: FloatArray, bins: int) -> IntArray:
    """(bins,) numbers of the codes 0..bins−1; any other code counts nowhere."""
    with np.errstate(invalid="ignore"):
        valid = (codes >= 0) & (codes < bins)
    if bins == 1:
        return np.array([np.count_nonzero(valid)], dtype=np.int64)
    kept = codes[valid].astype(np.int64)
    return np.bincount(kept, minlength=bins).astype(np.int64)


def release(part: SumPart, total: Private[IntArray]) -> Released:
    """Adds the noise: the only way of a sum out of the engine."""
    sums = total.unwrap()
    values = _noisy_gram(part, sums) if isinstance(part, GramSum) else _noisy(scale(part), sums)
    return Released(values=values * _unit(part), sd=noise_sd(part))


def _noisy(sigma: float, sums: IntArray) -> FloatArray:
    return DiscreteGaussian(sigma).add(sums).astype(np.float64)


def _noisy_gram(part: GramSum, sums: IntArray) -> FloatArray:
    first, second = np.triu_indices(part.size, 1)
    within = first % part.groups == second % part.groups
    upper = first[within], second[within]
    gram = np.zeros((part.size, part.size))
    gram[upper] = _noisy(off_diagonal_scale(part), sums[upper])
    gram += gram.T
    np.fill_diagonal(gram, _noisy(scale(part), np.ascontiguousarray(np.diagonal(sums))))
    return gram
