# SPDX-License-Identifier: Apache-2.0
"""A process is ready where both databases answer; a question that hangs holds up nobody."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from threading import Event

import pytest

from reticent_server.domain.clock import SystemClock
from reticent_server.errors import Unavailable
from reticent_server.pipeline import readiness as module
from reticent_server.pipeline.readiness import FRESH_SECONDS, Readiness
from reticent_server.pipeline.services import Services
from reticent_server.vault.adbc import ask, parse_url
from support.databases.migrated import SetClock
from support.installations.both_backends import installation
from support.installations.small import Api, Installation, opened
from support.processes.waiting import PATIENCE, until

__all__ = ["installation"]


@pytest.fixture
def services(installation: Installation) -> Iterator[Services]:
    with opened(installation.settings) as services:
        yield services


def test_a_server_is_ready_and_lives(services: Services) -> None:
    api = Api(services, None)
    assert (api.get("/readyz").status_code, api.get("/readyz").json()) == (200, {"status": "ready"})
    assert api.get("/healthz").status_code == 200


def test_a_vault_that_is_gone_is_said_and_the_process_lives(installation: Installation) -> None:
    """(On PostgreSQL: another database's name in its address.)"""
    away = installation.settings.vault_url.replace("vault.db", "gone.db").replace("test_", "gone_")
    with opened(installation.settings) as services:
        parts = {"database": services.ledger.head, "vault": partial(ask, parse_url(away))}
        api = Api(replace(services, readiness=Readiness(services.clock, parts)), None)
        reply = api.get("/readyz")
        assert (reply.status_code, reply.json()["code"]) == (503, "unavailable")
        assert reply.json()["detail"].startswith("The vault of this server did not answer")
        assert reply.headers["content-type"] == "application/problem+json"
        assert api.get("/healthz").status_code == 200


def test_who_asks_often_asks_the_databases_once_a_second() -> None:
    clock, asked = SetClock(), []
    readiness = Readiness(clock, {"database": lambda: asked.append(1)})
    for _ in range(100):
        assert readiness.away() == []
    assert len(asked) == 1
    clock.sleep(FRESH_SECONDS)
    assert readiness.away() == []
    assert len(asked) == 2
    readiness.close()


def test_what_was_away_is_back() -> None:
    clock, back = SetClock(), []

    def ask() -> None:
        if not back:
            raise Unavailable("away")

    readiness = Readiness(clock, {"database": ask, "vault": lambda: None})
    assert readiness.away() == ["database"]
    back.append(1)
    assert readiness.away() == ["database"], "said a moment ago"
    clock.sleep(FRESH_SECONDS)
    assert readiness.away() == []
    readiness.close()


def test_a_database_that_hangs_is_away_and_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    released, asked = Event(), []

    def hang() -> None:
        asked.append(1)
        released.wait(PATIENCE)

    readiness = Readiness(SystemClock(), {"database": hang, "vault": lambda: None})
    for _ in range(5):
        assert "database" in readiness.away()
    assert len(asked) == 1
    released.set()
    until(lambda: not readiness.away())
    readiness.close()
