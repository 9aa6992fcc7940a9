# SPDX-License-Identifier: Apache-2.0
"""Sums of several polynomials of one number of a record, released together: what powers of it cost
jointly.

A record gives a number t, which is cut to [−1, 1], or none. Its contribution is P(t) = (p₁(t), …,
p_k(t)) ∈ R^k for public polynomials p_j, or 0 where it gives none (a constant polynomial counts
those that give one). Summed and priced one by one, p_j(t) and p_l(t) are both charged their largest
distance, though no pair of numbers has both at once: t moves by 2 from −1 to 1, and t² not at all.

*Sensitivity*. With D = max(diameter of P([−1, 1]), max ‖P‖), contributions of two records are at
most D apart, whatever they give. In integers q_j = round(p_j(t)/g) and

    g = D′/(L − √k − 1),   L = 2²⁵,   D ≤ D′

for the computed p_j, so that |q_j − p_j(t)/g| ≤ ½ + 2⁻¹⁹: Horner's rule of degree 4 on |t| ≤ 1 errs
by at most 2⁻⁵⁰ times the sum of the coefficients' sizes; by V. A. Markov's inequality these are at
most those of the Chebyshev polynomials T₃ and T₄ (24 in all) times max |p_j| ≤ D; so the error is
below 24·2⁻²⁵ steps, and that of the product with 1/g below 2⁻²⁶. For any two records, 0 among the
contributions,

    ‖q − q′‖₂ ≤ D/g + √k(1 + 2⁻¹⁸) ≤ L.

All polynomials take noise of one scale σ; Δ = L m for the m rows of a unit by the triangle
inequality, and a draw is Δ²/(2σ²)-zCDP (mechanisms.noisy_sum). A polynomial's own noise is chosen
by its factor: a factor costs nothing as long as D does not grow. For (w₀, t, at², b(t³ − t),
e(t² − t⁴)) it is 2, that of t alone, at a = 1.4, b = 1.5, e = 2.

*D′* is found by halving: over a square of half width r about (t, t′) the distance is at most ‖P(t)
− P(t′)‖ + 2rK, K ≥ the length of P′ on [−1, 1] (Σ of the sizes of the derivatives' coefficients).
Squares whose bound is not above the largest distance that was seen are dropped, the others are cut
in four, until the largest bound is within 10⁻⁴ of a distance that is attained.

Source: this project; the exact search in tests/privacy/test_power_sum_privacy.py attains Δ.
"""

from functools import lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import FRESH, Scratch
from reticent_server.domain.steps import FloatArray, PowerSum

LIMIT = 1 << 25
"""L, in steps: sums over 2²⁰ records of numbers below it are exact in float64."""

_CLOSE = 1e-4  # relative: by what D′ may exceed a distance that is attained
_ROUNDS = 30  # halvings of [−1, 1], by when the bound is far closer than that
_ROOM = 1 + 1e-9  # of D′: covers the rounding of the search
_DEGREE = 4  # the largest, of which rounding errors are counted


def granule(part: PowerSum) -> float:
    """g: the value of one integer step."""
    return distance(part.polynomials) / (LIMIT - sqrt(part.size) - 1)


@lru_cache(maxsize=256)
def distance(polynomials: tuple[tuple[float, ...], ...]) -> float:
    """D′ ≥ D, at most 10⁻⁴ above. ValueError above degree 4."""
    if any(len(p) > _DEGREE + 1 for p in polynomials):
        raise ValueError("powers above the fourth are not summed")
    slope = sqrt(sum(sum(k * abs(c) for k, c in enumerate(p)) ** 2 for p in polynomials))
    centres, r = np.zeros((2, 1)), 1.0
    attained, bound = 0.0, np.inf
    for _ in range(_ROUNDS):
        first, second = (_values(polynomials, t) for t in centres)
        apart = np.maximum(_lengths(first - second), np.maximum(_lengths(first), _lengths(second)))
        corner = _values(polynomials, np.clip(centres + r * np.sign(centres), -1, 1).ravel())
        ends = np.split(corner, 2, axis=1)
        attained = max(attained, float(apart.max()), float(_lengths(ends[0] - ends[1]).max()))
        reach = apart + 2 * r * slope
        bound = max(attained, float(reach.max()))
        if bound <= attained * (1 + _CLOSE):
            break
        kept = centres[:, reach > attained]
        r /= 2
        moves = np.array([(a, b) for a in (-r, r) for b in (-r, r)]).T
        centres = (kept[:, :, None] + moves[:, None, :]).reshape(2, -1)
    return bound * _ROOM


def encode(part: PowerSum, numbers: FloatArray, scratch: Scratch = FRESH) -> NDArray[np.int64]:
    """(size,) the exact integer sum over one block. numbers: (rows,) t; what is no number gives
    nothing."""
    with np.errstate(all="ignore"):
        given = np.isfinite(numbers)
        t = np.where(given, np.clip(numbers, -1.0, 1.0), 0.0)
        unit, q = 1 / granule(part), scratch.array("integers", part.size, len(t))
        for row, polynomial in zip(q, part.polynomials, strict=True):
            np.multiply(_horner(polynomial, t), unit, out=row)
            np.rint(row, out=row)
            np.multiply(row, given, out=row)
    return np.asarray(q.sum(axis=1), dtype=np.int64)


def _values(polynomials: tuple[tuple[float, ...], ...], t: FloatArray) -> FloatArray:
    return np.array([_horner(p, t) for p in polynomials])


def _horner(polynomial: tuple[float, ...], t: FloatArray) -> FloatArray:
    value = np.zeros_like(t)
    for coefficient in reversed(polynomial):
        value = value * t + coefficient
    return value


def _lengths(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.sum(vectors * vectors, axis=0)))
