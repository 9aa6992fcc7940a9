# SPDX-License-Identifier: Apache-2.0
"""Survival curves: Kaplan–Meier's without noise, as accurate as the noise allows with it, and
honest about it.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.shared.follow_up.question import default_cuts
from reticent_server.kinds.survival_curve.curve import crossing, monotone
from reticent_server.kinds.survival_curve.kind import KIND, SurvivalCurve
from support.kinds.recipes import block_of, facts_of, numeric, outcome
from support.seeds import seeded
from support.tables import competing
from support.tables.follow_up import (
    CUTS,
    EXACT,
    SCALE,
    SHAPE,
    TIME,
    block,
    facts,
    kaplan_meier,
    offer,
    survival,
)

R = json.loads((Path(__file__).parents[3] / "fixtures" / "r_competing.json").read_text())
MEDIAN = SCALE * np.log(2) ** (1 / SHAPE)


QUESTION = SurvivalCurve("t", "e", None, CUTS)


def plan(n: int, cost: Any, query: Any = QUESTION, **more: Any) -> Any:
    return KIND.plan(facts(n, **more), query, cost)


def test_without_noise_or_censoring_it_is_the_share_that_survives() -> None:
    rng, n = seeded(0), 3000
    time = SCALE * rng.weibull(SHAPE, n)
    data = block_of({"m": np.zeros(n, bool)}, t=time, e=np.ones(n), g=np.zeros(n), m=np.zeros(n))
    found = outcome(plan(n, EXACT), data)
    share = np.array([(time > c).mean() for c in CUTS])
    assert np.array(found.survival) == pytest.approx(share, abs=1e-6)
    assert np.array(found.standard_errors) == pytest.approx(
        np.sqrt(share * (1 - share) / n), rel=1e-3
    )
    assert np.array(found.at_risk) == pytest.approx(
        [(time > c).sum() for c in (0.0, *CUTS[:-1])], abs=0.05
    )
    assert max(found.privacy_standard_errors) < 1e-6


def test_without_noise_it_is_kaplan_meier_with_fine_cuts() -> None:
    rng, n = seeded(1), 20_000
    data = block(rng, n)
    cuts = tuple(np.linspace(0.06, 12, 200).tolist())
    found = outcome(plan(n, EXACT, SurvivalCurve("t", "e", None, cuts)), data)
    exact = kaplan_meier(data.columns["t"], data.columns["e"], np.array(cuts))
    assert np.array(found.survival) == pytest.approx(exact, abs=1e-4)


def test_ends_belong_to_their_interval_and_later_times_to_the_last() -> None:
    data = block_of(
        {"m": np.zeros(5, bool)},
        t=np.array([0.0, 2.0, 4.0, 5.0, 9.0]),
        e=np.array([0.0, 1.0, 1.0, 0.0, 1.0]),
        g=np.zeros(5),
        m=np.zeros(5),
    )
    found = outcome(plan(5, EXACT, SurvivalCurve("t", "e", None, (2.0, 4.0))), data)
    assert found.events == pytest.approx([1, 1], abs=1e-3)
    assert found.at_risk == pytest.approx([5, 3], abs=1e-3)
    assert found.survival == pytest.approx([3 / 4, 3 / 4 * 2 / 3], abs=1e-4)


def weekly(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """(t, e) of n persons in whole weeks, in a year at the end of which two thirds are left, all
    censored then.
    """
    until = np.ceil(60 * rng.weibull(1.4, n))
    left = np.ceil(rng.uniform(0, 150, n))
    end = np.minimum(left, 52.0)
    return {"t": np.minimum(until, end), "e": (until <= end).astype(float)}


WEEKS = Column("t", ColumnKind.INTEGER, 0.0, 60.0)
QUARTERS = (13.0, 26.0, 39.0, 52.0)


def test_numbers_at_risk_leave_out_who_was_censored_just_before() -> None:
    """Without noise, they are the persons followed up to the cut, whether times are whole numbers
    or not; a fortieth of the time before the cut holds many who are censored."""
    rng, n = seeded(5), 20_000
    data = block(rng, n)
    found = outcome(plan(n, EXACT, SurvivalCurve("t", "e", None, (2.0, 4.0, 6.0))), data)
    right = [n, *((data.columns["t"] > cut).sum() for cut in (2.0, 4.0))]
    assert np.array(found.at_risk) == pytest.approx(right, abs=0.05)
    weeks = weekly(rng, n)
    weeks["t"] = weeks["t"] * 20  # steps of 26 days
    planned = KIND.plan(
        facts_of(n, (replace(WEEKS, upper=1200.0), *facts(1).schema.columns[1:])),
        SurvivalCurve("t", "e", None, (100.0, 500.0, 1040.0)),
        EXACT,
    )
    found = outcome(planned, block_of({"m": np.zeros(n, bool)}, **weeks, m=np.zeros(n)))
    t, e = weeks["t"], weeks["e"]
    right = [n, *(((t > cut) | ((t == cut) & (e == 0))).sum() for cut in (100.0, 500.0))]
    assert np.array(found.at_risk) == pytest.approx(right, abs=0.05)


def test_few_cuts_are_reported_of_a_fine_grid_and_are_kaplan_meiers() -> None:
    """Without noise: within a tenth of a standard error of S, and of the area under its steps, at
    each asked cut.
    """
    n = 3000
    columns = weekly(seeded(2), n)
    planned = KIND.plan(
        facts_of(n, (WEEKS, *facts(1).schema.columns[1:])),
        SurvivalCurve("t", "e", None, QUARTERS),
        EXACT,
    )
    found = outcome(planned, block_of({"m": np.zeros(n, bool)}, **columns, m=np.zeros(n)))
    exact = kaplan_meier(columns["t"], columns["e"], np.arange(1, 53))
    assert found.times == QUARTERS
    assert len(planned.grid.times) > 40
    errors = np.array(found.standard_errors)
    assert np.abs((np.array(found.survival) - exact[[12, 25, 38, 51]]) / errors).max() < 0.1
    area = 1 + exact[:-1].sum()
    assert abs(found.restricted_mean - area) < 0.1 * found.restricted_mean_standard_error
    for k, until in enumerate((13, 26, 39, 52)):
        part = 1 + exact[: until - 1].sum()
        assert (
            abs(found.restricted_means[k] - part) < 0.1 * found.restricted_mean_standard_errors[k]
        )
    assert found.restricted_means[-1] == found.restricted_mean
    assert sum(found.events) == pytest.approx(columns["e"].sum(), abs=1e-3)


def test_a_landmark_is_a_condition_on_the_time() -> None:
    """R's curve of those who are still followed at week 26."""
    n, cuts = 1500, (26.0, 52.0, 104.0)
    planned = KIND.plan(competing.facts(n), SurvivalCurve("t", "e", None, cuts, "t > 26"), EXACT)
    found = outcome(planned, competing.given_to_r())
    assert found.survival[0] == pytest.approx(1.0, abs=1e-6)
    assert found.survival[1:] == pytest.approx(R["landmark_26"]["survival"], abs=3e-3)
    assert found.standard_errors[1:] == pytest.approx(R["landmark_26"]["errors"], rel=0.02)


@pytest.mark.slow
def test_intervals_at_few_cuts_hold_kaplan_meiers_curve_of_the_population() -> None:
    """Of 300 seeded tables of 432 persons at ε = 1: the noise of a fine grid does not move the
    curve.
    """
    rng, n, held = seeded(3), 432, []
    known = facts_of(n, (WEEKS, *facts(1).schema.columns[1:]))
    planned = KIND.plan(known, SurvivalCurve("t", "e", None, QUARTERS), offer(1.0))
    large = weekly(rng, 400_000)
    truth = kaplan_meier(large["t"], large["e"], np.array(QUARTERS))
    for _ in range(300):
        data = block_of({"m": np.zeros(n, bool)}, **weekly(rng, n), m=np.zeros(n))
        found = outcome(planned, data)
        ends = np.array(found.confidence_intervals)
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert 0.93 <= np.mean(held) <= 0.985
    assert np.min(np.mean(held, axis=0)) > 0.91


@pytest.mark.slow
def test_noise_does_not_move_the_mean_of_the_logarithm() -> None:
    """One table of 432 persons at ε = .5, 400 seeded draws: however fine the grid."""
    n = 432
    known = facts_of(n, (WEEKS, *facts(1).schema.columns[1:]))
    question = SurvivalCurve("t", "e", None, (26.0,))
    data = block_of({"m": np.zeros(n, bool)}, **weekly(seeded(4), n), m=np.zeros(n))
    exact = np.log(outcome(KIND.plan(known, question, EXACT), data).survival[-1])
    planned = KIND.plan(known, question, offer(0.5))
    drawn = np.log([outcome(planned, data).survival[-1] for _ in range(400)])
    assert abs(drawn.mean() - exact) < 0.1 * drawn.std()


def test_groups_that_fill_the_cells_keep_their_own_cuts() -> None:
    levels = tuple(f"g{k:03d}" for k in range(100))
    many = Column("g", ColumnKind.CATEGORICAL, 0.0, 99.0, levels)
    columns = (TIME, facts(1).schema.columns[1], many)
    planned = KIND.plan(
        facts_of(500, columns), SurvivalCurve("t", "e", "g", (4.0, 8.0)), offer(1.0)
    )
    assert planned.cuts == (4.0, 8.0)
    assert len(planned.grid.times) == 3  # and what tells who is at risk at 4


CELLS = [(1000, 1.0, 1), (5000, 0.5, 1), (2000, 4.0, 1), (4000, 1.0, 2)]
WORSE = {(1000, 1.0): 1.9, (5000, 0.5): 1.9, (2000, 4.0): 1.15, (4000, 1.0): 2.0}


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(("n", "epsilon", "groups"), CELLS)
def test_intervals_hold_the_truth_and_errors_are_near_kaplan_meiers(
    n: int, epsilon: float, groups: int
) -> None:
    """Of 120 seeded tables: coverage of curve, restricted mean and median, and the RMSE beside
    Kaplan–Meier's.
    """
    rng, held, squares, exact = seeded(n), [], [], []
    query = SurvivalCurve("t", "e", "g" if groups == 2 else None, CUTS)
    planned, truth = plan(n, offer(epsilon), query), survival(CUTS)
    for _ in range(120):
        data = block(rng, n)
        found = outcome(planned, data)
        for label, curve in enumerate(found.groups or (found,)):
            k = len(curve.times)
            low, high = np.array(curve.confidence_intervals).T
            held.append(np.mean((low <= truth[:k]) & (truth[:k] <= high)))
            squares.append(np.mean((np.array(curve.survival) - truth[:k]) ** 2))
            mine = data.columns["g"] == label if groups == 2 else slice(None)
            km = kaplan_meier(data.columns["t"][mine], data.columns["e"][mine], np.array(CUTS))
            exact.append(np.mean((km - truth) ** 2))
    assert 0.93 <= np.mean(held) <= 0.98
    assert np.sqrt(np.mean(squares) / np.mean(exact)) < WORSE[n, epsilon]


@pytest.mark.slow
def test_medians_and_restricted_means_are_in_their_intervals() -> None:
    rng, n, medians, means = seeded(5), 4000, [], []
    grid = np.linspace(0, CUTS[-1], 20_001)
    area = float(np.trapezoid(survival(grid), grid))
    planned = plan(n, offer(1.0))
    for _ in range(150):
        found = outcome(planned, block(rng, n))
        low, high = found.median_interval
        medians.append(low <= MEDIAN <= high)
        means.append(found.restricted_mean_interval[0] <= area <= found.restricted_mean_interval[1])
        assert found.horizon == CUTS[-1]
    assert 0.90 <= np.mean(medians) <= 1.0
    assert 0.90 <= np.mean(means) <= 0.99


def test_a_curve_ends_where_the_noise_hides_who_is_at_risk() -> None:
    n = 60
    found = outcome(plan(n, offer(0.2)), block(seeded(3), n))
    assert len(found.times) < len(CUTS)
    assert len(found.survival) == len(found.times) == len(found.confidence_intervals)
    json.dumps(result_json(found), allow_nan=False)


def test_a_group_without_anybody_has_a_curve_without_times() -> None:
    n, rng = 2000, seeded(4)
    data = block(rng, n)
    data.columns["g"][:] = 0.0
    found = outcome(plan(n, offer(1.0), SurvivalCurve("t", "e", "g", CUTS)), data)
    reply = result_json(found)
    json.dumps(reply, allow_nan=False)
    assert [group["level"] for group in reply["groups"]] == ["a", "b"]
    assert len(found.groups[0].times) == len(CUTS)
    assert found.groups[1].times == ()
    assert found.horizon == CUTS[-1]
    assert "times" not in reply


def test_records_out_of_use_are_in_no_cell() -> None:
    n, rng = 3000, seeded(6)
    data = block(rng, n)
    data.missing["m"][: n // 2] = True
    query = SurvivalCurve("t", "e", None, CUTS, "m >= 0")
    found = outcome(plan(n, EXACT, query), data)
    kept = slice(n // 2, None)
    assert found.at_risk[0] == pytest.approx(n - n // 2, abs=0.01)
    exact = kaplan_meier(data.columns["t"][kept], data.columns["e"][kept], np.array(CUTS))
    assert np.array(found.survival) == pytest.approx(exact, abs=0.005)


def test_the_public_number_of_records_makes_curves_better() -> None:
    """Noise of the numbers at risk, with n known and with a condition that leaves it unknown."""
    rng, sums = seeded(7), []
    for where in (None, "t >= 0"):
        planned = plan(2000, offer(0.5), SurvivalCurve("t", "e", None, CUTS, where))
        sums.append([outcome(planned, block(rng, 2000)).at_risk[0] for _ in range(20)])
    assert np.abs(np.array(sums[0]) - 2000).max() < 1e-6
    assert np.std(sums[1]) > 10


def test_rows_of_a_unit_make_more_noise() -> None:
    one, three = (plan(1000, offer(1.0), max_rows=m).forecast for m in (1, 3))
    assert three["privacy_standard_error"] == pytest.approx(3 * one["privacy_standard_error"])


def test_cuts_that_are_left_out_come_from_the_profile_or_the_bounds() -> None:
    whole = Column("k", ColumnKind.INTEGER, 0, 9)
    assert default_cuts(facts(100), TIME) == tuple(float(k) for k in range(1, 21))
    assert default_cuts(facts(100), whole) == tuple(float(k) for k in range(1, 10))
    known = facts_of(100, (TIME,), quartiles={"t": (2.0, 4.0, 6.0)})
    cuts = default_cuts(known, TIME)
    assert min(cuts) > 0
    assert max(cuts) < 8.1
    assert 4.0 in cuts
    assert list(cuts) == sorted(set(cuts))


BAD = {
    "an unknown column": SurvivalCurve("nobody", "e"),
    "a time that is an event": SurvivalCurve("e", "e"),
    "a dummy as time": SurvivalCurve("e", "t"),
    "an event that is a number": SurvivalCurve("t", "m"),
    "groups of a numeric column": SurvivalCurve("t", "e", "m"),
    "cuts that fall": SurvivalCurve("t", "e", None, (3.0, 2.0)),
    "a cut at 0": SurvivalCurve("t", "e", None, (0.0, 2.0)),
    "a cut beyond the bounds": SurvivalCurve("t", "e", None, (2.0, 21.0)),
    "no cuts": SurvivalCurve("t", "e", None, ()),
}


@pytest.mark.parametrize("name", BAD)
def test_a_question_that_cannot_be_answered_says_what_to_change(name: str) -> None:
    with pytest.raises(InvalidQuery):
        plan(100, offer(1.0), BAD[name])


def test_times_below_zero_are_refused_by_their_bounds() -> None:
    columns = (numeric("t", -1.0, 5.0), Column("e", ColumnKind.BOOLEAN, 0, 1))
    with pytest.raises(InvalidQuery, match="bounds"):
        KIND.plan(facts_of(10, columns), SurvivalCurve("t", "e"), offer(1.0))


def test_a_curve_is_made_monotone_and_crosses_one_half_once() -> None:
    curve = monotone(np.array([0.9, 0.95, 0.4, 0.45, 0.1]))
    assert curve == pytest.approx([0.925, 0.925, 0.425, 0.425, 0.1])
    assert crossing(np.array([1.0, 2.0]), np.array([0.75, 0.25])) == pytest.approx(1.5)
    assert crossing(np.array([1.0]), np.array([0.6])) is None
    assert crossing(np.array([4.0]), np.array([0.5])) == pytest.approx(4.0)


def test_the_median_of_whole_times_is_one_of_them() -> None:
    """As Kaplan and Meier's: the first time at which at most a half are left, and so the ends."""
    n = 4000
    t = np.ceil(5 * seeded(3).weibull(1.3, n) ** 1.1).clip(1, 60)
    columns = (WEEKS, *facts(1).schema.columns[1:])
    query = SurvivalCurve("t", "e", None, QUARTERS)
    planned = KIND.plan(facts_of(n, columns), query, EXACT)
    found = outcome(planned, block_of({"m": np.zeros(n, bool)}, t=t, e=np.ones(n), m=np.zeros(n)))
    right = float(np.flatnonzero([(t > k).mean() <= 0.5 for k in range(61)])[0])
    assert found.median == right
    low, high = found.median_interval
    assert low <= right <= high
    assert {low % 1, high % 1} == {0.0}
    assert crossing(np.array([1.0, 4.0]), np.array([0.75, 0.25]), 1.0) == 3.0
    assert crossing(np.array([1.0, 4.0]), np.array([0.75, 0.5]), 1.0) == 4.0
