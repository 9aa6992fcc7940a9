# SPDX-License-Identifier: Apache-2.0
"""Contributions → integer vectors of bounded norm: what makes the sensitivity of sums exact.

A record's contribution v_i ∈ R^d with the promised ‖v_i‖₂ ≤ C becomes q_i = round(v_i/g) ∈ Z^d,
g = C/(C_q(1 − 2⁻³⁰) − √d/2), and ‖q_i‖₂ ≤ C_q holds for every record, whatever the map function
gave.

Proof. g and 1/g are normal floats, as C is within 2^±960 (domain.steps.check_clip). A record is
passed on as it is only if s²N ≤ L², L = C_q(1 − 2⁻³¹) − √d/2, where v_i = s·g·x for a vector x and
a number s, and N is the computed ‖x‖² (relative error ≤ d2⁻⁵³, absolute ≤
d2⁻¹⁰⁷⁴). The computed s² is finite then (∞·N is ∞ or NaN), so s < 2⁵¹², s‖x‖ ≤ L(1 + (d + 4)2⁻⁵³) +
d2⁻⁶³, and with
|q_j − s x_j| ≤ ½ + 2⁻⁵³|s x_j|

    ‖q_i‖₂ ≤ s‖x‖(1 + 2⁻⁵³) + √d/2 ≤ C_q            for d < 2²⁰.

Comparisons are false for NaN. Every other record is scaled down to the clip, or is zero where it is
not finite, and is cut towards zero should rounding still leave it too long. The room of 2⁻³¹
between g and L is for contributions that are at the clip up to their own rounding: they are the
rule, not the exception.

Bias. Rounding moves a coordinate by g/2 at the most, for each record that has the same value by the
same amount. Noise of a Gram sum of n records is about C²/√ρ and of a vector's C/√ρ, and where all
records are alike rounding takes up to nC²2⁻¹⁵ and nC2⁻²⁷ (2√d-fold near the clip): more than that
from n = 10⁵ and 10⁸ on. So what all records have alike and what is divided out, or taken off, as if
it had not been rounded, has to be a whole number of steps: plans ask for it (`exactly`). Values
that vary by more than a step are rounded up as often as down. What is left for those that have few
values far below the clip, by kind, stands in docs/proofs.md (Rounding).

A VectorSum over persons (`person_rows` > 1) has one vector a person, rounded once and bounded here
like any record's: the engine refuses any other number of them (engine.block_sums).
"""

from dataclasses import replace
from math import floor, sqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import FloatArray, GramSum, Scaled, VectorSum
from reticent_server.numerics.lengths import squared_lengths

VECTOR_BITS = 26  # C_q = 2²⁶: squared norms up to 2⁵² are exact, and 2²⁰ rows add up to 2⁴⁶ < 2⁵³
# C_q = 2¹⁵: products up to 2³⁰ of 2²⁰ rows add up to 2⁵⁰ < 2⁵³, and of 2³¹ rows to 2⁶¹, the largest
# sum that mechanisms._sampler takes
GRAM_BITS = 15
PERSONS_BITS = 13  # C_q = 2¹³ of a whole Gram sum, whose check squares products once more
# of a number that a step divides exactly: fewer would lengthen the clip by more than a twentieth
LEAST_STEPS = 20
PartT = TypeVar("PartT", VectorSum, GramSum)

# relative, for the rounding of a norm computed in float64 (d 2⁻⁵²): what is at the clip stays at
# most C_q
_ROOM = 2.0**-30
# rows that the linear algebra's inner loop takes at once: products of other numbers of rows take up
# to twice as long. Two rows of zeros are worth it, from three rows on; three are not. Speed only
TILE, _MOST_ZEROS, _LEAST = 4, 2, 3


def norm_limit(part: VectorSum | GramSum) -> int:
    """C_q: the largest norm of a quantised contribution."""
    if isinstance(part, VectorSum):
        return 1 << VECTOR_BITS
    return 1 << (PERSONS_BITS if part.whole else GRAM_BITS)


def granule(part: VectorSum | GramSum) -> float:
    """g: the value of one integer step."""
    if isinstance(part, GramSum) and part.whole:
        return part.clip / sqrt(persons_norm(part))
    return part.clip / (norm_limit(part) * (1 - _ROOM) - sqrt(part.size) / 2)


def exactly(part: PartT, number: float) -> PartT:
    """The part with the least clip, not below its own, of which `number` > 0 is a whole number of
    steps; the part itself where that would be fewer than LEAST_STEPS.

    What every record contributes alike, and is divided out again, is then rounded for none.
    """
    steps = floor(number / granule(part))
    if steps < LEAST_STEPS:
        return part
    return replace(part, clip=max(part.clip, part.clip * (number / steps / granule(part))))


def persons_norm(part: GramSum) -> float:
    """T: the Frobenius norm that a whole Gram sum cuts persons to, in squared steps
    (mechanisms.person_grams)."""
    d, m, C = part.size, part.person_rows, float(norm_limit(part))
    room = sqrt(m * d) * sqrt(sqrt(min(m, d))) * C + m * d / 4
    return max(C**2 - room, C**2 / 2)


def squared_norms(vectors: FloatArray, scratch: Scratch = FRESH, name: str = "norms") -> FloatArray:
    """(rows,) ‖x_i‖² of (size, rows), added in the order of the rows whatever their number.

    name: the memory of the scratch that they are kept in.
    """
    with np.errstate(all="ignore"):
        return squared_lengths(vectors, scratch.array(name, vectors.shape[1]))


def quantise(
    part: VectorSum | GramSum,
    contributions: FloatArray | Scaled,
    scratch: Scratch = FRESH,
    norms: FloatArray | None = None,
) -> FloatArray:
    """(size, rows) integer-valued q with ‖q_i‖₂ ≤ C_q for every record; in the scratch.

    contributions: not modified. norms: squared_norms of its vectors, where they are known.
    """
    return integers(part, contributions, scratch, norms)[: part.size]


def integers(
    part: VectorSum | GramSum,
    contributions: FloatArray | Scaled,
    scratch: Scratch = FRESH,
    norms: FloatArray | None = None,
) -> FloatArray:
    """The same (rows_of(part), rows): of a Gram sum rows of zeros may follow."""
    vectors = contributions.vectors if isinstance(contributions, Scaled) else contributions
    if vectors.shape[0] != part.size:
        raise ValueError("contributions do not have the planned size")
    with np.errstate(all="ignore"):
        norms = squared_norms(vectors, scratch) if norms is None else norms
        steps = _steps(part, contributions, scratch)
        long = too_long(part, steps, norms, scratch)
        whole = with_zeros(part, scratch, "integers", vectors.shape[1])
        q = np.multiply(vectors, steps, out=whole[: part.size])
        np.rint(q, out=q)
        if long.any():
            q[:, long] = _shortened(part, vectors[:, long] * _of(steps, long) * granule(part))
    return whole


def rows_of(part: VectorSum | GramSum) -> int:
    """How many rows the integers of a part have: its size, of a Gram sum the next multiple of
    TILE, where that is near."""
    zeros = -part.size % TILE
    plain = isinstance(part, VectorSum) or part.signed or part.size < _LEAST
    return part.size if plain or zeros > _MOST_ZEROS else part.size + zeros


def with_zeros(part: VectorSum | GramSum, scratch: Scratch, name: str, rows: int) -> FloatArray:
    """(rows_of(part), rows) in the scratch: arbitrary contents, and zeros after the part's size."""
    whole = scratch.array(name, rows_of(part), rows)
    whole[part.size :] = 0.0
    return whole


def _steps(
    part: VectorSum | GramSum, contributions: FloatArray | Scaled, scratch: Scratch
) -> FloatArray | np.float64:
    """s: what the vectors are multiplied by, one number or (rows,)."""
    unit = np.float64(1 / granule(part))
    if not isinstance(contributions, Scaled):
        return unit
    weights = contributions.weights
    return np.multiply(weights, unit, out=scratch.array("steps", len(weights)))


def too_long(
    part: VectorSum | GramSum, steps: FloatArray | np.float64, norms: FloatArray, scratch: Scratch
) -> NDArray[np.bool_]:
    """(rows,) True unless the record is surely short enough."""
    limit = norm_limit(part) * (1 - _ROOM / 2) - sqrt(part.size) / 2
    square = np.multiply(steps, steps, out=scratch.array("s", len(norms)))
    square *= norms
    return ~(square <= limit * limit)


def _of(steps: FloatArray | np.float64, chosen: NDArray[np.bool_]) -> FloatArray | np.float64:
    return steps[chosen] if isinstance(steps, np.ndarray) else steps


def _shortened(part: VectorSum | GramSum, v: FloatArray) -> FloatArray:
    """Quantised contributions of the records that are too long: scaled to the clip; else zero."""
    v = np.where(np.isfinite(v).all(axis=0), v, 0.0)
    v = v / np.maximum(np.abs(v).max(axis=0), np.finfo(float).tiny)
    norm = np.sqrt(sum(row * row for row in v))
    q = np.rint(v * (part.clip / np.maximum(norm, 0.5)) * (1.0 / granule(part)))
    still_long = sum(row * row for row in q) > norm_limit(part) ** 2
    return np.asarray(np.where(still_long, np.trunc(q * (1 - 1e-6)), q), dtype=np.float64)
