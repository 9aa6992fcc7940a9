# SPDX-License-Identifier: Apache-2.0
"""Survival curves, cumulative incidences and the log-rank test, attacked: records over all cells,
on released paths, in the mechanism's norm.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.domain.steps import RunningCounts, VectorSum
from reticent_server.kinds.cumulative_incidence.kind import KIND as CAUSES
from reticent_server.kinds.cumulative_incidence.kind import CumulativeIncidence
from reticent_server.kinds.log_rank.kind import KIND as LOG_RANK
from reticent_server.kinds.log_rank.kind import LogRank
from reticent_server.kinds.log_rank.scores import (
    LogRankMap,
    Pilot,
    contrasts,
    pilot_of,
    scores_of,
)
from reticent_server.kinds.shared.follow_up.question import FollowUpGroups, GroupsWithinStrata
from reticent_server.kinds.shared.follow_up.table import life_table
from reticent_server.kinds.survival_curve.kind import KIND as SURVIVAL
from reticent_server.kinds.survival_curve.kind import SurvivalCurve
from reticent_server.mechanisms import registry
from support.attacks.privacy_losses import farthest_records, step_loss
from support.kinds.recipes import block_of, facts_of, released
from support.seeds import seeded
from support.tables.follow_up import COLUMNS, CUTS, block, facts, offer

N = 300
SEEDS = range(6)
LEVELS = Column("s", ColumnKind.CATEGORICAL, 0.0, 2.0, ("x", "y", "z"))


def strata_facts() -> Any:
    """With a column of three levels, strata or causes."""
    return facts_of(N, (*COLUMNS, LEVELS))


SURVIVAL_PLAN = SURVIVAL.plan(facts(N), SurvivalCurve("t", "e", "g", CUTS), offer(1.0))
LOG_RANK_PLAN = LOG_RANK.plan(facts(N), LogRank("t", "e", "g", CUTS), offer(1.0))
WEIGHTED = LogRank("t", "e", "g", CUTS, strata="s", trend=True, emphasis=(0.5, 1.0))
PLANS = {
    "curve": SURVIVAL_PLAN,
    "log-rank": LOG_RANK_PLAN,
    "weighted trend within strata": LOG_RANK.plan(strata_facts(), WEIGHTED, offer(1.0)),
    "causes": CAUSES.plan(
        strata_facts(), CumulativeIncidence("t", "s", "g", CUTS, censored="z"), offer(1.0)
    ),
}


def records() -> Any:
    """(columns) of persons at, between and beyond all cuts, with and without event, in both groups
    and in none.
    """
    times = [0.0, *CUTS[::3], *(np.array(CUTS[::3]) - 0.3), 12.5, 20.0, -1.0, np.nan, np.inf, 1e300]
    levels = (0.0, 1.0, 7.0, np.nan)
    grid = np.array(
        [(t, e, g, s) for t in times for e in (0.0, 1.0, np.nan) for g in levels for s in levels]
    ).T
    return dict(zip("tegs", grid, strict=True)) | {"m": np.zeros(grid.shape[1])}


def table_of(rng: np.random.Generator) -> Any:
    """N persons, each in a stratum or with a cause."""
    plain = block(rng, N)
    columns = dict(plain.columns) | {"s": rng.integers(3, size=N).astype(float)}
    return block_of(dict(plain.missing), **columns)


def steps_on_a_path(plan: Any, data: Any) -> Any:
    """The plan's steps on what is released of a table."""
    recipe = plan.run()
    step, steps = next(recipe), []
    while True:
        steps.append(step)
        try:
            step = recipe.send(released(step, data))
        except StopIteration:
            return steps


@pytest.mark.slow
@pytest.mark.sample(12)
@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_two_records_are_farther_apart_than_the_noise_is_made_for(name: str, seed: int) -> None:
    for step in steps_on_a_path(PLANS[name], table_of(seeded(seed))):
        for kind, share in farthest_records(step, records()):
            assert share <= 1
            if kind is RunningCounts:
                assert share > 0.999


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PLANS)
def test_all_steps_together_lose_no_more_than_is_charged(name: str) -> None:
    rng, worst, plan = seeded(11), 0.0, PLANS[name]
    pool = records()
    for _ in range(25):
        data = table_of(rng)
        neighbour = block_of(dict(data.missing), **{k: v.copy() for k, v in data.columns.items()})
        for column_name, column in neighbour.columns.items():
            column[0] = pool[column_name][rng.integers(len(pool["t"]))]
        steps = steps_on_a_path(plan, data)
        assert sum(map(registry.rho, steps)) == plan.rho
        worst = max(worst, sum(step_loss(step, data, neighbour) for step in steps))
    assert 0.2 * plan.rho < worst <= plan.rho


def hand_made(shares: Any, hazard: Any) -> Any:
    """Scores from a pilot with constant shares and hazards."""
    J = len(CUTS)
    of = np.tile(np.array(shares)[:, None], J)
    spread = np.diag(shares) - np.outer(shares, shares)
    variance = np.tile(100 * hazard * spread, (J, 1, 1))
    pilot = Pilot(of, np.full(J, hazard), variance, np.zeros(J), np.ones(J, dtype=bool))
    return scores_of([pilot], 1e-3, contrasts(len(shares)))


@pytest.mark.parametrize(
    ("shares", "hazard"),
    [((0.5, 0.5), 0.01), ((0.5, 0.5), 0.2), ((0.9, 0.1), 0.1), ((1.0, 0.0), 1.0)],
)
def test_the_radius_of_the_scores_is_that_of_the_farthest_record_and_is_attained(
    shares: tuple[Any, ...], hazard: float
) -> None:
    """Two persons with an event at once, one in each of two equal groups, are 2R apart."""
    scores = hand_made(shares, hazard)
    found = LogRankMap(LOG_RANK_PLAN.asked, scores)(block_of({}, **records()))[0]
    lengths = np.sqrt((found**2).sum(axis=0))
    assert lengths.max() == pytest.approx(scores.radius, rel=1e-9)
    if shares == (0.5, 0.5) and hazard == 0.01:
        part = VectorSum(1, scores.radius, LOG_RANK_PLAN.score_rho)
        step = replace(
            steps_on_a_path(LOG_RANK_PLAN, block(seeded(0), N))[1],
            parts=(part,),
            map_fn=LogRankMap(LOG_RANK_PLAN.asked, scores),
        )
        assert [share > 0.99 for _, share in farthest_records(step, records())] == [True]


def test_a_score_that_is_longer_than_promised_is_cut_by_the_mechanism() -> None:
    scores = replace(hand_made((0.5, 0.5), 0.2), radius=0.1)
    step = steps_on_a_path(LOG_RANK_PLAN, block(seeded(0), N))[1]
    step = replace(
        step, parts=(VectorSum(1, 0.1, 10**9),), map_fn=LogRankMap(LOG_RANK_PLAN.asked, scores)
    )
    assert all(share <= 1 for _, share in farthest_records(step, records()))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_released_is_all_that_the_second_step_knows(seed: int) -> None:
    """The scores are the same function of the released pilot, whatever table it came from."""
    data = block(seeded(seed), N)
    recipe = LOG_RANK_PLAN.run()
    cells = released(next(recipe), data)
    step = recipe.send(cells)
    pilot = pilot_of(life_table(LOG_RANK_PLAN.asked, cells[0], N))
    again = scores_of([pilot], LOG_RANK_PLAN.score_rho / RHO_UNITS, contrasts(2))
    assert np.array_equal(step.map_fn.scores.seen, again.seen)
    assert step.parts[0].clip == again.radius


def test_what_is_no_level_is_in_no_stratum_and_warns_of_nothing() -> None:
    """A warning is an error here; elsewhere it would stand in a log, and tell of a cell."""
    groups = GroupsWithinStrata(*(FollowUpGroups(each, (0.0, 1.0), ("a", "b")) for each in "sg"))
    s, g = [np.inf, -np.inf, np.nan, 0.0, 1.0], [-np.inf, np.inf, 1.0, np.nan, 1.0]
    found = groups.codes(block_of(s=np.array(s), g=np.array(g)))
    assert found.tolist() == [-1.0, -1.0, -1.0, -1.0, 3.0]
