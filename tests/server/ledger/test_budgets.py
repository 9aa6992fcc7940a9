# SPDX-License-Identifier: Apache-2.0
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from reticent_server.accounting.conversions import zcdp_caps
from reticent_server.domain.amounts import Amounts
from reticent_server.errors import (
    BudgetExhausted,
    Conflict,
    InvalidPrivacy,
    InvalidRequest,
    NotFound,
)
from reticent_server.ledger.model import Balance, analyst_account, population_account
from reticent_server.ledger.service import Ledger
from support.ledger.accounts import TENTH, ask, open_accounts, whole_caps

ALICE = analyst_account("alice", "houses")
PEOPLE = population_account("people")


def test_a_new_account_is_zcdp_with_the_converted_caps(ledger: Ledger) -> None:
    made = ledger.set_population_cap("people", epsilon=1, delta=1e-6, by="carol")
    assert made == ledger.population_balance("people")
    assert (made.rule, made.cap) == ("zcdp", Amounts(*zcdp_caps(10**9, 10**12)))
    assert made.remaining == made.cap
    assert (made.epsilon, made.delta) == (10**9, 10**12)


def test_an_analyst_sees_only_the_accounts_that_are_theirs(ledger: Ledger) -> None:
    open_accounts(ledger)
    ledger.set_analyst_budget("bob", "houses", "people", epsilon=1, delta=0, rule="basic", by="c")
    assert [b.account for b in ledger.balances("alice")] == [ALICE]
    assert len(ledger.all_balances()) == 3


def test_a_cap_can_be_raised_and_lowered_but_not_below_what_is_spent(ledger: Ledger) -> None:
    open_accounts(ledger)
    for _ in range(3):
        ask(ledger)
    for epsilon in (2.0, 0.3):
        ledger.set_population_cap("people", epsilon=epsilon, delta=1e-6, by="carol")
    before = ledger.entries()
    for epsilon, delta in ((0.299_999_999, 1e-6), (1.0, 2.999e-7)):
        with pytest.raises(Conflict, match="spent"):
            ledger.set_population_cap("people", epsilon=epsilon, delta=delta, by="carol")
    assert ledger.entries() == before
    balance = ledger.population_balance("people")
    assert balance is not None
    assert (balance.remaining.primary, balance.spent.primary) == (0, 300_000_000)
    with pytest.raises(BudgetExhausted):
        ask(ledger)
    assert ledger.verify() == []


def test_the_rule_is_kept(ledger: Ledger) -> None:
    open_accounts(ledger, rule="basic")
    with pytest.raises(Conflict, match="rule"):
        ledger.set_population_cap("people", epsilon=2, delta=1e-6, rule="zcdp", by="carol")
    assert ledger.set_population_cap("people", epsilon=2, delta=0, by="carol").rule == "basic"


def test_an_account_keeps_its_population(ledger: Ledger) -> None:
    open_accounts(ledger)
    with pytest.raises(Conflict):
        ledger.set_analyst_budget("alice", "houses", "others", epsilon=1, delta=0, by="carol")


def test_what_is_no_budget_opens_no_account(ledger: Ledger) -> None:
    with pytest.raises(InvalidPrivacy):
        ledger.set_population_cap("people", epsilon=float("nan"), delta=0, by="carol")
    assert ledger.all_balances() == ()
    assert ledger.entries() == ()


def test_a_credit_is_an_entry_with_a_reason(ledger: Ledger) -> None:
    open_accounts(ledger)
    ask(ledger)
    credited = ledger.credit(ALICE, Amounts(10**8, 0), reason=" power cut ", by="carol")
    entry = ledger.entries(ALICE)[0].draft
    assert (entry.action, entry.actor, entry.change) == ("credit", "carol", Amounts(-(10**8), 0))
    assert entry.detail == {"reason": "power cut"}
    assert [credited] == list(ledger.balances("alice"))
    assert credited.spent == Amounts(0, TENTH.delta)
    people = ledger.population_balance("people")
    assert people is not None
    assert people.spent.primary == 10**8
    assert ledger.verify() == []


def test_a_credit_above_what_is_spent_or_without_sense_is_refused(ledger: Ledger) -> None:
    open_accounts(ledger)
    ask(ledger)
    before = ledger.entries()
    with pytest.raises(Conflict):
        ledger.credit(ALICE, Amounts(10**8 + 1, 0), reason="r", by="carol")
    with pytest.raises(Conflict):
        ledger.credit(ALICE, Amounts(0, TENTH.delta + 1), reason="r", by="carol")
    for amount, reason in ((Amounts(1, 0), " "), (Amounts(0, 0), "r"), (Amounts(-1, 0), "r")):
        with pytest.raises(InvalidRequest):
            ledger.credit(ALICE, amount, reason=reason, by="carol")
    with pytest.raises(NotFound):
        ledger.credit("population:nobody", Amounts(1, 0), reason="r", by="carol")
    assert ledger.entries() == before


def test_under_zcdp_rho_is_what_is_capped(ledger: Ledger) -> None:
    ledger._zcdp_caps = whole_caps
    open_accounts(ledger, rule="zcdp")
    for _ in range(10):
        ask(ledger)
    with pytest.raises(BudgetExhausted) as refused:
        ask(ledger)
    assert refused.value.remaining == {"rho": 0.0, "rho_delta": 0.0}


def test_a_credit_that_is_sent_many_times_at_once_is_written_once(ledger: Ledger) -> None:
    """Under one reason by one person: real budget. Another reason, or another person, is another
    credit.
    """
    open_accounts(ledger)
    for _ in range(5):
        ask(ledger)
    gate = Barrier(8)

    def send(_: int) -> bool:
        gate.wait()
        try:
            ledger.credit(PEOPLE, Amounts(1, 0), reason="power cut", by="carol")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(send, range(8))) == 1
    ledger.credit(PEOPLE, Amounts(1, 0), reason="power cut, again", by="carol")
    ask(ledger)
    with pytest.raises(Conflict, match="sent twice"):  # however much has happened in between
        ledger.credit(PEOPLE, Amounts(1, 0), reason=" power cut", by="carol")
    ledger.credit(PEOPLE, Amounts(1, 0), reason="power cut", by="dan")
    assert ledger.verify() == []


def offered(ledger: Ledger, **changed: Any) -> Balance:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rule": "zcdp", "by": "carol"}
    return ledger.set_population_cap("people", **given | changed)


def test_the_delta_for_queries_is_kept_as_a_share(ledger: Ledger) -> None:
    assert offered(ledger, query_delta=3e-7).cap.secondary == 3 * 10**11
    assert offered(ledger, epsilon=2.0).cap.secondary == 3 * 10**11
    assert offered(ledger, delta=2e-6).cap.secondary == 6 * 10**11
    assert offered(ledger, query_delta=0.0).cap == Amounts(*zcdp_caps(10**9, 10**12, 0))


def test_a_basic_account_has_no_delta_for_queries(ledger: Ledger) -> None:
    with pytest.raises(InvalidPrivacy, match="zcdp"):
        offered(ledger, rule="basic", query_delta=1e-7)


def test_after_a_charge_neither_cap_is_exchanged_for_the_other(ledger: Ledger) -> None:
    """Only before: and then also down and up again. Afterwards a raise of both is one."""
    ledger._zcdp_caps = whole_caps
    open_accounts(ledger, rule="zcdp")
    offered(ledger, query_delta=2e-7)
    offered(ledger, query_delta=9e-7)
    ask(ledger)
    for epsilon, second in ((1.1, 8e-7), (0.9, 1e-6)):
        with pytest.raises(Conflict, match="charged already"):
            offered(ledger, epsilon=epsilon, query_delta=second)
    assert offered(ledger, epsilon=1.1, query_delta=1e-6).cap.secondary == 10**12
    assert offered(ledger, epsilon=0.9, query_delta=8e-7).cap.secondary == 8 * 10**11
