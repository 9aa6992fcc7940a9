# SPDX-License-Identifier: Apache-2.0
"""Effects by cohort and period, attacked: of all persons, with none, some or all of their rows, in
one cohort or another, two are as far apart as is charged and none farther.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block
from reticent_server.kinds.registry import kind_of
from reticent_server.kinds.staggered_did.kind import StaggeredDid
from reticent_server.mechanisms.noisy_sum import sensitivity
from support.attacks.privacy_losses import entries, step_loss
from support.fits.regressions import numeric, totals
from support.kinds.named_tests import offer
from support.kinds.recipes import released
from support.seeds import seeded

M = 3
COLUMNS = (
    numeric("y", -8, 8),
    Column("t", ColumnKind.INTEGER, 0, 1),
    Column("g", ColumnKind.INTEGER, 1, 9, (), ("",)),
)
CELLS = (-8.0, 0.0, 8.0, np.nan, np.inf, 1e9)
ROWS = [*product(CELLS, (0.0, 1.0, np.nan), (1.0, 9.0, 4.5))]


def persons_of(number: int) -> list[Any]:
    """Persons (3, M): every whole one of extreme cells, and some of any rows."""
    ends = (-8.0, 0.0, 8.0)
    whole = [[(a, 0.0, g), (b, 1.0, g)] for a, b, g in product(ends, ends, (1.0, 9.0))]
    rng = seeded(1)
    others = [
        [ROWS[i] for i in rng.integers(len(ROWS), size=rng.integers(0, M + 1))]
        for _ in range(number)
    ]
    return [*whole, *others]


def block_of(persons: Any, *, places: bool = True) -> Block:
    """A table of persons with M places, or of their rows alone."""
    rows, absent = [], []
    for person in persons:
        padded = [*person, *[(0.0, 0.0, 1.0)] * (M - len(person))]
        rows += padded if places else person
        absent += [place >= len(person) for place in range(M)]
    columns = np.array(rows, dtype=float).reshape(-1, 3).T
    n = columns.shape[1]
    missing = {"g": np.zeros(n, bool)} | ({ABSENT: np.array(absent)} if places else {})
    return Block(0, n, dict(zip(("y", "t", "g"), columns, strict=True)), missing)


def steps(*, persons: bool, where: str | None = None) -> tuple[Any, list[Any]]:
    unit = Unit("p", M) if persons else Unit()
    facts = DatasetFacts("d", "d", 1, "v", 60, Schema(COLUMNS, unit)).of_places()
    query = StaggeredDid("y", "g", "t", never=9.0, where=where)
    plan = kind_of(query).plan(facts, query, offer(1.0))
    recipe, found = plan.run(), []
    table = block_of([person[:2] for person in persons_of(0)] * 3, places=persons)
    step = next(recipe)
    while True:
        found.append(step)
        try:
            step = recipe.send(released(step, table))
        except StopIteration:
            return plan, found


def farthest(step: Any, units: list[Any], *, persons: bool) -> float:
    """The largest distance of two units' contributions over what is charged for."""
    (part,) = step.parts
    sums = [totals(step, block_of([u], places=persons))[0] for u in units]
    points = np.array([entries(part, s).ravel() for s in sums], dtype=np.float64)
    squares = np.sum(points**2, axis=1)
    gaps = squares[:, None] + squares - 2 * points @ points.T
    return float(np.sqrt(gaps.max())) / sensitivity(part)


def test_persons_attain_what_is_charged() -> None:
    plan, (radius, cells) = steps(persons=True)
    assert sum(part.rho for step in (radius, cells) for part in step.parts) == plan.rho
    assert 0.999 * offer(1.0).rho <= plan.rho <= offer(1.0).rho
    assert 0.999 < farthest(cells, persons_of(400), persons=True) <= 1


def test_rows_attain_what_is_charged() -> None:
    _, (_, cells) = steps(persons=False)
    units = [[row] for row in ROWS]
    assert 0.999 < farthest(cells, units, persons=False) <= 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("where", [None, "y > -7"])
def test_no_person_costs_more_whoever_the_others_are(seed: int, where: str | None) -> None:
    plan, found = steps(persons=True, where=where)
    rng = seeded(seed)
    every = persons_of(200)
    people = [every[i] for i in rng.integers(len(every), size=9)]
    for other in rng.integers(len(every), size=12):
        moved = [every[other], *people[1:]]
        loss = sum(step_loss(step, block_of(people), block_of(moved)) for step in found)
        assert loss <= plan.rho


def test_who_is_not_whole_or_has_two_dates_contributes_nothing() -> None:
    _, found = steps(persons=True)
    nobody = [
        [],
        [(8.0, 0.0, 1.0)],
        [(8.0, 0.0, 1.0), (8.0, 0.0, 1.0)],
        [(8.0, 0.0, 1.0), (8.0, 1.0, 9.0)],
        [(8.0, 0.0, 1.0), (np.nan, 1.0, 1.0)],
        [(8.0, 0.0, 0.5), (8.0, 1.0, 0.5)],
        [(8.0, 0.0, 1.0), (8.0, 1.0, 1.0), (8.0, 1.0, 1.0)],
    ]
    for person in nobody:
        for step in found:
            assert not np.any(totals(step, block_of([person]))[0]), person


def test_a_step_s_contribution_is_the_same_in_any_block() -> None:
    _, found = steps(persons=True)
    people = persons_of(50)
    for step in found:
        parts = [totals(step, block_of([person]))[0] for person in people]
        assert (sum(parts) == totals(step, block_of(people))[0]).all()
