# SPDX-License-Identifier: Apache-2.0
"""Projects on both databases: asked for, decided once, charged to accounts of their own, then
over.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from reticent_server.access.projects import Charter
from reticent_server.access.requests import MOST_PENDING, ProjectRequest
from reticent_server.database import writing
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.errors import (
    BudgetExhausted,
    Conflict,
    InvalidPrivacy,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from reticent_server.kinds.count.kind import Count
from reticent_server.ledger.model import analyst_account
from reticent_server.pipeline import browse, deferred, projects
from reticent_server.pipeline.accounts import account_json
from reticent_server.pipeline.answer import answer, plan
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.budgets import BudgetChange, set_budget
from reticent_server.pipeline.projects import Share
from reticent_server.pipeline.services import Services
from support.databases.migrated import SetClock
from support.installations.both_backends import installation
from support.installations.small import Installation, opened

__all__ = ["installation"]

Who = Callable[[str], Principal]
DOCUMENT: dict[str, Any] = {
    "name": "trial",
    "purpose": "Do drugs help?",
    "members": ["bob"],
    "ends_on": None,
    "budgets": [{"dataset": "people", "epsilon": 3.0, "delta": 1e-5}],
    "plan": [
        {"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.5}},
        {"dataset": "nothing", "query": {"kind": "count"}, "privacy": {"epsilon": 0.5}},
    ],
}
COUNT = Ask("people", Count(), Privacy(0.5))


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def services(installation: Installation, clock: SetClock) -> Iterator[Services]:
    with opened(installation.settings, clock) as services:
        yield services


@pytest.fixture
def who(services: Services, installation: Installation) -> Who:
    def found(name: str) -> Principal:
        holder = services.access.authenticate(installation.keys[name])
        assert holder is not None
        return holder

    return found


def filed(services: Services, asking: Principal, **changed: Any) -> ProjectRequest:
    made = projects.file(services, asking, DOCUMENT | changed)
    return services.requests.one(made["id"])


def approved(services: Services, asking: Principal, **changed: Any) -> str:
    request = filed(services, asking, **changed)
    wish, shares = projects.wish(services, request), projects.shares_of(request)
    return projects.approve(services, request, wish, shares, reason="", by="console:bert")


def spent(services: Services, holder: str) -> int:
    account = analyst_account(holder, "people")
    return next(b.spent.primary for b in services.ledger.all_balances() if b.account == account)


@pytest.mark.sample(4)
def test_a_project_pays_for_its_members_and_their_own_budgets_stay(
    services: Services, who: Who
) -> None:
    eve, bob, ana = who("eve"), who("bob"), who("ana")
    with pytest.raises(NotFound):
        answer(services, eve, COUNT)
    project = approved(services, eve)
    before, population = spent(services, ana.id), services.ledger.population_balance("people")
    assert population is not None
    for member in (eve, bob):
        answer(services, member, COUNT)
    shared = next(b for b in services.ledger.all_balances() if b.analyst_id == project)
    costs = {r.cost.rho for r in _records(services)}
    assert shared.spent.primary == 2 * next(iter(costs))
    after = services.ledger.population_balance("people")
    assert after is not None
    assert after.spent.primary > population.spent.primary
    assert spent(services, ana.id) == before
    answer(services, ana, COUNT)
    assert spent(services, ana.id) > before
    assert services.ledger.balances(eve.id) == ()
    assert services.ledger.verify() == []


def _records(services: Services) -> list[Any]:
    from reticent_server.database import reading
    from reticent_server.ledger.repository import all_releases

    with reading(services.catalog._engine) as connection:
        return list(all_releases(connection))


@pytest.mark.sample(4)
@pytest.mark.slow
def test_nobody_sees_another_s_project(services: Services, who: Who) -> None:
    """Not the project, not its budget, not its request, not a member's releases; and not that it
    is.
    """
    eve, bob, ana = who("eve"), who("bob"), who("ana")
    approved(services, eve)
    release = answer(services, eve, COUNT)
    assert [p["name"] for p in browse.projects(services, bob)] == ["trial"]
    assert browse.projects(services, ana) == []
    assert [a["project"] for a in browse.accounts(services, ana)] == [None]
    assert [a["project"] for a in browse.accounts(services, bob)] == [None, "trial"]
    assert services.requests.of(bob.id) == services.requests.of(ana.id) == ()
    for other in (bob, ana):
        with pytest.raises(NotFound):
            browse.release(services, other, release.split(b'"')[3].decode())
    refusals = []
    for name in ("trial", "no such project"):
        with pytest.raises(NotFound) as refused:
            plan(services, ana, Ask("people", Count(), Privacy(0.5), project=name))
        refusals.append(str(refused.value))
    with pytest.raises(NotFound) as absent:
        plan(services, ana, Ask("absent", Count(), Privacy(0.5)))
    assert set(refusals) == {str(absent.value)}


def test_filing_tells_nothing_about_what_there_is(services: Services, who: Who) -> None:
    asked = [("people", "bob"), ("absent", "nobody")]
    replies = []
    for dataset, member in asked:
        budget = {"dataset": dataset, "epsilon": 1.0, "delta": 0.0}
        made = filed(services, who("eve"), budgets=[budget], members=[member])
        replies.append(projects.request_json(made).keys())
    assert replies[0] == replies[1]
    lines = projects.lines_of(services, filed(services, who("eve")))
    assert (lines[0].epsilon, lines[0].refusal) == (0.5, "")
    assert lines[1].epsilon is None
    assert "No such data set" in lines[1].refusal


@pytest.mark.sample(4)
def test_which_project_pays(services: Services, who: Who) -> None:
    eve, ana = who("eve"), who("ana")
    first = approved(services, eve, members=["ana"])
    second = approved(services, eve, members=["ana"], name="second")
    with pytest.raises(InvalidRequest, match="which one pays"):
        answer(services, eve, COUNT)
    answer(services, eve, Ask("people", Count(), Privacy(0.5), project="second"))
    assert spent(services, first) == 0 < spent(services, second)
    own = spent(services, ana.id)
    answer(services, ana, COUNT)  # her own budget comes first
    assert spent(services, ana.id) > own
    named = Ask("people", Count(), Privacy(0.5), "key", project="trial")
    body = answer(services, ana, named)
    paid = spent(services, first)
    assert paid > 0
    assert answer(services, ana, named) == body
    assert spent(services, first) == paid
    assert services.ledger.verify() == []


@pytest.mark.sample(4)
def test_a_project_s_budget_ends_its_questions(services: Services, who: Who) -> None:
    eve = who("eve")
    approved(services, eve, budgets=[{"dataset": "people", "epsilon": 0.6, "delta": 1e-5}])
    answer(services, eve, COUNT)
    with pytest.raises(BudgetExhausted):
        answer(services, eve, Ask("people", Count(), Privacy(5.0)))
    offer = BudgetChange(20.0, 1e-4, None, by="t")
    set_budget(services, "people", None, offer, project="trial")
    answer(services, eve, Ask("people", Count(), Privacy(5.0)))
    set_budget(services, "secret", None, offer, project="trial")
    answer(services, eve, Ask("secret", Count(), Privacy(0.5)))
    with pytest.raises(InvalidRequest):
        set_budget(services, "people", "ana", offer, project="trial")
    with pytest.raises(NotFound):
        set_budget(services, "people", None, offer, project="no such")
    assert services.ledger.verify() == []


@pytest.mark.sample(4)
def test_a_cancelled_release_gives_back_to_the_project(
    services: Services, who: Who, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent_server.pipeline.schedule.ReleaseQueue.put", lambda *_: None)
    eve = who("eve")
    project = approved(services, eve)
    pending = deferred.answer_later(services, eve, COUNT)
    assert spent(services, project) > 0
    deferred.cancel(services, eve, pending.split(b'"')[3].decode())
    assert spent(services, project) == 0
    assert services.ledger.verify() == []


@pytest.mark.sample(4)
def test_a_project_that_is_over_pays_nothing(services: Services, who: Who, clock: SetClock) -> None:
    eve = who("eve")
    last = (clock.now() + timedelta(days=1)).date().isoformat()
    approved(services, eve, ends_on=last)
    approved(services, eve, name="second", members=[])
    clock.time = clock.now() + timedelta(days=1)
    for name in ("trial", "second"):
        answer(services, eve, Ask("people", Count(), Privacy(0.1), project=name))
    services.projects.close("second", by="t")
    with pytest.raises(Conflict):
        services.projects.close("second", by="t")
    clock.time = clock.now() + timedelta(days=1)
    for name in ("trial", "second"):
        with pytest.raises(NotFound):
            answer(services, eve, Ask("people", Count(), Privacy(0.1), project=name))
        with pytest.raises(Conflict, match="over"):
            set_budget(
                services, "people", None, BudgetChange(9.0, 1e-5, None, by="t"), project=name
            )
    assert [p["live"] for p in browse.projects(services, eve)] == [False, False]
    assert [a["project"] for a in browse.accounts(services, eve)] == []
    with pytest.raises(NotFound):
        services.projects.close(eve.id, by="t")  # an analyst's own project ends with the analyst


@pytest.mark.slow
@pytest.mark.sample(4)
def test_who_is_taken_out_asks_nothing_more_and_the_others_go_on(
    services: Services, who: Who
) -> None:
    eve, bob = who("eve"), who("bob")
    project = approved(services, eve)
    ask = Ask("people", Count(), Privacy(0.1), project="trial")
    for holder in (eve, bob):
        answer(services, holder, ask)
    before = spent(services, project)
    services.projects.remove_member("trial", "bob", by="t")
    with pytest.raises(NotFound):
        answer(services, bob, ask)
    answer(services, eve, ask)
    assert spent(services, project) > before
    assert [name for _, name in services.projects.named("trial").members] == ["eve"]
    with pytest.raises(Conflict, match="last member"):
        services.projects.remove_member("trial", "eve", by="t")
    for name, member in (("trial", "bob"), ("trial", "nobody"), ("absent", "eve"), (eve.id, "eve")):
        with pytest.raises(NotFound):
            services.projects.remove_member(name, member, by="t")
    assert services.ledger.verify() == []


@pytest.mark.sample(4)
@pytest.mark.slow
def test_a_data_set_that_is_taken_out_can_be_granted_again(services: Services, who: Who) -> None:
    eve = who("eve")
    project = approved(services, eve)
    ask = Ask("people", Count(), Privacy(0.1), project="trial")
    answer(services, eve, ask)
    before = spent(services, project)
    services.projects.remove_dataset("trial", "people", by="t")
    with pytest.raises(NotFound):
        answer(services, eve, ask)
    with pytest.raises(NotFound):
        services.projects.remove_dataset("trial", "people", by="t")
    assert spent(services, project) == before
    set_budget(services, "people", None, BudgetChange(9.0, 1e-5, None, by="t"), project="trial")
    answer(services, eve, ask)
    assert spent(services, project) > before
    assert services.ledger.verify() == []
    told = [e.draft.action for e in services.ledger.entries()]
    assert told.count("grant.revoke") == 1


@pytest.mark.sample(4)
@pytest.mark.slow
def test_a_decision_is_made_once_and_wholly(services: Services, who: Who) -> None:
    """Of two officers one wins; where a part cannot be done, nothing is."""
    request = filed(services, who("eve"))
    wish, shares = projects.wish(services, request), projects.shares_of(request)

    def decide(i: int) -> object:
        try:
            return projects.approve(services, request, wish, shares, reason="", by=f"console:{i}")
        except Conflict as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(decide, range(2)))
    assert sum(isinstance(one, str) for one in made) == 1
    with pytest.raises(Conflict):
        services.projects.refuse(request.id, "too late", by="t")
    assert len(services.projects.all()) == 1
    broken: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"name": "trial"}, Conflict),
        ({"name": "ana"}, Conflict),
        ({"name": "x y"}, InvalidRequest),
        ({"name": "b", "members": ["nobody"]}, NotFound),
        ({"name": "b", "ends_on": "2001-01-01"}, InvalidRequest),
        ({"name": "b", "ends_on": "2001-99-01"}, InvalidRequest),
        ({"name": "b", "budgets": DOCUMENT["budgets"] * 2}, InvalidRequest),
        ({"name": "b", "budgets": [{"dataset": "no", "epsilon": 1.0, "delta": 0.1}]}, NotFound),
        (
            {"name": "b", "budgets": [{"dataset": "people", "epsilon": 1.0, "delta": 0.0}]},
            InvalidPrivacy,
        ),
    ]
    heads = services.ledger.head()
    for changed, error in broken:
        other = filed(services, who("bob"), **changed)
        head = services.ledger.head()
        with pytest.raises(error):
            projects.approve(
                services,
                other,
                projects.wish(services, other),
                projects.shares_of(other),
                reason="",
                by="t",
            )
        assert services.ledger.head() == head != heads
        services.projects.refuse(other.id, "no", by="t")
    assert len(services.projects.all()) == 1
    assert services.ledger.verify() == []


def test_a_change_and_a_refusal_need_a_reason(services: Services, who: Who) -> None:
    eve = who("eve")
    request = filed(services, eve)
    wish, less = projects.wish(services, request), (Share("people", 1.0, 1e-5),)
    for reason in ("", "  ", "x" * 401, "a\nb"):
        with pytest.raises(InvalidRequest):
            projects.approve(services, request, wish, less, reason=reason, by="t")
        with pytest.raises(InvalidRequest):
            services.projects.refuse(request.id, reason, by="t")
    made = projects.approve(services, request, wish, less, reason="Enough for it.", by="cli:bert")
    (balance,) = services.ledger.balances(made)
    assert account_json(balance)["total"]["epsilon"] == 1.0
    (told,) = [projects.request_json(r) for r in services.requests.of(eve.id)]
    assert (told["status"], told["reason"]) == ("approved", "Enough for it.")
    actions = {e.draft.action for e in services.ledger.entries(limit=30)}
    assert {"request.add", "request.approve", "project.add", "member.add", "grant.add"} <= actions
    assert services.names()[made] == "trial"


@pytest.mark.sample(4)
def test_one_analyst_s_requests_do_not_pile_up(services: Services, who: Who) -> None:
    for _ in range(MOST_PENDING):
        last = filed(services, who("eve"))
    with pytest.raises(Conflict):
        filed(services, who("eve"))
    filed(services, who("bob"))
    services.projects.refuse(last.id, "one of many", by="t")
    filed(services, who("eve"))


def test_names_are_unique_over_analysts_and_projects(services: Services, who: Who) -> None:
    approved(services, who("eve"))
    with pytest.raises(Conflict):
        services.access.add_analyst("trial", by="t")
    assert "trial" not in {a.name for a in services.access.analysts()}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE access_projects SET ends_on = '2999-01-01' WHERE name = 'trial'",
        "INSERT INTO access_members VALUES ('{project}', '{ana}', '2024')",
        (
            "UPDATE access_members SET analyst_id = '{ana}' WHERE analyst_id = '{bob}' "
            "AND project_id = '{project}'"
        ),
        "INSERT INTO access_project_grants VALUES ('{project}', 'secret', '2024')",
    ],
)
def test_an_edit_behind_the_chain_s_back_pays_nothing(
    services: Services, who: Who, edit: str
) -> None:
    project = approved(services, who("eve"))
    names = {"project": project, "ana": who("ana").id, "bob": who("bob").id}
    with writing(services.catalog._engine) as connection:
        connection.execute(text(edit.format(**names)))
    dataset = "secret" if "secret" in edit else "people"
    asking = who("eve") if "ana" not in edit else who("ana")
    with pytest.raises(Unavailable):
        answer(services, asking, Ask(dataset, Count(), Privacy(0.1), project="trial"))
    assert services.ledger.verify() != []


def test_a_revoked_member_asks_nothing(services: Services, who: Who) -> None:
    bob = who("bob")
    approved(services, who("eve"))
    services.access.revoke("bob", by="t")
    with pytest.raises(NotFound):
        answer(services, bob, COUNT)
    request = filed(services, who("eve"), name="other")
    charter = Charter("other", "x", ("eve", "bob"), ("people",), None)
    with pytest.raises(NotFound):
        projects.approve(
            services, request, charter, projects.shares_of(request), reason="x", by="t"
        )


@pytest.mark.sample(4)
def test_the_project_that_paid_is_part_of_what_was_paid_for(services: Services, who: Who) -> None:
    """An edit that lets somebody else have paid is found."""
    project = approved(services, who("eve"))
    answer(services, who("eve"), COUNT)
    assert {r.project_id for r in _records(services)} == {project}
    assert all(isinstance(r.cost, PrivacyCost) for r in _records(services))
    with writing(services.catalog._engine) as connection:
        connection.execute(text("UPDATE ledger_releases SET project_id = NULL"))
    assert any("not the one that was paid for" in p for p in services.ledger.verify())
