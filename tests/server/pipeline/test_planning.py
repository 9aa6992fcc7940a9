"""What every plan is held to, whatever its kind: its cost, and the words of its promise."""

from dataclasses import replace

import pytest

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Count, Median, Privacy
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.pipeline import planning, planning_robust

SCHEMA = Schema((Column("x", ColumnKind.NUMERIC, -5, 5),))
FACTS = DatasetFacts("d", "d", 1, "v", 100, SCHEMA)
COUNT, PLANNED = planning.plan_count, planning_robust.plan_exponential_median


def test_a_plan_that_costs_more_than_was_offered_is_none(monkeypatch):
    """Of ρ, where its (ε, δ) are what was asked for; of ε, where it has a cost of its own."""
    monkeypatch.setattr(
        planning, "plan_count", lambda facts, design, rho: COUNT(facts, design, rho + 1)
    )
    with pytest.raises(RuntimeError, match="more than it was offered"):
        planning.plan(FACTS, Count(), Privacy(1.0, 1e-6))
    monkeypatch.setattr(
        planning_robust, "plan_exponential_median",
        lambda facts, design, column, epsilon: PLANNED(facts, design, column, epsilon + 1),
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="more than it was offered"):
        planning.plan(FACTS, Median("x"), Privacy(1.0, 1e-6))


def test_a_promise_says_what_is_replaced():
    row = planning.plan(FACTS, Count(), Privacy(1.0, 1e-6)).guarantee
    assert row.statement.startswith("Replacing one row changes the probability of any reply")
    assert row.statement.endswith("this holds for every table.")
    unit = Unit("person", 3)
    people = replace(FACTS, schema=replace(SCHEMA, unit=unit))
    statement = planning.plan(people, Count(), Privacy(1.0, 1e-6)).guarantee.statement
    assert (
        "Replacing the rows (at most 3) that share a value of person by as many rows" in statement
    )
