# SPDX-License-Identifier: Apache-2.0
"""A clock that jumps: nothing is free, nothing is charged twice, and one answer counts."""

from datetime import timedelta

import pytest

from reticent_server.ledger.service import Fresh, Ledger, Replay, Stale
from support.databases.migrated import SetClock
from support.ledger.accounts import LEASE_SECONDS, ask, open_accounts

DAY = timedelta(days=1)


@pytest.fixture
def charged(ledger: Ledger) -> Fresh:
    open_accounts(ledger)
    outcome = ask(ledger, idempotency_key="k")
    assert isinstance(outcome, Fresh)
    return outcome


def test_forwards_while_an_answer_is_computed(
    ledger: Ledger, charged: Fresh, clock: SetClock
) -> None:
    """Its lease seems to be over, and somebody else computes it, too: the first answer is the one
    that all get.
    """
    spent = ledger.balances("alice")[0].spent
    clock.time += DAY
    assert not ledger.confirm(
        charged.reservation
    )  # who has not begun to read does not begin any more
    again = ask(ledger, idempotency_key="k")
    assert isinstance(again, Stale)
    assert ledger.confirm(again.reservation)
    assert ledger.settle(charged.reservation, "reply", b'{"value":1}') == b'{"value":1}'
    assert ledger.settle(again.reservation, "reply", b'{"value":2}') == b'{"value":1}'
    assert ask(ledger, idempotency_key="k") == Replay(b'{"value":1}')
    assert ledger.balances("alice")[0].spent == spent
    assert ledger.verify() == []


def test_backwards_while_an_answer_is_computed(
    ledger: Ledger, charged: Fresh, clock: SetClock
) -> None:
    """Times in the chain go back; its order does not."""
    clock.time -= DAY
    assert ledger.confirm(charged.reservation)
    assert ledger.stale() == ()
    assert isinstance(ask(ledger, idempotency_key="other"), Fresh)
    ledger.settle(charged.reservation, "reply", b'{"value":1}')
    ledger.set_population_cap("people", epsilon=2, delta=1e-6, by="carol")
    assert ledger.verify() == []
    entries = ledger.entries(limit=20)
    assert [e.seq for e in entries] == sorted((e.seq for e in entries), reverse=True)
    assert ledger.balances("alice")[0].spent.primary > 0


def test_a_lease_of_before_ends_when_the_clock_is_right_again(
    ledger: Ledger, charged: Fresh, clock: SetClock
) -> None:
    clock.time -= DAY
    assert ledger.stale() == ()
    clock.time += DAY + timedelta(seconds=LEASE_SECONDS)
    assert ledger.stale() == (charged.reservation.id,)
