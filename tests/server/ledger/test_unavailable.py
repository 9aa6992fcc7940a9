# SPDX-License-Identifier: Apache-2.0
"""A database that fails is a clean Unavailable, and leaves no half of anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from reticent_server import database
from reticent_server.chain import repository as chain
from reticent_server.errors import Unavailable
from reticent_server.ledger.service import Fresh, InFlight, Ledger, Replay, Stale, Undecided
from support.databases.migrated import SetClock, migrated
from support.ledger.accounts import LEASE_SECONDS, TENTH, ask, open_accounts


def test_an_absent_database_is_unavailable(tmp_path: Path, clock: SetClock) -> None:
    for url in (f"sqlite:///{tmp_path / 'no' / 'such.db'}", f"postgresql:///x?host={tmp_path}"):
        engine = database.connect(url)
        ledger = Ledger(engine, clock, LEASE_SECONDS)
        with pytest.raises(Unavailable):
            ledger.balances("alice")
        with pytest.raises(Unavailable):
            ask(ledger)
        engine.dispose()


def test_a_full_disk_leaves_no_half_entry(tmp_path: Path, clock: SetClock) -> None:
    with migrated("sqlite", tmp_path) as url:
        engine = database.connect(url)
        ledger = Ledger(engine, clock, LEASE_SECONDS)
        open_accounts(ledger)
        head = ledger.head()
        full = database.connect(url)
        event.listen(full, "connect", lambda c, _: c.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(Unavailable):
            ask(Ledger(full, clock, LEASE_SECONDS), request={"long": "x" * 20_000})
        full.dispose()
        assert ledger.head() == head
        assert ledger.verify() == []
        assert isinstance(ask(ledger, request={"long": "x" * 20_000}), Fresh)
        engine.dispose()


@pytest.mark.postgres
def test_a_terminated_back_end_leaves_no_half_entry(
    tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with migrated("postgresql", tmp_path) as url:
        engine = database.connect(url)
        ledger = Ledger(engine, clock, LEASE_SECONDS)
        open_accounts(ledger)
        real = chain.append

        def lose(connection: Any, drafts: Any) -> None:
            real(connection, drafts)
            _terminate(engine, connection.scalar(text("SELECT pg_backend_pid()")))

        head = ledger.head()
        with monkeypatch.context() as patched:
            patched.setattr(chain, "append", lose)
            with pytest.raises(Unavailable):
                ask(ledger)
        assert ledger.head() == head
        assert ledger.verify() == []
        assert isinstance(ask(ledger), Fresh)
        engine.dispose()


def _terminate(engine: Engine, pid: int) -> None:
    with database.writing(engine) as other:
        other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "step", ["reserve", "resume", "queue", "begin", "take_over", "queue_again"]
)
def test_a_lease_that_was_given_without_a_word_can_be_given_up(
    ledger: Ledger, engine: Engine, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """At every step that gives one, where the confirmation of the commit never comes."""
    open_accounts(ledger)
    commit = engine.dialect.do_commit

    def unconfirmed(connection: Any) -> None:
        commit(connection)
        raise engine.dialect.loaded_dbapi.OperationalError("connection lost")

    queued = {} if step in {"reserve", "resume", "take_over"} else {"start_ms": 1}
    if step not in {"reserve", "queue"}:
        first = ask(ledger, idempotency_key="k", **queued)
        assert isinstance(first, Fresh)
        if step != "begin":
            ledger.give_up(first.reservation.lease)
    steps: dict[str, Callable[[], Any]] = {
        "begin": lambda: ledger.begin(first.reservation, 1),
        "take_over": lambda: ledger.take_over(first.reservation.id),
        "queue_again": lambda: ledger.queue_again(first.reservation.id),
    }
    with monkeypatch.context() as patched:
        patched.setattr(engine.dialect, "do_commit", unconfirmed)
        with pytest.raises(Undecided) as lost:
            steps.get(step, lambda: ask(ledger, idempotency_key="k", **queued))()
    assert ledger.stale() == ()
    ledger.give_up(*lost.value.leases)
    assert len(ledger.stale()) == 1
    assert isinstance(ask(ledger, idempotency_key="k"), Stale)
    assert ledger.verify() == []


def test_a_session_lost_while_committing_is_charged_once(
    ledger: Ledger, engine: Engine, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is done, and its confirmation never comes: the retry finds the charge."""
    open_accounts(ledger)
    commit = engine.dialect.do_commit

    def unconfirmed(connection: Any) -> None:
        commit(connection)
        raise engine.dialect.loaded_dbapi.OperationalError("connection lost")

    with monkeypatch.context() as patched:
        patched.setattr(engine.dialect, "do_commit", unconfirmed)
        with pytest.raises(Undecided) as lost:
            ask(ledger, idempotency_key="k")
    assert [b.spent.primary for b in ledger.all_balances()] == [TENTH.epsilon] * 2
    assert isinstance(ask(ledger, idempotency_key="k"), InFlight)
    ledger.give_up(*lost.value.leases)
    taken = ask(ledger, idempotency_key="k")
    assert isinstance(taken, Stale)
    with monkeypatch.context() as patched:
        patched.setattr(engine.dialect, "do_commit", unconfirmed)
        with pytest.raises(Unavailable):
            ledger.settle(taken.reservation, "reply", b"drawn once")
    assert ledger.settle(taken.reservation, "reply", b"drawn again") == b"drawn once"
    assert ask(ledger, idempotency_key="k") == Replay(b"drawn once")
    assert [b.spent.primary for b in ledger.all_balances()] == [TENTH.epsilon] * 2
    assert ledger.verify() == []
