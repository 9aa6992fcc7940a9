# SPDX-License-Identifier: Apache-2.0
"""Noisy counts whose running sums are accurate: the release primitive of RunningCounts.

Domain: tables of n records, n public. Each record has one code, a line and a position on it, or
none. Neighbours: one record (or the ≤ m records of one unit, `unit_rows` = m) replaced. Output: for
each line, the exact integers Q h, with h the line's counts by position and Q a public matrix of
whole numbers (numerics.running_factor), plus discrete Gaussian noise of one scale. Tier:
unconditional, for every table and every n.

Proof. h is exact (int64), and so is Q h: Σ_j h_j ≤ 2⁴⁰ and entries ≤ 2¹⁶ keep it below 2⁵⁶ (the
sampler refuses 2⁶¹ and more). Replacing a record's code moves h, over all lines, by one of
e_i′ − e_i, e_i′ and −e_i, or not at all, and Q h by the same combination of the columns q_i = Q e_i
of the block-diagonal matrix of all lines. The entries of Q are ≥ 0, so qᵢᵀqᵢ′ ≥ 0 and

    ‖q_i′ − q_i‖² = ‖q_i‖² + ‖q_i′‖² − 2 qᵢᵀqᵢ′ ≤ 2 max_j ‖q_j‖²,

attained by the first positions of two lines. By the triangle inequality Δ = m √(2 max_j ‖q_j‖²) for
m rows. These are the columns of the integer matrix that is used, its rounding included; nothing is
asked of its accuracy. Noise N_Z(0, σ²I): ρ = Δ²/(2σ²) (Canonne, Kamath & Steinke 2020, Theorem 4).

Units: `Released.values` is (lines · length,) Q h/2^FACTOR_BITS + noise, of equal sd: multiplied by
the inverse of Q/2^FACTOR_BITS it is an unbiased estimate of the counts (post-processing). Errors:
none that depend on the data. Source: Li et al. (2015), The matrix mechanism; Canonne, Kamath &
Steinke (2020).
"""

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.private import Private
from reticent_server.domain.steps import FloatArray, Released, RunningCounts
from reticent_server.mechanisms._sampler import DiscreteGaussian, smallest_scale
from reticent_server.mechanisms.noisy_sum import count_codes
from reticent_server.numerics.running_factor import (
    FACTOR_BITS,
    running_factor,
    squared_column_norm,
)

IntArray = NDArray[np.int64]


def sensitivity(part: RunningCounts) -> float:
    """Δ of the integers Q h in L2, rounded up."""
    return float(np.nextafter(sqrt(2 * squared_column_norm(part.length)), inf)) * part.unit_rows


def scale(part: RunningCounts) -> float:
    """σ of the discrete Gaussian, in integer steps: the smallest that costs at most `part.rho`."""
    return smallest_scale(sensitivity(part), part.rho / RHO_UNITS)


def noise_sd(part: RunningCounts) -> float:
    """σ in the units of `Released.values`."""
    return scale(part) / (1 << FACTOR_BITS)


def encode(part: RunningCounts, codes: FloatArray) -> IntArray:
    """(lines · length,) numbers of the codes in one block; any other code counts nowhere."""
    return count_codes(codes, part.bins)


def factored(part: RunningCounts, counts: IntArray) -> IntArray:
    """(lines · length,) Q h, line by line: what the noise is added to."""
    lines = counts.reshape(part.lines, part.length)
    return np.ascontiguousarray((lines @ running_factor(part.length).T).ravel())


def release(part: RunningCounts, total: Private[IntArray]) -> Released:
    """Adds the noise: the only way of the counts out of the engine."""
    noisy = DiscreteGaussian(scale(part)).add(factored(part, total.unwrap()))
    return Released(values=noisy / (1 << FACTOR_BITS), sd=noise_sd(part))
