# SPDX-License-Identifier: Apache-2.0
"""A peer: linear regression from noisy sufficient statistics, in plain numpy, with noise that is
not secure.

One Gaussian release of G = Σ v vᵀ, v = (1, x, y) centred and scaled by told means and deviations,
each record scaled down to a told norm B. Neighbours replace one record: ‖G − G′‖_F ≤ √2 B² (‖vvᵀ −
uuᵀ‖_F² = ‖v‖⁴ + ‖u‖⁴ − 2(vᵀu)²), so σ = √2 B²/√(2ρ) on every entry, with the off-diagonal ones
drawn once, is ρ-zCDP: the norm of the upper triangle is smaller. A ridge lifts the smallest
eigenvalue above the noise's norm where it is below, as AdaSSP does, at no further cost. Standard
errors count the noise: with β̂ = A⁻¹b, A = X̂X̂ᵀ and noise E on A and e on b, cov = A⁻¹ (s² A +
cov(e − Eβ)) A⁻¹, cov(e − Eβ) = σ²((1 + ‖β‖²) I + ββᵀ − diag β²).

Source: Wang (2018), "Revisiting differentially private linear regression"; Ferrando, Wang & Sheldon
(2022) and Bernstein & Sheldon (2019) for intervals that count the noise.
"""

from dataclasses import dataclass

import numpy as np

from reticent_server.domain.steps import FloatArray

# norms of the noise, 2σ√q as of a Wigner matrix, that the smallest eigenvalue must reach; 2 biases
# more
NORMS = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What the peer is told of the whole table: means, deviations (p + 1,) of x and y, and B."""

    means: FloatArray
    deviations: FloatArray
    bound: float

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, quantile: float) -> "Told":
        """B: a quantile of the norms."""
        Z = np.column_stack([X, y])
        means, deviations = Z.mean(axis=0), Z.std(axis=0)
        norms = np.sqrt(1 + np.sum(((Z - means) / deviations) ** 2, axis=1))
        return cls(means, deviations, float(np.quantile(norms, quantile)))


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """coefficients and standard errors (q,), the intercept first, in the units of the data."""

    coefficients: FloatArray
    standard_errors: FloatArray


def noisy_statistics(
    X: FloatArray, y: FloatArray, told: Told, rho: float, rng: np.random.Generator
) -> LinearFit:
    """X (n, p), y (n,); rho: zCDP."""
    Z = (np.column_stack([X, y]) - told.means) / told.deviations
    V = np.column_stack([np.ones(len(y)), Z])
    V *= np.minimum(1, told.bound / np.linalg.norm(V, axis=1))[:, None]
    sd = np.sqrt(2) * told.bound**2 / np.sqrt(2 * rho)
    noise = np.triu(sd * rng.normal(size=(V.shape[1],) * 2))
    G = V.T @ V + noise + np.triu(noise, 1).T
    A, b, q = G[:-1, :-1], G[:-1, -1], V.shape[1] - 1
    A = A + max(0.0, NORMS * 2 * sd * np.sqrt(q) - np.linalg.eigvalsh(A)[0]) * np.eye(q)
    inverse = np.linalg.inv(A)
    theta = inverse @ b
    s2 = max((G[-1, -1] - theta @ b) / len(y), 0.0)
    heard = (1 + theta @ theta) * np.eye(q) + np.outer(theta, theta) - np.diag(theta**2)
    C = s2 * inverse + sd**2 * inverse @ heard @ inverse
    return in_units(theta, C, told)


def in_units(theta: FloatArray, C: FloatArray, told: Told) -> LinearFit:
    """θ (p + 1,) with covariance C, of standardised columns, in the units of the data."""
    a, b = told.means[:-1], told.deviations[:-1]
    L = np.diag(np.append(1.0, 1 / b)) * told.deviations[-1]
    L[0, 1:] = -a / b * told.deviations[-1]
    beta = L @ theta
    beta[0] += told.means[-1]
    return LinearFit(beta, np.sqrt(np.diag(L @ C @ L.T)))


def least_squares(X: FloatArray, y: FloatArray) -> LinearFit:
    """OLS with heteroscedasticity-consistent (HC1) standard errors: not private."""
    A = np.column_stack([np.ones(len(y)), X])
    inverse = np.linalg.inv(A.T @ A)
    beta = inverse @ (A.T @ y)
    meat = (A.T * (y - A @ beta) ** 2) @ A * len(y) / (len(y) - A.shape[1])
    return LinearFit(beta, np.sqrt(np.diag(inverse @ meat @ inverse)))
