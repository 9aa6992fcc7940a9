# SPDX-License-Identifier: Apache-2.0
"""Persons' Gram matrices as integers of bounded norm: what a `whole` GramSum adds up.

A person has the vectors v_1, …, v_m ∈ R^d of m places. The person's contribution is A = Σ_t q_t
q_tᵀ of integer vectors q_t, and ‖A‖_F ≤ C_q² holds for every person, whatever the map function
gave; C_q = 2¹³ (mechanisms.quantise), as step 2 squares products once more.

Sensitivity. Neighbours: one person replaced by another, of any number of rows. A and A′ are
positive semi-definite, so that tr(AA′) = Σ_{s,t} (q_sᵀq′_t)² ≥ 0, and

    ‖A − A′‖_F² = ‖A‖² + ‖A′‖² − 2 tr(AA′) ≤ 2 C_q⁴,        Δ = √2 C_q²,

attained by persons whose vectors are orthogonal to each other's. It is the Δ of a GramSum of one
vector a person: m rows cost nothing more, where rows one by one have √2 m times the square of a
row's clip. Noise: as of any GramSum (mechanisms.noisy_sum).

Enforced in integers:

1. Each vector alone is quantised and cut at C_q (quantise; one that is not finite is 0). A longer
   one would be cut in any case, as ‖A‖_F ≥ ‖q_t‖².
2. N = ‖A‖_F² = Σ_{s,t} (q_sᵀq_t)². Inner products are integers of at most 2²⁶ by Cauchy and
   Schwarz, in any order of addition, and their squares of at most 2⁵² are exact. Sums of
   non-negative float64 numbers are exact up to 2⁵³ and never fall back below it, so that N ≤ C_q⁴ =
   2⁵² is decided exactly.
3. Vectors are multiplied by k = min(1, (T/√N)^½) and rounded again, for all persons alike: what
   time this takes says nothing.
4. N is computed once more, and a person for whom N > C_q⁴ still has contribution 0.

*The room.* Rounding moves each q_t by √d/2 at the most, so ‖A‖_F by 2·Σ‖q_t‖·√d/2 + md/4 with
Σ‖q_t‖ ≤ √(m tr A) ≤ √m·min(m, d)^¼·√‖A‖_F. With T = C_q² − √(md)·min(m, d)^¼·C_q − md/4, a person
at the clip stays below C_q² after rounding, and step 4 makes nobody 0 but by the rounding of
floats. The granule is g = clip/√T: ‖Σ v_t v_tᵀ‖_F ≤ clip² is passed on as it is.

Tier: unconditional. Attacked by tests/privacy/test_person_grams_privacy.py.
"""

import numpy as np

from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import FloatArray, GramSum, Scaled
from reticent_server.mechanisms.quantise import norm_limit, persons_norm, quantise

_PIECE = 1 << 12  # places at a time, what the processor's cache holds; speed only, sums are exact


def quantise_persons(
    part: GramSum, contributions: FloatArray | Scaled, scratch: Scratch = FRESH
) -> FloatArray:
    """(size, places) integer-valued q, a person's consecutive ones with ‖Σ_t q_t q_tᵀ‖_F ≤ C_q²; in
    the scratch.

    contributions: (size, places), whole persons, not modified. Raises ValueError for another number
    of places.
    """
    m, most = part.person_rows, float(norm_limit(part)) ** 2
    q = quantise(part, contributions, scratch)
    if q.shape[1] % m:
        raise ValueError("a whole Gram sum is of whole persons")
    with np.errstate(all="ignore"):
        long = np.sqrt(squared_norms_of_persons(q, m))
        factors = np.where(long > most, np.sqrt(persons_norm(part) / np.maximum(long, 1.0)), 1.0)
        q *= np.repeat(factors, m)
        np.rint(q, out=q)
        q *= np.repeat(np.where(squared_norms_of_persons(q, m) <= most**2, 1.0, 0.0), m)
    return q


def squared_norms_of_persons(q: FloatArray, m: int) -> FloatArray:
    """(persons,) ‖Σ_t q_t q_tᵀ‖_F² of integers (size, places), the smaller of the two products for
    it."""
    d, places = q.shape
    step = max(_PIECE // m, 1) * m
    found = np.empty(places // m)
    for start in range(0, places, step):
        rows = q[:, start : start + step].T.reshape(-1, m, d)
        other = rows.transpose(0, 2, 1)
        products = np.matmul(rows, other) if m <= d else np.matmul(other, rows)
        found[start // m : start // m + len(rows)] = np.sum(products**2, axis=(1, 2))
    return found
