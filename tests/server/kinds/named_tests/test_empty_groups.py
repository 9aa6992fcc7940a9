# SPDX-License-Identifier: Apache-2.0
"""Comparisons of many groups of which some have no record: the effect is that of the others, with
an interval.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds import registry
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.kruskal.kind import Kruskal
from support.fits.regressions import whole
from support.kinds.named_tests import offer
from support.kinds.recipes import facts_of, numeric, outcome
from support.seeds import seeded

LEVELS = tuple("abcdefghij")
COLUMNS = (
    numeric("y", -6.0, 6.0),
    Column("g", ColumnKind.CATEGORICAL, 0, len(LEVELS) - 1, LEVELS),
)
SHIFTS = np.array([0.4, -0.4, 0.2, -0.2, 0.0, 0.0])


def found_in(query: Any, seed: Any, n: Any = 5000, used: Any = 6) -> Any:
    """Of which the first `used` levels have records."""
    rng = seeded(seed)
    g = rng.integers(0, used, n)
    y = np.clip(SHIFTS[g] + rng.normal(size=n), -6, 6)
    plan = registry.plan(facts_of(n, COLUMNS), query, offer(1))
    return outcome(plan, whole({"y": y, "g": g * 1.0}))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", [Anova, Kruskal])
def test_levels_without_a_record_change_the_effects_interval_by_little(kind: Any) -> None:
    """Of 30 tables of 5,000 records in 6 of 10 levels, beside the same question about these 6; ε =
    1.
    """
    every = np.array([found_in(kind("y", "g"), seed).effect_interval for seed in range(30)])
    six = np.array([found_in(kind("y", "g", LEVELS[:6]), s).effect_interval for s in range(30)])
    assert np.median(every, axis=0) == pytest.approx(np.median(six, axis=0), abs=0.03)
    assert np.all((every[:, 0] > 0) & (every[:, 1] < 0.2))


def test_the_estimand_says_which_groups_are_compared() -> None:
    assert "the 6 groups whose number is above its noise" in found_in(Anova("y", "g"), 0).estimand
    assert "the 6 groups whose number is above its noise" in found_in(Kruskal("y", "g"), 0).estimand
    levels = LEVELS[:6]
    assert "whose number" not in found_in(Anova("y", "g", levels), 0).estimand


def test_one_group_with_records_is_no_comparison() -> None:
    assert found_in(Anova("y", "g"), 0, used=1).effect_interval == (0.0, 1.0)
    assert found_in(Kruskal("y", "g"), 0, used=1).effect_interval == (0.0, 1.0)
