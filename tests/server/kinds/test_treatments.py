# SPDX-License-Identifier: Apache-2.0
"""Differences in differences and event studies, against least squares with dummies by numpy."""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.did.kind import Did
from reticent_server.kinds.event_study.kind import EventStudy
from reticent_server.kinds.event_study.plan import event_times
from reticent_server.kinds.registry import kind_of
from support.fits.panels import within
from support.fits.regressions import HUGE_RHO, drive, numeric, profile_of
from support.seeds import seeded

N, M = 3000, 6
EFFECTS = {0: 0.3, 1: 0.5, 2: 0.6}
COLUMNS = [
    numeric("y", -60, 60),
    numeric("x", -20, 20),
    Column("year", ColumnKind.INTEGER, 0, M - 1),
    Column("start", ColumnKind.INTEGER, 2, 4, (), ("",)),
    Column("group", ColumnKind.BOOLEAN, 0, 1),
    Column("on", ColumnKind.BOOLEAN, 0, 1),
    Column("code", ColumnKind.INTEGER, -9, M - 1),
    Column("kind", ColumnKind.CATEGORICAL, 0, 1, ("control", "treated")),
]


def panel(seed: int, trend: float = 0.0, persons: int = N) -> Any:
    """(table, never): persons of M years, treated from year 2, 3 or 4 on or never; trend: a year,
    before treatment.
    """
    rng = seeded(seed)
    effect, never = rng.normal(size=(persons, 1)), rng.random((persons, 1)) < 0.4
    year = np.tile(np.arange(M), (persons, 1)).astype(float)
    start = np.tile(rng.integers(2, 5, (persons, 1)), M).astype(float)
    k = year - start
    caused = np.where(k >= 0, np.interp(k, list(EFFECTS), list(EFFECTS.values())), trend * (k + 1))
    x = 0.5 * effect + rng.normal(size=(persons, M))
    y = effect + 0.1 * year + 0.4 * x + np.where(never, 0, caused) + rng.normal(size=(persons, M))
    on, group = (k >= 0) & ~never, np.tile(~never, M)
    table = {"y": y, "x": x, "year": year, "start": np.where(never, 0.0, start), "on": on}
    table |= {"group": group, "code": np.where(never, -9.0, start), "kind": group}
    flat = {name: np.asarray(v, dtype=float).ravel() for name, v in table.items()}
    return flat, np.repeat(never.ravel(), M)


def facts_of(table: Any, never: Any, *, persons: bool = True) -> DatasetFacts:
    whole = {c.name: c for c in COLUMNS if c.name not in {"y", "x"}}
    found = dict(profile_of(table, COLUMNS[:2]).columns)
    for name, column in whole.items():
        used = table[name][~never] if name == "start" else table[name]
        size = int(column.upper - column.lower) + 1
        counts = np.bincount((used - column.lower).astype(int), minlength=size) * 1.0
        missing = float(never.sum()) if name == "start" else None
        found[name] = ColumnProfile(counts=tuple(counts), first=column.lower, missing=missing)
    unit, n = (Unit("person", M), len(never) // M) if persons else (Unit(), len(never))
    return DatasetFacts(
        "t", "t", 1, "v", n, Schema(tuple(COLUMNS), unit), Profile(found)
    ).of_places()


def answer(query: Any, table: Any, never: Any, *, persons: bool = True, rho: int = HUGE_RHO) -> Any:
    facts = facts_of(table, never, persons=persons)
    plan = kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, rho))
    masks = {"start": never} | ({ABSENT: np.zeros(len(never), bool)} if persons else {})
    return drive(plan.run(), Block(0, len(never), table, masks)).result


def events(table: Any, never: Any, before: int, after: int) -> dict[str, Any]:
    """Dummies of the times since treatment, as written down by hand."""
    k = table["year"] - table["start"]
    made = {}
    for j in event_times(before, after):
        here = k <= j if j == -before else k >= j if j == after else k == j
        made[f"event {j}"] = 1.0 * (here & ~never)
    return made


def years(table: Any) -> dict[str, Any]:
    return {f"year {j}": 1.0 * (table["year"] == j) for j in range(1, M)}


def by_hand(table: Any, columns: dict[str, Any]) -> Any:
    return within(table | columns, np.zeros(len(table["y"]), bool), M, list(columns))


@pytest.mark.parametrize("query", [
    EventStudy("y", "start", "year", before=3, after=2, covariates="x"),
    EventStudy("y", "code", "year", before=3, after=2, never=-9.0, covariates="x"),
])  # fmt: skip
def test_an_event_study_is_two_way_fixed_effects_with_relative_times(query: Any) -> None:
    table, never = panel(1)
    result = answer(query, table, never)
    X = events(table, never, 3, 2) | years(table) | {"x": table["x"]}
    beta, errors = by_hand(table, X)
    assert result["event_times"] == [-3, -2, 0, 1, 2]
    names = ["<=-3", "-2", "0", "1", ">=2"]
    assert result["terms"][:5] == [f"event_time[{k}]" for k in names]
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.5 * errors.min())
    np.testing.assert_allclose(result["standard_errors"], errors, rtol=0.1)
    np.testing.assert_allclose(result["coefficients"][2:5], list(EFFECTS.values()), atol=0.12)


def test_the_joint_test_before_treatment_is_wald_s() -> None:
    table, never = panel(2)
    result = answer(EventStudy("y", "start", "year", before=3, after=2), table, never)
    b, C = np.array(result["coefficients"])[:2], np.array(result["covariance"])[:2, :2]
    found = result["pretrend"]
    assert found["df"] == 2
    assert found["statistic"] == pytest.approx(b @ np.linalg.solve(C, b), rel=1e-6)
    assert 1e-4 < found["p_value"] < 1


@pytest.mark.slow
def test_a_trend_before_treatment_is_seen_and_none_mostly_is_not() -> None:
    query = EventStudy("y", "start", "year", before=3, after=1)
    rejected = 0
    for seed in range(8):
        table, never = panel(seed, persons=1500)
        rejected += answer(query, table, never)["pretrend"]["p_value"] < 0.05
    assert rejected <= 5, "of 8 tests of size .05: seeded, and more by chance once in 10^6"
    table, never = panel(3, trend=0.3)
    assert answer(query, table, never)["pretrend"]["p_value"] < 1e-6


def test_an_unidentifiable_test_says_so() -> None:
    table, never = panel(4, persons=200)
    query = EventStudy("y", "start", "year", before=3, after=2)
    result = answer(query, table, never, rho=RHO_UNITS // 1000)
    assert result["pretrend"] == {"statistic": None, "df": 2, "p_value": None}


def test_one_effect_of_a_status_is_two_way_fixed_effects() -> None:
    table, never = panel(5)
    result = answer(Did("y", "on", "year", covariates="x"), table, never)
    beta, errors = by_hand(table, {"on": table["on"]} | years(table) | {"x": table["x"]})
    np.testing.assert_allclose(result["coefficients"], beta, atol=0.5 * errors.min())
    assert result["standard_errors"][0] == pytest.approx(errors[0], rel=0.1)
    assert result["terms"][0] == "did(on)"
    assert any("Goodman-Bacon" in said for said in result["warnings"])
    assert "two-way fixed-effects estimate" in result["estimand"]


@pytest.mark.parametrize("treated", ["group", "kind"])
def test_one_effect_from_a_period_on_is_the_difference_in_differences(treated: str) -> None:
    table, never = panel(6)
    result = answer(Did("y", treated, "year", start=3.0), table, never)
    D = {"did": table["group"] * (table["year"] >= 3)}
    beta, errors = by_hand(table, D | years(table))
    assert result["coefficients"][0] == pytest.approx(beta[0], abs=0.5 * errors[0])
    assert not any("Goodman-Bacon" in said for said in result["warnings"])


@pytest.mark.slow
def test_repeated_cross_sections_have_levels_of_groups_and_cohorts() -> None:
    table, never = panel(7)
    y, one = table["y"], {"Intercept": np.ones(len(never))}
    D = {"did": table["group"] * (table["year"] >= 3), "group": table["group"]} | years(table)
    result = answer(Did("y", "group", "year", start=3.0), table, never, persons=False)
    X = np.column_stack(list((one | D).values()))
    beta = np.linalg.lstsq(X, y, rcond=None)[0]
    assert result["terms"][:3] == ["Intercept", "did(group)", "group"]
    np.testing.assert_allclose(result["coefficients"][1], beta[1], atol=0.02)
    assert result.get("effects") is None
    cohorts = {f"start {j}": 1.0 * ((table["start"] == j) & ~never) for j in (2, 3, 4)}
    result = answer(
        EventStudy("y", "start", "year", before=3, after=2), table, never, persons=False
    )
    X = np.column_stack(list((one | events(table, never, 3, 2) | cohorts | years(table)).values()))
    beta = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(result["coefficients"][1:6], beta[1:6], atol=0.05)
    b, C = np.array(result["coefficients"])[1:3], np.array(result["covariance"])[1:3, 1:3]
    assert result["pretrend"]["statistic"] == pytest.approx(b @ np.linalg.solve(C, b), rel=1e-6)


def refusal(query: Any, *more: Column, persons: bool = True) -> str:
    unit = Unit("person", M) if persons else Unit()
    facts = DatasetFacts("t", "t", 1, "v", 100, Schema((*COLUMNS, *more), unit)).of_places()
    with pytest.raises(InvalidQuery) as error:
        kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, RHO_UNITS))
    return str(error.value)


def test_what_cannot_be_asked_is_said() -> None:
    assert "boolean" in refusal(Did("y", "x", "year"))
    assert "start=2020" in refusal(Did("y", "on", "year"), persons=False)
    assert "above the lower bound" in refusal(Did("y", "group", "year", start=0.0))
    assert "whole numbers" in refusal(Did("y", "group", "x"))
    assert "whole numbers" in refusal(EventStudy("y", "x", "year"))
    assert "two columns" in refusal(EventStudy("y", "year", "year"))
    assert "another one" in refusal(Did("on", "on", "year"))
    assert "may give 255" in refusal(EventStudy("y", "start", "year", before=130, after=130))


def test_cohorts_without_number_are_refused_before_a_term_is_made() -> None:
    """Of 2⁵² declared times of treatment no list could be made: what comes back is the refusal."""
    for latest in (1000.0, 2.0**52):
        ever = Column("ever", ColumnKind.INTEGER, 0, latest)
        said = refusal(EventStudy("y", "ever", "year"), ever, persons=False)
        assert f"gives {latest + 1:.0f} terms" in said
