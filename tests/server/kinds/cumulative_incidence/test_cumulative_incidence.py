# SPDX-License-Identifier: Apache-2.0
"""Cumulative incidences: R's without noise, honest about it with it; Gray's test."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.results import result_json
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.cumulative_incidence.incidence import increasing
from reticent_server.kinds.cumulative_incidence.kind import KIND, CumulativeIncidence
from reticent_server.kinds.shared.follow_up.table import life_table
from reticent_server.kinds.survival_curve.kind import KIND as SURVIVAL
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from support.kinds.recipes import block_of, facts_of, outcome, released
from support.seeds import seeded
from support.tables.competing import COLUMNS, WEEKS, block, competing, facts, given_to_r
from support.tables.follow_up import EXACT, offer

R = json.loads((Path(__file__).parents[3] / "fixtures" / "r_competing.json").read_text())
N = 1500
EVERY_WEEK = tuple(float(k) for k in range(1, 105))


def question(by: str | None = None, cuts: Any = WEEKS, where: str | None = None) -> Any:
    return CumulativeIncidence("t", "cause", by, cuts, where, censored="none")


def answer(cost: Any, query: Any, data: Any = None) -> Any:
    data = given_to_r() if data is None else data
    return outcome(KIND.plan(facts(data.rows), query, cost), data)


def test_without_noise_it_is_r_s_survfit_of_competing_causes() -> None:
    found = answer(EXACT, question())
    assert [(curve.level, curve.cause) for curve in found.curves] == [
        (None, "relapse"), (None, "death"),
    ]  # fmt: skip
    for curve in found.curves:
        errors = np.array(R["all"][f"{curve.cause}_errors"])
        off = np.array(curve.incidence) - R["all"][curve.cause]
        assert np.abs(off / errors).max() < 0.1
        assert np.array(curve.standard_errors) == pytest.approx(errors, rel=0.02)
        assert max(curve.privacy_standard_errors) < 1e-6
        lost = R["times_lost"][curve.cause]
        assert abs(curve.times_lost[-1] - lost) < 0.1 * curve.times_lost_standard_errors[-1]
    assert found.tests is None


def test_groups_and_gray_s_test_are_r_s_too() -> None:
    found = answer(EXACT, question("g", EVERY_WEEK))
    at = [int(week) - 1 for week in WEEKS]
    for curve in found.curves:
        expected = R[curve.level]
        assert np.array(curve.incidence)[at] == pytest.approx(expected[curve.cause], abs=1e-3)
        errors = expected[f"{curve.cause}_errors"]
        assert np.array(curve.standard_errors)[at] == pytest.approx(errors, rel=0.02)
    for test in found.tests:
        assert test.df == 2
        assert test.until == 104
        # cmprsk's variance is that of the hypothesis, this one that of the influence functions.
        assert test.statistic == pytest.approx(R["gray"][test.cause], rel=0.08, abs=0.05)
        assert sum(test.observed_minus_expected) == pytest.approx(0, abs=1e-6)
        assert test.privacy_share < 1e-6
    assert found.tests[0].observed_minus_expected[2] > 0 > found.tests[0].observed_minus_expected[0]


def test_one_cause_is_the_survival_curve_upside_down() -> None:
    """Counts, errors, intervals and areas, with the same noise."""
    columns = competing(seeded(3), N)
    columns["cause"] = columns["e"].copy()
    two = Column("cause", ColumnKind.CATEGORICAL, 0.0, 1.0, ("none", "relapse"))
    known = facts_of(N, (COLUMNS[0], two, *COLUMNS[2:]))
    planned = KIND.plan(known, CumulativeIncidence("t", "cause", None, WEEKS), EXACT)
    curve = outcome(planned, block_of({}, **columns)).curves[0]
    other = SURVIVAL.plan(known, SurvivalCurve("t", "e", None, WEEKS), EXACT)
    survival = outcome(other, block_of({}, **columns))
    assert curve.incidence == pytest.approx(1 - np.array(survival.survival), abs=1e-6)
    assert curve.standard_errors == pytest.approx(survival.standard_errors, rel=1e-4)
    ends = 1 - np.array(survival.confidence_intervals)[:, ::-1]
    assert np.array(curve.confidence_intervals) == pytest.approx(ends, abs=1e-5)
    lost = np.array(WEEKS) - survival.restricted_means
    assert curve.times_lost == pytest.approx(lost, abs=1e-3)
    assert curve.times_lost_standard_errors == pytest.approx(
        survival.restricted_mean_standard_errors, rel=1e-4
    )


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(("n", "epsilon"), [(1000, 1.0), (4000, 0.5)])
def test_intervals_hold_the_population_s_incidences(n: int, epsilon: float) -> None:
    """Of 100 seeded tables, of both causes at four times; and the times lost."""
    truth = answer(EXACT, question(), block(seeded(1), 200_000))
    rng, held, lost = seeded(n), [], []
    planned = KIND.plan(facts(n), question(), offer(epsilon))
    for _ in range(100):
        found = outcome(planned, block(rng, n))
        for curve, exact in zip(found.curves, truth.curves, strict=True):
            k = len(curve.times)
            low, high = np.array(curve.confidence_intervals).T
            held.append(np.mean((low <= exact.incidence[:k]) & (exact.incidence[:k] <= high)))
            off = np.abs(np.array(curve.times_lost) - exact.times_lost[:k])
            lost.append(np.mean(off < 1.96 * np.array(curve.times_lost_standard_errors)))
    assert 0.92 <= np.mean(held) <= 0.98
    assert 0.91 <= np.mean(lost) <= 0.98


@pytest.mark.slow
def test_gray_s_test_keeps_its_level_and_sees_a_difference() -> None:
    """Of 120 and 40 seeded tables; a level of .05 has a standard error of .02."""
    n, rng = 1500, seeded(7)
    planned = KIND.plan(facts(n), question("g"), offer(1.0))

    def rejected(tables: int, **more: float) -> Any:
        found = [outcome(planned, block(rng, n, spread=0.0, **more)).tests for _ in range(tables)]
        return np.mean([[test.p_value < 0.05 for test in tests] for tests in found], axis=0)

    assert rejected(120, slope=0.0).max() <= 0.11
    assert rejected(40, slope=0.5)[0] > 0.9


def test_noise_is_in_the_standard_errors_and_in_the_law_of_the_test() -> None:
    """40 seeded draws of one table: the spread is what the privacy standard errors say."""
    data = block(seeded(20), N)
    planned = KIND.plan(facts(N), question("g"), offer(2.0))
    found = [outcome(planned, data) for _ in range(40)]
    drawn = np.std([[curve.incidence[0] for curve in each.curves] for each in found], axis=0)
    stated = np.mean(
        [[c.privacy_standard_errors[0] for c in each.curves] for each in found], axis=0
    )
    assert 0.6 < np.mean(drawn / stated) < 1.4
    assert all(0 < test.privacy_share < 1 for each in found for test in each.tests)


def test_the_number_of_all_persons_has_no_noise_and_a_group_s_has() -> None:
    planned = KIND.plan(facts(N), question("g"), offer(1.0))
    (cells,) = released(next(planned.run()), block(seeded(20), N))
    table = life_table(planned.asked, cells, N)
    everybody = np.ones((1, *table.counts.shape))
    assert table.counts.sum() == pytest.approx(N)
    assert table.noise_of_groups(everybody)[0, 0] == pytest.approx(0, abs=1e-6)
    everybody[0, 0] = 0.0
    assert table.noise_of_groups(everybody)[0, 0] > 100


def test_a_group_without_anybody_has_curves_without_times_and_no_test() -> None:
    n = 800
    columns = competing(seeded(4), n)
    columns["g"][:] = 0.0
    found = answer(offer(1.0), question("g"), block_of({}, **columns))
    json.dumps(result_json(found), allow_nan=False)
    assert found.curves[2].times == ()
    assert found.tests == ()


def test_the_event_free_level_is_the_first_unless_it_is_named() -> None:
    data = block(seeded(20), N)
    found = answer(EXACT, CumulativeIncidence("t", "cause", None, WEEKS), data)
    assert [curve.cause for curve in found.curves] == ["none", "death"]
    with pytest.raises(InvalidQuery, match="censored"):
        answer(EXACT, CumulativeIncidence("t", "cause", censored="nobody"), data)


@pytest.mark.parametrize("event", ["t", "nobody"])
def test_events_are_levels(event: str) -> None:
    with pytest.raises(InvalidQuery):
        answer(
            EXACT,
            CumulativeIncidence("g", event) if event == "t" else CumulativeIncidence("t", event),
        )
    with pytest.raises(InvalidQuery, match="cumulative_incidence"):
        SURVIVAL.plan(facts(N), SurvivalCurve("t", "cause"), EXACT)


def test_a_curve_is_made_increasing() -> None:
    found = increasing(np.array([-0.1, 0.2, 0.1, 1.1]))
    assert found == pytest.approx([0.0, 0.15, 0.15, 1.0])
