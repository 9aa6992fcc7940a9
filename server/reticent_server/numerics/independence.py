# SPDX-License-Identifier: Apache-2.0
"""Chi-squared test of independence of a two-way table that was released with noise in every cell.

Model: T = N + Z, N the true r × c table of n records, Z independent noise of variance σ². Under
independence, with the margins' shares π_r, π_c, to first order

    R = T − T1·1ᵀT/t ≈ (I − π_r1ᵀ)(N − n π_rπ_cᵀ + Z)(I − 1π_cᵀ),
    cov vec R = n D_r ⊗ D_c + σ² G_r ⊗ G_c,   D = diag π − ππᵀ,   G = (I − π1ᵀ)(I − π1ᵀ)ᵀ,

of rank (r − 1)(c − 1). In contrasts that diagonalise D against G in each margin the covariance is
diagonal with entries n λ_i μ_j + σ², so the statistic Σ R̃_ij²/(n λ_i μ_j + σ²) has a χ² law with
(r − 1)(c − 1) degrees of freedom: without noise it is Pearson's; with it, its law holds the noise.

Everything here is post-processing of released values. Source: Gaboardi, Lim, Rogers & Vadhan (2016).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, helmert
from scipy.special import chdtrc

from reticent_server.domain.steps import FloatArray


@dataclass(frozen=True, slots=True)
class IndependenceTest:
    """statistic: χ² with df degrees of freedom under independence."""

    statistic: float
    df: int
    p_value: float


def independence_test(table: FloatArray, sd: float) -> IndependenceTest:
    """The test for a released table (r, c), r, c ≥ 2, whose cells have noise of this sd."""
    total = max(float(table.sum()), 1.0)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    residual = table - np.outer(rows, columns) / total
    row_basis, row_shares = contrasts(rows, sd)
    column_basis, column_shares = contrasts(columns, sd)
    z = row_basis @ residual @ column_basis.T
    variance = total * np.outer(row_shares, column_shares) + sd**2
    statistic = float((z**2 / variance).sum())
    return IndependenceTest(statistic, z.size, float(chdtrc(z.size, statistic)))


def contrasts(margin: FloatArray, sd: float) -> tuple[FloatArray, FloatArray]:
    """Contrasts (r − 1, r) with V D Vᵀ = diag(λ), V G Vᵀ = I, and λ (r − 1,) ≥ 0."""
    floored = np.maximum(margin, max(sd, 1.0) * 1e-3)
    p = floored / floored.sum()
    H = helmert(len(p))
    mean = H @ p
    D = (H * p) @ H.T - np.outer(mean, mean)
    G = np.eye(len(p) - 1) + len(p) * np.outer(mean, mean)
    values, vectors = eigh(D, G)
    return np.asarray(vectors.T @ H), np.maximum(values, 0.0)
