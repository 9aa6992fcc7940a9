# SPDX-License-Identifier: Apache-2.0
"""Answers by group, attacked: no two records are farther apart than is billed, within a group or
between two, and some are as far.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.schema import Column, ColumnKind
from reticent_server.kinds import registry
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.sum.by_group import smallest_ball
from reticent_server.kinds.sum.kind import Sum
from support.attacks.privacy_losses import farthest_records, sensitivity, step_loss
from support.fits.regressions import totals, whole
from support.kinds.named_tests import PEOPLE, offer, people
from support.kinds.parts import planned_of_parts
from support.kinds.recipes import facts_of, numeric
from support.seeds import seeded

POSITIVE = numeric("p", 0.0, 8.0)
COLUMNS = (*PEOPLE, POSITIVE)
QUERIES = {
    "count": Count(by="g"),
    "count, where": Count("x > 0", by="b"),
    "sum": Sum("y", by="g"),
    "sum, no less than 0": Sum("p", by="b"),
    "mean": Mean("y", by="g"),
    "mean, where": Mean("p", "x > 0", "b"),
    "histogram": Histogram("k", by="g"),
    "histogram, edges": Histogram("y", (-10.0, 0.0, 10.0), by="b"),
}
BETWEEN = ("count", "count, where", "sum, no less than 0", "mean", "histogram", "histogram, edges")
"""Where the farthest pair has two groups, or as far a one as inside."""
WITHIN = ("sum", "mean", "mean, where", "histogram", "histogram, edges")
"""Where the farthest pair is inside a group, or as far as between two."""


def extreme_records() -> dict[Any, Any]:
    """Every group with the values that move a sum most, and cells that a source may give."""
    values = (-10.0, 0.0, 8.0, 10.0, np.inf, np.nan)
    rows = list(product(values, (-5.0, 5.0), (0.0, 2.0, 9.0), (0.0, 1.0, 2.0), (0.0, 1.0)))
    y, x, k, g, b = np.array(rows).T
    return {"y": y, "x": x, "k": k, "g": g, "b": b, "m": np.full(len(y), 0.5), "p": y}


def planned(name: Any, max_rows: int = 1) -> Any:
    return planned_of_parts(facts_of(2000, COLUMNS, max_rows), QUERIES[name], offer(1))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("max_rows", [1, 3])
def test_no_two_records_are_farther_apart_than_is_billed_and_some_are_as_far(
    name: str, max_rows: int
) -> None:
    plan = planned(name, max_rows)
    step = next(plan.run())
    (part,) = step.parts
    assert part.unit_rows == max_rows
    assert 0.999 * offer(1).rho <= part.rho == plan.rho <= offer(1).rho
    ((_, share),) = farthest_records(step, extreme_records())
    assert 0.999 <= share <= 1


def gap(name: Any, between: Any) -> Any:
    """The largest distance of two records in use, of two groups or of one, over the sensitivity."""
    plan = planned(name)
    step = next(plan.run())
    (part,) = step.parts
    by = QUERIES[name].by
    ends = [{"y": y, "p": y, "k": k} for y, k in product((-10.0, 0.0, 8.0, 10.0), (0.0, 9.0))]
    records = [e | {"x": 5.0, "g": 0.0, "b": 0.0, "m": 0.5, by: g} for e in ends for g in (0, 1)]
    sums = [totals(step, whole({k: np.array([float(v)]) for k, v in r.items()})) for r in records]
    pairs = [
        np.linalg.norm((u[0] - v[0]).astype(float))
        for (r, u), (s, v) in product(zip(records, sums, strict=True), repeat=2)
        if (r[by] != s[by]) == between
    ]
    return max(pairs) / sensitivity(part)


@pytest.mark.parametrize("name", BETWEEN)
def test_the_bound_is_attained_between_groups(name: str) -> None:
    assert 0.999 <= gap(name, between=True) <= 1


@pytest.mark.parametrize("name", WITHIN)
def test_the_bound_is_attained_within_a_group(name: str) -> None:
    assert 0.999 <= gap(name, between=False) <= 1


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(5))
def test_a_persons_rows_may_lie_in_several_groups(name: str, seed: int) -> None:
    """Three rows of a person replaced by any others: whatever the other records are."""
    plan = planned(name, 3)
    step = next(plan.run())
    rng = seeded(seed)
    table = people(12, seed)
    table["p"] = np.clip(table["y"], 0, 8)
    extreme = extreme_records()
    chosen = rng.integers(len(extreme["y"]), size=3)
    other = {k: np.concatenate([extreme[k][chosen], v[3:]]) for k, v in table.items()}
    assert step_loss(step, whole(table), whole(other)) <= plan.rho


@pytest.mark.parametrize("groups", [1, 2, 3, 64])
@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 1.0), (0.0, 2.0), (-3.0, 1.0), (-2.0, 0.0), (0.0, 0.0)]
)
def test_the_ball_of_sums_holds_every_contribution_and_no_smaller_one_does(
    low: float, high: float, groups: int
) -> None:
    centre, radius = smallest_ball(low, high, groups)

    def reach(c: Any) -> Any:
        ends = [(x - c) ** 2 + (groups - 1) * c**2 for x in (low, high, 0.0)]
        return np.sqrt(max(ends))

    least = min(reach(c) for c in np.linspace(low, high, 2001))
    assert radius >= reach(centre)
    assert radius == pytest.approx(least or 1.0, rel=1e-3)


def test_a_column_of_many_levels_is_planned_from_public_facts_alone() -> None:
    wide = Column("h", ColumnKind.CATEGORICAL, 0, 63, tuple(map(str, range(64))))
    plan = registry.plan(facts_of(100, (*COLUMNS, wide)), Mean("y", by="h"), offer(1))
    assert plan.deadline_ms(10**6) > plan.deadline_ms(10**5)
