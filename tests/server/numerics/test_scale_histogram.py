"""The histogram of residuals: its codes, and the scale that comes out of it."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from reticent_server.numerics.scale_histogram import BINS, median_ratio, scale_codes

EDGES = 2.0 ** (-5 + 0.5 * np.arange(14))


def counted(z: Any) -> Any:
    return np.bincount(scale_codes(z).astype(int), minlength=BINS).astype(float)


def test_codes_are_the_bins_between_the_edges() -> None:
    rng = np.random.default_rng(0)
    inside = np.exp(rng.uniform(np.log(1e-3), np.log(20), 2000))
    z = np.concatenate([[0.0, 1e-300, 1e300, np.inf], inside, -inside, EDGES * (1 + 1e-12)])
    np.testing.assert_array_equal(scale_codes(z), np.searchsorted(EDGES, np.abs(z), side="right"))
    assert np.isnan(scale_codes(np.array([np.nan]))[0])


@pytest.mark.parametrize("s", [0.05, 0.11, 0.3, 0.77, 1.1])
def test_the_scale_of_normal_residuals(s: float) -> None:
    z = s * norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    assert median_ratio(counted(z), 20_000) == pytest.approx(s, rel=0.02)


def test_the_scale_stays_within_its_public_limits() -> None:
    assert median_ratio(counted(np.zeros(100)), 100) <= 1 / 32
    assert median_ratio(counted(np.full(100, 1e9)), 100) == 1.2
    rng = np.random.default_rng(1)
    for _ in range(200):
        noisy = rng.normal(scale=1e4, size=BINS)
        assert 1 / 64 <= median_ratio(noisy, float(rng.uniform(1, 1e4))) <= 1.2
