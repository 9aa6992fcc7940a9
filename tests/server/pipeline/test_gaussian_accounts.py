# SPDX-License-Identifier: Apache-2.0
"""An account under the rule gdp, from its opening to its chain."""

import json
from dataclasses import replace

import pytest

from reticent._budget import Account, Budget
from reticent._guarantee import Coverage
from reticent_server.accounting import gaussian, gaussian_account
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import RHO_UNITS, PrivacyCost
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import BudgetExhausted
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.sum.kind import Sum
from reticent_server.pipeline import gaussian_planning
from reticent_server.pipeline.accounts import account_json, account_row
from reticent_server.pipeline.answer import answer, plan_with_accounts
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.documents import plan_json
from reticent_server.pipeline.services import Services
from reticent_server.workbench.purses import purses
from support.installations.small import Installation

SUM = Ask("people", Sum("y"), Privacy(0.5, 1e-6), "sum")
QUANTILES = Ask("people", Quantiles("y", (0.5,)), Privacy(0.5, 1e-6), "quantiles")


@pytest.fixture
def carl(installation: Installation, services: Services) -> Principal:
    """An analyst under gdp; the population's account adds up ε."""
    key = installation.analyst("carl", epsilon=3.0, delta=1e-6, rule="gdp")
    return services.access.authenticate(key)


def test_the_spent_share_is_one_number_wherever_it_is_shown(
    services: Services, carl: Principal
) -> None:
    """In ε of the promise, on a page of the workbench, on the command line and in the client."""
    answer(services, carl, SUM)
    plan, standing = plan_with_accounts(services, carl, SUM)
    (balance,) = services.ledger.balances(carl.id)
    document = account_json(balance)
    share = document["spent_share"]
    assert share == pytest.approx(document["spent"]["epsilon"] / 3.0)
    (purse, _) = purses(standing, plan.cost)
    assert purse.spent_share == share
    assert 0 < purse.query_share < share  # ε grows like √ρ
    said = f"{100 * share:.3g} % ("
    assert account_row(balance)["spent"].startswith(said)
    account = Account.from_json(document | {"dataset": "people"})
    assert account.spent_share == share
    assert said in str(Budget((account,)))


def test_answers_are_debited_at_their_price(services: Services, carl: Principal) -> None:
    spent = 0
    for ask, is_gaussian in ((SUM, True), (QUANTILES, False)):
        plan, standing = plan_with_accounts(services, carl, ask)
        price = gaussian_account.price(plan.cost)
        assert (price == plan.cost.gaussian) is is_gaussian
        shown = plan_json(plan, standing)["budget"]["analyst"]
        assert (shown["rule"], shown["cost"]["rho"]) == ("gdp", price / RHO_UNITS)
        release = json.loads(answer(services, carl, ask))
        assert release["status"] == "reply"
        assert release["charged"]["rho_gdp"] == price / RHO_UNITS
        spent += price
    (balance,) = services.ledger.balances(carl.id)
    assert balance.cap == Amounts(*gaussian_account.caps(3 * 10**9, 10**12))
    assert balance.spent == Amounts(spent, 0)
    assert services.ledger.verify() == []


def test_what_has_no_price_has_none_in_a_plan(services: Services, carl: Principal) -> None:
    """Selections at an epsilon above 2: the account cannot pay them, however much is left."""
    dear = replace(QUANTILES, privacy=Privacy(2.9, 1e-6))
    plan, standing = plan_with_accounts(services, carl, dear)
    budget = plan_json(plan, standing)["budget"]
    assert budget["analyst"]["cost"] == {"rho": None, "rho_delta": 0.0}
    assert not budget["analyst"]["covered"]
    told = str(Coverage.from_json(budget["analyst"]))
    assert told.endswith("the question has no price under the rule gdp at this epsilon")
    mine, all_analysts = purses(standing, plan.cost)
    assert (mine.after, mine.of_rest) == (None, None)
    assert 0 < all_analysts.of_rest < 1


def test_a_sum_has_the_rho_that_gaussian_noise_has(services: Services, carl: Principal) -> None:
    plan, _ = plan_with_accounts(services, carl, SUM)
    assert plan.gaussian_rho == gaussian.rho_units(0.5, 1e-6)
    assert plan.cost.gaussian == pytest.approx(plan.gaussian_rho, rel=1e-4)


def test_a_count_pays_for_its_discrete_noise(services: Services, carl: Principal) -> None:
    plan, _ = plan_with_accounts(services, carl, replace(SUM, query=Count()))
    most = gaussian_planning.most(plan.planned)
    assert most is not None
    assert plan.cost.gaussian == most + gaussian_account.COUNT_FEE


def test_what_is_left_is_shown_as_epsilon(services: Services, carl: Principal) -> None:
    (balance,) = services.ledger.balances(carl.id)
    document = account_json(balance)
    assert document["rule"] == "gdp"
    assert document["remaining"]["epsilon"] == pytest.approx(3.0, rel=1e-3)
    assert document["remaining"]["rho"] == balance.cap.primary / RHO_UNITS


def test_one_large_answer_with_other_noise_has_no_price(
    services: Services, carl: Principal
) -> None:
    for query, answered in ((Quantiles("y", (0.5,)), False), (Count(), True)):
        ask = Ask("people", query, Privacy(2.3, 1e-6), f"large {answered}")
        plan, standing = plan_with_accounts(services, carl, ask)
        assert plan.cost.rho > gaussian_account.MOST
        assert plan_json(plan, standing)["budget"]["analyst"]["covered"] is answered
        if answered:
            assert json.loads(answer(services, carl, ask))["status"] == "reply"
        else:
            with pytest.raises(BudgetExhausted):
                answer(services, carl, ask)


def test_a_charge_of_an_earlier_version_is_paid_for(services: Services, carl: Principal) -> None:
    plan, _ = plan_with_accounts(services, carl, SUM)
    version = plan.facts.version_id

    def paid(cost: PrivacyCost) -> bool:
        return plan.paid_by(Reservation("r", version, cost, ""))

    assert paid(plan.cost)
    assert paid(replace(plan.cost, gaussian=0))
    assert not paid(replace(plan.cost, gaussian=plan.cost.gaussian - 1))
    assert not paid(replace(plan.cost, gaussian=0, rho=plan.cost.rho - 1))
    cheap = replace(plan, cost=replace(plan.cost, gaussian=0))
    assert not cheap.paid_by(Reservation("r", version, plan.cost, ""))
