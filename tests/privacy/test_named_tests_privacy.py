# SPDX-License-Identifier: Apache-2.0
"""The tests that have a name, attacked: no pair of neighbours loses more than a plan bills, and a
pair loses all of it.

A neighbour replaces one record by any other: another group, another value, one out of use, one that
is no number.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import RHO_UNITS
from reticent_server.domain.steps import multiplied
from reticent_server.kinds.anova.kind import KIND as ANOVA
from reticent_server.kinds.correlation.kind import KIND as CORRELATION
from reticent_server.kinds.kruskal.kind import KIND as KRUSKAL
from reticent_server.kinds.ks_test.kind import KIND as KS_TEST
from reticent_server.kinds.mann_whitney.kind import KIND as MANN_WHITNEY
from reticent_server.kinds.proportion_test.kind import KIND as PROPORTION_TEST
from reticent_server.kinds.t_test.kind import KIND as T_TEST
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.regressions import whole
from support.kinds.named_tests import offer, people, people_facts
from support.kinds.recipes import released
from support.seeds import seeded

KINDS = (T_TEST, ANOVA, MANN_WHITNEY, KRUSKAL, PROPORTION_TEST, CORRELATION, KS_TEST)
CASES = [
    pytest.param(kind, query, id=f"{kind.name}-{i}")
    for kind in KINDS
    for i, query in enumerate(kind.examples)
]
ATTAINED = {
    "correlation": 0.975
}  # (a, z) of two corners of a square have no right angle between them
ROWS = 12


def attained(kind: Any, query: Any) -> float:
    """Of the bound, by the records here; Pearson's is attained in test_pearson_privacy."""
    pearson = getattr(query, "method", "") == "pearson"
    return 0.0 if pearson else ATTAINED.get(kind.name, 0.999)


def steps_of(plan: Any, block: Any) -> Iterator[Any]:
    """The steps of a plan, each made of what the steps before it released."""
    recipe = plan.run()
    step = next(recipe)
    while True:
        yield step
        try:
            step = recipe.send(released(step, block))
        except StopIteration:
            return


def extreme_records() -> dict[Any, Any]:
    """Every group with the values that move a sum most, and cells that a source may give."""
    values = (-10.0, -3.0, 0.0, 3.0, 10.0, np.inf, -np.inf, np.nan)
    rows = list(product(values, (-5.0, 0.4, 5.0), (0.0, 2.0, 9.0), (0.0, 1.0, 2.0), (0.0, 1.0)))
    y, x, k, g, b = np.array(rows).T
    return {"y": y, "x": x, "k": k, "g": g, "b": b, "m": np.full(len(y), 0.5)}


def extreme_block(count: Any = ROWS) -> Any:
    return whole({name: v[:count] for name, v in people(count).items()})


@pytest.mark.sample(12)
@pytest.mark.parametrize(("kind", "query"), CASES)
@pytest.mark.parametrize("max_rows", [1, 3])
def test_no_two_records_are_farther_apart_than_is_billed_and_some_are_as_far(
    kind: Any, query: Any, max_rows: int
) -> None:
    plan = kind.plan(people_facts(2000, max_rows), query, offer(1))
    records = extreme_records() | {"m": np.full(8 * 3 * 3 * 3 * 2, 0.5)}
    for step in steps_of(plan, extreme_block()):
        assert all(part.unit_rows == max_rows for part in step.parts)
        for _, share in farthest_records(step, records):
            assert attained(kind, query) <= share <= 1


@pytest.mark.parametrize(("kind", "query"), CASES)
def test_a_plan_costs_what_its_parts_cost_together(kind: Any, query: Any) -> None:
    plan = kind.plan(people_facts(2000), query, offer(1))
    steps = list(steps_of(plan, extreme_block()))
    parts = tuple(part for step in steps for part in step.parts)
    known = plan.parts or parts  # none where a part follows from what was released
    assert parts == known
    assert sum(part.rho for part in parts) == plan.rho
    assert 0.999 * offer(1).rho <= plan.rho <= offer(1).rho
    assert plan.passes == len(steps)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("kind", "query"), CASES)
@pytest.mark.parametrize("seed", range(5))
def test_a_replaced_record_changes_a_table_by_its_own_contribution_alone(
    kind: Any, query: Any, seed: int
) -> None:
    """Whatever the other records are: a map that looks at them would lose more here."""
    plan = kind.plan(people_facts(2000), query, offer(1))
    rng = seeded(seed)
    table = {name: v.copy() for name, v in people(ROWS, seed).items()}
    extreme = extreme_records()
    one = rng.integers(len(extreme["y"]))
    other = {name: np.append(extreme[name][one], v[1:]) for name, v in table.items()}
    for step in steps_of(plan, whole(table)):
        billed = sum(part.rho for part in step.parts)
        assert step_loss(step, whole(table), whole(other)) <= billed
        assert billed <= RHO_UNITS


@pytest.mark.parametrize(("kind", "query"), CASES)
def test_planning_and_maps_do_not_depend_on_cells(kind: Any, query: Any) -> None:
    """Records out of use or of no group, and cells that are no numbers, contribute nothing and
    raise nothing.
    """
    plan = kind.plan(people_facts(2000), query, offer(1))
    records = extreme_records()
    for step in steps_of(plan, extreme_block()):
        maps = step.map_fn(whole(records))
        for part, contributions in zip(step.parts, maps, strict=True):
            assert multiplied(contributions).shape[-1] == len(records["y"])
            assert type(part).__name__ in ("GramSum", "CountSum", "RunningCounts", "VectorSum")
