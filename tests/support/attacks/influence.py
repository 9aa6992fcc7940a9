# SPDX-License-Identifier: Apache-2.0
"""Records for the attacks on fits by influence: tables of every shape, and records that pull
hard.
"""

from itertools import pairwise

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from reticent_server.domain.steps import FloatArray

Q = 2


def table(rng: np.random.Generator, loss: str, n: int) -> FloatArray:
    """(Q + 3, n) records: smooth, heavy-tailed, tied, skewed, or with a rare or collinear
    column.
    """
    x = rng.normal(size=n)
    kind = rng.integers(5)
    if kind == 1:
        x = rng.standard_cauchy(n)
    elif kind == 2:
        x = rng.integers(-1, 2, n).astype(float)
    elif kind == 3:
        x = rng.exponential(size=n) - 1
    elif kind == 4:
        x = (rng.random(n) < 0.1) * rng.choice([1.0, 4.0])
    return with_responses(rng, loss, np.vstack([np.ones(n), x]))


def with_responses(rng: np.random.Generator, loss: str, u: FloatArray) -> FloatArray:
    n, slope = u.shape[1], rng.normal()
    offset = rng.normal() * u[1] * (rng.random() < 0.5)
    if loss == "logistic":
        y = (rng.random(n) < expit(slope * u[1] + rng.normal())).astype(float)
    else:
        y = slope * u[1] + rng.choice([0.3, 1.0]) * rng.normal(size=n)
        offset = np.zeros(n)
    return np.vstack([np.ones(n), y, offset, u])


def extreme(rng: np.random.Generator, loss: str) -> FloatArray:
    """One record that pulls as hard, or bends as much, as one record can."""
    x = rng.choice([0.0, 1.2, -1.2, 1e4, -1e4, 1e-3])
    y = rng.choice([0.0, 1.0]) if loss == "logistic" else rng.choice([0.0, 2.0, 1e6, -1e6])
    return np.array([rng.choice([0.0, 1.0]), y, 0.0, rng.choice([1.0, -1.0]), x])


def excess(a: float, s: float, b: float, r: float, epsilon: float) -> float:
    """∫ (N(a, s²) − e^ε N(b, r²))_+ from the roots of the quadratic log-ratio."""
    A, B = 1 / r**2 - 1 / s**2, 2 * (a / s**2 - b / r**2)
    C = b**2 / r**2 - a**2 / s**2 + 2 * np.log(r / s) - 2 * epsilon
    roots = np.sort(np.roots([A, B, C]).real) if B * B >= 4 * A * C else np.array([])
    edges = np.concatenate([[-np.inf], roots, [np.inf]])
    total = 0.0
    for low, high in pairwise(edges):
        mass = norm.cdf(high, a, s) - norm.cdf(low, a, s)
        other = norm.cdf(high, b, r) - norm.cdf(low, b, r)
        total += max(0.0, mass - np.exp(epsilon) * other)
    return total


def excess_of_balls(distance: float, s: float, r: float, epsilon: float) -> float:
    """∫ (N(0, s²I) − e^ε N(μ, r²I))_+ in two dimensions, by summation; |μ| = distance."""
    axis = np.linspace(-9, 9, 601) * max(s, r)
    x, y = np.meshgrid(axis, axis)
    cell = (axis[1] - axis[0]) ** 2
    p = np.exp(-(x**2 + y**2) / (2 * s**2)) / (2 * np.pi * s**2)
    q = np.exp(-((x - distance) ** 2 + y**2) / (2 * r**2)) / (2 * np.pi * r**2)
    return float(np.maximum(p - np.exp(epsilon) * q, 0).sum() * cell)
