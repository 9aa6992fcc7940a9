# SPDX-License-Identifier: Apache-2.0
"""An invented table with a study's means, deviations and correlations: a Gaussian copula.

Columns of 0 and 1 are normal variables that are cut where their released share wants it; their
correlations are corrected for the cut, r/(φ(z)/√(p(1 − p))) for each such column, which is exact
where the other column is normal.
"""

import numpy as np
from scipy.special import ndtri

from reticent._study.moments import FloatArray, Moments

_LEAST = 1e-6
"""Least share of ones, variance and eigenvalue."""
_MOST = 0.99
"""Largest corrected correlation."""


def twin(
    moments: Moments, places: tuple[int, ...], dummies: tuple[bool, ...], rows: int, seed: int
) -> FloatArray:
    """(rows, k) invented records of some columns in the units of the data."""
    S = moments.sums
    weight = S[0, 0]
    mean = (
        moments.centres[list(places)] + moments.scales[list(places)] * S[0, list(places)] / weight
    )
    K = moments.covariance(places) * np.outer(
        moments.scales[list(places)], moments.scales[list(places)]
    )
    spread = np.sqrt(np.maximum(np.diag(K), _LEAST))
    share = np.clip(mean, _LEAST, 1 - _LEAST)
    cut = ndtri(share)
    density = np.exp(-(cut**2) / 2) / np.sqrt(2 * np.pi)
    kept = np.where(dummies, density / np.sqrt(share * (1 - share)), 1.0)
    latent = np.clip(K / np.outer(spread, spread) / np.outer(kept, kept), -_MOST, _MOST)
    np.fill_diagonal(latent, 1.0)
    values, vectors = np.linalg.eigh(latent)
    root = vectors * np.sqrt(np.maximum(values, _LEAST))
    root /= np.sqrt(np.sum(root**2, axis=1, keepdims=True))
    normal = np.random.default_rng(seed).standard_normal((rows, len(places))) @ root.T
    return np.asarray(
        np.where(dummies, (normal >= -cut).astype(np.float64), mean + spread * normal)
    )
