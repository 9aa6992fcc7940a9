# SPDX-License-Identifier: Apache-2.0
"""analyst, curator, budget and ledger commands, on databases that `reticent init` made."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from reticent_server.app import build_services
from reticent_server.cli import analyst, budget, curator, ledger
from reticent_server.cli.init import prepare
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.roles import Role
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.source import VaultTable
from reticent_server.ledger.model import Charge
from reticent_server.pipeline.services import Services
from reticent_server.settings import Settings

Run = Callable[..., Result]
APPS = {"analyst": analyst.app, "budget": budget.app, "curator": curator.app, "ledger": ledger.app}


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """What the commands see in a working directory where houses belongs to the population town."""
    monkeypatch.chdir(tmp_path)
    prepare(Settings())
    made = build_services(Settings())
    schema = Schema((Column("price", ColumnKind.NUMERIC, 0.0, 1.0),))
    source = VaultTable("t", 10, ())
    made.catalog.add_version(
        name="houses", population="town", schema=schema, n=10, source=source, by="t"
    )
    yield made
    made.access._engine.dispose()


@pytest.fixture
def run(services: Services) -> Run:
    def invoke(group: str, *arguments: str) -> Result:
        app: typer.Typer = APPS[group]
        return CliRunner().invoke(app, arguments)

    return invoke


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(result: Result) -> str:
    """The one line on standard error."""
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.slow
def test_an_analyst_is_added_rotated_and_revoked(run: Run, services: Services) -> None:
    added = run("analyst", "add", "alice")
    key = added.stdout.strip()
    assert key.startswith("rk_")
    assert key not in added.stderr
    assert services.access.authenticate(key) is not None
    second = told(run("analyst", "rotate-key", "alice", "--json"))["key"]
    assert services.access.authenticate(key) is not None
    third = told(run("analyst", "rotate-key", "alice", "--drop-old", "--yes", "--json"))["key"]
    live = [services.access.authenticate(k) is not None for k in (key, second, third)]
    assert live == [False, False, True]
    (row,) = told(run("analyst", "list", "--json"))
    assert (row["name"], row["live_keys"], row["revoked"]) == ("alice", 1, False)
    assert run("analyst", "revoke", "alice").exit_code == 1  # nobody said yes
    assert services.access.authenticate(third) is not None
    assert run("analyst", "revoke", "alice", "--yes").exit_code == 0
    assert services.access.authenticate(third) is None
    assert "revoked" in refused(run("analyst", "rotate-key", "alice"))


@pytest.mark.slow
def test_a_curator_is_added(run: Run, services: Services) -> None:
    key = told(run("curator", "add", "carol", "--expires-days", "1", "--json"))["key"]
    found = services.access.authenticate(key)
    assert found is not None
    assert found.roles == {Role.OPERATOR}
    told(run("curator", "roles", "carol", "--role", "auditor", "--role", "curator", "--json"))
    found = services.access.authenticate(key)
    assert found is not None
    assert found.roles == {Role.AUDITOR, Role.CURATOR}
    assert "A role is one of" in refused(run("curator", "roles", "carol", "--role", "analyst"))
    assert "A role is one of" in refused(run("curator", "roles", "carol"))
    assert "no curator" in refused(run("curator", "roles", "dan", "--role", "auditor"))
    assert "exists already" in refused(run("analyst", "add", "carol"))
    assert "no analyst" in refused(run("analyst", "revoke", "carol", "--yes"))
    assert "no analyst" in refused(run("analyst", "rotate-key", "carol"))
    fresh = told(run("curator", "rotate-key", "carol", "--drop-old", "--yes", "--json"))["key"]
    assert services.access.authenticate(key) is None
    (row,) = told(run("curator", "list", "--json"))
    assert (row["name"], row["live_keys"]) == ("carol", 1)
    assert told(run("curator", "revoke", "carol", "--yes", "--json"))["revoked"] is True
    assert services.access.authenticate(fresh) is None
    assert "no curator" in refused(run("curator", "revoke", "alice", "--yes"))


def test_a_grant_is_taken_back_and_the_spend_stays(run: Run, services: Services) -> None:
    run("analyst", "add", "alice")
    given = ("--dataset", "houses", "--epsilon", "2", "--delta", "1e-6")
    run("budget", "set", *given, "--analyst", "alice")
    before = services.ledger.all_balances()
    assert told(run("analyst", "revoke", "alice", "--dataset", "houses", "--json"))["revoked"]
    (row,) = told(run("analyst", "list", "--json"))
    assert (row["datasets"], row["live_keys"], row["revoked"]) == ([], 1, False)
    assert services.ledger.all_balances() == before
    assert "no grant" in refused(run("analyst", "revoke", "alice", "--dataset", "houses"))


@pytest.mark.slow
def test_a_cap_and_a_budget_with_its_grant_are_set_and_shown(run: Run, services: Services) -> None:
    analyst_id = told(run("analyst", "add", "alice", "--json"))["id"]
    given = ("--dataset", "houses", "--epsilon", "2", "--delta", "1e-6")
    first = run("budget", "set", *given, "--analyst", "alice")
    assert first.exit_code == 0
    assert "No cap over all analysts" in first.stderr
    assert services.access.granted(analyst_id, "houses")
    (cap,) = told(run("budget", "set", *given, "--rule", "basic", "--json"))
    assert (cap["account"], cap["rule"]) == ("population:town", "basic")
    assert cap["remaining"] == {"epsilon": 2.0, "delta": 1e-6}
    mine, _ = told(run("budget", "show", "--dataset", "houses", "--json"))
    assert (mine["analyst"], mine["dataset"], mine["rule"]) == ("alice", "houses", "zcdp")
    assert mine["total"]["epsilon"] == 2.0
    assert mine["total"]["rho"] > 0
    assert len(told(run("budget", "show", "--analyst", "alice", "--json"))) == 1
    assert mine["total"]["rho_delta"] == 1e-7
    chosen = told(
        run("budget", "set", *given, "--analyst", "alice", "--query-delta", "3e-7", "--json")
    )
    assert chosen[0]["total"]["rho_delta"] == 3e-7
    assert "rule zcdp" in refused(run("budget", "set", *given, "--query-delta", "3e-7"))
    table = run("budget", "show").stdout
    assert "alice" in table
    assert "population town" in table


def test_budgets_that_cannot_be_set_are_refused_in_a_line(run: Run) -> None:
    given = ("--epsilon", "2", "--delta", "1e-6")
    assert "data set" in refused(run("budget", "set", "--dataset", "flats", *given)).lower()
    on_houses = ("budget", "set", "--dataset", "houses")
    assert "analyst" in refused(run(*on_houses, "--analyst", "nobody", *given))
    assert "Epsilon" in refused(run(*on_houses, "--epsilon", "nan", "--delta", "0"))
    told(run(*on_houses, *given, "--json"))
    assert "rule" in refused(run(*on_houses, *given, "--rule", "basic"))


def spend(services: Services) -> None:
    cost = PrivacyCost(10**8, 0, 10**9)
    services.ledger.reserve(
        Charge(
            analyst_id=None,
            dataset="houses",
            version_id="v",
            population="town",
            cost=cost,
            request={},
            idempotency_key=None,
        )
    )


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("rule", "right", "wrong"),
    [("basic", "--epsilon", "--rho"), ("zcdp", "--rho", "--epsilon")],
)
def test_a_credit_is_in_the_accounts_own_unit(
    run: Run, services: Services, rule: str, right: str, wrong: str
) -> None:
    given = ("--dataset", "houses", "--epsilon", "2", "--delta", "1e-6", "--rule", rule)
    run("budget", "set", *given)
    spend(services)
    credit = ("budget", "credit", "--dataset", "houses", "--reason", "power cut", "--yes")
    (after,) = told(run(*credit, right, "0.001", "--json"))
    spent = {
        "basic": {"epsilon": 0.099, "delta": 0.0},
        "zcdp": {"epsilon": 0.0, "rho": 0.0, "rho_delta": 0.0},
    }
    assert after["spent"] == spent[rule]
    assert "rule" in refused(run(*credit, wrong, "0.001"))
    assert "spent" in refused(run(*credit, right, "1"))
    (entry,) = told(run("ledger", "show", "--limit", "1", "--json"))
    assert "No budget" in refused(run(*credit, "--analyst", _alice(run), right, "0.001"))
    assert entry["detail"] == {"reason": "power cut"}
    assert entry["actor"].startswith("cli")
    table = run("ledger", "show").stdout
    assert "credit" in table
    assert "principal.add" in table
    assert "-0.001" in table


def _alice(run: Run) -> str:
    run("analyst", "add", "alice")
    return "alice"


@pytest.mark.slow
def test_the_ledger_is_verified_anchored_and_exported(run: Run, services: Services) -> None:
    empty = told(run("ledger", "head", "--json"))["head"]
    run("budget", "set", "--dataset", "houses", "--epsilon", "2", "--delta", "1e-6")
    spend(services)
    head = run("ledger", "head").stdout.strip()
    assert head != empty
    assert head in run("ledger", "verify").stdout
    for anchored in (head, empty):
        assert told(run("ledger", "verify", "--head", anchored, "--json"))["ok"]
    lines = [json.loads(line) for line in run("ledger", "export").stdout.splitlines()]
    assert [line["action"] for line in lines] == [
        "population.add",
        "dataset.load",
        "version.add",
        "open",
        "debit",
    ]
    assert lines[-1]["hash"] == head
    (last,) = told(run("ledger", "show", "--account", "population:town", "--limit", "1", "--json"))
    assert last == lines[-1]


@pytest.mark.slow
def test_verify_fails_with_words(run: Run, services: Services, tmp_path: Path) -> None:
    run("budget", "set", "--dataset", "houses", "--epsilon", "2", "--delta", "1e-6")
    spend(services)
    with closing(sqlite3.connect(tmp_path / "reticent.db")) as connection:
        connection.execute("UPDATE ledger_accounts SET primary_spent = 0")
        connection.commit()
    assert "population:town is not what its entries" in refused(run("ledger", "verify"))
    told_so = run("ledger", "verify", "--json")
    assert told_so.exit_code == 1
    assert json.loads(told_so.stdout)["problems"]
    assert "anchored" in run("ledger", "verify", "--head", "f" * 64).stderr


def test_a_ledger_is_verified_without_the_vault_and_the_secrets(run: Run, tmp_path: Path) -> None:
    given = ("--dataset", "houses", "--epsilon", "2", "--delta", "1e-6")
    told(run("budget", "set", *given, "--json"))
    head = told(run("ledger", "head", "--json"))["head"]
    for part in ("reticent-vault.db", "reticent-secrets.json"):
        (tmp_path / part).unlink()
    assert told(run("ledger", "verify", "--head", head, "--json"))["ok"]
    assert json.loads(run("ledger", "export").stdout.splitlines()[-1])["hash"] == head


def test_what_cannot_be_undone_is_asked_first(run: Run, services: Services) -> None:
    """No answer is no: nothing is changed, and the question is not on standard output."""
    key = run("analyst", "add", "alice").stdout.strip()
    for command in (
        ("analyst", "revoke", "alice"),
        ("analyst", "rotate-key", "alice", "--drop-old"),
    ):
        asked = run(*command, "--json")
        assert (asked.exit_code, asked.stdout.strip()) == (1, "")
        assert "?" in asked.stderr
        assert services.access.authenticate(key) is not None


def test_an_analyst_with_a_budget_in_one_step(run: Run, services: Services) -> None:
    given = ("--dataset", "houses", "--epsilon", "2", "--delta", "1e-6", "--rule", "basic")
    for wrong in (given[:2], given[2:], ("--epsilon", "1"), (*given[:3], "-1", *given[4:])):
        refused(run("analyst", "add", "alice", *wrong))
    refused(run("analyst", "add", "alice", "--dataset", "nothing", *given[2:]))
    assert services.access.analysts() == ()
    added = run("analyst", "add", "alice", *given)
    assert added.exit_code == 0
    assert "No cap over all analysts" in added.stderr
    holder = services.access.authenticate(added.stdout.strip())
    assert holder is not None
    assert services.access.granted(holder.id, "houses")
    (balance,) = services.ledger.balances(holder.id)
    assert (balance.rule, balance.epsilon) == ("basic", 2 * 10**9)


def test_a_command_acts_as_the_holder_of_a_key(
    run: Run, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder's name stands in the chain; more than the role allows is refused in one line."""
    officer = frozenset({Role.BUDGET_OFFICER})
    (tmp_path / "key").write_text(services.access.add_curator("bert", officer, by="t"))
    monkeypatch.setenv("RETICENT_KEY_FILE", str(tmp_path / "key"))
    amounts = ("--epsilon", "1", "--delta", "1e-6")
    told(run("budget", "set", "--dataset", "houses", *amounts, "--json"))
    assert services.ledger.entries(limit=1)[0].draft.actor == "key:bert"
    assert "needs the role curator" in refused(run("analyst", "add", "dan"))
    services.access.set_roles("bert", frozenset({Role.CURATOR}), by="t")
    both = refused(run("analyst", "add", "dan", "--dataset", "houses", *amounts))
    assert "budget officer" in both
    assert services.access.analysts() == ()
    services.access.revoke("bert", by="t")
    assert "no valid key" in refused(run("analyst", "list"))
    (tmp_path / "key").unlink()
    assert "RETICENT_KEY_FILE cannot be read" in refused(run("analyst", "list"))
