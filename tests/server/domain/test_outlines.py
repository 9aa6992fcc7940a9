# SPDX-License-Identifier: Apache-2.0
"""A plan says what it reads and costs in one place: no class answers for a part of its outline
beside it.
"""

from dataclasses import fields

import pytest

from reticent_server.domain.plan import Outline
from reticent_server.pipeline.calibration import example_plans

PARTS = tuple(field.name for field in fields(Outline))
EITHER = "holds_for_persons"  # follows of_persons, too


@pytest.mark.slow
def test_what_a_plan_says_is_its_outline() -> None:
    for _, plan in example_plans(3000, first=False):
        planned, outline = plan.planned, plan.planned.outline
        for part in PARTS:
            if part != EITHER:
                assert getattr(planned, part) == getattr(outline, part), (planned.name, part)
        assert not hasattr(planned, "taken"), "deadline_shares is its name"
        assert planned.holds_for_persons is (outline.holds_for_persons or outline.of_persons)
