# SPDX-License-Identifier: Apache-2.0
"""Group–time effects and their averages, against differences of means by numpy and the variances of
first differences by person.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.errors import InvalidPrivacy, InvalidQuery
from reticent_server.kinds.registry import kind_of
from reticent_server.kinds.staggered_did.effects import (
    CohortCells,
    average,
    covariance,
    group_time_effects,
    pooled,
)
from reticent_server.kinds.staggered_did.kind import StaggeredDid
from support.fits.regressions import HUGE_RHO, drive, numeric
from support.kinds.named_tests import offer
from support.seeds import seeded

T, N = 5, 4000
NEVER = 9
COLUMNS = [
    numeric("y", -8, 8),
    Column("t", ColumnKind.INTEGER, 0, T - 1),
    Column("g", ColumnKind.INTEGER, 2, NEVER, (), ("",)),
    Column("x", ColumnKind.NUMERIC, -5, 5),
]
QUERY = StaggeredDid("y", "g", "t", never=9.0)


def panel(seed: int, persons: int = N) -> tuple[Any, Any, Any]:
    """(table, y (persons, T), first treated periods)."""
    rng = seeded(seed)
    g = rng.choice([2, 3, NEVER], persons, p=[0.25, 0.25, 0.5])
    t = np.arange(T)
    since = t - g[:, None]
    y = rng.uniform(-1, 1, (persons, 1)) + 0.1 * t + 0.3 * (since >= 0) * (since + 1)
    y = y + rng.uniform(-1, 1, (persons, T)).cumsum(axis=1) / 2
    return long(y, g), y, g


def long(y: Any, g: Any) -> dict[str, Any]:
    rows = {"y": y.ravel(), "t": np.tile(np.arange(T), len(g)), "g": np.repeat(g, T)}
    return {k: v.astype(float) for k, v in rows.items()} | {"x": np.zeros(y.size)}


def planned(query: StaggeredDid, units: int, offered: Any, *, persons: bool = True) -> Any:
    unit, n = (Unit("p", T), units) if persons else (Unit(), units * T)
    facts = DatasetFacts("d", "d", 1, "v", n, Schema(tuple(COLUMNS), unit)).of_places()
    return kind_of(query).plan(facts, query, offered)


def answer(
    table: Any,
    query: StaggeredDid = QUERY,
    *,
    persons: bool = True,
    offered: PrivacyCost | None = None,
    masks: Any = None,
) -> Any:
    n = len(table["y"])
    plan = planned(query, n // T, offered or PrivacyCost(10**9, 10**12, HUGE_RHO), persons=persons)
    missing = {"g": np.zeros(n, bool)} | ({ABSENT: np.zeros(n, bool)} if persons else {})
    return drive(plan.run(), Block(0, n, table, missing | (masks or {}))).result


def by_hand(y: Any, g: Any, cohort: int, t: int, controls: Any) -> tuple[float, float]:
    """ATT(cohort, t), and its standard error by first differences of persons."""
    d = y[:, t] - y[:, cohort - 1]
    own, others = d[g == cohort], d[controls]
    error = np.sqrt(own.var(ddof=1) / len(own) + others.var(ddof=1) / len(others))
    return own.mean() - others.mean(), float(error)


@pytest.mark.parametrize("control", ["never", "not_yet"])
def test_effects_are_differences_of_persons_differences(control: str) -> None:
    table, y, g = panel(1)
    result = answer(table)
    rows = result[control]["group_time"]
    assert [(e["cohort"], e["period"]) for e in rows] == [
        (2, 0), (2, 2), (2, 3), (2, 4), (3, 0), (3, 1), (3, 3), (3, 4),
    ]  # fmt: skip
    for row in rows:
        c, t = row["cohort"], row["period"]
        others = (g == NEVER) if control == "never" else (g > max(t, c - 1)) & (g != c)
        value, error = by_hand(y, g, c, t, others)
        assert row["effect"]["value"] == pytest.approx(value, abs=1e-4)
        assert row["effect"]["standard_error"] == pytest.approx(error, rel=2e-3)


def test_averages_have_the_shares_of_cohorts_as_weights() -> None:
    table, _, g = panel(2)
    found = answer(table)["never"]
    N2, N3 = (g == 2).sum(), (g == 3).sum()
    att = {(e["cohort"], e["period"]): e["effect"]["value"] for e in found["group_time"]}
    total = N2 * sum(att[2, t] for t in (2, 3, 4)) + N3 * sum(att[3, t] for t in (3, 4))
    assert found["simple"]["value"] == pytest.approx(total / (3 * N2 + 2 * N3), abs=1e-5)
    assert found["dynamic"]["at"] == [-3, -2, 0, 1, 2]
    at_0 = (N2 * att[2, 2] + N3 * att[3, 3]) / (N2 + N3)
    assert found["dynamic"]["effects"][2]["value"] == pytest.approx(at_0, abs=1e-5)
    assert found["by_cohort"]["at"] == [2, 3]
    both = [np.mean([att[2, t] for t in (2, 3, 4)]), np.mean([att[3, t] for t in (3, 4)])]
    mean = (N2 * both[0] + N3 * both[1]) / (N2 + N3)
    assert found["by_cohort"]["overall"]["value"] == pytest.approx(mean, abs=1e-5)
    assert found["calendar"]["at"] == [2, 3, 4]
    at_3 = (N2 * att[2, 3] + N3 * att[3, 3]) / (N2 + N3)
    assert found["calendar"]["effects"][1]["value"] == pytest.approx(at_3, abs=1e-5)
    means = [e["value"] for e in found["dynamic"]["effects"][2:]]
    assert found["dynamic"]["overall"]["value"] == pytest.approx(np.mean(means), abs=1e-5)


def random_cells(seed: int) -> CohortCells:
    rng = seeded(seed)
    V = rng.normal(size=(3, 8, 8))
    V = V @ V.swapaxes(1, 2) / 50
    m, N = rng.normal(size=(3, 4)), rng.uniform(50, 90, (3, 4))
    return CohortCells((4, 1, 3), m, N, V, V / 2, np.ones(3, dtype=bool))


def test_gradients_are_those_of_finite_differences() -> None:
    cells, h = random_cells(3), 1e-6

    def every(m: Any, N: Any) -> list[Any]:
        moved = CohortCells(cells.starts, m, N, cells.sampling, cells.privacy, cells.known)
        effects = group_time_effects(moved, never=False)
        return [*(e.effect for e in effects), pooled(moved, effects)]

    found = every(cells.means, cells.sizes)
    found.append(average(found))
    for c in range(3):
        for t in range(8):
            step = np.zeros((3, 8))
            step[c, t] = h
            ends = [
                every(cells.means + s * step[:, :4], cells.sizes + s * step[:, 4:]) for s in (1, -1)
            ]
            for each, up, down in zip(found, *ends, strict=False):
                slope = (up.value - down.value) / (2 * h)
                assert each.gradient[c, t] == pytest.approx(slope, abs=1e-7)
    C = covariance(found, cells.sampling)
    assert np.linalg.eigvalsh(C).min() > -1e-9


def test_rows_of_cross_sections_are_independent_cells() -> None:
    table, y, g = panel(4)
    result = answer(table, persons=False)
    row = next(e for e in result["never"]["group_time"] if (e["cohort"], e["period"]) == (3, 4))
    cells = [y[g == c, t] for c, t in ((3, 4), (3, 2), (NEVER, 4), (NEVER, 2))]
    signs = (1, -1, -1, 1)
    value = sum(s * cell.mean() for s, cell in zip(signs, cells, strict=True))
    error = np.sqrt(sum(cell.var(ddof=1) / len(cell) for cell in cells))
    assert row["effect"]["value"] == pytest.approx(value, abs=1e-3)
    assert row["effect"]["standard_error"] == pytest.approx(error, rel=0.01)
    assert "cross-sections" in result["estimand"]


def test_only_whole_persons_with_one_date_count() -> None:
    table, y, g = panel(5)
    rows = np.arange(len(table["y"]))
    person, place = rows // T, rows % T
    spoiled = {k: v.copy() for k, v in table.items()}
    spoiled["y"][(person < 40) & (place == 1)] = 8.0
    spoiled["t"][(person < 40) & (place == 1)] = 2.0  # twice in period 2, never in 1
    spoiled["y"][(person >= 40) & (person < 80)] *= -3
    spoiled["g"][(person >= 40) & (person < 80) & (place == 0)] = 4.0  # two dates
    absent = (person >= 80) & (person < 120) & (place == 3)
    found = answer(spoiled, masks={ABSENT: absent})["never"]["group_time"][2]
    kept = np.arange(len(g)) >= 120
    value, _ = by_hand(y[kept], g[kept], 2, 3, g[kept] == NEVER)
    assert found["effect"]["value"] == pytest.approx(value, abs=1e-4)


def test_never_is_missing_a_value_or_after_the_last_period() -> None:
    table, _, g = panel(6)
    expected = answer(table)
    gone = np.repeat(g == NEVER, T)
    coded = table | {"g": np.where(gone, 0.0, table["g"])}
    late = table | {"g": np.where(gone, 7.0, table["g"])}
    plain = StaggeredDid("y", "g", "t")
    for found in (answer(coded, plain, masks={"g": gone}), answer(late, plain)):
        value = found["never"]["simple"]["value"]
        assert value == pytest.approx(expected["never"]["simple"]["value"], abs=1e-4)


def test_a_window_of_periods_leaves_out_those_treated_before_it() -> None:
    table, y, g = panel(7)
    padded = StaggeredDid("y", "g", "t", 9.0, 2, 4)
    found = answer(table, padded)
    assert [c["start"] for c in found["cohorts"]] == [None, 3, 4]
    assert found["never"]["group_time"][0]["cohort"] == 3
    value, _ = by_hand(y, g, 3, 4, g == NEVER)
    assert found["never"]["group_time"][-1]["effect"]["value"] == pytest.approx(value, abs=1e-4)


def test_small_cohorts_are_left_out_and_named() -> None:
    table, _, _ = panel(8, 60)
    found = answer(table, offered=offer(0.3))
    assert found["never"] is None
    assert "No effect can be estimated" in found["warnings"][-1]
    assert "4" in found["warnings"][0]


@pytest.mark.slow
@pytest.mark.parametrize("persons", [True, False])
def test_intervals_count_the_noise(persons: bool) -> None:
    """Over repeated draws on one table the simple average varies by its privacy standard error."""
    table, _, _ = panel(9, 1500)
    draws = [
        answer(table, persons=persons, offered=offer(4.0))["never"]["simple"] for _ in range(30)
    ]
    spread = np.std([d["value"] for d in draws], ddof=1)
    stated = np.mean([d["privacy_standard_error"] for d in draws])
    assert 0.6 * stated < spread < 1.5 * stated


def test_the_forecast_is_the_noise_of_the_reply() -> None:
    """To a factor: random walks, whose differences vary less than their levels."""
    table, _, _ = panel(10)
    plan = planned(QUERY, N, offer(2.0))
    assert plan.rho <= offer(2.0).rho
    assert plan.forecast["privacy_standard_error"] is None  # without a profile
    found = answer(table, offered=offer(2.0))["not_yet"]["simple"]
    noise = found["privacy_standard_error"]
    ratio = noise / np.sqrt(found["standard_error"] ** 2 - noise**2)
    (expected,) = plan.forecast["privacy_to_sampling"]
    assert 0.4 * ratio < expected < 2.5 * ratio
    assert not plan.precision.in_units
    assert plan.precision.ci_ratios == (pytest.approx(np.hypot(1, expected)),)


@pytest.mark.parametrize("persons", [True, False])
def test_the_forecast_in_units_is_that_of_independent_responses(persons: bool) -> None:
    """With a profile's spread; neither depends on the declared bounds."""
    rng = seeded(3)
    g = rng.choice([2, 3, NEVER], N, p=[0.25, 0.25, 0.5])
    table = long(rng.normal(size=(N, T)), g)
    plan = planned(QUERY, N, offer(2.0), persons=persons)
    units = N if persons else N * T
    known = replace(plan, sd=1.0, expected=(units / 2, units / 4, units / 4, 0.0))
    found = answer(table, persons=persons, offered=offer(2.0))["not_yet"]["simple"]
    forecast = known.forecast
    noise = found["privacy_standard_error"]
    sampling = np.sqrt(found["standard_error"] ** 2 - noise**2)
    assert forecast["privacy_standard_error"] == pytest.approx(noise, rel=0.5)  # .1 over tables
    own = 4 if persons else 1  # as of persons whose responses have growth and shocks in common
    assert forecast["privacy_to_sampling"] == [pytest.approx(own * noise / sampling, rel=0.6)]


def test_a_plan_that_expects_no_cohort_expects_no_interval() -> None:
    plan = planned(QUERY, N, offer(2.0))
    nobody = replace(plan, panel=replace(plan.panel, dates=()), expected=(1.0 * N,))
    assert nobody.forecast["privacy_to_sampling"] == [None]
    assert nobody.precision.privacy == (np.inf,)


def refusal(query: StaggeredDid, offered: Any = None) -> str:
    with pytest.raises((InvalidQuery, InvalidPrivacy)) as error:
        planned(query, 100, offered or offer(1.0))
    return str(error.value)


def test_what_cannot_be_asked_is_said() -> None:
    assert "different columns" in refusal(StaggeredDid("y", "t", "t"))
    assert "different columns" in refusal(StaggeredDid("g", "g", "t"))
    assert "whole numbers" in refusal(StaggeredDid("y", "x", "t"))
    assert "at most 40" in refusal(StaggeredDid("y", "g", "t", last=99))
    assert "at least 2" in refusal(StaggeredDid("y", "g", "t", first=4))
    assert "no cohort" in refusal(StaggeredDid("y", "g", "t", last=1))
    assert "too small" in refusal(QUERY, PrivacyCost(1, 1, RHO_UNITS // 10**12))
