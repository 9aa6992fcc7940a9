# SPDX-License-Identifier: Apache-2.0
"""Which columns the middle of a profile shows to be skewed."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from reticent_server.fitting.heavy_terms import skewness
from reticent_server.fitting.public.coordinates import Coordinates
from reticent_server.fitting.trust.thresholds import SKEWED

P = (np.arange(4_000) + 0.5) / 4_000


def skewness_of(x: Any) -> float:
    """Of a column beside a constant, in coordinates that mix and scale both."""
    transform = np.array([[1.0, 0.0], [0.3, 2.0]])
    rows = np.column_stack([np.ones(len(x)), x]) @ transform.T
    constant, found = skewness(Coordinates(transform, rows, 2, False, 1.0))
    assert constant == 0
    return float(found)


def test_it_is_the_farther_tail_in_interquartile_ranges() -> None:
    assert skewness_of(norm.ppf(P)) == pytest.approx(1.645 / 1.349, rel=0.01)
    heavy = skewness_of(lognorm.ppf(P, 1.0))
    assert heavy == pytest.approx(
        (np.exp(1.645) - 1) / (np.exp(0.6745) - np.exp(-0.6745)), rel=0.01
    )
    assert skewness_of(-lognorm.ppf(P, 1.0)) == pytest.approx(heavy)
    assert skewness_of(lognorm.ppf(P, 0.5)) > SKEWED.value > skewness_of(lognorm.ppf(P, 0.45))


def test_mostly_zeros_are_skewed_and_constants_are_not() -> None:
    assert skewness_of(np.where(P < 0.9, 0.0, P)) == np.inf
    assert skewness_of(np.full(4_000, 3.0)) == 0
