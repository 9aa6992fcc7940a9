# SPDX-License-Identifier: Apache-2.0
"""Binned residuals, attacked: of every step the two records that are farthest apart are as far as
is charged, none farther.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.steps import GramSum, multiplied
from reticent_server.kinds.binned_residuals.kind import BinnedResiduals
from support.attacks.privacy_losses import farthest_records, step_loss
from support.fits.regressions import whole
from support.kinds.named_tests import offer, people, people_facts
from support.kinds.parts import planned_of_parts
from support.kinds.recipes import released
from support.seeds import seeded

QUERIES = {
    "linear": BinnedResiduals("y ~ x", (1.0, 1.0), scale=1.0),
    "linear, bins": BinnedResiduals("y ~ x + C(g)", (1.0, 1.0, 0.0, 0.5), bins=(-1.0, 0.5, 3.0)),
    "logit": BinnedResiduals("b ~ x", (0.0, 1.0), "logit"),
    "log, where": BinnedResiduals("k ~ x", (1.0, 0.5), "log", 1.0, 1.0, where='g != "c"'),
}


def extremes() -> Any:
    """Records with fitted values in every bin and residuals at both ends, and cells that a source
    may give.
    """
    x = (*np.linspace(-5, 5, 25), np.nan, np.inf)
    rows = list(product((-10.0, 0.0, 10.0, np.nan), x, (0.0, 9.0), (0.0, 2.0), (0.0, 1.0)))
    y, x, k, g, b = np.array(rows).T
    return {"y": y, "x": x, "k": k, "g": g, "b": b, "m": np.full(len(y), 0.5)}


def steps(name: Any, max_rows: Any = 1) -> Any:
    """The plan, and its steps as they come on a table's own released path."""
    plan = planned_of_parts(people_facts(2000, max_rows), QUERIES[name], offer(1))
    recipe, found = plan.run(), []
    step = next(recipe)
    while True:
        found.append(step)
        try:
            step = recipe.send(released(step, whole(people(2000))))
        except StopIteration:
            return plan, found


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("max_rows", [1, 3])
def test_sums_attain_what_is_charged(name: Any, max_rows: Any) -> None:
    plan, found = steps(name, max_rows)
    assert sum(part.rho for step in found for part in step.parts) <= plan.rho <= offer(1).rho
    assert plan.rho >= 0.999 * offer(1).rho
    last = found[-1]
    (part,) = last.parts
    assert isinstance(part, GramSum)
    assert part.unit_rows == max_rows
    ((_, share),) = farthest_records(last, extremes())
    assert 0.97 <= share <= 1  # counts have no residual at a bin's very end


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_no_neighbour_on_a_released_path_loses_more_than_is_charged(name: Any, seed: Any) -> None:
    plan, found = steps(name, 3)
    rng = seeded(seed)
    extreme, table = extremes(), people(12, seed)
    chosen = rng.integers(len(extreme["y"]), size=3)
    other = {k: np.concatenate([extreme[k][chosen], v[3:]]) for k, v in table.items()}
    assert sum(step_loss(step, whole(table), whole(other)) for step in found) <= plan.rho


@pytest.mark.parametrize("name", QUERIES)
def test_a_record_is_in_one_bin_at_most_and_no_longer_than_the_clip(name: Any) -> None:
    _, found = steps(name)
    vectors = multiplied(*found[-1].map_fn(whole(extremes())))
    bins = len(vectors) // 2
    assert ((vectors[:bins] != 0).sum(axis=0) <= 1).all()
    assert np.linalg.norm(vectors, axis=0).max() <= found[-1].parts[0].clip * (1 + 1e-12)
    assert np.all(np.isfinite(vectors))
