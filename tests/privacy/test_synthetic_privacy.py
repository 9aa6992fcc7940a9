# SPDX-License-Identifier: Apache-2.0
"""Tables of cliques, attacked: two records that differ in every column are as far apart in all
tables at once as is charged, and none are farther.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import CountSum
from reticent_server.kinds.synthetic.kind import KIND, Synthetic
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.regressions import whole
from support.kinds.named_tests import offer, people, people_facts
from support.seeds import seeded

QUERIES = (
    *KIND.examples,
    Synthetic(("y", "x", "k", "g", "b")),
    Synthetic(("x", "b", "g"), (("x", "b"), ("b", "g"), ("b",))),
)


def extremes() -> dict[str, Any]:
    """Records at the ends of every column, and cells that a source may give."""
    cells = (
        (-10.0, 0.0, 10.0, np.inf, np.nan),
        (-5.0, 2.0, 5.0, np.nan),
        (0.0, 9.0, 12.0),
        (0.0, 2.0, 3.0),
        (0.0, 1.0, 0.5),
    )
    y, x, k, g, b = np.array(list(product(*cells))).T
    return {"y": y, "x": x, "k": k, "g": g, "b": b, "m": np.full(len(y), 0.5)}


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
@pytest.mark.parametrize("max_rows", [1, 3])
def test_no_two_records_are_farther_apart_than_is_charged_and_some_are_as_far(
    query: Any, max_rows: int
) -> None:
    plan: Any = KIND.plan(people_facts(2000, max_rows), query, offer(1))
    step: Any = next(plan.run())
    for part in step.parts:
        assert isinstance(part, CountSum)
        assert part.unit_rows == max_rows
    assert 0.999 * offer(1).rho <= plan.rho <= offer(1).rho
    assert sum(part.rho for part in step.parts) == plan.rho
    for _, share in farthest_records(step, extremes()):
        assert share <= 1


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_two_records_that_differ_everywhere_attain_the_charge(query: Any) -> None:
    plan: Any = KIND.plan(people_facts(2000), query, offer(1))
    step: Any = next(plan.run())
    low = {"y": -10.0, "x": 1.0, "k": 0.0, "g": 0.0, "b": 0.0, "m": 0.0}
    high = {"y": 10.0, "x": 5.0, "k": 9.0, "g": 2.0, "b": 1.0, "m": 1.0}
    pair = (whole({k: np.array([v]) for k, v in record.items()}) for record in (low, high))
    assert 0.995 * plan.rho <= step_loss(step, *pair) <= plan.rho


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
@pytest.mark.parametrize("seed", range(3))
def test_a_replaced_record_changes_a_table_by_its_own_contribution_alone(
    query: Any, seed: int
) -> None:
    plan: Any = KIND.plan(people_facts(2000), query, offer(1))
    rng = seeded(seed)
    extreme, table = extremes(), people(12, seed)
    one = rng.integers(len(extreme["y"]))
    other = {name: np.append(extreme[name][one], v[1:]) for name, v in table.items()}
    assert step_loss(next(plan.run()), whole(table), whole(other)) <= plan.rho


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_record_is_in_one_cell_of_each_table(query: Any) -> None:
    plan: Any = KIND.plan(people_facts(2000), query, offer(1))
    step: Any = next(plan.run())
    for part, cells in zip(step.parts, step.map_fn(whole(extremes())), strict=True):
        inside = cells[cells >= 0]
        assert inside.max() < part.bins
