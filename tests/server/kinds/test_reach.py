# SPDX-License-Identifier: Apache-2.0
"""The range of means of groups: narrow where noise prevails, else the usual one."""

import numpy as np
import pytest

from reticent_server.kinds.shared.ranges import REACH
from reticent_server.kinds.shared.reach import LEAST_REACH, MOST_REACH, reach
from support.seeds import seeded


def test_it_is_between_its_limits_and_grows_with_the_records() -> None:
    found = [reach(records, 60.0) for records in (50, 500, 2_000, 5_000, 50_000, 5_000_000_000)]
    assert found[0] == LEAST_REACH
    assert found[-1] == MOST_REACH
    assert found == sorted(found)
    assert reach(500, 1e6) == LEAST_REACH


def test_it_is_the_one_of_the_largest_ratio_of_shift_to_error() -> None:
    """By simulated values, at N = 2,000 and η = 60: no other range of the grid is better by 1 %."""
    values = seeded(3).normal(size=400_000)
    tail = np.quantile(seeded(4).exponential(size=400_000), np.arange(1, 2000) / 2000)
    middle, outer = np.log(2), np.log(20)

    def excess(r: float) -> float:
        beyond = 1.2 * (tail - middle) - r * (outer - middle) / 1.645
        return float(np.mean(np.maximum(beyond, 0)))

    def ratio(r: float) -> float:
        moved = np.mean(np.clip(values + 0.01, -r, r) - np.clip(values, -r, r)) / 0.01
        error = np.var(np.clip(values, -r, r)) / 2_000 + (r * 60 / 2_000) ** 2
        return float(moved**2 / (error + excess(r) ** 2))

    best = max(ratio(r) for r in np.linspace(LEAST_REACH, REACH, 16))
    assert ratio(reach(2_000, 60.0)) == pytest.approx(best, rel=0.01)


def test_groups_of_many_records_are_not_clipped_for_their_noise() -> None:
    """What clipping takes is ten standard errors there: equal means of unlike
    tails would differ."""
    assert REACH < reach(10_000, 9.0) < MOST_REACH
