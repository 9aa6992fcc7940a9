# SPDX-License-Identifier: Apache-2.0
"""kill −9 at every step: what is committed stays, what is not leaves no trace, keys still hold."""

import signal
from collections.abc import Callable
from typing import Any

import pytest

from reticent_server.ledger.service import Fresh, InFlight, Ledger, Replay, Stale
from support.databases.migrated import SetClock
from support.ledger.accounts import LEASE_SECONDS, TENTH, ask, open_accounts


def kill(begun: Callable[..., Any], url: str, point: str) -> None:
    assert begun("die", url, point)() == -signal.SIGKILL


def spent(ledger: Ledger) -> set[int]:
    return {balance.spent.primary for balance in ledger.all_balances()}


@pytest.mark.sample(4)
@pytest.mark.parametrize("point", ["debited", "chained", "committing"])
def test_killed_before_the_commit_nothing_is_charged(
    ledger: Ledger, database_url: str, begun: Callable[..., Any], point: str
) -> None:
    open_accounts(ledger)
    head = ledger.head()
    kill(begun, database_url, point)
    assert (ledger.head(), spent(ledger), ledger.releases("alice")) == (head, {0}, ())
    assert ledger.verify(head) == []
    assert isinstance(ask(ledger, idempotency_key="k"), Fresh)


@pytest.mark.parametrize("point", ["reserved", "settling"])
def test_killed_after_the_commit_the_charge_stays_and_is_taken_over(
    ledger: Ledger, clock: SetClock, database_url: str, begun: Callable[..., Any], point: str
) -> None:
    open_accounts(ledger)
    kill(begun, database_url, point)
    assert spent(ledger) == {TENTH.epsilon}
    assert ledger.verify() == []
    assert isinstance(ask(ledger, idempotency_key="k"), InFlight)
    clock.sleep(LEASE_SECONDS)
    taken = ask(ledger, idempotency_key="k")
    assert isinstance(taken, Stale)
    assert ledger.settle(taken.reservation, "reply", b"again") == b"again"
    assert ask(ledger, idempotency_key="k") == Replay(b"again")
    assert spent(ledger) == {TENTH.epsilon}
    assert ledger.verify() == []


def test_killed_after_settling_the_answer_is_replayed(
    ledger: Ledger, database_url: str, begun: Callable[..., Any]
) -> None:
    open_accounts(ledger)
    kill(begun, database_url, "settled")
    assert ask(ledger, idempotency_key="k") == Replay(b"by the child")
    assert spent(ledger) == {TENTH.epsilon}
    assert ledger.verify() == []
