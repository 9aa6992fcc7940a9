# SPDX-License-Identifier: Apache-2.0
"""Queued releases: begun or cancelled, never both; a cancelled one costs nothing, and says so for
ever.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Engine, update

from reticent_server.database import reading, writing
from reticent_server.domain.amounts import ZERO
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import Conflict, NotFound
from reticent_server.ledger import repository
from reticent_server.ledger.model import Pending
from reticent_server.ledger.service import Fresh, InFlight, Ledger, Replay
from reticent_server.ledger.tables import accounts, releases
from support.databases.migrated import SetClock
from support.ledger.accounts import LEASE_SECONDS, ask, open_accounts, whole_caps

START = 1_714_564_860_000
"""A planned beginning, in ms since the epoch."""

TURN_MS = 700


def body_of(pending: Pending) -> bytes:
    return json.dumps({"id": pending.id, "status": "cancelled"}).encode()


def queued(ledger: Ledger, clock: SetClock, wait: int = 60, **more: Any) -> Reservation:
    start_ms = int(clock.now().timestamp() * 1000) + wait * 1000
    outcome = ask(ledger, start_ms=start_ms, duration_ms=TURN_MS, **more)
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
    begun = ledger.begin(reservation, START)
    assert begun is not None
    assert ledger.confirm(begun)
    assert ledger.begin(reservation, START) is None
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
    assert (ledger.planned_ms("bob"), ledger.planned_ms("alice")) == (0, TURN_MS)
    shown = ledger.release("alice", reservation.id)
    assert isinstance(shown, Pending)
    assert (shown.id, shown.queued, shown.duration_ms) == (reservation.id, True, TURN_MS)


def test_a_cancelled_release_cannot_be_begun_or_settled(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    body = ledger.cancel("alice", reservation.id, body_of)
    assert ledger.begin(reservation, START) is None
    assert ledger.settle(reservation, "reply", b"drawn") == body
    assert ledger.planned_ms("alice") == 0
    assert ledger.verify() == []


def test_the_beginning_is_kept(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock)
    assert ledger.begin(reservation, START) is not None
    shown = ledger.release("alice", reservation.id)
    assert isinstance(shown, Pending)
    assert (shown.queued, shown.start_ms, shown.duration_ms) == (False, START, TURN_MS)


def test_a_queue_that_is_alive_keeps_its_leases(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    kept, left, begun = [queued(ledger, clock) for _ in range(3)]
    assert ledger.begin(begun, START) is not None
    clock.sleep(LEASE_SECONDS - 1)
    ledger.keep_queued([kept, begun])
    ledger.keep_queued([])
    clock.sleep(2)
    assert set(ledger.stale()) == {left.id, begun.id}
    clock.sleep(LEASE_SECONDS)
    assert kept.id in ledger.stale()


def test_an_abandoned_queue_is_queued_again_and_can_still_be_cancelled(
    ledger: Ledger, clock: SetClock
) -> None:
    open_accounts(ledger)
    first, second = queued(ledger, clock), queued(ledger, clock)
    assert ledger.queue_again(first.id) is None, "its process is alive"
    ledger.give_up(first.lease)
    ledger.give_up(second.lease)
    again = ledger.queue_again(first.id)
    assert again is not None
    assert (again.duration_ms, again.analyst_id) == (TURN_MS, "alice")
    assert ledger.queue_again(first.id) is None
    assert ledger.begin(first, START) is None
    assert ledger.begin(again.reservation, START) is not None
    other = ledger.queue_again(second.id)
    assert other is not None
    ledger.cancel("alice", second.id, body_of)
    assert ledger.begin(other.reservation, START) is None
    assert ledger.verify() == []


def test_what_had_begun_is_not_queued_again(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    begun = ledger.begin(queued(ledger, clock), START)
    assert begun is not None
    ledger.give_up(begun.lease)
    assert ledger.queue_again(begun.id) is None
    assert ledger.take_over(begun.id) is not None
    assert ledger.queue_again("rel_absent") is None


def test_a_queue_that_was_abandoned_is_taken_over(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = queued(ledger, clock, wait=100, idempotency_key="k")
    clock.sleep(LEASE_SECONDS - 1)
    assert ledger.stale() == ()
    assert isinstance(ask(ledger, idempotency_key="k"), InFlight)
    clock.sleep(2)
    assert ledger.stale() == (reservation.id,)
    taken = ledger.take_over(reservation.id)
    assert taken is not None
    assert ledger.confirm(taken.reservation)
    assert ledger.begin(reservation, START) is None
    with pytest.raises(Conflict):
        ledger.cancel("alice", reservation.id, body_of)


def test_one_of_many_wins(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    for _ in range(5):
        reservation = queued(ledger, clock)
        together = Barrier(4)

        def begin(reserved: Reservation = reservation, gate: Barrier = together) -> bool:
            gate.wait()
            return ledger.begin(reserved, START) is not None

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
    assert ledger.begin(reservation, START) is not None
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
