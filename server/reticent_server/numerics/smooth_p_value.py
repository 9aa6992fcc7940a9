# SPDX-License-Identifier: Apache-2.0
"""The noise of a private p-value: the influence of a record on 2Φ(−√n|U|), made smooth.

With t = √n|U| and γ_U = sup|IF|/√V the functional α(t) = 2Φ(−t) has the influence bound γ_α = 2√n
φ(t) γ_U. It falls so fast in t that scales of neighbours, whose t differ by s = 2γ_U/√n, differ by
a factor e^(st): noise in proportion to it is not private. In its place

    φ*(t) = sup_{k ≥ 0} e^(−βk) φ((t − ks)₊),   β = ε/(4(1 + ln(2/δ))),

has φ*(t) ≥ φ(t) and φ*(t − s) ≤ e^β φ*(t). The exponent −βk − (t − ks)²/2 is concave: its maximum
over [0, t/s] is at k = (t − β/s)/s, or at an end.

Source: Avella-Medina (2021), Theorem 4; Nissim, Raskhodnikova & Smith (2007).
"""

from math import log, pi, sqrt

import numpy as np

from reticent_server.domain.steps import FloatArray


def smoothness(dimension: int, epsilon: float, delta: float) -> float:
    """β = ε/(4(p + ln(2/δ)))."""
    return epsilon / (4 * (dimension + log(2 / delta)))


def smooth_density(t: FloatArray, shift: FloatArray, beta: float) -> FloatArray:
    """φ*(t), elementwise for t ≥ 0 and s = shift > 0."""
    k = np.clip((t - beta / shift) / shift, 0.0, t / shift)
    return np.asarray(np.exp(-beta * k - (t - k * shift) ** 2 / 2) / sqrt(2 * pi))


def noise_factor(n: int, epsilon: float, delta: float) -> float:
    """5√(2 ln n ln(2/δ))/(εn): noise for one unit of influence."""
    return 5 * sqrt(2 * log(max(n, 2)) * log(2 / delta)) / (epsilon * n)


def p_value_noise(
    t: FloatArray, influence: FloatArray, n: int, epsilon: float, delta: float
) -> FloatArray:
    """The noise's standard deviation of 2Φ(−t), elementwise. influence: γ_U."""
    shift = 2 * influence / sqrt(n)
    phi = smooth_density(t, shift, smoothness(1, epsilon, delta))
    return np.asarray(2 * sqrt(n) * phi * influence * noise_factor(n, epsilon, delta))
