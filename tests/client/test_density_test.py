# SPDX-License-Identifier: Apache-2.0
"""The test of a jump of a density, on simulated counts with noise."""

from typing import Any

import numpy as np
import pytest

from reticent.kinds.histogram import Histogram
from reticent.results.density_test import DensityTest, density_test
from support.seeds import seeded

EDGES = np.linspace(-1, 1, 41)
MIDDLES = (EDGES[1:] + EDGES[:-1]) / 2
SD = 6.0


def simulated(seed: int, jump: float) -> DensityTest:
    """Of a bent density, and `jump` of it more from 0 on."""
    rng = seeded(seed)
    expected = 200 * (1 + 0.5 * MIDDLES - 0.4 * MIDDLES**2) * (1 + jump * (MIDDLES > 0))
    counts = rng.poisson(expected) + rng.normal(0, SD, len(MIDDLES))
    return density_test(EDGES, counts, SD, 0.0, 0.8)


def test_it_keeps_its_level_and_sees_a_jump() -> None:
    same = [simulated(seed, 0.0) for seed in range(400)]
    statistics = np.array([t.statistic for t in same])
    assert abs(statistics.mean()) < 0.2
    assert 0.9 < statistics.std() < 1.1
    assert 0.03 < np.mean([t.pvalue < 0.05 for t in same]) < 0.07
    assert np.mean([simulated(seed, 0.5).pvalue < 0.05 for seed in range(100)]) > 0.95


def test_levels_are_those_of_a_density_without_noise() -> None:
    expected = 200 * (1 + 0.5 * MIDDLES - 0.4 * MIDDLES**2) * (1 + 0.3 * (MIDDLES > 0))
    found = density_test(EDGES, expected, 0.0, 0.0, 0.5)
    assert found.below == pytest.approx(200 / 0.05, rel=1e-3)
    assert found.above == pytest.approx(260 / 0.05, rel=1e-3)
    assert found.difference == pytest.approx(found.above - found.below)
    assert found.bins == (10, 10)
    low, high = found.interval
    assert low < found.difference < high


def histogram(**more: Any) -> Histogram:
    counts = {
        "values": [200.0] * 40, "edges": EDGES.tolist(), "standard_error": SD, "n": 8000,
        "confidence_level": 0.95, "confidence_intervals": [[188.0, 212.0]] * 40,
    }  # fmt: skip
    content = {"query": {"kind": "histogram", "column": "x"}, "result": counts | more}
    return Histogram({"id": "r", "dataset": "d", "status": "reply", **content})


def test_a_released_histogram_is_tested_at_an_edge() -> None:
    found = histogram().density_test(0.0, 0.5)
    assert found.pvalue == pytest.approx(1.0)
    with pytest.raises(ValueError, match="inner edge"):
        histogram().density_test(0.01, 0.5)
    with pytest.raises(ValueError, match="four bins"):
        histogram().density_test(0.0, 0.1)
