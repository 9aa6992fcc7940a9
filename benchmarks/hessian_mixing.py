# SPDX-License-Identifier: Apache-2.0
"""A peer: Iterative Hessian Mixing, linear regression by private Gaussian sketches, in plain numpy,
with noise that is not secure.

Records are centred and scaled by told means and deviations and scaled down to norms ‖x‖ ≤ 1, |y| ≤
1 (told bounds). In each of T = 3 rounds

    Ĥ = X̂ᵀX̂/k,  X̂ = SX + √g N,      S (k, n), N (k, d) standard normal: the rows of X̂ are k
                                     draws from N(0, XᵀX + gI);
    b = Xᵀ clip(y − Xθ, 1) + σz,       θ ← θ + Ĥ⁻¹b.

g = max(0, γ − λ̃) with λ̃ a noisy lower bound of λ_min(XᵀX): what the data's own spread hides needs
no noise. γ is found from the Rényi divergence of a sketch when a record of norm 1 is left out,

    D_α ≤ k/(2(α − 1))·(α log(1 − 1/γ) − log(1 − α/γ)),      1 < α < γ,

summed over the rounds, at (ε/2, 3δ/4) together with λ̃; σ from a Gaussian release of the T vectors
at (ε/2, δ/4). Sketches have k = 6·max(d, log(4T/ϱ)) rows, ϱ = δ/10. Neighbours leave a record out;
ours replace one, which would take about twice the noise. It has no intervals.

Source: Lev, Shenfeld, Srinivasan, Ligett & Wilson (2026), "Near-optimal private linear regression
via iterative Hessian mixing", arXiv 2601.07545, with the constants of their experiments; Lev et al.
(2025), "The Gaussian mixing mechanism", arXiv 2505.24603.
"""

from functools import cache
from math import exp, log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from benchmarks.noisy_statistics import LinearFit, Told, in_units
from reticent_server.domain.steps import FloatArray

ROUNDS, ROWS = 3, 6.0  # T, and rows of a sketch for each unit of max(d, log(4T/ϱ)): the paper's
FAILURE = 0.1  # ϱ relative to δ
_ORDERS = np.geomspace(
    1e-4, 1 - 1e-4, 400
)  # (α − 1)/(γ − 1), on which the best order is looked for


def hessian_mixing(
    X: FloatArray,
    y: FloatArray,
    told: Told,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> LinearFit:
    """X (n, p), y (n,). Standard errors are infinite."""
    Z = (np.column_stack([X, y]) - told.means) / told.deviations
    V = np.column_stack([np.ones(len(y)), Z])
    V *= np.minimum(1, told.bound / np.linalg.norm(V, axis=1))[:, None] / told.bound
    A, v, d = V[:, :-1], V[:, -1], V.shape[1] - 1
    k = int(ROWS * max(d, log(4 * ROUNDS / (FAILURE * delta))))
    gamma = sketch_noise(k, ROUNDS, epsilon / 2, 3 * delta / 4)
    sd = sqrt(ROUNDS) * gaussian_sd(epsilon / 2, delta / 4)
    H = A.T @ A
    reach = sqrt(2 * log(max(4 / delta, 4 / (FAILURE * delta))))
    least = np.linalg.eigvalsh(H)[0] - gamma / sqrt(k) * (reach - rng.normal())
    root = np.linalg.cholesky(H + max(0.0, gamma - max(0.0, least)) * np.eye(d))
    theta = np.zeros(d)
    for _ in range(ROUNDS):
        sketch = rng.normal(size=(k, d)) @ root.T
        b = A.T @ np.clip(v - A @ theta, -1, 1) + sd * rng.normal(size=d)
        theta = theta + np.linalg.solve(sketch.T @ sketch / k, b)
    found = in_units(theta, np.zeros((d, d)), told)
    return LinearFit(found.coefficients, np.full(d, np.inf))


@cache
def sketch_noise(k: int, rounds: int, epsilon: float, delta: float) -> float:
    """γ at which `rounds` sketches of k rows, with the bound of λ_min, are (ε, δ)-DP for records of
    norm 1 that are left out.
    """
    return float(brentq(lambda g: _spent(g, k, rounds, delta / 3) - epsilon, 1.5, 1e9))


def _spent(gamma: float, k: int, rounds: int, delta: float) -> float:
    a = 1 + _ORDERS * (gamma - 1)
    sketch = k / (2 * (a - 1)) * (a * np.log1p(-1 / gamma) - np.log1p(-a / gamma))
    turned = (log(1 / delta) + (a - 1) * np.log1p(-1 / a) - np.log(a)) / (a - 1)
    smallest = sqrt(2 * log(1.25 / delta)) * sqrt(k) / gamma
    return float(np.min(rounds * sketch + turned)) + smallest


@cache
def gaussian_sd(epsilon: float, delta: float) -> float:
    """Noise of a vector of sensitivity 1 (Balle & Wang 2018)."""

    def excess(sd: float) -> float:
        a, b = 1 / (2 * sd), epsilon * sd
        return float(ndtr(a - b) - exp(epsilon) * ndtr(-a - b)) - delta

    return float(brentq(excess, 1e-3, 1e9))
