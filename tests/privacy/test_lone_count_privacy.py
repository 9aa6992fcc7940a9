# SPDX-License-Identifier: Apache-2.0
"""Releases that are one count or one table of counts: the exact loss of what is drawn, over all
outputs, is within what was asked for, and nearly all of it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Unit
from reticent_server.domain.steps import ColumnStep, CountSum, SumStep, VectorSum
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.example import SCHEMA, rows
from reticent_server.kinds.registry import stored_query
from reticent_server.mechanisms import lone_count, noisy_sum
from reticent_server.mechanisms.gaussian_cost import Unpriced
from reticent_server.pipeline import planning
from support.attacks.recorder import Served
from support.kinds.examples import QUERIES

DELTA = 1e-6
N = 300
POLICY = Policy(("unconditional", "conditional"))
LONE = {"count", "histogram", "crosstab", "proportion_test"}
"""Kinds whose first example releases one count, or one table of counts, and nothing else."""


def planned(name: str, epsilon: float, m: int = 1, delta: float = DELTA) -> Plan:
    unit = Unit("person", m) if m > 1 else Unit()
    facts = DatasetFacts("d", "d", 1, "v", N, replace(SCHEMA, unit=unit), None, POLICY)
    query = stored_query(QUERIES[name])
    return planning.plan(facts, query, Privacy(epsilon, delta), gaussian=True, counted=True)


def law(scale: float) -> np.ndarray:
    z = np.arange(-200.0, 201.0)
    p = np.exp(-(z**2) / (2 * scale**2))
    return np.asarray(p / p.sum())


def lost(here: np.ndarray, there: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(here - np.exp(epsilon) * there, 0.0).sum())


def exact_delta(part: CountSum, epsilon: float) -> float:
    """δ over every output, of the worst neighbour: one cell by up to its unit's rows, or two."""
    p = law(noisy_sum.scale(part))
    most = part.unit_rows
    one = max(lost(p[:-d], p[d:], epsilon) for d in range(1, most + 1))
    if part.bins == 1:
        return one
    assert most == 1
    return max(one, lost(np.outer(p[1:-1], p[1:-1]), np.outer(p[2:], p[:-2]), epsilon))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 9.0])
@pytest.mark.parametrize("name", [f"{kind} 0" for kind in sorted(LONE)])
def test_what_is_drawn_loses_what_was_asked_for_and_no_more(name: str, epsilon: float) -> None:
    plan = planned(name, epsilon)
    usual = planning.plan(plan.facts, plan.query, Privacy(epsilon, DELTA), gaussian=True)
    assert plan.lone
    assert plan.guarantee == usual.guarantee
    assert plan.cost.rho > usual.cost.rho
    (part,) = plan.planned.gaussian_counts or ()
    assert 0.9 * DELTA < exact_delta(part, epsilon) <= DELTA


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_a_unit_of_three_rows_has_its_count_certified_at_all_distances(epsilon: float) -> None:
    (part,) = planned("count 0", epsilon, m=3).planned.gaussian_counts or ()
    assert part.unit_rows == 3
    assert 0.9 * DELTA < exact_delta(part, epsilon) <= DELTA


def test_no_table_of_persons_with_several_rows_is_certified() -> None:
    assert not planned("crosstab 0", 2.0, m=3).lone


@pytest.mark.sample(30)
@pytest.mark.parametrize("name", QUERIES)
def test_only_what_is_one_count_rests_on_its_profile(name: str) -> None:
    plan = planned(name, 2.0)
    counts = plan.planned.gaussian_counts
    assert plan.lone == (counts is not None and [part.rho for part in counts] == [plan.cost.rho])
    assert plan.lone or QUERIES[name]["kind"] not in LONE
    assert planning.plan(plan.facts, plan.query, Privacy(2.0, DELTA), gaussian=True).lone is False


def status(plan: Plan) -> str:
    facts = plan.facts
    table = Served(facts, rows(facts.slots))
    engine = LocalEngine(lambda _: table, table, cache_bytes=0, threads=1, block_rows=128)
    try:
        return engine.execute(plan, Reservation("r", facts.version_id, plan.cost, "")).status
    finally:
        engine.close()


def test_the_engine_releases_what_is_certified_and_nothing_else() -> None:
    plan = planned("count 0", 2.0)
    assert status(plan) == "reply"
    less = replace(plan.cost, delta=plan.cost.delta // 2)
    fit = planned("linear_regression 0", 2.0)
    for wrong in (
        replace(plan, cost=less),  # more ρ than its (ε, δ) allow
        replace(plan, cost=replace(plan.cost, epsilon=plan.cost.epsilon * 9 // 10)),
        replace(fit, lone=True),  # more than one count
    ):
        assert status(wrong) == "failed"


def step(*parts: Any) -> SumStep:
    return SumStep("s", parts, lambda block: ())


def test_one_count_and_nothing_before_it() -> None:
    part = CountSum(1, 10**10)
    cost = PrivacyCost(EPSILON_UNITS, DELTA_UNITS // 10**6, 10**13)
    lone_count.check(step(part), 0, cost)
    for wrong, spent in (
        (step(part), 1),
        (step(part, part), 0),
        (step(VectorSum(1, 1.0, 10**10)), 0),
        (step(CountSum(1, 10**13)), 0),
        (step(CountSum(1, 10**10, 65)), 0),
        (step(CountSum(2, 10**10, 2)), 0),
        (ColumnStep("c", (), lambda block: ()), 0),
    ):
        with pytest.raises(Unpriced):
            lone_count.check(wrong, spent, cost)
