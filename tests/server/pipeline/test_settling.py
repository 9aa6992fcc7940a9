# SPDX-License-Identifier: Apache-2.0
"""A database that is away for a moment strands no answer, and parks no lease."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.domain.roles import ANALYST
from reticent_server.errors import Unavailable
from reticent_server.kinds.count.kind import Count
from reticent_server.ledger.service import Ledger
from reticent_server.mechanisms import registry
from reticent_server.pipeline import answer as answering
from reticent_server.pipeline.answer import answer
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.settling import PATIENCE_SECONDS, Settler
from support.databases.migrated import SetClock
from support.installations.small import Installation, opened
from support.processes.waiting import until

ASK = Ask("people", Count(), Privacy(0.5), "key")
AWAY = Unavailable("The database did not answer; nothing is lost, try again.")


class Away:
    """Makes methods of the ledger unavailable for a number of calls, or until it is back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch.setattr
        self.calls: list[str] = []
        self.back = False

    def calling(self, name: str, times: int | None = None) -> None:
        real: Callable[..., Any] = getattr(Ledger, name)

        def unavailable(*given: Any) -> Any:
            self.calls.append(name)
            if self.back or (times is not None and self.calls.count(name) > times):
                return real(*given)
            raise AWAY

        self._patch(Ledger, name, unavailable)


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Away:
    return Away(monkeypatch)


@pytest.fixture
def services(installation: Installation) -> Iterator[Services]:
    with opened(installation.settings, SetClock()) as services:
        yield services
        services.settler.close()


def ana(services: Services) -> Principal:
    found = services.access.analyst("ana")
    return Principal(found.id, found.name, ANALYST)


def charges(services: Services) -> int:
    return [e.draft.action for e in services.ledger.entries(limit=1000)].count("debit")


def test_a_blip_while_storing_is_not_even_seen(services: Services, away: Away) -> None:
    away.calling("settle", times=4)
    body = answer(services, ana(services), ASK)
    assert json.loads(body)["status"] == "reply"
    assert answer(services, ana(services), ASK) == body
    assert (charges(services), services.ledger.verify()) == (2, [])


def test_an_answer_is_stored_when_the_database_is_back(
    services: Services, away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same that was computed, long before its lease would end; a retry gets it."""
    drawn: list[Any] = []
    real = registry.release

    def release(*given: Any) -> Any:
        drawn.append(given)
        return real(*given)

    monkeypatch.setattr(registry, "release", release)
    away.calling("settle")
    began = services.clock.monotonic()
    with pytest.raises(Unavailable):
        answer(services, ana(services), ASK)
    assert services.clock.monotonic() - began <= PATIENCE_SECONDS + 1
    with pytest.raises(Unavailable, match="still being computed"):
        answer(services, ana(services), ASK)
    away.back = True
    until(lambda: services.ledger.waiting() == 0)
    assert json.loads(answer(services, ana(services), ASK))["status"] == "reply"
    assert len(drawn) == 1
    assert (charges(services), services.ledger.verify()) == (2, [])


def test_a_lease_is_given_up_when_the_database_is_back(services: Services, away: Away) -> None:
    """The engine finds the database away, and so does who gives the lease up."""
    away.calling("confirm")
    away.calling("give_up")
    with pytest.raises(Unavailable):
        answer(services, ana(services), ASK)
    assert services.ledger.stale() == ()
    away.back = True
    until(services.ledger.stale)
    assert json.loads(answer(services, ana(services), ASK))["status"] == "reply"
    assert (charges(services), services.ledger.verify()) == (2, [])


@pytest.mark.parametrize("error", [KeyError("x"), KeyboardInterrupt(), SystemExit(1)])
def test_a_lease_is_given_up_on_every_way_out(
    services: Services, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: Any) -> Any:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(answering, "release_body", fail)
        with pytest.raises(type(error)):
            answer(services, ana(services), ASK)
    assert len(services.ledger.stale()) == 1
    assert json.loads(answer(services, ana(services), ASK))["status"] == "reply"


def test_a_charge_that_nobody_knows_of_is_not_parked(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done, and its confirmation never comes."""
    engine = services.catalog._engine
    commit = engine.dialect.do_commit

    def unconfirmed(connection: Any) -> None:
        commit(connection)
        raise engine.dialect.loaded_dbapi.OperationalError("connection lost")

    reserve: Callable[..., Any] = Ledger.reserve

    def reserved(*ledger: Any, **given: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(engine.dialect, "do_commit", unconfirmed)
            return reserve(*ledger, **given)

    holder = ana(services)
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "reserve", reserved)
        with pytest.raises(Unavailable):
            answer(services, holder, ASK)
    assert charges(services) == 2
    until(services.ledger.stale)
    assert json.loads(answer(services, holder, ASK))["status"] == "reply"
    assert (charges(services), services.ledger.verify()) == (2, [])


def test_what_cannot_be_done_any_more_is_forgotten(services: Services, away: Away) -> None:
    """After its lease, another process may have computed it: the memory does not grow for ever."""
    away.calling("give_up")
    settler = Settler(services.ledger, services.clock, seconds=5)
    settler.give_up("lease")
    assert len(settler._tasks) == 1
    services.clock.sleep(6)
    until(lambda: not settler._tasks)
    settler.close()


def test_the_end_is_a_last_attempt(services: Services, away: Away) -> None:
    away.calling("give_up")
    settler = Settler(services.ledger, services.clock, seconds=5)
    settler.give_up("lease")
    away.back = True
    settler.close()
    assert settler._tasks == []
