# SPDX-License-Identifier: Apache-2.0
"""Persons of different lengths against each other in models with skewed scores: binomial, Poisson,
gamma, quantiles.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.schema import ABSENT, Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import Block, CountSum, GramSum, Released, Scaled, VectorSum
from reticent_server.fitting.person_scores import (
    Lengths,
    PersonScoreMap,
    as_matrix,
    chosen_reach,
    jacobians,
)
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.quantile_regression.kind import QuantileRegression
from reticent_server.kinds.registry import kind_of
from reticent_server.mechanisms import noisy_sum, registry
from support.fits.regressions import boolean, drive, numeric, profile_of, totals
from support.seeds import seeded

PERSONS, M, RHO = 60, 4, 5 * 10**12
COLUMNS = [
    numeric("x0"),
    numeric("x1"),
    numeric("y"),
    boolean("b"),
    Column("k", ColumnKind.INTEGER, 0, 50),
    numeric("p", 0.001, 100),
]
QUERIES = {
    "binomial": Glm("b ~ x0 + x1", "binomial"),
    "probit": Glm("b ~ x0 + x1", "binomial", link="probit"),
    "poisson": Glm("k ~ x0 + x1", "poisson"),
    "gamma": Glm("p ~ x0 + x1", "gamma"),
    "quantile": QuantileRegression("y ~ x0 + x1", tau=0.8),
}
NONE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.001)


def panel() -> Any:
    rng = seeded(5)
    present = np.arange(M)[None, :] < rng.integers(1, M + 1, (PERSONS, 1))
    x0, x1, e = (rng.standard_t(4, (PERSONS, M)) for _ in range(3))
    eta = 0.5 * x0 - 0.3 * x1 + 0.5 * rng.normal(size=(PERSONS, 1))
    table = {
        "x0": x0,
        "x1": x1,
        "y": eta + e,
        "b": (eta + e > 0) * 1.0,
        "k": np.minimum(rng.poisson(np.exp(np.clip(eta, -3, 3))), 50) * 1.0,
        "p": np.clip(np.exp(eta) * rng.gamma(2, 0.5, eta.shape), 0.001, 100),
    }
    none = dict(zip(table, NONE, strict=True))
    return {k: np.where(present, v, none[k]).ravel() for k, v in table.items()}, ~present.ravel()


def planned(name: str) -> Any:
    table, absent = panel()
    profile = profile_of({k: v[~absent] for k, v in table.items()}, COLUMNS)
    schema = Schema(tuple(COLUMNS), Unit("person", M))
    facts = DatasetFacts("t", "t", 1, "v", PERSONS, schema, profile).of_places()
    query = QUERIES[name]
    return kind_of(query).plan(facts, query, PrivacyCost(10**9, 10**12, RHO))


def with_person(rows: Any) -> Block:
    """The table with person 7's places filled by `rows`, the others empty."""
    table, absent = panel()
    for place in range(M):
        here = 7 * M + place
        absent[here] = place >= len(rows)
        values = rows[place] if place < len(rows) else NONE
        for name, value in zip(table, values, strict=True):
            table[name][here] = value
    return Block(0, len(absent), table, {ABSENT: absent})


ROWS = [
    (a, b, c, float(c > 0), 50.0 * (c > 0), 100.0 if c > 0 else 0.001)
    for a, b, c in product((-3.0, 0.3, 1000.0), (-3.0, 3.0), (-900.0, 900.0))
]
LIKE = [[], *([row] for row in ROWS), *([row] * M for row in ROWS), ROWS[:M], ROWS[4 : 4 + M]]


def distance(part: Any, a: Any, b: Any) -> float:
    return float(np.sqrt(np.sum((a - b).astype(float) ** 2))) / noisy_sum.sensitivity(part)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", list(QUERIES))
def test_persons_of_any_lengths_are_within_each_bound_and_the_whole_charge(name: str) -> None:
    plan = planned(name)
    steps = drive(plan.run(), with_person(ROWS[:1])).steps
    assert sum(map(registry.rho, steps)) == plan.rho <= RHO
    parts = [part for step in steps for part in step.parts]
    assert all(part.unit_rows * part.person_rows == M for part in parts)
    found = [[t for s in steps for t in totals(s, with_person(rows))] for rows in LIKE]
    worst: dict[Any, float] = {}
    spent = 0.0
    for left in found:
        for right in found:
            each = [distance(p, a, b) for p, a, b in zip(parts, left, right, strict=True)]
            spent = max(spent, sum(d * d * p.rho for d, p in zip(each, parts, strict=True)))
            for part, d in zip(parts, each, strict=True):
                key = (type(part), part.person_rows)
                worst[key] = max(worst.get(key, 0.0), d)
    assert max(worst.values()) <= 1
    # scores of the quantile are .8 one way and .2 the other, and its last clip is far above those
    vector, meat = (0.9, 0.05) if name == "quantile" else (0.99, 0.5)
    assert worst[VectorSum, M] > vector, "two persons with opposite scores attain 2C"
    assert worst[GramSum, M] > meat
    assert worst[CountSum, M] == pytest.approx(1)
    assert 0.2 * plan.rho < spent <= plan.rho


def last_step(name: str) -> Any:
    steps = drive(planned(name).run(), with_person(ROWS[:1])).steps
    return next(s for s in reversed(steps) if isinstance(s.map_fn, PersonScoreMap))


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_a_person_s_jacobian_is_bounded_as_a_sum(name: str) -> None:
    """A person at L against one without a row is half of what is billed; curvatures of one sign are
    √2 L apart at most. On some released paths no such row is at L: several are walked.
    """
    farthest = []
    for step in (last_step(name) for _ in range(6)):
        part = step.parts[1]
        assert isinstance(part, VectorSum)
        assert (part.size, part.unit_rows, part.person_rows) == (6, 1, M)
        found = [totals(step, with_person(rows))[1] for rows in LIKE]
        farthest.append(max(distance(part, a, b) for a in found for b in found))
    assert 0.49 < max(farthest) <= 1


def test_two_persons_with_opposite_curvatures_attain_what_is_billed_for_a_jacobian() -> None:
    part = VectorSum(6, 2.0, RHO, 1, M)
    v = np.zeros((3, M))
    v[0] = 5.0
    up, down = (
        registry.encode_all((part,), (jacobians(Scaled(v, sign * np.ones(M)), M),))[0]
        for sign in (1, -1)
    )
    assert 0.999 < distance(part, up, down) <= 1


def test_a_jacobian_is_the_sum_of_its_rows_with_their_signs() -> None:
    rng = seeded(3)
    v, w = rng.normal(size=(3, 2 * M)), rng.normal(size=2 * M)
    found = jacobians(Scaled(v, np.sign(w) * np.sqrt(np.abs(w))), M)
    for person in range(2):
        rows = slice(person * M, (person + 1) * M)
        by_hand = (v[:, rows] * w[rows]) @ v[:, rows].T
        released = as_matrix(Released(found[:, person], 1.0))
        np.testing.assert_allclose(released.values, by_hand, atol=1e-12)
        assert np.linalg.norm(found[:, person]) == pytest.approx(np.linalg.norm(by_hand))


def test_the_reach_is_the_least_edge_that_few_jacobians_are_beyond() -> None:
    lengths = Lengths(2.0)
    counts = np.zeros(lengths.bins)
    counts[0], counts[10], counts[15] = 500, 98, 2
    assert chosen_reach(lengths, Released(counts, 1e-9)) == pytest.approx(lengths.edges[9])
    counts[15] = 4
    assert chosen_reach(lengths, Released(counts, 1e-9)) == pytest.approx(lengths.edges[14])
