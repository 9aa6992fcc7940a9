# SPDX-License-Identifier: Apache-2.0
"""A description, attacked: two records are as far apart in every part at once as is charged, and
none are farther.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import CountSum, GramSum, multiplied
from reticent_server.kinds import registry
from reticent_server.kinds.describe.kind import Describe
from reticent_server.mechanisms import noisy_sum
from support.attacks.privacy_losses import step_loss
from support.fits.regressions import whole
from support.kinds.named_tests import PEOPLE, offer, people, people_facts
from support.kinds.parts import planned_of_parts
from support.kinds.recipes import facts_of
from support.seeds import seeded

QUERIES = {
    "all columns": Describe(),
    "by group": Describe(("y", "x", "k", "b", "m"), "g"),
    "by group, where": Describe(("y", "k"), "b", "x > 0"),
}


def planned(name: Any, max_rows: Any = 1) -> Any:
    return planned_of_parts(people_facts(2000, max_rows), QUERIES[name], offer(1))


def record(**cells: Any) -> Any:
    usual = {"y": 1.0, "x": 1.0, "k": 4.0, "g": 0.0, "b": 0.0, "m": 0.5}
    return {name: np.array([value]) for name, value in (usual | cells).items()}


def extremes() -> Any:
    """Records with the ends of every column, of every group, and cells that a source may give."""
    ends = product(
        (-10.0, 10.0, np.nan),
        (-5.0, 5.0, np.inf),
        (0.0, 9.0, 12.0),
        (0.0, 2.0, 3.0),
        (0.0, 1.0),
        (0.0, 1.0),
    )
    return [record(**dict(zip("yxkgbm", values, strict=True))) for values in ends]


def loss(step: Any, first: Any, second: Any, missing: Any = (False, False)) -> Any:
    blocks = [
        whole(r, {"m": np.array([gone])}) for r, gone in zip((first, second), missing, strict=True)
    ]
    return step_loss(step, *blocks)


@pytest.mark.parametrize("name", QUERIES)
def test_what_is_charged_is_attained_by_two_records(name: Any) -> None:
    """Other ends of every column, and of another group: every part moves by all that it may, all at
    once.
    """
    plan = planned(name)
    (step,) = [next(plan.run())]
    first = record(y=-10.0, x=5.0, k=0.0, g=0.0, b=0.0, m=0.0)
    second = record(y=10.0, x=5.0 if "where" in name else -5.0, k=9.0, g=2.0, b=1.0, m=1.0)
    assert plan.rho <= offer(1).rho
    assert 0.995 * plan.rho <= loss(step, first, second) <= plan.rho
    assert plan.rho >= 0.999 * offer(1).rho


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("pairs", [200, pytest.param(2000, marks=pytest.mark.audit)])
@pytest.mark.parametrize("name", QUERIES)
def test_no_two_records_are_farther_apart_than_is_charged(name: Any, pairs: int) -> None:
    plan = planned(name)
    step = next(plan.run())
    records = extremes()
    rng = seeded(0)
    for i, j in rng.integers(len(records), size=(pairs, 2)):
        assert loss(step, records[i], records[j], rng.random(2) < 0.3) <= plan.rho


@pytest.mark.parametrize("seed", range(5))
def test_a_persons_rows_may_lie_in_several_groups(seed: Any) -> None:
    plan = planned("by group", 3)
    step = next(plan.run())
    rng = seeded(seed)
    table, records = people(12, seed), extremes()
    chosen = [records[k] for k in rng.integers(len(records), size=3)]
    other = {k: np.concatenate([*(r[k] for r in chosen), v[3:]]) for k, v in table.items()}
    gone = {"m": rng.random(12) < 0.3}
    assert step_loss(step, whole(table, gone), whole(other, gone)) <= plan.rho


def test_parts_are_what_they_are_proved_as() -> None:
    """Each column's counts add 1 to one cell at most; sums are of vectors no longer than √(a² + 1),
    whatever a cell holds.
    """
    plan = planned("by group")
    step, table = next(plan.run()), people(500)
    table["y"][:3] = (1e3, -1e3, np.inf)  # beyond the declared bounds, as a source may give
    for part, found in zip(
        step.parts, step.map_fn(whole(table, {"m": np.zeros(500, bool)})), strict=True
    ):
        match part:
            case CountSum():
                assert found.shape == (500,)
                assert found.max() < part.bins
                assert noisy_sum.sensitivity(part) == pytest.approx(np.sqrt(2))
            case GramSum():
                assert np.linalg.norm(multiplied(found), axis=0).max() <= part.clip * (1 + 1e-12)


def test_a_first_step_is_paid_where_no_profile_covers_a_column_of_numbers() -> None:
    facts = facts_of(2000, PEOPLE)
    plan = registry.plan(facts, Describe(), offer(1))
    assert plan.passes == 2
    assert plan.own is not None
    assert 0.04 * plan.rho < plan.own.rho < 0.21 * plan.rho
    assert 0.999 * offer(1).rho <= plan.rho <= offer(1).rho
    recipe = plan.run()
    first = next(recipe)
    from support.kinds.recipes import released

    second = recipe.send(released(first, whole(people(2000), {"m": np.zeros(2000, bool)})))
    assert sum(part.rho for part in (*first.parts, *second.parts)) == plan.rho
    assert plan.rho < RHO_UNITS
