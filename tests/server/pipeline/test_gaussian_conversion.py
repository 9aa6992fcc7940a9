# SPDX-License-Identifier: Apache-2.0
"""Which accounts get the Gaussian conversion, and that a release keeps the one that it was charged
by.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from reticent_server.accounting import conversions, gaussian
from reticent_server.domain.plan import Plan
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.sum.kind import Sum
from reticent_server.ledger.model import Charge, Standing
from reticent_server.ledger.service import Fresh
from reticent_server.pipeline import planning
from reticent_server.pipeline.answer import answer, plan_with_accounts
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.documents import promise_json
from reticent_server.pipeline.forecasts import forecast_json
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.recovery import recover
from reticent_server.pipeline.services import Services
from support.installations.small import Installation, opened

ASK = Ask("people", Sum("y"), Privacy(0.5, 1e-6), "key")
COUNT = replace(ASK, query=Count(where="x > 0"), privacy=Privacy(2.0, 1e-6))


@pytest.fixture
def basic(installation: Installation, services: Services) -> Principal:
    """An analyst whose account adds up ε, as that of the population does."""
    key = installation.analyst("carl", epsilon=10, delta=1e-3)
    return services.access.authenticate(key)


def test_where_all_accounts_add_up_epsilon_gaussian_noise_gets_more_rho(
    services: Services, basic: Principal
) -> None:
    plan, _ = plan_with_accounts(services, basic, ASK)
    assert plan.gaussian_rho == gaussian.rho_units(0.5, 1e-6)
    assert plan.cost.rho == pytest.approx(plan.gaussian_rho, rel=1e-4)
    assert plan.cost.rho > 1.15 * conversions.rho_units(0.5, 1e-6)
    assert (plan.guarantee.epsilon, plan.guarantee.delta) == (0.5, 1e-6)
    release = json.loads(answer(services, basic, ASK))
    assert release["charged"]["rho"] == pytest.approx(plan.cost.rho / 1e12, abs=1e-11)
    balance = services.ledger.balances(basic.id)[0]
    assert (balance.spent.primary, balance.spent.secondary) == (5 * 10**8, 10**12)


def test_an_account_that_adds_up_rho_keeps_zcdp_s(
    services: Services, installation: Installation
) -> None:
    """ana's does, though that of the population does not."""
    ana = services.access.authenticate(installation.keys["ana"])
    plan, standing = plan_with_accounts(services, ana, ASK)
    assert {b.rule for b in standing.accounts} == {"basic", "zcdp"}
    assert plan.gaussian_rho is None
    assert plan.cost.rho <= conversions.rho_units(0.5, 1e-6)
    assert not standing.has_gaussian
    assert not Standing(None, None).has_gaussian
    assert replace(standing, analyst=None).has_gaussian


def test_a_count_has_the_noise_of_its_own_profile(
    services: Services, installation: Installation, basic: Principal
) -> None:
    plan, standing = plan_with_accounts(services, basic, COUNT)
    assert plan.lone
    assert plan.gaussian_rho is None
    facts = services.catalog.facts("people")
    usual = planning.plan(facts, COUNT.query, COUNT.privacy, gaussian=True)
    assert plan.cost.rho > 1.1 * usual.cost.rho
    release = json.loads(answer(services, basic, COUNT))
    assert release["charged"]["rho"] == pytest.approx(plan.cost.rho / 1e12, abs=1e-11)
    assert release["result"]["standard_error"] == pytest.approx(2.2466, abs=1e-4)
    assert standing.analyst is not None
    mixed = replace(standing, analyst=replace(standing.analyst, rule="gdp"))
    assert (mixed.has_gaussian, mixed.adds_up, Standing(None, None).adds_up) == (True, False, False)
    ana = services.access.authenticate(installation.keys["ana"])
    assert not plan_with_accounts(services, ana, COUNT)[0].lone


def test_a_forecast_turns_rho_back_as_the_plan_turned_it(
    services: Services, basic: Principal
) -> None:
    release_profile(services, "people", epsilon=50.0)
    ask = replace(ASK, query=LinearRegression("y ~ x"))
    plan, _ = plan_with_accounts(services, basic, ask)
    assert plan.gaussian_rho is not None
    assert plan.planned.fit is not None
    target = plan.planned.fit.noise_ratio(plan.cost.rho)
    by_gaussian, by_zcdp = (
        forecast_json(each, target)["epsilon_for"][0]["epsilon"]
        for each in (plan, replace(plan, gaussian_rho=None))
    )
    assert by_gaussian == pytest.approx(0.5, rel=0.02)
    assert by_zcdp > 1.05 * by_gaussian


KEPT: dict[str, Any] = {
    "gaussian": lambda promise: promise,
    "zcdp": lambda promise: promise,
    "an earlier version": lambda promise: {k: v for k, v in promise.items() if k != "gaussian"},
    "one without promises": lambda promise: None,
}
"""What is stored of the plan, by how it was charged."""


def charged(services: Services, analyst: Principal, by: str, ask: Ask = ASK) -> Plan:
    """The ask, charged and then abandoned."""
    facts = services.catalog.facts("people")
    plan = planning.plan(
        facts, ask.query, ask.privacy, gaussian=by == "gaussian", counted=ask is COUNT
    )
    outcome = services.ledger.reserve(
        Charge(
            analyst_id=analyst.id,
            dataset="people",
            version_id=plan.facts.version_id,
            population=plan.facts.population,
            cost=plan.cost,
            request=ask.canonical(),
            idempotency_key="key",
            promise=KEPT[by](promise_json(plan)),
        )
    )
    assert isinstance(outcome, Fresh)
    return plan


@pytest.mark.sample(4)
@pytest.mark.parametrize("by", KEPT)
def test_an_abandoned_release_is_computed_by_the_conversion_that_it_was_charged_by(
    installation: Installation, by: str
) -> None:
    """Whatever its accounts would get today: else it would not be what was paid for, and fail."""
    key = installation.analyst("carl", epsilon=10, delta=1e-3)
    settings = installation.settings.model_copy(update={"lease_seconds": 1})
    with opened(settings) as services:
        carl = services.access.authenticate(key)
        plan = charged(services, carl, by)
        services.clock.sleep(1.1)
        assert recover(services) == 1
        release = json.loads(answer(services, carl, ASK))
        assert release["status"] == "reply"
        assert release["charged"]["rho"] == pytest.approx(plan.cost.rho / 1e12, abs=1e-11)
        expected = gaussian.rho_units if by == "gaussian" else conversions.rho_units
        assert plan.cost.rho == pytest.approx(expected(0.5, 1e-6), rel=1e-4)
        assert services.ledger.verify() == []


def test_an_abandoned_count_is_computed_by_its_own_profile(installation: Installation) -> None:
    key = installation.analyst("carl", epsilon=10, delta=1e-3)
    settings = installation.settings.model_copy(update={"lease_seconds": 1})
    with opened(settings) as services:
        carl = services.access.authenticate(key)
        plan = charged(services, carl, "gaussian", COUNT)
        assert plan.lone
        services.clock.sleep(1.1)
        assert recover(services) == 1
        assert json.loads(answer(services, carl, COUNT))["status"] == "reply"
