# SPDX-License-Identifier: Apache-2.0
"""A ROC curve's histograms, attacked: the two records that are farthest apart are as far as is
charged, none farther, whatever the thresholds are and a record of the other outcome included.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import CountSum
from reticent_server.kinds.roc.kind import KIND, Roc
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.regressions import whole
from support.kinds.named_tests import offer, people, people_facts
from support.seeds import seeded

QUERIES = (*KIND.examples, Roc("k", "b", (2.5, 2.75, 3.0)), Roc("x", "b", where="k > 2"))


def extremes() -> dict[str, Any]:
    """Both outcomes with scores at every place, and cells that a source may give."""
    values = (-10.0, -2.0, 0.0, 2.0, 10.0, np.inf, -np.inf, np.nan)
    y, x, k, b = np.array(list(product(values, values, (0.0, 2.6, 9.0), (0.0, 1.0, 0.5, np.nan)))).T
    return {"y": y, "x": x, "k": k, "g": np.zeros(len(y)), "b": b, "m": np.clip(x, 0, 1)}


@pytest.mark.sample(6)
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
@pytest.mark.parametrize("max_rows", [1, 3])
def test_no_two_records_are_farther_apart_than_is_charged_and_some_are_as_far(
    query: Any, max_rows: int
) -> None:
    plan: Any = KIND.plan(people_facts(2000, max_rows), query, offer(1))
    step: Any = next(plan.run())
    (part,) = step.parts
    assert isinstance(part, CountSum)
    assert part.unit_rows == max_rows
    assert part.rho == plan.rho <= offer(1).rho
    assert plan.rho >= 0.999 * offer(1).rho
    ((_, share),) = farthest_records(step, extremes())
    assert 0.999 <= share <= 1


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
@pytest.mark.parametrize("seed", range(3))
def test_a_replaced_record_changes_a_table_by_its_own_contribution_alone(
    query: Any, seed: int
) -> None:
    """Whatever the other records are: edges or cells that look at them would lose more."""
    plan: Any = KIND.plan(people_facts(2000), query, offer(1))
    rng = seeded(seed)
    extreme, table = extremes(), people(12, seed)
    one = rng.integers(len(extreme["y"]))
    other = {name: np.append(extreme[name][one], v[1:]) for name, v in table.items()}
    assert step_loss(next(plan.run()), whole(table), whole(other)) <= plan.rho


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_record_is_in_one_cell_of_the_released_ones(query: Any) -> None:
    """Missing outcomes and scores are in none, and raise nothing."""
    plan: Any = KIND.plan(people_facts(2000), query, offer(1))
    step: Any = next(plan.run())
    records = extremes()
    (cells,) = step.map_fn(whole(records))
    inside = cells >= 0
    assert np.all(cells == np.rint(cells))
    assert cells.max() < step.parts[0].bins
    score = step.map_fn.values(whole(records))
    assert not np.any(inside & ~(np.isfinite(score) & np.isin(records["b"], (0.0, 1.0))))
