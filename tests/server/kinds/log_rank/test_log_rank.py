# SPDX-License-Identifier: Apache-2.0
"""The log-rank test: the statistic without noise, its level with it, and power that is not thrown
away.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.results import result_json
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.log_rank.kind import KIND, LogRank
from reticent_server.kinds.log_rank.scores import (
    LogRankMap,
    Pilot,
    contrasts,
    pilot_of,
    scores_of,
    trend,
)
from reticent_server.kinds.shared.follow_up.table import life_table
from support.kinds.recipes import block_of, outcome, released
from support.seeds import seeded
from support.tables import competing
from support.tables.follow_up import CUTS, EXACT, block, facts, log_rank, offer

R = json.loads((Path(__file__).parents[3] / "fixtures" / "r_competing.json").read_text())
QUESTION = LogRank("t", "e", "g", CUTS)


def plan(n: int, cost: Any, query: Any = QUESTION) -> Any:
    return KIND.plan(facts(n), query, cost)


def rejected(planned: Any, rng: np.random.Generator, n: int, tables: Any, **more: Any) -> Any:
    return np.mean([outcome(planned, block(rng, n, **more)).p_value < 0.05 for _ in range(tables)])


@pytest.mark.slow
def test_without_noise_it_is_the_statistic_of_distinct_times() -> None:
    rng, n = seeded(0), 4000
    cuts = tuple(np.linspace(0.1, 20, 200).tolist())
    for ratio in (1.0, 1.3, 0.8):
        data = block(rng, n, ratio=ratio)
        found = outcome(plan(n, EXACT, LogRank("t", "e", "g", cuts)), data)
        exact = log_rank(data.columns["t"], data.columns["e"], data.columns["g"])
        assert found.statistic == pytest.approx(exact, rel=0.05, abs=0.05)
        assert found.df == 1
        assert found.levels == ("a", "b")
        assert sum(found.observed_minus_expected) == pytest.approx(0, abs=1e-6)
        assert (found.observed_minus_expected[1] > 0) == (ratio > 1) or ratio == 1.0


LEVELS = [(500, 1.0, {}), (2000, 1.0, {"dropout": 4.0}), (5000, 0.5, {"share": 0.2})]


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize(("n", "epsilon", "more"), LEVELS)
def test_the_level_is_kept_where_groups_do_not_differ(
    n: int, epsilon: float, more: dict[str, Any]
) -> None:
    """Of 400 seeded tables; a level of .05 has a standard error of .011."""
    assert rejected(plan(n, offer(epsilon)), seeded(n), n, 400, **more) <= 0.08


@pytest.mark.slow
def test_a_difference_is_found_almost_as_often_as_without_noise() -> None:
    rng, n = seeded(8), 5000
    assert rejected(plan(n, offer(1.0)), rng, n, 60, ratio=1.15) > 0.75


def test_the_bounded_sum_has_a_small_share_of_noise_in_large_tables() -> None:
    found = outcome(plan(20_000, offer(1.0)), block(seeded(1), 20_000))
    assert 0 < found.privacy_share < 0.1


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_it_replies_where_nobody_is_in_a_group_and_where_nothing_happens(epsilon: float) -> None:
    n = 300
    data = block_of(
        {"m": np.zeros(n, bool)}, t=np.full(n, 3.0), e=np.zeros(n), g=np.zeros(n), m=np.zeros(n)
    )
    for _ in range(5):
        found = outcome(plan(n, offer(epsilon)), data)
        json.dumps(result_json(found), allow_nan=False)
        assert 0 <= found.p_value <= 1
        assert found.statistic >= 0


def test_contrasts_are_orthonormal_and_add_up_to_nothing() -> None:
    H = contrasts(5)
    assert pytest.approx(np.eye(4), abs=1e-12) == H @ H.T
    assert H.sum(axis=1) == pytest.approx(np.zeros(4), abs=1e-12)


CHOICES: dict[str, dict[str, Any]] = {
    "plain": {},
    "strata": {"strata": "s"},
    "strata, early": {"strata": "s", "emphasis": (1.0, 0.0)},
    "trend": {"trend": True},
    "strata, trend": {"strata": "s", "trend": True},
}


@pytest.mark.parametrize("name", CHOICES)
def test_without_noise_strata_weights_and_trends_are_r_s(name: str) -> None:
    data = competing.given_to_r()
    cuts = tuple(float(k) for k in range(1, 111))
    # R counts ties by the hypergeometric law, whose variance is smaller.
    query = LogRank("t", "e", "g", cuts, **CHOICES[name])
    found = outcome(KIND.plan(competing.facts(1500), query, EXACT), data)
    assert found.statistic == pytest.approx(R["log_rank"][name], rel=0.05)
    assert found.df == (1 if "trend" in name else 2)
    assert found.levels == ("low", "mid", "high")
    assert found.observed_minus_expected[2] > 0 > found.observed_minus_expected[0]


@pytest.mark.slow
def test_strata_keep_the_level_where_groups_differ_by_their_strata_alone() -> None:
    """Of 150 seeded tables of 800 persons, whose pilot is mostly noise late in a stratum; and
    without strata the same tables are told apart.
    """
    n, rng, found = 800, seeded(9), []
    queries = (LogRank("t", "e", "g", strata="s"), LogRank("t", "e", "g"))
    plans = [KIND.plan(competing.facts(n), query, offer(1.0)) for query in queries]
    for _ in range(150):
        data = competing.block(rng, n, slope=0.0)
        found.append([outcome(planned, data).p_value < 0.05 for planned in plans])
    within, across = np.mean(found, axis=0)
    assert within <= 0.09
    assert across > 0.3


def test_what_the_pilot_s_noise_adds_is_in_the_variance() -> None:
    """Of one table of 1,000 persons, 40 seeded pilots: what the sum of scores is off by from that
    of a pilot without noise, beside the variance that is stated for it.
    """
    n, rng = 1000, seeded(31)
    data = block(rng, n)
    planned, whole = (plan(n, cost, LogRank("t", "e", "g", CUTS)) for cost in (offer(0.5), EXACT))
    exact = whole.scores_after(released(next(whole.run()), data)[0])
    off, stated = [], []
    for _ in range(40):
        (cells,) = released(next(planned.run()), data)
        scores = planned.scores_after(cells)
        K = min(scores.until, exact.until)
        sums = [
            LogRankMap(
                planned.asked,
                replace(each, seen=each.seen[:, :, :K], lived=each.lived[:, :, : K + 1]),
            )
            for each in (scores, exact)
        ]
        ours, theirs = (float(each(data)[0].sum()) for each in sums)
        off.append((ours - theirs) ** 2)
        stated.append(pilot_of(life_table(planned.asked, cells, n)).errors[:K].sum())
    assert 0.15 < np.mean(off) / np.mean(stated) < 2  # 40 squares of one table: ± .25, or more


def test_late_weights_leave_early_events_out() -> None:
    hazard = np.full(10, 0.1)
    pilot = Pilot(np.full((2, 10), 0.5), hazard, np.zeros((10, 2, 2)), np.zeros(10), hazard > 0)
    late = np.abs(scores_of([pilot], 1e9, contrasts(2), (0.0, 1.0)).seen[0, 0])
    early = np.abs(scores_of([pilot], 1e9, contrasts(2), (1.0, 0.0)).seen[0, 0])
    middle = 1 - np.exp(-0.1 * (np.arange(len(late)) + 0.5))
    assert late == pytest.approx(np.sqrt(0.5) * middle)
    assert early == pytest.approx(np.sqrt(0.5) * (1 - middle[: len(early)]))


def test_what_is_asked_of_strata_and_weights_is_checked() -> None:
    with pytest.raises(InvalidQuery, match="strata"):
        KIND.plan(competing.facts(100), LogRank("t", "e", "g", strata="g"), offer(1.0))
    with pytest.raises(InvalidQuery):
        KIND.plan(competing.facts(100), LogRank("t", "e", "g", strata="nobody"), offer(1.0))
    assert trend(np.arange(3)) @ np.ones(3) == pytest.approx(0.0)


def test_a_group_needs_another_one() -> None:
    with pytest.raises(InvalidQuery):
        plan(100, offer(1.0), LogRank("t", "e", "t"))
    with pytest.raises(InvalidQuery):
        plan(100, offer(1.0), LogRank("t", "e", "m"))
