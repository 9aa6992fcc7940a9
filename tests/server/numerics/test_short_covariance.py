# SPDX-License-Identifier: Apache-2.0
"""Shortened covariances: every contrast keeps its variance, and what cannot be shortened stays."""

import json

import numpy as np
import pytest

from reticent_server.numerics.short_covariance import CLOSE, shortened
from support.seeds import seeded


@pytest.mark.parametrize("apart", [1.0, 1e-2, 1e-4, 1e-9])
@pytest.mark.parametrize("p", [1, 2, 12, 53])
def test_every_contrast_keeps_its_variance(p: int, apart: float) -> None:
    """Also those of terms that are nearly collinear, in which most of it cancels."""
    rng = seeded(p)
    shared = rng.normal(size=(p, 1))
    X = (shared @ rng.normal(size=(1, 4 * p)) + apart * rng.normal(size=(p, 4 * p))) / p
    X *= 10.0 ** rng.integers(-6, 7, (p, 1))
    C = X @ X.T
    short = np.array(shortened(C))
    np.testing.assert_array_equal(short, short.T)
    values, vectors = np.linalg.eigh(C / np.sqrt(np.diag(C)) / np.sqrt(np.diag(C))[:, None])
    if values[0] < 1e-12:
        np.testing.assert_array_equal(short, C)
        return
    a = np.hstack([vectors, rng.normal(size=(p, 20))]) / np.sqrt(np.diag(C))[:, None]
    before, after = (np.einsum("ik,ij,jk->k", a, S, a) for S in (C, short))
    np.testing.assert_allclose(after, before, rtol=1.01 * CLOSE)
    np.linalg.cholesky(short)


def test_a_third_of_the_bytes_is_saved() -> None:
    rng = seeded(1)
    X = rng.normal(size=(53, 200))
    long, short = (
        len(json.dumps(C, separators=(",", ":")))
        for C in ((X @ X.T / 777).tolist(), shortened(X @ X.T / 777))
    )
    assert short < 0.75 * long


@pytest.mark.parametrize(
    "C",
    [
        [[1.0, 1 / 3], [1 / 3, 0.0]],
        [[1 / 3, 2 / 3], [2 / 3, 1 / 3]],
        [[1 / 3, np.inf], [np.inf, 1.0]],
        [[1.0, 1.0], [1.0, 1 + 1e-14]],
    ],
)
def test_what_is_not_positive_definite_stays_as_it_is(C: list[list[float]]) -> None:
    assert shortened(np.array(C)) == C


def test_no_terms() -> None:
    assert shortened(np.zeros((0, 0))) == []
