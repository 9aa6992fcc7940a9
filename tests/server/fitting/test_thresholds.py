# SPDX-License-Identifier: Apache-2.0
"""The one table of what intervals are trusted at: each threshold says its unit and why, and each
rule has two sides.
"""

import numpy as np
import pytest

from reticent_server.fitting import trust
from reticent_server.fitting.trust import thresholds
from reticent_server.fitting.trust.thresholds import Threshold

TABLE = {name: value for name, value in vars(thresholds).items() if isinstance(value, Threshold)}
BELOW, ABOVE = 1 - 1e-9, 1 + 1e-9


@pytest.mark.parametrize("name", TABLE)
def test_each_has_a_unit_and_the_figure_that_chose_it(name: str) -> None:
    threshold = TABLE[name]
    assert threshold.value > 0
    assert len(threshold.unit.split()) >= 3
    assert len(threshold.reason.split()) >= 3


def test_what_is_at_most_its_threshold_is_trusted_and_what_is_beyond_is_not() -> None:
    gate, bared = thresholds.MOMENTS_GATE.value, thresholds.BARED.value
    assert trust.moments_hold(gate * BELOW)
    assert not trust.moments_hold(gate * ABOVE)
    assert trust.bared(bared * np.array([BELOW, ABOVE])).tolist() == [False, True]
    assert trust.skewed(thresholds.SKEWED.value * np.array([BELOW, ABOVE])).tolist() == [
        False,
        True,
    ]
    noise = thresholds.STRATA_NOISE.value
    assert trust.strata(noise * BELOW).intervals
    assert not trust.strata(noise * ABOVE).intervals
    spread = np.array([2.0, 2.0])
    assert trust.blocks_tell(spread * [BELOW, ABOVE], spread).tolist() == [True, False]
    least = thresholds.LEAST_DISPERSION.value
    assert trust.dispersed(least * ABOVE)
    assert not trust.dispersed(least * BELOW)
    sd = thresholds.RESOLVED.value
    assert trust.clear(np.array([sd * BELOW, sd * ABOVE]), 1.0).tolist() == [False, True]
