# SPDX-License-Identifier: Apache-2.0
"""An older copy of the ledger is served only after all that its budgets have left counts as
spent."""

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from reticent_server.cli import budget, ledger
from reticent_server.cli.init import prepare
from reticent_server.domain.roles import STAFF
from reticent_server.errors import CuratorError
from reticent_server.opening import open_approvals
from reticent_server.pipeline.anchoring import keep_anchored
from reticent_server.settings import Settings
from support.installations.small import Api, Installation, opened, request_body

APPS = {"ledger": ledger.app, "budget": budget.app}


def run(settings: Settings, group: str, *arguments: str) -> Result:
    names = {"database_url", "vault_url", "secrets_file", "anchor_file", "key_file"}
    given = settings.model_dump(include=names)
    environment = {f"RETICENT_{k.upper()}": str(v) for k, v in given.items() if v is not None}
    return CliRunner(env=environment).invoke(APPS[group], list(arguments))


def write_down(settings: Settings) -> None:
    ended = Event()
    ended.set()
    with opened(settings) as services:
        assert keep_anchored(services, ended, writes=True)


def back_up(installation: Installation, name: str) -> None:
    with closing(sqlite3.connect(installation.directory / "reticent.db")) as connection:
        connection.execute(f"VACUUM INTO '{installation.directory / name}'")


def restore(installation: Installation, name: str) -> None:
    for ending in ("", "-wal", "-shm"):
        (installation.directory / f"reticent.db{ending}").unlink(missing_ok=True)
    shutil.copy(installation.directory / name, installation.directory / "reticent.db")


def rolled_back(installation: Installation, kind: str) -> Settings:
    """Settings of an installation whose database is an older copy: after it, ana has spent."""
    path = installation.directory / "anchors"
    if kind == "directory":
        path.mkdir()
    settings = installation.settings.model_copy(update={"anchor_file": path})
    prepare(settings)
    back_up(installation, "backup.db")
    with opened(settings) as services:
        for _ in range(3):
            reply = Api(services, installation.keys["ana"]).post("/v1/releases", request_body())
            assert reply.status_code == 201
            write_down(settings)
    restore(installation, "backup.db")
    return settings


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_an_accepted_copy_is_served_and_nothing_is_answered_from_its_budgets(
    installation: Installation, kind: str
) -> None:
    settings = rolled_back(installation, kind)
    shown = run(settings, "budget", "show", "--json")
    assert shown.exit_code == 0, "what is known is shown"
    before = {row["account"]: row for row in json.loads(shown.stdout)}
    refused = run(
        settings, "budget", "set", "--dataset", "people", "--epsilon", "1", "--delta", "0"
    )
    assert (refused.exit_code, "accept-rollback" in refused.stderr) == (1, True)
    assert run(settings, "ledger", "accept-rollback", "--yes", "--reason", " ").exit_code == 1
    accepted = run(
        settings, "ledger", "accept-rollback", "--yes", "--reason", "disk lost", "--json"
    )
    assert accepted.exit_code == 0, accepted.output
    assert len(json.loads(accepted.stdout)) == len(before)
    assert run(settings, "ledger", "verify").exit_code == 0
    with opened(settings) as services:
        for balance in services.ledger.all_balances():
            assert balance.spent == balance.cap
        reply = Api(services, installation.keys["ana"]).post("/v1/releases", request_body())
        assert (reply.status_code, reply.json()["code"]) == (403, "budget_exhausted")
        (entry,) = services.ledger.entries(actions=["ledger.rollback"])
        assert entry.draft.detail["reason"] == "disk lost"
        assert entry.draft.detail["entries_missing_at_least"] >= 3
    again = run(settings, "ledger", "accept-rollback", "--yes", "--reason", "again")
    assert "nothing was rolled back" in again.stderr


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_later_copy_is_missed_as_before(installation: Installation, kind: str) -> None:
    """The anchors of the lost entries, whose numbers are higher, do not hide that the ledger was
    rolled back again."""
    settings = rolled_back(installation, kind)
    run(settings, "ledger", "accept-rollback", "--yes", "--reason", "disk lost")
    back_up(installation, "second.db")
    with opened(settings) as services:
        services.access.add_curator("new", STAFF, by="t")
    write_down(settings)
    assert run(settings, "budget", "show").exit_code == 0
    with opened(settings):
        pass
    restore(installation, "second.db")
    with pytest.raises(CuratorError, match="older copy"), opened(settings):
        pass


def test_a_raised_cap_frees_only_what_is_above_the_old_one(installation: Installation) -> None:
    """What may have been spent since the copy stays spent, whatever the cap becomes."""
    settings = rolled_back(installation, "file")
    run(settings, "ledger", "accept-rollback", "--yes", "--reason", "disk lost")
    with opened(settings) as services:
        cap = services.ledger.population_balance("people")
        assert cap is not None
        raised = services.ledger.set_population_cap(
            "people", epsilon=1001, delta=0.01, rule="basic", by="t"
        )
        assert raised.spent == cap.cap


def test_a_policy_of_four_eyes_asks_for_a_second_person(
    installation: Installation, tmp_path: Path
) -> None:
    keys: dict[str, str] = {}
    with opened(installation.settings) as services:
        for name in ("carol", "dave"):
            keys[name] = services.access.add_curator(name, STAFF, by="t")
        policy = services.catalog.facts("people").policy
        services.catalog.set_policy("people", replace(policy, second_person=True), by="t")
    settings = rolled_back(installation, "file")

    def as_(name: str, *arguments: str) -> Result:
        file = tmp_path / name
        file.write_text(keys[name])
        own = settings.model_copy(update={"key_file": file})
        return run(own, "ledger", *arguments)

    accept = ("accept-rollback", "--yes", "--reason", "disk lost")
    proposed = as_("carol", *accept)
    assert (proposed.exit_code, "second person" in proposed.stderr) == (1, True), proposed.stderr
    with pytest.raises(CuratorError, match="older copy"), opened(settings):
        pass
    with open_approvals(settings) as approvals:
        (waiting,) = approvals.all()
        approvals.approve(waiting.id, by="key:dave")
    assert as_("carol", *accept).exit_code == 0
    with opened(settings) as services:
        assert all(b.spent == b.cap for b in services.ledger.all_balances())


def test_one_account_is_frozen(installation: Installation) -> None:
    settings = installation.settings
    given = ("--dataset", "people", "--analyst", "ana", "--reason", "key was copied")
    frozen: Any = json.loads(run(settings, "budget", "freeze", *given, "--json").stdout)
    assert len(frozen) == 1
    with opened(settings) as services:
        (entry,) = services.ledger.entries(limit=1)
        assert (entry.draft.action, entry.draft.detail) == ("debit", {"reason": "key was copied"})
        reply = Api(services, installation.keys["ana"]).post("/v1/releases", request_body())
        assert reply.json()["code"] == "budget_exhausted"
        bobs = request_body() | {"dataset": "secret"}
        assert Api(services, installation.keys["bob"]).post("/v1/releases", bobs).status_code == 201
        assert services.ledger.verify() == []
