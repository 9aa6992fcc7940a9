# SPDX-License-Identifier: Apache-2.0
"""Three ordinary models over statsmodels' tables, through planning, the engine and the mechanisms,
at ε = 1.

Bootstrap samples and noise are seeded; limits are those of `goals`, broken by luck less than once
in 10⁶. They are wide with so few samples, and still narrower than what went wrong on such models: z
scores of 5 to 30, standard errors 50 times too large, every coefficient flagged.
"""

import pytest
from benchmarks.gauntlet import goals
from benchmarks.gauntlet.lines import FitLine
from benchmarks.gauntlet.models import SUITE, named
from benchmarks.gauntlet.run import asked

SAMPLES = 1  # of each model: each takes half a second of a core
EPSILON = 1.0
JUDGED = {"answered", "coverage", "rms z", "wild", "short"}
MOST_FLAGGED = 0.25  # of all coefficients: about .02 are


def line(name: str) -> FitLine:
    outcome = asked(named(name), SAMPLES, (EPSILON,))
    assert not outcome.skipped
    assert not outcome.refused
    (found,) = outcome.lines
    assert isinstance(found, FitLine)
    print(found.text())
    return found


@pytest.mark.audit
def test_three_models_miss_no_goal_beyond_chance() -> None:
    found = [line(name) for name in SUITE]
    missed = [(f.text(), v.goal) for f in found for v in f.verdicts() if v.missed]
    assert not [each for each in missed if each[1] in JUDGED]
    assert {f.counts.fits for f in found} == {SAMPLES}
    coverage = sum(f.coverage for f in found) / len(found)
    assert not goals.coverage_verdict(coverage, SAMPLES * len(found)).missed, coverage
    assert sum(f.flagged for f in found) / len(found) < MOST_FLAGGED
