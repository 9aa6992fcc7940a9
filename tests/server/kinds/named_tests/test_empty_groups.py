# SPDX-License-Identifier: Apache-2.0
"""Comparisons of many groups of which some have no record: the effect is that of the others, with an interval."""

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds import registry
from reticent_server.kinds.anova.kind import Anova
from reticent_server.kinds.kruskal.kind import Kruskal
from support.fits.regressions import whole
from support.kinds.named_tests import offer, outcome
from support.kinds.recipes import facts_of, numeric

LEVELS = tuple("abcdefghij")
COLUMNS = (
    numeric("y", -6.0, 6.0),
    Column("g", ColumnKind.CATEGORICAL, 0, len(LEVELS) - 1, LEVELS),
)
SHIFTS = np.array([0.4, -0.4, 0.2, -0.2, 0.0, 0.0])


def found_in(query, seed, n=5000, used=6):
    """Of which the first `used` levels have records."""
    rng = np.random.default_rng(seed)
    g = rng.integers(0, used, n)
    y = np.clip(SHIFTS[g] + rng.normal(size=n), -6, 6)
    plan = registry.plan(facts_of(n, COLUMNS), query, offer(1))
    return outcome(plan, whole({"y": y, "g": g * 1.0}))


@pytest.mark.parametrize("query", [Anova("y", "g"), Kruskal("y", "g")], ids=["anova", "kruskal"])
def test_levels_without_a_record_leave_an_interval(query):
    """100 tables of 5,000 records in 6 of 10 levels, ε = 1; a true .95 has less than .83 once in 10⁶."""
    ends = np.array([found_in(query, seed).effect_interval for seed in range(100)])
    eta = SHIFTS.var() / (1 + SHIFTS.var())
    if isinstance(query, Kruskal):
        eta *= 0.955  # of ranks: by 12/(4π) of the square of a small shift
    assert np.median(ends[:, 1] - ends[:, 0]) < 0.1
    assert np.mean((ends[:, 0] <= eta) & (eta <= ends[:, 1])) > 0.83


def test_the_estimand_says_which_groups_are_compared():
    assert "the 6 groups whose number is above its noise" in found_in(Anova("y", "g"), 0).estimand
    assert "the 6 groups whose number is above its noise" in found_in(Kruskal("y", "g"), 0).estimand
    levels = LEVELS[:6]
    assert "whose number" not in found_in(Anova("y", "g", levels), 0).estimand


def test_one_group_with_records_is_no_comparison():
    assert found_in(Anova("y", "g"), 0, used=1).effect_interval == (0.0, 1.0)
    assert found_in(Kruskal("y", "g"), 0, used=1).effect_interval == (0.0, 1.0)
