# SPDX-License-Identifier: Apache-2.0
"""A covariance with no more digits than its contrasts need: a reply of p terms has p² of them.

Let C be positive definite, p × p, with standard deviations s and λ the least eigenvalue of its
correlations. Rounding to d significant digits moves entry (i, j) by at most ½10^{1−d} |C_ij| ≤
½10^{1−d} s_i s_j, so the variance of a contrast a by at most

    ½10^{1−d} (Σ|a_i|s_i)² ≤ ½10^{1−d} p Σ a_i²s_i² ≤ ½10^{1−d} (p/λ) aᵀCa.

With 10^{1−d} ≤ 2·CLOSE·λ/p every contrast's variance is right up to CLOSE of itself, and C stays
positive definite. Where terms are so nearly collinear that this asks for 16 digits or more, and
where C is not positive definite, it is left as it is.
"""

from math import ceil, log10

import numpy as np

from reticent_server.domain.steps import FloatArray

CLOSE = 1e-6  # relative, of a variance: half of it in a standard error, that is shown to 4 digits
_LEAST_DIGITS, _MOST_DIGITS = 9, 15  # a float64 has up to 17; few of a small matrix save nothing


def shortened(C: FloatArray) -> list[list[float]]:
    """The rows of C (p, p), symmetric, each number with as many significant digits
    as are needed."""
    digits = _digits(C)
    if digits > _MOST_DIGITS:
        rows: list[list[float]] = C.tolist()
        return rows
    return [[float(f"{value:.{digits - 1}e}") for value in row] for row in C.tolist()]


def _digits(C: FloatArray) -> int:
    """d; more than _MOST_DIGITS where nothing is rounded."""
    s = np.sqrt(np.maximum(np.diag(C), 0.0))
    if not (len(C) and np.isfinite(C).all() and (s > 0).all()):
        return _MOST_DIGITS + 1
    least = float(np.linalg.eigvalsh(C / s / s[:, None])[0])
    if least <= 0:
        return _MOST_DIGITS + 1
    return max(_LEAST_DIGITS, 1 + ceil(log10(len(C) / (2 * CLOSE * least))))
