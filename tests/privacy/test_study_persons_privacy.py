# SPDX-License-Identifier: Apache-2.0
"""Persons of different lengths against each other along released paths of studies whose unit has
several rows.

No part of any step is farther apart than is billed, each sort of part is as far, and all steps
together cost what is charged; a person's contributions are of that person's places alone.
"""

from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Schema, Unit
from reticent_server.domain.steps import Block, CountSum, GramSum
from reticent_server.engine.block_sums import block_sums
from reticent_server.kinds.registry import kind_of
from reticent_server.kinds.study.kind import Study
from reticent_server.mechanisms import noisy_sum, registry
from support.fits.regressions import drive, numeric, profile_of, totals
from support.seeds import seeded

PERSONS, M, RHO = 40, 4, 5 * 10**12
COLUMNS = [numeric("x0"), numeric("x1"), numeric("y", -900, 900)]
NAMES = [c.name for c in COLUMNS]
VARIABLES, MAIN = ("y", "x0", "x1"), "y ~ x0 + x1"
QUERIES = {
    "pooled": Study(VARIABLES, main=MAIN),
    "condition": Study((*VARIABLES, "I(x0**2)"), where="x1 > -2"),
    "means": Study((*VARIABLES, "mean(x0)"), main="y ~ x0 + mean(x0)"),
    "within": Study(VARIABLES, main=MAIN, effects="person"),
}


def panel() -> Any:
    rng = seeded(3)
    rows = np.arange(M)[None, :] < rng.integers(1, M + 1, (PERSONS, 1))
    table = {k: rng.standard_t(2, (PERSONS, M)) for k in ("x0", "x1")}
    y = table["x0"] - table["x1"] + rng.normal(size=(PERSONS, 1)) + rng.normal(size=rows.shape)
    table |= {"y": np.clip(y, -900, 900)}
    return {k: (v * rows).ravel() for k, v in table.items()}, ~rows.ravel()


def block_of(table: Any, absent: Any) -> Any:
    return Block(0, len(absent), table, {ABSENT: absent})


def with_person(rows: Any) -> Any:
    """The table with person 7's places filled by `rows` of (x0, x1, y), the others empty."""
    table, absent = panel()
    for place in range(M):
        here = 7 * M + place
        absent[here] = place >= len(rows)
        values = rows[place] if place < len(rows) else (0.0,) * len(NAMES)
        for name, value in zip(NAMES, values, strict=True):
            table[name][here] = value
    return block_of(table, absent)


def planned(name: str) -> Any:
    table, absent = panel()
    profile = profile_of({k: v[~absent] for k, v in table.items()}, COLUMNS)
    schema = Schema(tuple(COLUMNS), Unit("person", M))
    facts = DatasetFacts("t", "t", 1, "v", PERSONS, schema, profile).of_places()
    return kind_of(QUERIES[name]).plan(facts, QUERIES[name], PrivacyCost(10**9, 10**12, RHO))


A, B = (1000.0, -1000.0, 900.0), (-1000.0, 1000.0, -900.0)
C, D = (1000.0, 1000.0, -900.0), (0.3, 0.5, 900.0)
E, F = (3.0, 0.0, 900.0), (-3.0, 0.0, -900.0)
G, H = (3.0, 0.0, -900.0), (-3.0, 0.0, 900.0)
K, L = (0.0, 3.0, 900.0), (0.0, -3.0, -900.0)
X, Y, Z = (1000.0, 0.0, 0.0), (0.0, 1000.0, 0.0), (0.0, 0.0, 900.0)
NONE = (np.nan, np.inf, 0.0)
PERSONS_LIKE = [
    [], [A], [D], [X], [Y], [Z], [A, B], [A, C], [E, F], [G, H], [K, L], [X] * M, [Y] * M, [Z] * M,
    [A] * M, [A, B] * 2, [E, F] * 2,
    [G, H] * 2, [K, L] * 2, [C, D, A, B], [B, C, C, B], [NONE, A, B, NONE], [NONE] * M,
    [(0.0, 0.0, 0.0)] * M, [(2.0, 1.0, 0.0)] * M,
]  # fmt: skip


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
    assert len(steps) == plan.passes
    parts = [part for step in steps for part in step.parts]
    assert all(part.unit_rows * part.person_rows == M for part in parts)
    assert sum(map(registry.rho, steps)) == plan.rho <= RHO
    assert plan.rho > 0.999 * RHO
    found = [[t for s in steps for t in totals(s, with_person(rows))] for rows in PERSONS_LIKE]
    worst: dict[Any, float] = {}
    spent = 0.0
    for left in found:
        for right in found:
            each = [distance(p, a, b) for p, a, b in zip(parts, left, right, strict=True)]
            for part, far in zip(parts, each, strict=True):
                key = (type(part), part.person_rows, getattr(part, "whole", False))
                worst[key] = max(worst.get(key, 0.0), far)
            spent = max(spent, sum(f**2 * p.rho for f, p in zip(each, parts, strict=True)))
    assert max(worst.values()) <= 1
    assert 0.5 * plan.rho < spent <= plan.rho
    assert worst[CountSum, 1, False] == pytest.approx(1), "all rows of a person come or go"
    assert worst[CountSum, M, False] == pytest.approx(1), "a person changes its bin"
    assert worst[GramSum, M, True] > 0.99, "persons along different axes"
    assert name == "condition" or worst[GramSum, M, False] > 0.7


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", QUERIES)
def test_a_person_s_contributions_do_not_depend_on_anybody_else(name: str) -> None:
    steps = drive(planned(name).run(), block_of(*panel())).steps
    table, absent = panel()
    for step in steps:
        pieces: Any = None
        for k in range(PERSONS):
            cut = slice(k * M, (k + 1) * M)
            sums = block_sums(step, block_of({n: v[cut] for n, v in table.items()}, absent[cut]))
            pieces = sums if pieces is None else [a + b for a, b in zip(pieces, sums, strict=True)]
        whole = block_sums(step, block_of(table, absent))
        assert all(np.array_equal(a, b) for a, b in zip(whole, pieces, strict=True))


@pytest.mark.parametrize("name", QUERIES)
def test_what_stands_in_places_without_a_row_and_in_what_order_rows_stand_matter_not(
    name: str,
) -> None:
    steps = drive(planned(name).run(), block_of(*panel())).steps
    table, absent = panel()
    other = {k: np.where(absent, 77.0, v) for k, v in table.items()}
    first = [(0.1, 0.2, 0.3), (1.0, -2.0, 0.5), (5.0, 0.0, -9.0)]
    for step in steps:
        pairs = zip(
            totals(step, block_of(table, absent)),
            totals(step, block_of(other, absent)),
            strict=True,
        )
        assert all(np.array_equal(a, b) for a, b in pairs)
        turned = (totals(step, with_person(r)) for r in (first, first[::-1]))
        for part, a, b in zip(step.parts, *turned, strict=True):
            assert distance(part, a, b) < 1e-3, "rounding only"


def test_the_noise_of_a_persons_rows_is_that_of_one() -> None:
    """At the same ρ a study of persons of four rows has a radius that is larger, and noise that is
    not four times as large.
    """
    plan = planned("pooled")
    sampling = plan._sampling(plan.ground)
    alone = noisy_sum.noise_sd(sampling._gram(plan.shares.moments))
    by_row = noisy_sum.noise_sd(GramSum(sampling.coding.size, 1.0, plan.shares.moments, M))
    assert alone == pytest.approx(by_row / M, rel=0.01)
    assert sampling.length < 0.85 * M * sampling.coding.size
