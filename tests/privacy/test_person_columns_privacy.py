# SPDX-License-Identifier: Apache-2.0
"""Persons of different lengths against each other, where what a fit sees are deviations from a
person's means.

Along released paths of regressions with person effects, with means of persons, and of event
studies: no part of any step is farther apart than is billed, some are as far, and all steps
together cost what is charged.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, CountSum, GramSum, VectorSum
from reticent_server.engine.block_sums import block_sums
from reticent_server.kinds.did.kind import Did
from reticent_server.kinds.event_study.kind import EventStudy
from reticent_server.kinds.registry import kind_of
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import noisy_sum, registry
from support.fits.regressions import drive, numeric, profile_of, totals
from support.seeds import seeded

PERSONS, M, RHO = 40, 4, 5 * 10**12
COLUMNS = [
    numeric("x0"),
    numeric("x1"),
    numeric("y"),
    Column("t", ColumnKind.INTEGER, 0, M - 1),
    Column("s", ColumnKind.INTEGER, 0, M - 1, (), ("",)),
]
NAMES = [c.name for c in COLUMNS]
QUERIES = {
    "huber": LinearRegression("y ~ x0 + x1", effects="person"),
    "squared": LinearRegression("y ~ x0 + x1", loss="squared", effects="person"),
    "tukey": LinearRegression("y ~ x0 + C(t)", loss="tukey", effects="person"),
    "where": LinearRegression("y ~ x0 + x1", where="x1 > -2", effects="person"),
    "means": LinearRegression("y ~ x0 + mean(x0)"),
    "exchangeable": LinearRegression("y ~ x0 + x1", loss="squared", working_correlation=0.5),
    "event study": EventStudy("y", "s", "t", before=2, after=1),
}


def panel() -> Any:
    rng = seeded(3)
    rows = np.arange(M)[None, :] < rng.integers(1, M + 1, (PERSONS, 1))
    table = {k: rng.standard_t(2, (PERSONS, M)) for k in ("x0", "x1")}
    y = table["x0"] - table["x1"] + rng.normal(size=(PERSONS, 1)) + rng.normal(size=rows.shape)
    table |= {"y": np.clip(y, -900, 900), "t": np.tile(np.arange(M), (PERSONS, 1))}
    table["s"] = np.tile(rng.integers(0, M, (PERSONS, 1)), M)
    flat = {k: (v * rows).ravel().astype(float) for k, v in table.items()}
    return flat, ~rows.ravel(), np.repeat(rng.random(PERSONS) < 0.3, M)


def block_of(table: Any, absent: Any, never: Any) -> Any:
    return Block(0, len(absent), table, {ABSENT: absent, "s": never})


def with_person(rows: Any) -> Any:
    """The table with person 7's places filled by `rows`, the others empty."""
    table, absent, never = panel()
    for place in range(M):
        here = 7 * M + place
        absent[here] = place >= len(rows)
        values = rows[place] if place < len(rows) else (0.0,) * len(NAMES)
        never[here] = False
        for name, value in zip(NAMES, values, strict=True):
            table[name][here] = value
    return block_of(table, absent, never)


def planned(name: str) -> Any:
    table, absent, never = panel()
    present = {k: v[~absent] for k, v in table.items()}
    found = dict(profile_of(present, COLUMNS[:3]).columns)
    for column in ("t", "s"):
        counts = np.bincount(present[column].astype(int), minlength=M) * 1.0
        found[column] = ColumnProfile(counts=tuple(counts), missing=float(never.sum()))
    schema = Schema(tuple(COLUMNS), Unit("person", M))
    facts = DatasetFacts("t", "t", 1, "v", PERSONS, schema, Profile(found)).of_places()
    query = QUERIES[name]
    return kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, RHO))


def rows_of(*values: tuple[float, float, float], start: float = 1.0) -> Any:
    return [(*v, float(place), start) for place, v in enumerate(values)]


A, B = (1000.0, -1000.0, 1000.0), (-1000.0, 1000.0, -1000.0)
C, D = (1000.0, 1000.0, -1000.0), (0.3, 0.5, 900.0)
E, F = (3.0, 0.0, 900.0), (-3.0, 0.0, -900.0)
G, H = (3.0, 0.0, -900.0), (-3.0, 0.0, 900.0)
PERSONS_LIKE = [
    [],
    rows_of(A),
    rows_of(A, B),
    rows_of(A, C),
    rows_of(E, F),
    rows_of(G, H),
    rows_of(A, A, A, A),
    rows_of(A, B, A, B),
    rows_of(E, F, E, F),
    rows_of(G, H, G, H),
    rows_of(C, D, A, B, start=3.0),
    rows_of(B, C, C, B, start=0.0),
    rows_of((0.0, 3.0, 900.0), (0.0, -3.0, -900.0), (0.0, 3.0, 900.0), (0.0, -3.0, -900.0)),
]


def distance(part: Any, a: Any, b: Any) -> Any:
    return float(np.sqrt(np.sum((a - b).astype(float) ** 2))) / noisy_sum.sensitivity(part)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
def test_persons_of_any_lengths_are_as_near_as_is_billed_and_all_steps_cost_what_is_charged(
    name: str,
) -> None:
    plan = planned(name)
    steps = drive(plan.run(), block_of(*panel())).steps
    parts = [part for step in steps for part in step.parts]
    assert all(part.unit_rows * part.person_rows == M for part in parts)
    assert sum(map(registry.rho, steps)) == plan.rho <= RHO
    found = [[t for s in steps for t in totals(s, with_person(rows))] for rows in PERSONS_LIKE]
    worst: dict[Any, float] = {}
    spent = 0.0
    for left in found:
        for right in found:
            each = [distance(p, a, b) for p, a, b in zip(parts, left, right, strict=True)]
            for part, far in zip(parts, each, strict=True):
                key = (type(part), part.person_rows)
                worst[key] = max(worst.get(key, 0.0), far)
            spent = max(spent, sum(f**2 * p.rho for f, p in zip(each, parts, strict=True)))
    assert max(worst.values()) <= 1
    assert spent <= plan.rho
    assert worst[CountSum, 1] == pytest.approx(1), "all rows of a person come into use or go"
    assert worst[GramSum, 1] > 0.4
    if name in {"huber", "squared"}:
        assert worst[VectorSum, M] > 0.99, "two persons with opposite scores attain 2C"
        assert spent > 0.3 * plan.rho


@pytest.mark.parametrize("name", ["squared", "means", "event study"])
def test_a_person_s_contributions_do_not_depend_on_anybody_else(name: str) -> None:
    """The steps' sums are those of persons in blocks of their own: nobody's mean has another's row
    in it.
    """
    steps = drive(planned(name).run(), block_of(*panel())).steps
    table, absent, never = panel()
    for step in (steps[0], steps[-2], steps[-1]):
        pieces: Any = None
        for k in range(PERSONS):
            cut = slice(k * M, (k + 1) * M)
            own = {n: v[cut] for n, v in table.items()}
            sums = block_sums(step, block_of(own, absent[cut], never[cut]))
            pieces = sums if pieces is None else [a + b for a, b in zip(pieces, sums, strict=True)]
        whole = block_sums(step, block_of(table, absent, never))
        assert all(np.array_equal(a, b) for a, b in zip(whole, pieces, strict=True))


@pytest.mark.parametrize("name", ["squared", "means"])
def test_what_stands_in_places_without_a_row_and_in_what_order_rows_stand_matter_not(
    name: str,
) -> None:
    steps = drive(planned(name).run(), block_of(*panel())).steps
    table, absent, never = panel()
    other = {k: np.where(absent, 77.0, v) for k, v in table.items()}
    first = rows_of((0.1, 0.2, 0.3), (1.0, -2.0, 0.5), (5.0, 0.0, -9.0))
    for step in steps:
        pairs = zip(
            totals(step, block_of(table, absent, never)),
            totals(step, block_of(other, absent, never)),
            strict=True,
        )
        assert all(np.array_equal(a, b) for a, b in pairs)
        turned = (totals(step, with_person(r)) for r in (first, first[::-1]))
        assert all(np.abs(a - b).max() <= 4 for a, b in zip(*turned, strict=True)), "rounding only"


def test_a_difference_in_differences_is_such_a_regression_too() -> None:
    table, absent, _ = panel()
    columns = [*COLUMNS, Column("b", ColumnKind.BOOLEAN, 0, 1)]
    schema = Schema(tuple(columns), Unit("person", M))
    facts = DatasetFacts("t", "t", 1, "v", PERSONS, schema).of_places()
    plan = kind_of(Did("y", "b", "t")).plan(
        facts, Did("y", "b", "t"), PrivacyCost(10**9, 10**12, RHO)
    )
    assert plan.design.deviations
    assert plan.design.persons is not None
    assert {c.what for c in plan.design.persons.made} == {"deviation"}
    assert plan.of_persons
    assert len(table["y"]) == len(absent)
