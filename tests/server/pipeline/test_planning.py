# SPDX-License-Identifier: Apache-2.0
"""What every plan is held to, whatever its kind: its cost, and the words of its promise."""

from dataclasses import replace
from typing import Any

import pytest

from reticent_server import kinds
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.median.kind import Median
from reticent_server.pipeline import planning

SCHEMA = Schema((Column("x", ColumnKind.NUMERIC, -5, 5),))
FACTS = DatasetFacts("d", "d", 1, "v", 100, SCHEMA)


def with_plan(monkeypatch: pytest.MonkeyPatch, room: Any, dearer: Any) -> None:
    """The room's kind, with a plan that costs a unit more."""
    others = tuple(kind for kind in kinds.KINDS if kind is not room)
    monkeypatch.setattr(kinds, "KINDS", (*others, replace(room, plan=dearer)))


def test_a_plan_that_costs_more_than_was_offered_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ρ, where its (ε, δ) are what was asked for; of ε, where it has a cost of its own."""
    with_plan(
        monkeypatch,
        kinds.COUNT,
        lambda facts, query, offer: kinds.COUNT.plan(
            facts, query, replace(offer, rho=offer.rho + 1)
        ),
    )
    with pytest.raises(RuntimeError, match="more than it was offered"):
        planning.plan(FACTS, Count(), Privacy(1.0, 1e-6))
    with_plan(
        monkeypatch,
        kinds.MEDIAN,
        lambda facts, query, offer: kinds.MEDIAN.plan(
            facts, query, replace(offer, epsilon=offer.epsilon + 1)
        ),
    )
    with pytest.raises(RuntimeError, match="more than it was offered"):
        planning.plan(FACTS, Median("x"), Privacy(1.0, 1e-6))


def test_a_promise_says_what_is_replaced() -> None:
    row = planning.plan(FACTS, Count(), Privacy(1.0, 1e-6)).guarantee
    assert row.statement.startswith("Replacing one row changes the probability of any reply")
    assert row.statement.endswith("this holds for every table.")
    unit = Unit("person", 3)
    people = replace(FACTS, schema=replace(SCHEMA, unit=unit))
    statement = planning.plan(people, Count(), Privacy(1.0, 1e-6)).guarantee.statement
    assert "Replacing all rows of one person by any others (at most 3, or none)" in statement
