# SPDX-License-Identifier: Apache-2.0
"""What analysts can learn at a cap: each figure is that of a plan, and the cap has room for exactly
what it says.
"""

from dataclasses import replace

import pytest

from reticent_server.domain.facts import DatasetFacts, Policy
from reticent_server.domain.query import Privacy
from reticent_server.domain.schema import Schema
from reticent_server.errors import InvalidRequest
from reticent_server.kinds import KINDS
from reticent_server.kinds.example import SCHEMA
from reticent_server.ledger.rules import charge
from reticent_server.pipeline import planning
from reticent_server.pipeline.simulator import Ruled, ruled, simulate

FACTS = DatasetFacts("people", "people", 1, "v", 20_000, SCHEMA)
CAP = ruled(None, 8.0, 1e-5)


def test_the_questions_are_a_mean_a_share_a_table_and_two_fits() -> None:
    kinds = [answer.kind.name for answer in simulate(FACTS, CAP, 20).answers]
    assert kinds == ["mean", "mean", "crosstab", "linear_regression", "glm"]
    assert all(not answer.refused for answer in simulate(FACTS, CAP, 20).answers)
    assert all(isinstance(q, kind.query) for kind in KINDS for q in kind.typical(SCHEMA))


def test_a_table_of_one_column_has_fewer_and_none_that_fails() -> None:
    for column in SCHEMA.columns:
        schema = Schema(SCHEMA.description, SCHEMA.unit, (column,))
        answers = simulate(replace(FACTS, schema=schema), CAP, 20).answers
        assert [a.refused for a in answers] == [""] * len(answers)
    assert len(answers) <= 1


def test_figures_are_those_of_the_plans() -> None:
    simulation = simulate(FACTS, CAP, 20, 0.5)
    mean = simulation.answers[0]
    plan = planning.plan(FACTS, mean.query, Privacy(0.5, FACTS.default_delta))
    precision = plan.planned.precision
    assert precision is not None
    assert (mean.ratio, mean.half_width) == (precision.ci_ratios[0], precision.half_widths[0])
    table, fit = simulation.answers[2:4]
    assert table.half_width is not None
    assert fit.half_width is None  # each coefficient has its own
    assert fit.ratio is not None
    assert fit.worst is None or fit.worst >= fit.ratio > 1


@pytest.mark.parametrize("account", [CAP, Ruled("basic", 8.0, 1e-3, ruled(None, 8.0, 1e-3).cap)])
@pytest.mark.parametrize("epsilon", [None, 0.3])
def test_the_cap_has_room_for_what_is_said_and_not_for_one_more(
    account: Ruled, epsilon: float | None
) -> None:
    simulation = simulate(FACTS, account, 20, epsilon)
    for answer in simulation.answers:
        privacy = Privacy(simulation.epsilon, FACTS.default_delta)
        gaussian = account.rule == "basic"
        cost = planning.plan(FACTS, answer.query, privacy, gaussian=gaussian).cost
        amount = charge(cost, account.rule)
        assert amount.primary * answer.room <= account.cap.primary
        is_full = amount.primary * (answer.room + 1) > account.cap.primary
        assert is_full or amount.secondary * (answer.room + 1) > account.cap.secondary


@pytest.mark.parametrize("questions", [1, 7, 20, 1000])
def test_an_even_split_fits_and_wastes_little(questions: int) -> None:
    simulation = simulate(FACTS, CAP, questions)
    if all(not answer.refused for answer in simulation.answers):
        assert questions <= simulation.room <= questions * 1.05 + 1


def test_more_questions_have_wider_intervals() -> None:
    few, many = simulate(FACTS, CAP, 10), simulate(FACTS, CAP, 40)
    assert many.epsilon < few.epsilon
    for a, b in zip(few.answers, many.answers, strict=True):
        assert (b.half_width or 1) >= (a.half_width or 1)
        assert (b.ratio or 9) >= (a.ratio or 1)


def test_what_a_policy_refuses_is_said_at_the_question() -> None:
    facts = replace(FACTS, policy=Policy(max_epsilon=0.1))
    simulation = simulate(facts, CAP, 20, 0.5)
    assert all(answer.refused for answer in simulation.answers)
    assert simulation.room == 0
    with pytest.raises(InvalidRequest):
        simulate(FACTS, CAP, 0)
