# SPDX-License-Identifier: Apache-2.0
"""One row of each person (`per`): what counts, and that a person of any number of rows moves it as
one row would.

The search goes from blocks of places to the exact integers before the noise: the person's rows
before and after are drawn from the corners of the bounds, none to m of them, at any of the places.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, SumStep
from reticent_server.engine.block_sums import block_sums
from reticent_server.errors import InvalidQuery
from reticent_server.kinds.registry import stored_query
from reticent_server.mechanisms import noisy_sum
from reticent_server.pipeline import planning
from reticent_server.vault.places import ABSENT_MASK
from support.attacks.recorder import Served
from support.seeds import seeded

M, N = 4, 300
COLUMNS = (
    Column("y", ColumnKind.NUMERIC, -8.0, 4.0),
    Column("k", ColumnKind.INTEGER, 0, 2),
    Column("b", ColumnKind.BOOLEAN, 0, 1),
)
QUERIES: dict[str, dict[str, Any]] = {
    "count": {"kind": "count", "where": "b == 1", "per": "any"},
    "sum": {"kind": "sum", "column": "y", "where": "k > 0", "per": "first"},
    "sum, last": {"kind": "sum", "column": "y", "per": "last"},
    "histogram": {"kind": "histogram", "column": "k", "per": "last"},
    "bins": {"kind": "histogram", "column": "y", "bins": [-8, 0, 4], "where": "b == 1",
        "per": "first"},
    "crosstab": {"kind": "crosstab", "columns": ["k", "b"], "per": "first"},
}  # fmt: skip


def facts(m: int = M) -> DatasetFacts:
    unit = Unit("person", m) if m > 1 else Unit()
    return DatasetFacts("d", "d", 1, "v", N, Schema(COLUMNS, unit))


def plan_of(query: dict[str, Any], m: int = M, epsilon: float = 1.0) -> Plan:
    return planning.plan(facts(m), stored_query(query), Privacy(epsilon, 1e-6))


def step_of(plan: Plan) -> SumStep:
    step = next(plan.planned.run())
    assert isinstance(step, SumStep)
    return step


def places(rng: np.random.Generator, persons: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Cells at the corners of the bounds, and which of the places have no row."""
    n = persons * M
    cells = {c.name: rng.choice([c.lower, (c.lower + c.upper) // 2, c.upper], n) for c in COLUMNS}
    return cells, rng.random(n) < rng.choice([0.0, 0.5, 0.9])


def sums(step: SumStep, cells: dict[str, np.ndarray], absent: np.ndarray) -> np.ndarray:
    """The exact integers before the noise."""
    (found,) = block_sums(step, Block(0, len(absent), cells, {ABSENT: absent}))
    return np.asarray(found, dtype=float)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
def test_a_person_moves_the_sum_as_one_row_does_and_that_far(name: str) -> None:
    rng, plan = seeded(4), plan_of(QUERIES[name])
    step = step_of(plan)
    (part,) = step.parts
    assert (part.unit_rows, part.person_rows) == (1, M)
    bound, worst = noisy_sum.sensitivity(part), 0.0  # type: ignore[arg-type]
    for _ in range(400):
        cells, absent = places(rng, 3)
        before = sums(step, cells, absent)
        other, gone = places(rng, 3)
        mine = np.arange(3 * M) // M == rng.integers(3)
        after = sums(
            step,
            {k: np.where(mine, other[k], v) for k, v in cells.items()},
            np.where(mine, gone, absent),
        )
        worst = max(worst, float(np.linalg.norm(before - after)))
    assert worst <= bound
    assert worst >= bound * (1 - 1e-6)


@pytest.mark.parametrize("name", QUERIES)
def test_what_counts_is_one_row_of_each_person(name: str) -> None:
    """Against a loop over persons; the noise is that of a table of one row a person."""
    query, rng = QUERIES[name], seeded(5)
    cells, absent = places(rng, N)
    absent |= rng.random(N * M) < 0.3
    plan = plan_of(query, epsilon=99.0)
    result = Served(plan.facts, {**cells, ABSENT_MASK: absent}).run(plan).release.result
    assert result is not None
    assert result["n"] == N
    kept = []
    for person in range(N):
        rows = [
            {k: v[i] for k, v in cells.items()}
            for i in range(person * M, person * M + M)
            if not absent[i]
        ]
        rows = [row for row in rows if in_use(query, row)]
        if rows:
            kept.append(rows[-1 if query["per"] == "last" else 0])
    found = np.ravel(result["values" if "values" in result else "value"])
    noise = result["standard_error"]
    assert np.allclose(found, np.ravel(truth(query, kept)), atol=8 * noise)
    without = plan_of({k: v for k, v in query.items() if k != "per"}, m=1)
    own, other = plan_of(query).planned.parts, without.planned.parts
    assert [replace(part, person_rows=1) for part in own] == list(other)


def in_use(query: dict[str, Any], row: dict[str, float]) -> bool:
    where = query.get("where")
    return where is None or (row["b"] == 1 if where == "b == 1" else row["k"] > 0)


def truth(query: dict[str, Any], rows: list[dict[str, float]]) -> Any:
    if query["kind"] == "count":
        return len(rows)
    if query["kind"] == "sum":
        return sum(row["y"] for row in rows)
    if query["kind"] == "crosstab":
        return [[sum(r["k"] == k and r["b"] == b for r in rows) for b in (0, 1)] for k in range(3)]
    if "bins" in query:
        return [sum(row["y"] < 0 for row in rows), sum(row["y"] >= 0 for row in rows)]
    return [sum(row["k"] == k for row in rows) for k in range(3)]


def test_rows_of_one_person_each_are_independent() -> None:
    """So a crosstab has its test of independence, which rows alone have not."""
    rng = seeded(6)
    cells, absent = places(rng, N)
    tested = []
    for per in ({"per": "first"}, {}):
        plan = plan_of({"kind": "crosstab", "columns": ["k", "b"]} | per)
        result = Served(plan.facts, {**cells, ABSENT_MASK: absent}).run(plan).release.result
        tested.append(result is not None and result["independence"] is not None)
    assert tested == [True, False]


@pytest.mark.parametrize("name", QUERIES)
def test_a_table_of_one_row_a_person_has_no_per(name: str) -> None:
    with pytest.raises(InvalidQuery, match="several rows a person"):
        plan_of(QUERIES[name], m=1)


@pytest.mark.parametrize("name", ["count", "sum", "histogram"])
def test_per_and_by_are_not_combined(name: str) -> None:
    with pytest.raises(InvalidQuery, match="cannot be combined with `by`"):
        plan_of(QUERIES[name] | {"by": "b"})
