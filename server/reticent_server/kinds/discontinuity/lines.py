# SPDX-License-Identifier: Apache-2.0
"""From released moments of both sides to lines, weights and their errors: post-processing.

Of a side, with G = Σ a(1, u)(1, u)ᵀ and t = Σ a(1, u)y′, the local linear fit is b = G⁻¹t and its
value at the cut-off e₁ᵀb. Released are G + E and t + η, E and η of known variances. Then

- *lines*: b̃, the mean of b given the release, under the public prior b₀ ~ N(0, ½²), b₁ ~ N(0, 1)
  in units of R (3.2 standard deviations of the response), with covariance P;
- *weights*: w = (G + E)⁻¹e₁, so that ℓ = a(w₀ + w₁u) has Σ ℓ(1, u) = e₁ − Ew.

e₁ᵀb̃ + Σ ℓ(y′ − b̃₀ − b̃₁u) = e₁ᵀb + (Ew)ᵀ(b̃ − b): a Newton step, whose error is of second order.
Its mean square is at most tr(Cov(Ew) P)(1 + 2ϱ²) for jointly normal factors of correlation ϱ, and
ϱ² is at most the share of E in the noise that b̃ was made of.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray, Released
from reticent_server.kinds.discontinuity.records import KAPPA, R_SLOPE, SIZE, P, Q
from reticent_server.numerics.matrices import floored

PRIOR = np.array([0.5, 1.0])
"""Standard deviations of a line's level and slope in units of R: wider by half moves nothing at n =
10,000, ε = 1.
"""
_CUBE = 0.4  # Σ a²u² over Σ au², of even u
LEAKS = 0.5  # standard deviation of Ew; more, and weights are noise


@dataclass(frozen=True, slots=True, eq=False)
class SideLine:
    """One side. weights: w (2,). line, errors: b̃ (2,) and P (2, 2) in units of R. sampling: (2, 2)
    of even errors of variance 1. leak: the standard deviation of Ew. product: the mean square of (Ew)ᵀ(b̃ − b). total: Σ a.
    """

    weights: FloatArray
    line: FloatArray
    errors: FloatArray
    sampling: FloatArray
    leak: float
    product: float
    total: float

    @property
    def known(self) -> FloatArray:
        """(2,) the share of a prior variance that the release takes from level and slope."""
        return np.asarray(1 - np.diag(self.errors) / PRIOR**2)


def side_line(S: FloatArray, t: FloatArray, sd: float) -> SideLine:
    """S: Σ a(1, u, u²), t: Σ a(1, u)y′, of noise sd·(1, 1/p, 1/q) and sd·(1, 1/r)/κ."""
    s0, s1, s2 = (sd / np.array([1.0, P, Q])) ** 2
    # no G that noise can make of one side is less sure than its noise
    G = floored(np.array([[S[0], S[1]], [S[1], S[2]]]), max(float(np.sqrt(s2)), 1e-9))
    inverse = np.asarray(np.linalg.inv(G), dtype=np.float64)
    w = inverse[:, 0]
    leak = _moved(w, s0, s1, s2)
    N = np.diag([1.0, R_SLOPE**-2]) * max(sd / KAPPA, 1e-9) ** 2
    b, share = np.zeros(2), 0.0
    for _ in range(2):  # noise of (G + E)b̃ depends on b̃, and little
        E = _moved(b, s0, s1, s2)
        precision = np.linalg.inv(N + E)
        errors = np.linalg.inv(G @ precision @ G + np.diag(PRIOR**-2.0))
        b = errors @ G @ precision @ t
        share = float(np.max(np.diag(E) / np.diag(N + E)))
    product = float(np.trace(leak @ errors)) * (1 + 2 * share)
    deviation = float(np.sqrt(np.max(np.diag(leak))))
    M = np.array([[G[0, 0] - G[0, 1], G[0, 1] - G[1, 1]], [G[0, 1] - G[1, 1], _CUBE * G[1, 1]]])
    sampling = np.asarray(inverse @ floored(M, 0.0) @ inverse)
    return SideLine(
        w, b, np.asarray(errors, dtype=np.float64), sampling, deviation, product, float(G[0, 0])
    )


def side_lines(moments: Released) -> tuple[SideLine, SideLine]:
    """Below and above the cut-off, from the released sums of a MomentMap."""
    units = np.array([1.0, P, Q, KAPPA, KAPPA * R_SLOPE])
    low, high = moments.values.reshape(-1, SIZE) / units
    return side_line(low[:3], low[3:], moments.sd), side_line(high[:3], high[3:], moments.sd)


def _moved(w: FloatArray, s0: float, s1: float, s2: float) -> FloatArray:
    """Cov(Ew) for E = [[e₀, e₁], [e₁, e₂]] of these variances."""
    return np.array(
        [
            [s0 * w[0] ** 2 + s1 * w[1] ** 2, s1 * w[0] * w[1]],
            [s1 * w[0] * w[1], s1 * w[0] ** 2 + s2 * w[1] ** 2],
        ]
    )
