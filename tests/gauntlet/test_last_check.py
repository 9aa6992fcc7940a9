# SPDX-License-Identifier: Apache-2.0
"""The last check of a fit on a table that it must catch and on one that it must not; all of them in
the audit.
"""

import pytest
from benchmarks.last_check.__main__ import line
from benchmarks.last_check.cases import FAULTS, SOUND

WIDE, SHORT = FAULTS[0], SOUND[0]


@pytest.mark.slow
def test_a_start_ten_times_too_wide_is_caught() -> None:
    found = line(WIDE, range(2))
    assert found.caught == found.failed


@pytest.mark.slow
def test_a_sound_fit_has_no_false_alarm() -> None:
    found = line(SHORT, range(2))
    assert (found.failed, found.alarms) == (0, 0)


@pytest.mark.audit
def test_failing_fits_are_caught_and_sound_ones_left_alone() -> None:
    """Of 60 tables of five faults half or more fail without the check; of 108 sound ones fewer than
    5 % have an alarm."""
    faults = [line(case, range(12)) for case in FAULTS]
    failed = sum(found.failed for found in faults)
    assert failed >= 30
    assert sum(found.caught for found in faults) >= 0.9 * failed
    sound = [line(case, range(9)) for case in SOUND]
    assert sum(found.alarms for found in sound) <= 0.05 * sum(found.fits for found in sound)
