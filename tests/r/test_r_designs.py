# SPDX-License-Identifier: Apache-2.0
"""What R's honest intervals, fuzzy effects and density tests are compared with is what the Python
client answers today.
"""

import json
from typing import Any

import pytest

from support.kinds import r_designs


@pytest.mark.slow
def test_the_answers_in_the_fixture_are_todays() -> None:
    fixture = json.loads(r_designs.FIXTURE.read_text("utf-8"))
    today = r_designs.answers(fixture["releases"])
    assert {*fixture} == {"releases", *today}
    for part, made in today.items():
        kept, now = leaves(fixture[part]), leaves(made)
        assert len(kept) == len(now), part
        for one, other in zip(kept, now, strict=True):
            near = isinstance(one, float) and isinstance(other, float)
            assert other == (pytest.approx(one, rel=1e-6, abs=1e-9) if near else one), part


def leaves(value: Any) -> list[Any]:
    """All values of a nested one, in order."""
    if isinstance(value, dict):
        return [x for each in value.values() for x in leaves(each)]
    if isinstance(value, list):
        return [x for each in value for x in leaves(each)]
    return [value]
