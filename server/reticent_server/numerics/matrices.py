# SPDX-License-Identifier: Apache-2.0
"""Symmetric matrices that came out of a noisy release: always usable, never an exception.

An entry that is not finite, as a quotient of two sums may be where nobody is in use, counts as
LARGEST_ENTRY, or where it is not a number as 0: nothing is known of it.
"""

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.steps import FloatArray

LEAST_INFORMATION = 1e-10
"""Of the largest eigenvalue: below it a direction counts as without information. Rounding leaves
10⁻¹⁴ or less to terms that depend on each other; a term that differs from the others by 10⁻⁵ of its
own spread is still told apart.
"""
LEAST_SHARE = 1e-6
"""Of an entry's size: what rounding gives at most to one that has no part in a direction without
information.
"""


LARGEST_ENTRY = 1e150
"""Of a matrix: products of two stay within the floats."""
_LEAST_ENTRY = 1e-290  # of a matrix: its inverse, and 10⁻¹² of it, are normal floats


def eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (q,) in increasing order and eigenvectors (q, q), by columns."""
    values, vectors = np.linalg.eigh(symmetric(_finite(matrix)))
    return values, vectors


def _finite(matrix: FloatArray) -> FloatArray:
    """The entries within ±LARGEST_ENTRY, 0 for what is not a number or has hardly an inverse."""
    found = np.clip(np.nan_to_num(matrix, nan=0.0), -LARGEST_ENTRY, LARGEST_ENTRY)
    return np.where(np.abs(found) < _LEAST_ENTRY, 0.0, found)


def rounded(matrix: FloatArray, digits: int) -> list[list[float]]:
    """The entries to `digits` significant digits, row by row: what a reply shows of a matrix."""
    return [[float(f"{value:.{digits}g}") for value in row] for row in matrix.tolist()]


def rebuild(values: FloatArray, vectors: FloatArray) -> FloatArray:
    """V diag(values) Vᵀ."""
    return np.asarray((vectors * values) @ vectors.T)


def floored(matrix: FloatArray, lower: float, upper: float = np.inf) -> FloatArray:
    """The symmetric matrix (q, q) with its eigenvalues clipped to [lower, upper]."""
    values, vectors = eigen(matrix)
    return rebuild(np.clip(values, lower, upper), vectors)


def cholesky(matrix: FloatArray) -> FloatArray:
    """The lower Cholesky factor of a positive semi-definite matrix.

    Eigenvalues below 10⁻¹² of the largest count as that (of 1 where all are about 0).
    """
    matrix = _finite(matrix)
    values, vectors = eigen(matrix)
    largest = float(values[-1]) if len(values) and values[-1] > 0 else 1.0
    if len(values) and values[0] < 1e-12 * largest:
        matrix = rebuild(np.maximum(values, 1e-12 * largest), vectors)
    return np.asarray(np.linalg.cholesky(matrix))


def pseudo_inverse(matrix: FloatArray) -> FloatArray:
    """The inverse (q, q) of a symmetric matrix on what it identifies: a solution has no part in the
    rest.

    It does not depend on the units of the unknowns, up to what is not identified.
    """
    matrix = _finite(matrix)
    units = _units(matrix)
    inverse = np.linalg.pinv(matrix / units, rcond=LEAST_INFORMATION, hermitian=True)
    return np.asarray(inverse / units)


def identified(information: FloatArray, transform: FloatArray) -> NDArray[np.bool_]:
    """(k,) which entries of transform (k, q) @ θ a symmetric positive semi-definite information (q,
    q) identifies.

    The others change along a direction of θ about which there is no information: terms that depend
    on each other.
    """
    information = _finite(information)
    units = _units(information)
    values, vectors = eigen(information / units)
    scaled = transform / np.sqrt(np.diag(units))
    free = scaled @ vectors[:, values <= LEAST_INFORMATION * values[-1]]
    return np.asarray(np.linalg.norm(free, axis=1) <= LEAST_SHARE * np.linalg.norm(scaled, axis=1))


def _units(matrix: FloatArray) -> FloatArray:
    """(q, q) what a matrix is divided by, entry by entry, so that its diagonal is ±1, or 0."""
    sizes = np.sqrt(np.abs(np.diag(matrix)))
    return np.outer(*[np.where(sizes > 0, sizes, 1.0)] * 2)


def power(matrix: FloatArray, exponent: float, least: float = 1e-12) -> FloatArray:
    """The symmetric M^exponent (q, q) of a positive semi-definite M (q, q); eigenvalues count
    `least` at least.
    """
    return powers(matrix, (exponent,), least)[0]


def powers(
    matrix: FloatArray, exponents: tuple[float, ...], least: float = 1e-12
) -> list[FloatArray]:
    """Several of them, from one decomposition."""
    values, vectors = eigen(matrix)
    return [rebuild(np.maximum(values, least) ** each, vectors) for each in exponents]


def without_noise(values: FloatArray, sd: FloatArray) -> FloatArray:
    """(q,) what vᵢᵀSvᵢ is expected to be, for the eigenvectors vᵢ of S + N with these eigenvalues.

    N: symmetric noise whose entry (i, j) has the variance sdᵢsdⱼ/2 in the eigenvectors' frame (sd
    (q,)). Noise pushes eigenvalues apart: ξᵢ = λᵢ − 2Σ_{j≠i} (sdᵢsdⱼ/2)(λᵢ − λⱼ)/((λᵢ − λⱼ)² + η²),
    η² = sdᵢsdⱼ. Source: Bun, Allez, Bouchaud & Potters (2016), rotationally invariant estimator for
    additive noise.
    """
    gaps = values[:, None] - values[None, :]
    variance = np.outer(sd, sd) / 2
    pull = variance * gaps / np.maximum(gaps**2 + 2 * variance, np.finfo(float).tiny)
    return np.asarray(values - 2 * np.sum(pull, axis=1))


def symmetric(matrix: FloatArray) -> FloatArray:
    """(M + Mᵀ)/2 of a matrix (q, q)."""
    return np.asarray((matrix + matrix.T) / 2)
