# SPDX-License-Identifier: Apache-2.0
"""A peer: AdaSSP, linear regression by adaptively perturbed sufficient statistics, in plain numpy,
with noise that is not secure.

For v = (x, y) centred and scaled by told means and deviations, x with its constant, each record
scaled down to a told norm B. A third of ρ each for neighbours that replace one record:

    λ_min of XᵀX      Δ ≤ B²      by Weyl's inequality for xxᵀ − x′x′ᵀ
    XᵀX               Δ ≤ √2B²    in the Frobenius norm
    Xᵀy               Δ ≤ B²      as ‖x‖|y| ≤ B²/2

λ̃ = max(0, λ_min + σ_λz − σ_λ√(2 log(6/β))), and the ridge is max(0, 2σ√(d log(2d²/β)) − λ̃), as in
the paper with the constants of these sensitivities (β = .05). It has no intervals.

Source: Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive
prediction & estimation", algorithm 2.
"""

from math import log, sqrt

import numpy as np

from benchmarks.noisy_statistics import LinearFit, Told, in_units
from reticent_server.domain.steps import FloatArray

BETA = 0.05  # the paper's probability of failure


def adassp(
    X: FloatArray, y: FloatArray, told: Told, rho: float, rng: np.random.Generator
) -> LinearFit:
    """X (n, p), y (n,); rho: zCDP. Standard errors are infinite."""
    Z = (np.column_stack([X, y]) - told.means) / told.deviations
    V = np.column_stack([np.ones(len(y)), Z])
    V *= np.minimum(1, told.bound / np.linalg.norm(V, axis=1))[:, None]
    A, b, d = V[:, :-1].T @ V[:, :-1], V[:, :-1].T @ V[:, -1], V.shape[1] - 1
    unit = told.bound**2 / sqrt(2 * rho / 3)
    least = np.linalg.eigvalsh(A)[0] + unit * rng.normal()
    least = max(0.0, least - unit * sqrt(2 * log(6 / BETA)))
    noise = np.triu(sqrt(2) * unit * rng.normal(size=(d, d)))
    A = A + noise + np.triu(noise, 1).T
    ridge = max(0.0, 2 * sqrt(2) * unit * sqrt(d * log(2 * d**2 / BETA)) - least)
    theta = np.linalg.solve(A + ridge * np.eye(d), b + unit * rng.normal(size=d))
    found = in_units(theta, np.zeros((d, d)), told)
    return LinearFit(found.coefficients, np.full(d, np.inf))
