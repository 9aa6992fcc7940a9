# SPDX-License-Identifier: Apache-2.0
"""The δ that a request gets by default, and what plans and budgets say of the accounts."""

from typing import Any

import pytest

from reticent_server.api import replies
from reticent_server.cli import root
from reticent_server.console import pages
from reticent_server.pipeline.accounts import account_row
from reticent_server.pipeline.defaults import QUERIES
from reticent_server.pipeline.profile import release_profile
from reticent_server.pipeline.services import Services
from support.installations.small import Api, Installation

COUNT = {"kind": "count"}
SMOOTH = {"kind": "median", "column": "y", "mechanism": "smooth_sensitivity"}
"""A Gaussian release, of which a zcdp account pays no δ; and one with an exception, for which it
does.
"""


@pytest.fixture
def api(services: Services) -> Api:
    return Api(services, None)


def analyst(installation: Installation, services: Services, rule: str, **given: float) -> Api:
    return Api(services, installation.analyst(f"of-{rule}", rule=rule, **given))


def request(query: dict[str, Any], epsilon: float, delta: float | None = None) -> dict[str, Any]:
    privacy = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
    return {"dataset": "people", "query": query, "privacy": privacy}


def plan(api: Api, *asked: Any) -> dict[str, Any]:
    found: dict[str, Any] = api.post("/v1/plans", request(*asked)).json()
    replies.PlanReply.model_validate(found)
    return found


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("rule", "query", "delta"),
    [
        ("zcdp", COUNT, 1e-6),
        ("zcdp", SMOOTH, 1e-8),
        ("basic", COUNT, 1e-7),
        ("basic", SMOOTH, 1e-7),
    ],
)
def test_delta_is_a_tenth_of_what_the_account_that_is_charged_for_it_allows(
    rule: str, query: dict[str, Any], delta: float, installation: Installation, services: Services
) -> None:
    someone = analyst(installation, services, rule, epsilon=20.0, delta=1e-6)
    assert plan(someone, query, 0.5)["guarantee"]["delta"] == delta
    made = someone.post("/v1/releases", request(query, 0.5)).json()
    assert made["guarantee"]["delta"] == delta


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("rule", ["zcdp", "basic"])
def test_ten_requests_with_the_default_fit_and_no_more(
    rule: str, installation: Installation, services: Services
) -> None:
    someone = analyst(installation, services, rule, epsilon=20.0, delta=1e-6)
    statuses = [someone.post("/v1/releases", request(SMOOTH, 0.1)).status_code for _ in range(11)]
    assert statuses == [201] * QUERIES + [403]
    assert plan(someone, SMOOTH, 0.1)["budget"]["covered"] is False


def test_all_analysts_cap_counts_too(installation: Installation, services: Services) -> None:
    services.ledger.set_population_cap("people", epsilon=1e3, delta=5e-7, rule="basic", by="t")
    someone = analyst(installation, services, "zcdp", epsilon=20.0, delta=1e-6)
    assert plan(someone, COUNT, 0.5)["guarantee"]["delta"] == 5e-8


def test_the_curators_profile_takes_a_tenth_of_the_cap(services: Services) -> None:
    services.ledger.set_population_cap("people", epsilon=1e3, delta=5e-7, rule="basic", by="t")
    made = release_profile(services, "people", epsilon=0.5)
    assert made["guarantee"]["delta"] == 5e-8


def test_without_any_delta_the_policy_s_is_planned_and_the_release_refused(
    installation: Installation, services: Services
) -> None:
    """A basic account of δ = 0 answers what needs none, and says what is left where one is
    needed.
    """
    someone = analyst(installation, services, "basic", epsilon=20.0, delta=0.0)
    found = plan(someone, COUNT, 0.5)
    assert (found["guarantee"]["delta"], found["budget"]["covered"]) == (1e-6, False)
    assert someone.post("/v1/releases", request(COUNT, 0.5)).json()["remaining"]["delta"] == 0.0
    exact = {"kind": "median", "column": "y", "mechanism": "exponential"}
    assert plan(someone, exact, 0.5)["budget"]["covered"] is True
    assert someone.post("/v1/releases", request(exact, 0.5)).status_code == 201


def test_the_policy_s_delta_is_the_most(installation: Installation, services: Services) -> None:
    someone = analyst(installation, services, "basic", epsilon=20.0, delta=1e-3)
    assert plan(someone, SMOOTH, 0.5)["guarantee"]["delta"] == 1e-6


def test_a_named_delta_is_taken_as_it_is(installation: Installation, services: Services) -> None:
    someone = analyst(installation, services, "zcdp", epsilon=20.0, delta=1e-6)
    assert plan(someone, SMOOTH, 0.5, 3e-8)["guarantee"]["delta"] == 3e-8


@pytest.mark.slow
def test_a_retry_after_the_account_was_changed_is_the_same_request(
    installation: Installation, services: Services
) -> None:
    someone = analyst(installation, services, "basic", epsilon=20.0, delta=1e-6)
    key = {"headers": {"Idempotency-Key": "one"}}
    first = someone.post("/v1/releases", request(COUNT, 0.5), **key)
    installation_again(services, delta=2e-6)
    again = someone.post("/v1/releases", request(COUNT, 0.5), **key)
    assert plan(someone, COUNT, 0.5)["guarantee"]["delta"] == 2e-7
    assert (again.status_code, again.content) == (201, first.content)
    assert someone.post("/v1/releases", request(COUNT, 0.6), **key).status_code == 409


def installation_again(services: Services, delta: float) -> None:
    (holder,) = (a for a in services.access.analysts() if a.name == "of-basic")
    services.ledger.set_analyst_budget(
        holder.id, "people", "people", epsilon=20.0, delta=delta, by="t"
    )


@pytest.mark.sample(16)
@pytest.mark.parametrize("rule", ["zcdp", "basic"])
@pytest.mark.parametrize("query", [COUNT, SMOOTH], ids=["count", "smooth"])
@pytest.mark.parametrize("epsilon", [0.9, 1.01, 1.2, 2.5])
@pytest.mark.parametrize("delta", [1e-6, 9e-8, 1.1e-7])
def test_a_plan_says_what_a_release_would_be_told(
    rule: str,
    query: dict[str, Any],
    epsilon: float,
    delta: float,
    installation: Installation,
    services: Services,
) -> None:
    someone = analyst(installation, services, rule, epsilon=1.0, delta=1e-6)
    said = plan(someone, query, epsilon, delta)["budget"]
    made = someone.post("/v1/releases", request(query, epsilon, delta))
    assert said["covered"] is (made.status_code == 201)
    assert said["covered"] is (said["analyst"]["covered"] and said["dataset"]["covered"])
    if made.status_code == 403:
        assert made.json()["remaining"] == said["analyst"]["remaining"]


def test_a_plan_says_that_another_spends_the_cap(
    installation: Installation, services: Services
) -> None:
    services.ledger.set_population_cap("people", epsilon=1.0, delta=1e-3, rule="basic", by="t")
    someone = analyst(installation, services, "zcdp", epsilon=20.0, delta=1e-6)
    said = plan(someone, COUNT, 1.5)["budget"]
    assert (said["covered"], said["analyst"]["covered"]) == (False, True)
    assert said["dataset"]["remaining"] == {"epsilon": 1.0, "delta": 1e-3}
    assert someone.post("/v1/releases", request(COUNT, 1.5)).status_code == 403


def test_a_plan_is_free(installation: Installation, services: Services) -> None:
    someone = analyst(installation, services, "zcdp", epsilon=1.0, delta=1e-6)
    before = services.ledger.head()
    plan(someone, SMOOTH, 0.5)
    assert services.ledger.head() == before


def test_one_figure_in_one_unit_everywhere(
    installation: Installation,
    services: Services,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is left, by the budget, by a plan, by a refusal, by the console and by the command
    line.
    """
    someone = analyst(installation, services, "zcdp", epsilon=1.0, delta=1e-6)
    someone.post("/v1/releases", request(SMOOTH, 0.1))
    (account,) = someone.get("/v1/budget").json()["accounts"]
    left = {name: account["remaining"][name] for name in ("epsilon", "rho", "rho_delta")}
    assert left == {
        "epsilon": pytest.approx(0.88, rel=0.01), "rho": pytest.approx(0.01913, rel=0.001),
        "rho_delta": 9e-8,
    }  # fmt: skip
    assert plan(someone, SMOOTH, 0.1)["budget"]["analyst"]["remaining"] == left
    refused = someone.post("/v1/releases", request(COUNT, 4.0))
    assert refused.json()["remaining"] == left
    (holder,) = (a for a in services.access.analysts() if a.name == "of-zcdp")
    (balance,) = services.ledger.balances(holder.id)
    text = f"ρ = {left['rho']:.6g}, δ = 9e-08"
    assert account_row(balance)["left"] == text
    assert pages.account(services, balance).row["left"] == text
    for name, value in installation.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "300")
    shown = ["budget", "show", "--analyst", "of-zcdp"]
    root(shown)(args=[*shown, "--json"], standalone_mode=False)
    assert '"rho_delta": 9e-08' in capsys.readouterr().out
