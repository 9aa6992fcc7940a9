# SPDX-License-Identifier: Apache-2.0
"""What R's Table 1 and differences of groups are compared with is what the Python client answers
today.
"""

import json
from typing import Any

import pytest

from support.kinds import r_groups


def test_the_answers_in_the_fixture_are_todays() -> None:
    fixture = json.loads(r_groups.FIXTURE.read_text("utf-8"))
    today = r_groups.answers(fixture["releases"])
    for part in ("tests", "differences", "brier"):
        assert numbers(today[part]) == pytest.approx(
            numbers(fixture[part]), rel=1e-8, abs=1e-10, nan_ok=True
        )


def numbers(value: Any) -> list[float]:
    """All numbers of a nested value, in order."""
    if isinstance(value, dict):
        return [x for each in value.values() for x in numbers(each)]
    if isinstance(value, list):
        return [x for each in value for x in numbers(each)]
    return [float("nan") if value is None else float(value)]
