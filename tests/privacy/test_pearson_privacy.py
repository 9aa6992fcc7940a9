# SPDX-License-Identifier: Apache-2.0
"""Pearson's correlation: no record moves one of its sums by more than it costs, and some
by as much.

The named tests' own attacks (tests/privacy/test_named_tests_privacy.py) run on a dozen records,
whose frames are noise; here frames are those of a table.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.kinds.correlation.frame import InfluenceSquaresMap, WhitePairMap
from reticent_server.kinds.correlation.kind import KIND, Correlation
from support.attacks.privacy_losses import farthest_records
from support.fits.regressions import drive, whole
from support.kinds.named_tests import offer, people, people_facts

N = 3000
ATTAINED = {
    "whitening 1": 0.975,  # (a, w) and (a, w') have no right angle between them
    "whitening 2": 0.975,
    "lengths": 0.6,  # one line: the first bin and the last share their sums
    "moments": 0.975,
    "squares of influences": 0.99,
}


@pytest.fixture(scope="module")
def steps() -> Any:
    plan = KIND.plan(people_facts(N), Correlation(("y", "x"), "pearson"), offer(1))
    return drive(plan.run(), whole(people(N))).steps


def records() -> dict[str, Any]:
    """On rays from the middle to the bounds, and beyond every cut."""
    angle, far = np.meshgrid(np.linspace(0, np.pi, 91), [-9.0, -0.5, 0.0, 0.5, 9.0])
    y, x = 1 + (far * np.sin(angle)).ravel(), (far * np.cos(angle)).ravel()
    spare = {name: np.zeros(len(x)) for name in ("k", "g", "b", "m")}
    return {"y": y, "x": x, **spare}


@pytest.mark.slow
def test_the_farthest_records_are_as_far_apart_as_is_billed(steps: Any) -> None:
    assert [step.label for step in steps] == list(ATTAINED)
    for step in steps:
        ((_, share),) = farthest_records(step, records())
        assert ATTAINED[step.label] <= share <= 1, step.label


def test_a_record_of_any_size_adds_no_more_than_the_cut(steps: Any) -> None:
    """The maps cut, not only the sums: the number that a far record adds is not scaled down."""
    block = whole(records())
    for step in steps:
        (part,), (added,) = step.parts, step.map_fn(block)
        if isinstance(step.map_fn, WhitePairMap):
            longest = np.linalg.norm(added, axis=0).max()
            assert part.clip * (1 - 1e-3) <= longest <= part.clip * (1 + 1e-12)
            assert np.all(added[0] == step.map_fn.a)
        if isinstance(step.map_fn, InfluenceSquaresMap):
            assert np.abs(added).max() == pytest.approx(part.clip, rel=0.01)
            assert np.abs(added).max() <= part.clip
