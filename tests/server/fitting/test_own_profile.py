# SPDX-License-Identifier: Apache-2.0
"""A fit profiles for itself what the curator's profile does not resolve, and says so where it
cannot either.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks import profiles
from benchmarks.every_kind import answer
from benchmarks.named_tests import offer

from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.fitting import regression_model
from reticent_server.fitting.column_measures import is_resolved
from reticent_server.fitting.fit_plan import FitPlan
from reticent_server.fitting.own_profile import NO_PROFILE, lacking
from reticent_server.kinds.registry import plan
from support.fits.regressions import numeric

PERSONS = profiles.ProfiledLine("persons", 0.5, 1.0)
WIDE = profiles.ProfiledLine("wide", 0.5, 4.0, further=1)


def fit_of(facts: DatasetFacts, line: profiles.ProfiledLine, epsilon: float) -> FitPlan[Any]:
    planned = plan(facts, line.query, offer(epsilon))
    assert isinstance(planned, FitPlan)
    return planned


@pytest.mark.parametrize(
    ("known", "resolved"),
    [
        (None, False),
        (ColumnProfile(quantiles=(1.0,), probabilities=(0.5,)), False),
        (ColumnProfile(quantiles=(0.0, 1.0, 2.0), probabilities=(0.25, 0.5, 0.75)), True),
    ],
)
def test_a_median_alone_tells_no_spread(known: ColumnProfile | None, resolved: bool) -> None:
    assert is_resolved(numeric("x"), known) == resolved


def test_counts_below_their_noise_tell_no_shares() -> None:
    g = Column("g", ColumnKind.CATEGORICAL, 0, 1, ("a", "b"))
    for noise, resolved in ((19.0, True), (21.0, False)):
        known = ColumnProfile(counts=(400.0, 600.0), count_sd=noise)
        assert is_resolved(g, known) == resolved
    k = Column("k", ColumnKind.INTEGER, 0, 49)
    assert not is_resolved(k, ColumnProfile(counts=(20.0,) * 50, count_sd=5.0)), "25 add up"


def test_only_what_is_not_resolved_is_profiled_and_the_rest_is_kept() -> None:
    columns, absent = profiles.table(WIDE, 1)
    facts = profiles.facts(WIDE, columns, absent)
    assert facts.profile is not None
    median = ColumnProfile(quantiles=(0.0,), probabilities=(0.5,))
    known = {**profiles.facts(replace(WIDE, profile=np.inf), columns, absent).profile.columns}
    facts = replace(facts, profile=Profile(known | {"x2": median}))
    planned = fit_of(facts, WIDE, 4.0)
    assert planned.own_profile is not None
    assert [c.name for c in lacking(facts, planned.design)] == ["x2"]
    assert [m.column.name for m in planned.own_profile.map_fn.measures] == ["x2"]
    assert planned.own_profile.masked, "other marginals are of all records"
    result = answer(planned, profiles.block(columns, absent))
    assert all(result["estimable"])
    np.testing.assert_allclose(result["coefficients"][1:], WIDE.slopes, atol=0.25)
    assert fit_of(replace(facts, profile=Profile(known)), WIDE, 4.0).own_profile is None


def test_persons_after_a_profile_with_noise_have_the_within_estimator() -> None:
    columns, absent = profiles.table(PERSONS, 2)
    facts = profiles.facts(PERSONS, columns, absent)
    assert all(is_resolved(c, facts.profile.columns[c.name]) for c in PERSONS.schema.columns)
    result = answer(fit_of(facts, PERSONS, 1.0), profiles.block(columns, absent))
    assert result["estimable"] == [True, True]
    np.testing.assert_allclose(result["coefficients"], [1.0, 1.0], atol=0.06)


@pytest.mark.parametrize("profile", [0.0, 0.01])
def test_without_any_spread_there_are_no_intervals_and_it_is_said_before(profile: float) -> None:
    line = replace(PERSONS, profile=profile)
    columns, absent = profiles.table(line, 3)
    planned = fit_of(profiles.facts(line, columns, absent), line, 0.1)
    said = [text for text in planned.forecast["notes"] if "cannot measure the spread" in text]
    assert len(said) == 1
    assert planned.forecast["privacy_to_sampling"] == [None, None]
    result = answer(planned, profiles.block(columns, absent))
    assert result["estimable"] == [False, False]
    assert result["confidence_intervals"] == [[None, None]] * 2
    assert said[0] in result["warnings"]
    assert NO_PROFILE in result["warnings"]


@pytest.mark.audit
@pytest.mark.parametrize("profile", [0.5, 0.0])
def test_persons_are_covered_with_little_more_error_than_least_squares(profile: float) -> None:
    found = profiles.figures(replace(PERSONS, profile=profile), 40)
    assert found["told"] == 1.0
    assert found["coverage"] >= 0.93 - 0.05, "80 intervals: two standard errors"
    assert found["error"] <= 1.5


@pytest.mark.audit
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_poor_profile_is_no_worse_than_none(epsilon: float) -> None:
    none, poor = (
        profiles.figures(profiles.ProfiledLine("wide", at, epsilon, 40), 30) for at in (0.0, 0.1)
    )
    assert poor["told"] >= none["told"] - 0.1
    assert poor["coverage"] >= 0.86, "120 intervals: three standard errors below .95"
    assert poor["error"] <= 1.4 * none["error"]


def test_a_question_at_several_epsilons_has_one_ground() -> None:
    """It is kept, and what is planned with it is what is planned without."""
    facts = profiles.facts(replace(WIDE, profile=np.inf), *profiles.table(WIDE, 4))
    first, second = fit_of(facts, WIDE, 1.0), fit_of(facts, WIDE, 2.0)
    assert first.own_profile is None
    assert first.ground.coding is second.ground.coding
    regression_model._ground.cache_clear()
    alone = fit_of(facts, WIDE, 2.0)
    assert alone.ground.coding is not second.ground.coding
    assert alone.forecast == second.forecast
