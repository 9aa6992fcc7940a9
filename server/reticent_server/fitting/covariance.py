# SPDX-License-Identifier: Apache-2.0
"""The sandwich of a fit's estimating equation, from a released Jacobian and a released meat."""

import numpy as np

from reticent_server.domain.steps import FloatArray
from reticent_server.numerics.matrices import floored, power

# noise of a direction, relative to the meat's size, at which half of it is taken from the model
_HALF = 0.5
_LEAST = 1e-3  # smallest eigenvalue of a usable meat, relative to its mean
_NOTICED = 0.05  # noise of a diagonal entry below which entries differ for other reasons
# relative eigenvalue at which an expected matrix is inverted: smaller ones are rounding
_SMALLEST = 1e-9


def sandwich(A: FloatArray, Q: FloatArray, n: float) -> FloatArray:
    """A(Q/n)Aᵀ (q, q): sampling covariance, A the inverse of the mean score's derivative, Q its
    meat."""
    return np.asarray(A @ Q @ A.T / n)


def calmed_meat(released: FloatArray, sd: float, expected: FloatArray) -> FloatArray:
    """Q (q, q): the released meat, mixed with a multiple of the expected one where noise is not
    small.

    In the frame in which the expected meat is I, the released one is m(I + E) + noise, m the mean
    of its diagonal by precision, drawn to 1 where that is noise itself: overdispersion and the
    errors' law make m, dependence of the errors' variance on the regressors makes E. Entry (j, k)
    is taken to the share min(gⱼ, gₖ), gⱼ = 1/(1 + (νⱼ/½m)²), νⱼ its noise's operator norm. Without
    that the noise makes some directions look surer than they are, and joint tests reject too often.
    """
    B = power(expected, -0.5, _SMALLEST)
    E = B @ released @ B
    q = len(E)
    noise = sd * np.sum(B**2, axis=1)
    weights = 1 / np.maximum(noise, _NOTICED) ** 2
    m = float(weights @ np.diag(E)) / float(weights.sum())
    m = max(1 + (m - 1) / (1 + 1 / (_HALF**2 * float(weights.sum()))), _LEAST)
    noise *= np.sqrt(2 * q) / m
    gain = 1 / (1 + (noise / _HALF) ** 2)
    mixed = np.minimum.outer(gain, gain)
    usable = floored(mixed * E + (1 - mixed) * m * np.eye(q), _LEAST * m)
    back = power(expected, 0.5, _SMALLEST)
    return np.asarray(back @ usable @ back)
