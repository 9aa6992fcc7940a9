# SPDX-License-Identifier: Apache-2.0
"""An account over time: in ε, whatever its rule, and true about the past after its cap was
changed.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reticent_server.ledger.model import Balance
from reticent_server.pipeline import account_history
from reticent_server.pipeline.account_history import history as points_of
from reticent_server.pipeline.accounts import account_json
from reticent_server.pipeline.services import Services
from support.installations.console import History, history
from support.installations.small import opened

__all__ = ["history"]


@pytest.fixture
def services(history: History, tmp_path: Path) -> Iterator[Services]:
    with opened(history.copied(tmp_path / "made").installation.settings) as services:
        yield services


def cap_of(services: Services) -> Balance:
    balance = services.ledger.population_balance("people")
    assert balance is not None
    return balance


def test_it_ends_where_the_account_stands_under_either_rule(services: Services) -> None:
    services.ledger.set_population_cap("fresh", epsilon=3, delta=1e-5, by="t")
    balances = services.ledger.all_balances()
    assert {b.rule for b in balances} == {"basic", "zcdp"}
    for balance in balances:
        last = points_of(services, balance)[-1]
        stored = account_json(balance)
        assert last.cap == stored["total"]["epsilon"]
        assert last.spent == stored["spent"]["epsilon"]


def test_a_raise_changes_nothing_before_it(services: Services) -> None:
    for balance in services.ledger.all_balances():
        before = points_of(services, balance)
        given = account_json(balance)["total"]
        if balance.analyst_id is None:
            raised = services.ledger.set_population_cap(
                balance.population, epsilon=90, delta=given["delta"], by="t"
            )
            after = points_of(services, raised)
            assert after[:-1] == before
            assert (after[-1].cap, after[-1].sets_cap) == (90, True)
            assert after[-1].spent == before[-1].spent


def test_a_long_history_keeps_every_change_and_the_end(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = points_of(services, cap_of(services))
    assert len(whole) > 4
    monkeypatch.setattr(account_history, "POINTS", 1)
    thinned = points_of(services, cap_of(services))
    assert set(thinned) < set(whole)
    assert [p for p in thinned if p.sets_cap] == [p for p in whole if p.sets_cap]
    assert thinned[-1] == whole[-1]


def test_what_stood_before_the_last_entries_is_their_cap(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A raise among the last entries says nothing about the cap before it."""
    cap = cap_of(services)
    before = points_of(services, cap)[-1]
    raised = services.ledger.set_population_cap("people", epsilon=90, delta=0.01, by="t")
    monkeypatch.setattr(account_history, "HISTORY", 2)
    first, last = points_of(services, raised)
    assert (first.cap, first.spent) == (before.cap, before.spent)
    assert (last.cap, last.spent) == (90, before.spent)
