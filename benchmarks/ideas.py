# SPDX-License-Identifier: Apache-2.0
"""What further ideas would bring to the private regression: ratios of noise, below 1 is better. All
are computed.

krasker     ‖u ψ‖ clipped as a whole (Krasker & Welsch 1982) at equal noise or equal efficiency
gaussian    noise of exact Gaussian-DP accounting relative to the zCDP conversion in use
"""

import json

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from reticent_server.accounting.conversions import rho_units
from reticent_server.domain.cost import RHO_UNITS
from reticent_server.kinds.shared.linear.loss import DEFAULT_HUBER, DEFAULT_RADIUS
from reticent_server.numerics.psi import Huber

DELTA = 1e-6


def krasker(q, draws=200_000):
    """(noise at equal efficiency, efficiency at equal noise, efficiency now) for normal designs.

    Score u·ψ_{K/‖u‖}(z): norm ≤ K, curvature E P(|z| ≤ K/‖u‖)‖u‖²/q.
    """
    rng, family = np.random.default_rng(9), Huber(DEFAULT_HUBER)
    norms = np.sqrt(1 + rng.chisquare(q - 1, draws))
    radius = np.sqrt(DEFAULT_RADIUS * q)
    w = np.minimum(1, radius**2 / norms**2)
    slope = np.mean(w * norms**2) / q * family.mean_derivative
    mallows_noise = radius * family.bound / slope
    mallows = slope**2 / (np.mean(w**2 * norms**2) / q * family.mean_square)

    def noise_and_efficiency(K):
        c = K / norms
        inside = 2 * norm.cdf(c) - 1
        square = inside - 2 * c * norm.pdf(c) + c**2 * (1 - inside)
        slope = np.mean(norms**2 * inside) / q
        return K / slope, slope**2 / (np.mean(norms**2 * square) / q)

    same_efficiency = brentq(lambda K: noise_and_efficiency(K)[1] - mallows, 0.01, 50)
    try:
        same_noise = brentq(lambda K: noise_and_efficiency(K)[0] - mallows_noise, 0.01, 50)
        efficiency = noise_and_efficiency(same_noise)[1]
    except ValueError:
        efficiency = float("nan")
    return noise_and_efficiency(same_efficiency)[0] / mallows_noise, efficiency, mallows


def gaussian(epsilon):
    """σ of exact Gaussian-DP accounting over σ of the zCDP conversion, for sums that are all
    Gaussian.
    """

    def excess(mu):
        tail = norm.cdf(mu / 2 - epsilon / mu)
        return tail - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu) - DELTA

    mu = brentq(excess, 1e-4, 50)
    return float(np.sqrt(2 * rho_units(epsilon, DELTA) / RHO_UNITS) / mu)


def main() -> None:
    clipping = {q: krasker(q) for q in (5, 11)}
    for q, (noise, efficiency, now) in clipping.items():
        print(
            f"krasker q={q}: noise x{noise:.2f} at efficiency {now:.3f}; {efficiency:.3f} at "
            "equal noise"
        )
    accounting = {epsilon: gaussian(epsilon) for epsilon in (0.2, 1.0, 4.0)}
    print("gaussian: noise " + ", ".join(f"x{v:.3f} (eps={e:g})" for e, v in accounting.items()))
    print(json.dumps({"benchmark": "ideas", "krasker": clipping, "gaussian": accounting}))


if __name__ == "__main__":
    main()
