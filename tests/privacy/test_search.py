# SPDX-License-Identifier: Apache-2.0
"""Every kind, every unit size: no two units of an adversarial pool are farther apart than a step's
charge.

The questions are the registry's own examples, so that a new kind is searched without a line here.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from reticent_server.certificate.pool import table_of, units
from reticent_server.certificate.search import searched
from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import ABSENT, ColumnKind, Unit
from reticent_server.errors import InvalidRequest
from reticent_server.kinds.example import SCHEMA, rows
from reticent_server.mechanisms import noisy_sum
from reticent_server.pipeline import planning
from reticent_server.web.bodies import RequestBody
from support.attacks.seeded_noise import seed_noise
from support.kinds.examples import QUERIES, TWO_COLUMNS, with_second_clusters

N = 300
ROOM = 1 + 1e-9  # relative: a distance in float64


GAPS = 0
"""In place of m: a person has one row at most, and may have none."""


def facts_of(m: int) -> DatasetFacts:
    of_persons = Unit("person", m or 1, gaps=m == GAPS)
    schema = replace(SCHEMA, unit=Unit() if m == 1 else of_persons)
    policy = Policy(tiers=("unconditional", "conditional"))
    return DatasetFacts("d", "d", 1, "v", N, schema, None, policy)


def planned(facts: DatasetFacts, query: Any, epsilon: float) -> Any:
    """The plan, or None where the data set does not have what it asks for."""
    document = {"dataset": "d", "query": query, "privacy": {"epsilon": epsilon, "delta": 1e-6}}
    try:
        ask = RequestBody.model_validate(document).ask()
        return planning.plan(facts, ask.query, Privacy(epsilon, 1e-6)).planned
    except (ValidationError, InvalidRequest):
        return None


FIRST = [name for name in QUERIES if name.endswith(" 0")]
LONG = [pytest.param(name, marks=pytest.mark.audit) for name in QUERIES]
WEAKEST = 0.5
"""Of a step's charge: noise of seven tenths of its scale loses twice as much."""
# of a step's charge that some pair attains somewhere in a plan: else the pool searches nothing
LEAST = 0.1


@pytest.mark.sample(16)
@pytest.mark.parametrize("m", [GAPS, 1, 3])
@pytest.mark.parametrize("name", FIRST)
def test_no_two_units_are_farther_apart_than_a_step_is_charged(
    name: str, m: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, f"{name}, {m}")
    facts = facts_of(m)
    search(facts, planned(facts, QUERIES[name], 1.0), size=16)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("m", [GAPS, 1, 3, 8])
@pytest.mark.parametrize("name", LONG)
def test_nor_of_a_large_pool_at_any_epsilon(
    name: str, m: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed_noise(monkeypatch, f"{name}, {m}, {epsilon}")
    facts = facts_of(m)
    for seed in range(3):
        search(facts, planned(facts, QUERIES[name], epsilon), size=48, seed=seed)


@pytest.mark.parametrize("name", TWO_COLUMNS)
def test_nor_by_two_columns_of_clusters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows alone: errors of persons are by person."""
    seed_noise(monkeypatch, name)
    assert planned(with_second_clusters(facts_of(3)), TWO_COLUMNS[name], 1.0) is None
    facts = with_second_clusters(facts_of(1))
    plan = planned(facts, TWO_COLUMNS[name], 1.0)
    assert plan is not None
    search(facts, plan, size=16)


def search(facts: DatasetFacts, plan: Any, size: int, seed: int = 0) -> None:
    """Searches a plan's steps of sums; None, of what this data set is refused, has none."""
    if plan is None:
        return
    found = list(
        searched(plan, table_of(facts, cells(facts)), units(facts, size, seed)),
    )
    for step in found:
        assert step.loss <= step.charged * ROOM, step
    noisy = [step.loss / step.charged for step in found if step.loss > 0]
    assert not noisy or max(noisy) > LEAST


def cells(facts: DatasetFacts) -> dict[str, Any]:
    """The example's rows; a second column of clusters crosses the first."""
    found = rows(facts.slots)
    return found | {"j": (found["k"] * 3 + np.arange(facts.slots) // 10) % 10}


def test_persons_of_the_pool_have_none_to_all_of_their_rows() -> None:
    """So that a count of all rows moves."""
    pool = units(facts_of(3), 32, 0)
    assert {int((~unit.missing[ABSENT]).sum()) for unit in pool} == {0, 1, 2, 3}


def test_units_of_the_pool_lie_at_the_ends_and_in_the_middle_of_the_bounds() -> None:
    """A cut, or a centre, is often there."""
    facts = facts_of(1)
    pool = units(facts, 64, 0)
    for column in facts.schema.columns:
        if column.kind is ColumnKind.NUMERIC:
            cells = {float(unit.columns[column.name][0]) for unit in pool}
            assert {column.lower, (column.lower + column.upper) / 2, column.upper} <= cells


SELECTED = {"quantiles", "iqr", "median", "m_estimate", "depth_median", "subsample_aggregate"}
"""Kinds that draw indices, or blocks: what these lose is measured by test_outside_audit.py."""


@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", sorted({query["kind"] for query in QUERIES.values()} - SELECTED))
def test_a_bound_that_is_weakened_in_any_kind_is_found(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half the ρ, or less, would not pay for some step of one of its questions: a pair attains that
    much.
    """
    seed_noise(monkeypatch, kind)
    assert any(share > WEAKEST for share in attained(kind))


def attained(kind: str) -> Iterator[float]:
    """The largest shares of a step's charge that pairs attain, by question and unit size."""
    for name in (name for name, query in QUERIES.items() if query["kind"] == kind):
        for m in (1, 3):
            facts = facts_of(m)
            plan = planned(facts, QUERIES[name], 1.0)
            if plan is not None:
                table, pool = table_of(facts, rows(facts.slots)), units(facts, 32, 0)
                yield max(step.loss / step.charged for step in searched(plan, table, pool))


def test_the_search_finds_noise_that_is_made_for_less_than_records_can_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a twentieth less, of a crosstab's counts and of a sum."""
    real = noisy_sum.sensitivity
    monkeypatch.setattr(noisy_sum, "sensitivity", lambda part: 0.95 * real(part))
    facts = facts_of(1)
    for name in ("crosstab 0", "sum 0"):
        table, pool = table_of(facts, rows(facts.slots)), units(facts, 24, 0)
        found = searched(planned(facts, QUERIES[name], 1.0), table, pool)
        assert any(step.loss > step.charged * ROOM for step in found)
