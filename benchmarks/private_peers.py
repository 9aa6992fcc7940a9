# SPDX-License-Identifier: Apache-2.0
"""Other private linear regressions, in plain numpy: for accuracy only, with noise that is not
secure.

Each takes X (n, p) and y (n,) that are centred and scaled by public facts, and gives slopes (p,) in
those units. Where a peer needs a constant, it is given a favourable one, from the truth if need be.
"""

import numpy as np

from benchmarks.noise_free.whitened import fit_whitened_mallows
from reticent_server.numerics.mallows import mallows_weights, mean_weighted_norm

DELTA = 1e-6
RADIUS_FACTOR = 0.8
DESCENTS = tuple((steps, c) for steps in (15, 60) for c in (1.0, 2.0, 4.0))


def with_intercept(X):
    return np.column_stack([np.ones(len(X)), X])


def least_squares(X, y):
    return np.linalg.lstsq(with_intercept(X), y, rcond=None)[0][1:]


def huber_mallows(X, y):
    """The non-private whitened Mallows-Huber fit that noisy Newton aims at, c = 1."""
    q = X.shape[1] + 1
    return fit_whitened_mallows(
        with_intercept(X),
        y,
        1.0,
        radius_squared=RADIUS_FACTOR * q,
        mean_norm=mean_weighted_norm(q - 1, RADIUS_FACTOR * q),
    )


def asymptotic_noise(X, y, fit, rng, epsilon):
    """Avella-Medina (2021), eq. (3): θ̂ + γ·5√(2 ln n·ln(2/δ))/(εn)·Z with γ = cσR/λ_min, c = 1.

    θ̂ and the scale σ are the non-private Huber–Mallows fit's, and so not charged for.
    """
    n, q = len(y), X.shape[1] + 1
    A = with_intercept(X)
    w = mallows_weights(np.sum(A * A, axis=1), RADIUS_FACTOR * q)
    inner = np.abs(y - A @ fit.coefficients) <= fit.scale
    least = np.linalg.eigvalsh((A.T * (w * inner)) @ A / n)[0]
    gamma = fit.scale * np.sqrt(RADIUS_FACTOR * q) / least
    noise = gamma * 5 * np.sqrt(2 * np.log(n) * np.log(2 / DELTA)) / (epsilon * n)
    return fit.coefficients[1:] + noise * rng.normal(size=q - 1)


def ada_ssp(X, y, rng, epsilon):
    """Wang (2018), Algorithm 2: noisy sufficient statistics with a planned ridge.

    The bounds of ‖x‖ and |y|, at which records are cut off, are the data's 99 % quantiles.
    """
    A, q = with_intercept(X), X.shape[1] + 1
    norms = np.linalg.norm(A, axis=1)
    x_bound, y_bound = np.quantile(norms, 0.99), np.quantile(np.abs(y), 0.99)
    A = A * np.minimum(1, x_bound / norms)[:, None]
    y = np.clip(y, -y_bound, y_bound)
    unit = np.sqrt(np.log(6 / DELTA)) / (epsilon / 3)
    gram = A.T @ A
    least = np.linalg.eigvalsh(gram)[0]
    least += unit * x_bound**2 * rng.normal() - np.log(6 / DELTA) / (epsilon / 3) * x_bound**2
    size = np.sqrt(q * np.log(6 / DELTA) * np.log(2 * q**2 / 0.05)) * x_bound**2 / (epsilon / 3)
    ridge = max(0.0, size - max(least, 0.0))
    noise = np.triu(rng.normal(size=(q, q)))
    gram += unit * x_bound**2 * (noise + np.triu(noise, 1).T) + ridge * np.eye(q)
    moment = A.T @ y + unit * x_bound * y_bound * rng.normal(size=q)
    return np.linalg.solve(gram, moment)[1:]


def noisy_descent(X, y, rng, rho, scale, setting):
    """Noisy gradient descent on the Huber–Mallows loss: T steps, of which the last third is
    averaged.

    scale: the true residual scale; setting: (T, c), the threshold of the residuals in such scales.
    """
    steps, c = setting
    A, n, q = with_intercept(X), len(y), X.shape[1] + 1
    radius = RADIUS_FACTOR * q
    weight = np.sqrt(mallows_weights(np.sum(A * A, axis=1), radius))
    A = A * weight[:, None]
    curvature = np.linalg.eigvalsh(A.T @ A / n)[-1]
    sd = 2 * c * scale * np.sqrt(radius) / (n * np.sqrt(2 * rho / steps))
    theta, path = np.zeros(q), []
    for _ in range(steps):
        r = y - (A @ theta) / weight
        gradient = A.T @ (weight * np.clip(r, -c * scale, c * scale)) / n
        theta = theta + (gradient + sd * rng.normal(size=q)) / curvature
        path.append(theta)
    return np.mean(path[-(steps // 3) :], axis=0)[1:]
