# SPDX-License-Identifier: Apache-2.0
"""The log-rank test: the statistic without noise, its level with it, and power that is not thrown
away.
"""

import json
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.results import result_json
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.log_rank.kind import KIND, LogRank
from reticent_server.kinds.log_rank.scores import contrasts
from support.kinds.recipes import block_of, outcome
from support.tables.follow_up import CUTS, EXACT, block, facts, log_rank, offer

QUESTION = LogRank("t", "e", "g", CUTS)


def plan(n: int, cost: Any, query: Any = QUESTION) -> Any:
    return KIND.plan(facts(n), query, cost)


def rejected(planned: Any, rng: np.random.Generator, n: int, tables: Any, **more: Any) -> Any:
    return np.mean([outcome(planned, block(rng, n, **more)).p_value < 0.05 for _ in range(tables)])


@pytest.mark.slow
def test_without_noise_it_is_the_statistic_of_distinct_times() -> None:
    rng, n = np.random.default_rng(0), 4000
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
@pytest.mark.sample(3)
@pytest.mark.parametrize(("n", "epsilon", "more"), LEVELS)
def test_the_level_is_kept_where_groups_do_not_differ(
    n: int, epsilon: float, more: dict[str, Any]
) -> None:
    """Of 400 seeded tables; a level of .05 has a standard error of .011."""
    assert rejected(plan(n, offer(epsilon)), np.random.default_rng(n), n, 400, **more) <= 0.08


def test_a_difference_is_found_almost_as_often_as_without_noise() -> None:
    rng, n = np.random.default_rng(8), 5000
    assert rejected(plan(n, offer(1.0)), rng, n, 60, ratio=1.15) > 0.75


def test_the_bounded_sum_has_a_small_share_of_noise_in_large_tables() -> None:
    found = outcome(plan(20_000, offer(1.0)), block(np.random.default_rng(1), 20_000))
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


def test_a_group_needs_another_one() -> None:
    with pytest.raises(InvalidQuery):
        plan(100, offer(1.0), LogRank("t", "e", "t"))
    with pytest.raises(InvalidQuery):
        plan(100, offer(1.0), LogRank("t", "e", "m"))
