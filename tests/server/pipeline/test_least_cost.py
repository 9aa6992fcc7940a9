# SPDX-License-Identifier: Apache-2.0
"""What is refused before it is planned costs more than what is left: the bound holds for every
kind.
"""

from dataclasses import replace

import pytest

from reticent_server.accounting import gaussian_account
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Privacy, Query
from reticent_server.domain.schema import Unit
from reticent_server.errors import BudgetExhausted, InvalidPrivacy, InvalidQuery
from reticent_server.kinds import KINDS, example
from reticent_server.ledger.model import Balance, Standing
from reticent_server.ledger.rules import Rule
from reticent_server.pipeline import defaults, planning
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.coverage import refuse_uncovered

FACTS = DatasetFacts("example", "example", 1, "example", 10**4, example.SCHEMA)
PERSONS = replace(FACTS, schema=replace(example.SCHEMA, unit=Unit("person", 3)))
QUESTIONS = [query for kind in KINDS if kind.for_analysts for query in kind.examples]
NOBODY = Standing(None, None)


def account(rule: Rule, primary: int, secondary: int) -> Balance:
    cap = Amounts(primary, secondary)
    return Balance("a", "ana", "example", "example", rule, 0, 0, cap, Amounts(0, 0))


@pytest.mark.sample(24)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("query", QUESTIONS, ids=lambda query: query.kind)
def test_no_plan_costs_less_than_the_least(query: Query, epsilon: float) -> None:
    for facts in (FACTS, PERSONS):
        for privacy in (Privacy(epsilon), Privacy(epsilon, 1e-9)):
            ask = Ask("example", query, privacy)
            for standing in (
                NOBODY,
                Standing(account("zcdp", 10**12, 10**14), account("zcdp", 10**13, 10**15)),
                Standing(account("basic", 10**12, 10**14), account("basic", 10**13, 10**15)),
            ):
                least = defaults.least_cost(facts, ask, standing)
                try:
                    cost = defaults.planned(facts, ask, standing)[1].cost
                except (InvalidQuery, InvalidPrivacy):
                    continue
                assert least.within(cost)
                assert cost.epsilon == least.epsilon


def test_the_least_is_near_enough_to_refuse_what_is_far_beyond() -> None:
    """Half of the ρ that is offered."""
    least = defaults.least_cost(FACTS, Ask("example", QUESTIONS[0], Privacy(1.0, 1e-6)), NOBODY)
    offered = planning.plan(FACTS, QUESTIONS[0], Privacy(1.0, 1e-6)).cost.rho
    assert least.rho * 2 >= offered // 2
    assert least.epsilon == 10**9


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_an_account_covers_what_it_has_left_and_no_unit_more(rule: Rule) -> None:
    least = PrivacyCost(epsilon=100, delta=0, rho=100)
    enough, short = account(rule, 100, 0), account(rule, 99, 0)
    refuse_uncovered(Standing(enough, enough), least)
    for standing in (Standing(short, enough), Standing(enough, short), Standing(None, enough)):
        with pytest.raises(BudgetExhausted):
            refuse_uncovered(standing, least)


def test_what_the_rule_gdp_has_no_price_for_is_told_from_what_is_spent() -> None:
    rich = account("gdp", 10**15, 0)
    dear = PrivacyCost(epsilon=2 * 10**9, delta=0, rho=gaussian_account.MOST + 1)
    with pytest.raises(BudgetExhausted, match="at most about 2"):
        refuse_uncovered(Standing(rich, rich), dear)
    refuse_uncovered(Standing(rich, rich), replace(dear, rho=gaussian_account.MOST))


def test_what_is_out_of_range_is_said_first() -> None:
    for privacy in (Privacy(1000.0), Privacy(1.0, 0.5)):
        with pytest.raises(InvalidPrivacy):
            defaults.least_cost(FACTS, Ask("example", QUESTIONS[0], privacy), NOBODY)
