"""Queued releases: begun or cancelled, never both; a cancelled one costs nothing, and says so for ever."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Engine, update

from reticent_server.database import reading, writing
from reticent_server.domain.amounts import ZERO
from reticent_server.domain.plan import Reservation
from reticent_server.errors import Conflict, NotFound
from reticent_server.ledger import repository
from reticent_server.ledger.model import Pending
from reticent_server.ledger.service import Fresh, InFlight, Ledger, Replay
from reticent_server.ledger.tables import accounts, releases
from support_databases import SetClock
from support_ledger import LEASE_SECONDS, ask, open_accounts, whole_caps


def body_of(pending: Pending) -> bytes:
    return json.dumps({"id": pending.id, "status": "cancelled"}).encode()


def queued(ledger: Ledger, clock: SetClock, wait: int = 60, **more: Any) -> Reservation:
    start_ms = int(clock.now().timestamp() * 1000) + wait * 1000
    outcome = ask(ledger, start_ms=start_ms, **more)
    assert isinstance(outcome, Fresh)
    return outcome.reservation


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_cancelling_gives_everything_back(engine: Engine, clock: SetClock, rule: str) -> None:
    ledger = Ledger(engine, clock, LEASE_SECONDS, whole_caps)
    open_accounts(ledger, rule=rule)
    kept = ask(ledger)
    spent = [b.spent for b in ledger.all_balances()]
    reservation = queued(ledger, clock, idempotency_key="k")
    assert [b.spent for b in ledger.all_balances()] != spent
    body = ledger.cancel("alice", reservation.id, body_of)
    assert [b.spent for b in ledger.all_balances()] == spent
    assert ledger.release("alice", reservation.id) == body
    assert ledger.cancel("alice", reservation.id, body_of) == body
    assert ask(ledger, idempotency_key="k") == Replay(body)
    actions = [e.draft.action for e in ledger.entries(limit=3)]
    assert actions == ["settle", "reversal", "reversal"]
    assert ledger.verify() == []
    assert isinstance(kept, Fresh)


def test_what_has_begun_is_not_given_back(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    assert not ledger.confirm(reservation), "it could still be cancelled"
    begun = ledger.begin(reservation)
    assert begun is not None
    assert ledger.confirm(begun)
    assert ledger.begin(reservation) is None
    for release_id in (reservation.id, ask_now(ledger)):
        with pytest.raises(Conflict):
            ledger.cancel("alice", release_id, body_of)
    ledger.settle(begun, "reply", b"{}")
    with pytest.raises(Conflict):
        ledger.cancel("alice", reservation.id, body_of)
    assert [b.spent == ZERO for b in ledger.all_balances()] == [False, False]
    assert ledger.verify() == []


def ask_now(ledger: Ledger) -> str:
    outcome = ask(ledger)
    assert isinstance(outcome, Fresh)
    return outcome.reservation.id


def test_another_persons_release_is_absent(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    for owner, release_id in (
        ("bob", reservation.id),
        (None, reservation.id),
        ("alice", "rel_\x00"),
    ):
        with pytest.raises(NotFound):
            ledger.cancel(owner, release_id, body_of)
    assert ledger.pending("bob") == ()
    (shown,) = ledger.pending("alice")
    assert (shown.id, shown.queued) == (reservation.id, True)


def test_a_cancelled_release_cannot_be_begun_or_settled(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    body = ledger.cancel("alice", reservation.id, body_of)
    assert ledger.begin(reservation) is None
    assert ledger.settle(reservation, "reply", b"drawn") == body
    assert ledger.pending("alice") == ()
    assert ledger.verify() == []


def test_a_queue_that_was_abandoned_is_taken_over_when_its_turn_is_long_past(
    ledger: Ledger, clock: SetClock
) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock, wait=100, idempotency_key="k")
    clock.sleep(LEASE_SECONDS + 99)
    assert ledger.stale() == ()
    assert isinstance(ask(ledger, idempotency_key="k"), InFlight)
    clock.sleep(2)
    assert ledger.stale() == (reservation.id,)
    taken = ledger.take_over(reservation.id)
    assert taken is not None
    assert ledger.confirm(taken.reservation)
    assert ledger.begin(reservation) is None
    with pytest.raises(Conflict):
        ledger.cancel("alice", reservation.id, body_of)


def test_one_of_many_wins(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    for _ in range(5):
        reservation = queued(ledger, clock)
        together = Barrier(4)

        def begin(reserved: Reservation = reservation, gate: Barrier = together) -> bool:
            gate.wait()
            return ledger.begin(reserved) is not None

        def cancel(reserved: Reservation = reservation, gate: Barrier = together) -> bool:
            gate.wait()
            try:
                ledger.cancel("alice", reserved.id, body_of)
            except Conflict:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(f) for f in (begin, cancel, begin, cancel)]
            begun, cancelled = [[r.result() for r in runs[k::2]] for k in (0, 1)]
        assert sum(begun) == (0 if any(cancelled) else 1)
        assert isinstance(ledger.release("alice", reservation.id), bytes) == any(cancelled)
        assert ledger.verify() == []


def test_a_cancellation_that_looked_before_the_beginning_loses(
    ledger: Ledger, clock: SetClock, engine: Engine
) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    with reading(engine) as connection:
        before = repository.release(connection, reservation.id)
    assert before is not None
    assert ledger.begin(reservation) is not None
    with writing(engine) as connection:
        assert not repository.cancel(connection, before, b"{}")


@pytest.mark.parametrize("forged", ["status", "spent"])
def test_a_forged_cancellation_is_found(
    ledger: Ledger, clock: SetClock, engine: Engine, forged: str
) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    with writing(engine) as connection:
        if forged == "status":
            change: Any = update(releases).values(status="cancelled", body=b"{}")
        else:
            change = update(accounts).values(primary_spent=0)
        connection.execute(change)
    assert ledger.verify() != []
    assert reservation.id
