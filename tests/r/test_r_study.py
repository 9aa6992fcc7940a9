# SPDX-License-Identifier: Apache-2.0
"""What R's analyses of a study are compared with is what the Python client answers today, and has
every analysis.
"""

import json
from typing import Any

import pytest

from reticent.kinds.study import Study
from support.kinds import r_cases, r_pooled

OF_EVERY_RELEASE = {"check", "plot", "save", "summary", "to_frame"}
NO_ANALYSES = {"clipped", "groups", "names", "nobs"}


@pytest.mark.slow
def test_the_answers_in_the_fixture_are_todays() -> None:
    fixture = json.loads(r_cases.FIXTURE.read_text("utf-8"))
    today = json.loads(json.dumps(r_cases.cases(fixture["studies"])))
    assert len(today) == len(fixture["cases"]), r_cases.__doc__
    for kept, made in zip(fixture["cases"], today, strict=True):
        same(kept, made, f"{kept['study']} {kept['analysis']} {kept['arguments']}")


def test_every_analysis_of_a_study_is_tried_in_r() -> None:
    public = {name for name in vars(Study) if not name.startswith("_")}
    assert public - OF_EVERY_RELEASE - NO_ANALYSES == set(r_cases.ANALYSES) - {"frame"}
    answered = {analysis for _, _, analysis, _ in r_cases.asked()}
    assert answered == set(r_cases.ANALYSES)


def test_the_pooled_answers_in_the_fixture_are_todays() -> None:
    fixture = json.loads(r_pooled.FIXTURE.read_text("utf-8"))
    today = json.loads(json.dumps(r_pooled.cases(fixture["sites"])))
    assert today.keys() == fixture.keys() - {"sites"}, r_pooled.__doc__
    for name, made in today.items():
        same(fixture[name], made, name, SEARCHED)


SEARCHED = 1e-6
"""Of an end of a search (REML's), whose last digits are the machine's."""


def same(kept: Any, made: Any, where: str, rel: float = 1e-8) -> None:
    """Numbers to ten digits, all else exactly."""
    if isinstance(kept, dict):
        assert kept.keys() == made.keys(), where
        for key, value in kept.items():
            same(value, made[key], f"{where}, {key}", rel)
    elif isinstance(kept, list):
        assert len(kept) == len(made), where
        for one, other in zip(kept, made, strict=True):
            same(one, other, where, rel)
    elif isinstance(kept, float):
        assert made == pytest.approx(kept, rel=rel, abs=1e-10), where
    else:
        assert kept == made, where
