# SPDX-License-Identifier: Apache-2.0
"""Four eyes on both databases: proposed, approved by somebody else, done once."""

import gc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from reticent_server.access.approvals import VALID_DAYS, Approvals, person
from reticent_server.cli import budget, dataset, proposal
from reticent_server.database import writing
from reticent_server.domain.principal import Principal
from reticent_server.domain.roles import Role
from reticent_server.errors import (
    Conflict,
    NotFound,
    PolicyRefused,
    SecondPerson,
    Unavailable,
    WrongRole,
)
from reticent_server.pipeline import second_person
from reticent_server.pipeline.accounts import account_json
from reticent_server.pipeline.budgets import BudgetChange, credit, set_budget
from reticent_server.pipeline.services import Services
from support.databases.migrated import SetClock
from support.installations.both_backends import installation
from support.installations.small import Installation, opened

__all__ = ["installation"]

CAP = BudgetChange(2e3, 0.02, None, by="console:carol")


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def services(installation: Installation, clock: SetClock) -> Iterator[Services]:
    """`people` asks for a second person."""
    with opened(installation.settings, clock) as services:
        policy = services.catalog.facts("people").policy
        services.catalog.set_policy("people", replace(policy, second_person=True), by="t")
        yield services


def proposed(act: Callable[[], object]) -> str:
    with pytest.raises(SecondPerson) as needed:
        act()
    return needed.value.proposal_id


def total(services: Services, population: str = "people") -> float:
    balance = services.ledger.population_balance(population)
    assert balance is not None
    return float(account_json(balance)["total"]["epsilon"])


@pytest.mark.sample(4)
def test_a_cap_is_raised_by_two_and_once(services: Services) -> None:
    def raise_cap(offer: BudgetChange = CAP) -> object:
        return set_budget(services, "people", None, offer)

    waiting = proposed(raise_cap)
    assert proposed(raise_cap) == waiting  # asking again proposes nothing new
    assert total(services) == 1e3
    with pytest.raises(PolicyRefused):
        services.approvals.approve(waiting, by="console:carol")
    with pytest.raises(PolicyRefused):
        services.approvals.approve(waiting, by="key:carol")  # the same person by another door
    with pytest.raises(PolicyRefused):
        services.approvals.approve(waiting, by="cli:root")
    services.approvals.approve(waiting, by="console:bert")
    with pytest.raises(Conflict):
        services.approvals.approve(waiting, by="console:bert")
    other = proposed(lambda: raise_cap(replace(CAP, epsilon=3e3)))  # another act than was approved
    assert other != waiting
    assert total(services) == 1e3
    raise_cap(replace(CAP, by="key:carol"))
    assert total(services) == 2e3
    assert proposed(raise_cap) not in {waiting, other}  # it was used up
    told = [e.draft.action for e in services.ledger.entries(limit=12)]
    assert {"proposal.add", "proposal.approve", "proposal.use", "cap"} <= set(told)
    assert services.ledger.verify() == []


def test_who_has_no_key_does_nothing_there(services: Services) -> None:
    with pytest.raises(PolicyRefused, match="RETICENT_KEY_FILE"):
        set_budget(services, "people", None, replace(CAP, by="cli:root"))
    assert services.approvals.all() == ()
    set_budget(services, "secret", None, replace(CAP, by="cli:root"))  # no policy asks there
    assert total(services, "secret") == 2e3


def test_of_many_at_once_one_uses_an_approval(services: Services) -> None:
    def give_back(_: int = 0) -> bool:
        try:
            credit(services, "population:people", 1e-9, 0.0, reason="lost", by="console:carol")
        except SecondPerson:
            return False
        return True

    set_budget(services, "people", "ana", BudgetChange(50.0, 1e-3, None, by="t"))
    with writing(services.catalog._engine) as connection:  # something to give back
        connection.execute(
            text(
                "UPDATE ledger_accounts SET primary_spent = 5000000 WHERE id = 'population:people'"
            )
        )
    assert not give_back()
    (waiting,) = services.approvals.all()
    services.approvals.approve(waiting.id, by="console:bert")
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(give_back, range(4))) == 1


def test_an_approval_grows_old(services: Services, clock: SetClock) -> None:
    def raise_cap() -> object:
        return set_budget(services, "people", None, CAP)

    first = proposed(raise_cap)
    services.approvals.approve(first, by="console:bert")
    clock.time = clock.now() + timedelta(days=VALID_DAYS, seconds=1)
    second = proposed(raise_cap)
    assert second != first
    clock.time = clock.now() + timedelta(days=VALID_DAYS, seconds=1)
    with pytest.raises(Conflict, match="propose it again"):
        services.approvals.approve(second, by="console:bert")
    assert not any(p.is_valid for p in services.approvals.all())


def test_a_refused_proposal_is_none(services: Services) -> None:
    waiting = proposed(lambda: set_budget(services, "people", None, CAP))
    services.approvals.refuse(waiting, by="console:carol")  # taken back
    with pytest.raises(Conflict):
        services.approvals.approve(waiting, by="console:bert")
    assert proposed(lambda: set_budget(services, "people", None, CAP)) != waiting
    for decide in (services.approvals.approve, services.approvals.refuse):
        with pytest.raises(NotFound):
            decide("ap_absent", by="console:bert")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("act", "roles", "may"),
    [
        ("cap", {Role.BUDGET_OFFICER}, True),
        ("cap", {Role.CURATOR}, False),
        ("credit", {Role.BUDGET_OFFICER}, True),
        ("credit", {Role.AUDITOR}, False),
        ("policy", {Role.CURATOR}, True),
        ("policy", {Role.BUDGET_OFFICER}, False),
        ("load", {Role.CURATOR}, True),
        ("load", {Role.BUDGET_OFFICER, Role.AUDITOR}, False),
    ],
)
def test_who_approves_could_have_done_it(
    services: Services, act: str, roles: set[Role], may: bool
) -> None:
    bert = Principal("cu_1", "bert", frozenset(roles))
    waiting = proposed(lambda: services.approvals.take(act, "people", {}, by="console:carol"))
    for decide in (second_person.approve, second_person.refuse):
        if may:
            decide(services.approvals, bert, waiting, by="console:bert")
            return
        with pytest.raises(WrongRole):
            decide(services.approvals, bert, waiting, by="console:bert")


def test_an_approval_that_was_written_into_the_database_is_none(services: Services) -> None:
    proposed(lambda: set_budget(services, "people", None, CAP))
    with writing(services.catalog._engine) as connection:
        connection.execute(text("UPDATE access_proposals SET status = 'approved'"))
    with pytest.raises(Unavailable):
        set_budget(services, "people", None, CAP)
    assert total(services) == 1e3
    assert services.ledger.verify() != []


@pytest.mark.parametrize("by", ["", "t", "cli", "cli:root", "console", "console:", "an_1", "key:"])
def test_only_who_has_a_key_is_a_person(by: str) -> None:
    with pytest.raises(PolicyRefused):
        person(by)
    assert person("console:x") == person("key:x") == "x"


@pytest.fixture
def _closed_afterwards() -> Iterator[None]:
    """`budget` leaves its connections to the end of its process, which here is that of the
    tests.
    """
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.usefixtures("_closed_afterwards")
def test_the_command_line_proposes_approves_and_loads(
    services: Services,
    installation: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A policy, wider bounds and a new version; the flag itself is taken away by two only."""
    for name, value in installation.environment.items():
        if name.startswith("RETICENT_"):
            monkeypatch.setenv(name, value)
    both = frozenset({Role.CURATOR, Role.BUDGET_OFFICER})
    for name in ("carol", "bert"):
        (tmp_path / name).write_text(services.access.add_curator(name, both, by="t"))

    def run(who: str, app: Any, *words: str) -> Result:
        monkeypatch.setenv("RETICENT_KEY_FILE", str(tmp_path / who))
        return CliRunner().invoke(app, list(words))

    wider = tmp_path / "wider.yaml"
    text_of = (installation.directory / "schema.yaml").read_text()
    wider.write_text(text_of.replace("lower: -10, upper: 10", "lower: -20, upper: 20"))
    rows = str(installation.directory / "people.csv")
    acts: list[tuple[Any, tuple[str, ...]]] = [
        (dataset.app, ("load", "people", rows, "--schema", str(wider))),
        (dataset.app, ("load", "more", rows, "--schema", str(wider), "--population", "people")),
        (dataset.app, ("policy", "people", "--max-epsilon", "3")),
        (budget.app, ("set", "--dataset", "people", "--epsilon", "1500", "--delta", "0.02")),
        (dataset.app, ("policy", "people", "--no-second-person")),
    ]
    for number, (app, words) in enumerate(acts):
        before = services.catalog.facts("people")
        refused = run("carol", app, *words)
        assert refused.exit_code == 1
        assert "second person" in refused.stderr
        assert services.catalog.facts("people") == before
        waiting = services.approvals.all()[0]
        assert waiting.status == "pending"
        assert run("carol", proposal.app, "approve", waiting.id).exit_code == 1
        assert run("bert", proposal.app, "approve", waiting.id).exit_code == 0
        assert run("carol", app, *words).exit_code == 0, words
        again = run("carol", app, *words).exit_code
        assert again == (
            0 if number == len(acts) - 1 else 1
        )  # the last one has taken the flag away
        left = [p for p in services.approvals.all() if p.status == "pending"]
        for each in left:
            assert run("bert", proposal.app, "refuse", each.id).exit_code == 0
    facts = services.catalog.facts("people")
    assert facts.schema.columns[0].upper == 20
    assert (facts.policy.max_epsilon, facts.policy.second_person) == (3, False)
    assert services.catalog.facts("more").population == "people"
    assert "used" in run("bert", proposal.app, "list").stdout
    monkeypatch.delenv("RETICENT_KEY_FILE")
    assert "RETICENT_KEY_FILE" in CliRunner().invoke(proposal.app, ["approve", waiting.id]).stderr
    assert services.ledger.verify() == []


def test_a_retired_data_set_asks_still(services: Services) -> None:
    services.catalog.retire("people", by="t")
    assert services.catalog.asks_for_second("people")
    assert not services.catalog.asks_for_second("secret")
    assert isinstance(services.approvals, Approvals)
