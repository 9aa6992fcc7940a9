# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest
from sqlalchemy import Engine

from reticent_server.database import reading, writing
from reticent_server.domain.amounts import Amounts
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import BudgetExhausted, IdempotencyConflict, InvalidRequest, NotFound
from reticent_server.ledger import repository
from reticent_server.ledger.rules import MAX_AMOUNT
from reticent_server.ledger.service import Fresh, InFlight, Ledger, Pending, Replay, Stale
from support.databases.migrated import SetClock
from support.ledger.accounts import LEASE_SECONDS, TENTH, ask, open_accounts


def reserve(ledger: Ledger, key: str | None = None) -> Reservation:
    outcome = ask(ledger, idempotency_key=key)
    assert isinstance(outcome, Fresh)
    return outcome.reservation


def spent(ledger: Ledger) -> list[Amounts]:
    return [balance.spent for balance in ledger.all_balances()]


def test_a_reservation_debits_both_accounts_and_is_confirmed(ledger: Ledger) -> None:
    open_accounts(ledger)
    reservation = reserve(ledger)
    assert reservation.id.startswith("rel_")
    assert len(reservation.id) == 30
    assert reservation.cost == TENTH
    assert spent(ledger) == [Amounts(10**8, 10**11)] * 2
    assert [e.draft.account for e in ledger.entries(limit=2)] == [
        "analyst:alice:houses",
        "population:people",
    ]
    assert ledger.confirm(reservation)


def test_the_curators_own_is_charged_to_the_population_only(ledger: Ledger) -> None:
    open_accounts(ledger)
    outcome = ask(ledger, analyst_id=None)
    assert isinstance(outcome, Fresh)
    assert spent(ledger) == [Amounts(0, 0), Amounts(10**8, 10**11)]
    assert ledger.release("alice", outcome.reservation.id) is None
    assert isinstance(ledger.release(None, outcome.reservation.id), Pending)
    assert ledger.verify() == []


@pytest.mark.parametrize("short", ["population", "analyst"])
def test_a_refusal_leaves_no_trace(ledger: Ledger, short: str) -> None:
    open_accounts(ledger)
    tight = {"epsilon": 0.05, "delta": 1e-6, "by": "carol"}
    if short == "population":
        ledger.set_population_cap("people", **tight)
    else:
        ledger.set_analyst_budget("alice", "houses", "people", **tight)
    before = ledger.head(), ledger.all_balances()
    for key in (None, "k"):
        with pytest.raises(BudgetExhausted) as refused:
            ask(ledger, idempotency_key=key)
        assert refused.value.remaining == {"epsilon": 0.05, "delta": 1e-6}
    assert (ledger.head(), ledger.all_balances()) == before
    assert ledger.releases("alice") == ()
    small = replace(TENTH, epsilon=1)
    assert isinstance(ask(ledger, cost=small, idempotency_key="k"), Fresh)


def test_delta_alone_refuses_too(ledger: Ledger) -> None:
    open_accounts(ledger)
    with pytest.raises(BudgetExhausted):
        ask(ledger, cost=PrivacyCost(epsilon=1, delta=10**12 + 1, rho=1))
    assert isinstance(ask(ledger, cost=PrivacyCost(epsilon=1, delta=10**12, rho=1)), Fresh)


@pytest.mark.parametrize("amount", [MAX_AMOUNT, MAX_AMOUNT + 1, 10**40])
def test_an_enormous_cost_is_refused_and_overflows_nothing(ledger: Ledger, amount: int) -> None:
    open_accounts(ledger)
    ask(ledger)
    with pytest.raises(BudgetExhausted):
        ask(ledger, cost=PrivacyCost(epsilon=amount, delta=0, rho=amount))
    assert ledger.verify() == []


def test_without_an_account_the_answer_says_whom_to_ask(ledger: Ledger) -> None:
    with pytest.raises(BudgetExhausted, match="curator"):
        ask(ledger)
    ledger.set_population_cap("people", epsilon=1, delta=1e-6, rule="basic", by="carol")
    with pytest.raises(BudgetExhausted, match="curator"):
        ask(ledger)
    assert spent(ledger) == [Amounts(0, 0)]


def test_a_cost_that_is_free_under_a_rule_is_a_mistake(ledger: Ledger) -> None:
    open_accounts(ledger)
    for cost in (PrivacyCost(0, 0, 1), PrivacyCost(1, 0, 0)):
        with pytest.raises(ValueError, match="free"):
            ask(ledger, cost=cost)


def test_the_same_key_is_charged_once_and_replays_the_stored_bytes(ledger: Ledger) -> None:
    open_accounts(ledger)
    reservation = reserve(ledger, "k")
    assert ask(ledger, idempotency_key="k") == InFlight(reservation.id)
    assert ledger.settle(reservation, "reply", b'{"value":1}') == b'{"value":1}'
    later = ask(ledger, idempotency_key="k", version_id="v2", cost=replace(TENTH, epsilon=7))
    assert later == Replay(b'{"value":1}')
    assert spent(ledger) == [Amounts(10**8, 10**11)] * 2


def test_a_key_belongs_to_one_request_of_one_analyst(ledger: Ledger) -> None:
    open_accounts(ledger)
    ledger.set_analyst_budget(
        "bob", "houses", "people", epsilon=1, delta=1e-6, rule="basic", by="c"
    )
    reserve(ledger, "k")
    with pytest.raises(IdempotencyConflict):
        ask(ledger, idempotency_key="k", request={"query": {"kind": "mean"}})
    with pytest.raises(IdempotencyConflict):
        ask(ledger, idempotency_key="k", dataset="flats")
    assert isinstance(ask(ledger, idempotency_key="k", analyst_id="bob"), Fresh)
    assert isinstance(ask(ledger, idempotency_key="k", analyst_id=None), Fresh)
    assert isinstance(ask(ledger, idempotency_key="k", analyst_id=None), InFlight)


def test_the_order_of_a_requests_members_does_not_matter(ledger: Ledger) -> None:
    open_accounts(ledger)
    ask(ledger, idempotency_key="k", request={"a": 1, "b": [1, 2]})
    assert isinstance(ask(ledger, idempotency_key="k", request={"b": [1, 2], "a": 1}), InFlight)


@pytest.mark.parametrize("key", ["", "x" * 256, "a\x00b", "é", "a\n"])
def test_a_key_that_cannot_be_stored_is_refused(ledger: Ledger, key: str) -> None:
    open_accounts(ledger)
    with pytest.raises(InvalidRequest):
        ask(ledger, idempotency_key=key)


def test_an_abandoned_release_is_taken_over_without_a_charge(
    ledger: Ledger, clock: SetClock
) -> None:
    open_accounts(ledger)
    first = reserve(ledger, "k")
    clock.sleep(LEASE_SECONDS - 1)
    assert ledger.confirm(first)
    assert ledger.stale() == ()
    clock.sleep(1)
    assert not ledger.confirm(first)
    assert ledger.stale() == (first.id,)
    taken = ask(ledger, idempotency_key="k", version_id="v2")
    assert isinstance(taken, Stale)
    assert (taken.analyst_id, taken.dataset, taken.population) == ("alice", "houses", "people")
    assert taken.request == {"query": {"kind": "count"}, "privacy": {"epsilon": 0.1}}
    assert taken.reservation == replace(first, lease=taken.reservation.lease)
    assert taken.reservation.lease != first.lease
    assert ledger.confirm(taken.reservation)
    assert not ledger.confirm(first)
    assert isinstance(ask(ledger, idempotency_key="k"), InFlight)
    assert spent(ledger) == [Amounts(10**8, 10**11)] * 2
    assert ledger.verify() == []


def test_recovery_takes_over_by_id_and_only_what_is_abandoned(
    ledger: Ledger, clock: SetClock
) -> None:
    open_accounts(ledger)
    leased, settled = reserve(ledger), reserve(ledger)
    ledger.settle(settled, "failed", b"{}")
    assert ledger.take_over(leased.id) is None
    clock.sleep(LEASE_SECONDS)
    assert ledger.take_over(settled.id) is None
    assert ledger.take_over("rel_absent") is None
    assert isinstance(ledger.take_over(leased.id), Stale)
    assert ledger.take_over(leased.id) is None


def test_a_release_that_was_settled_meanwhile_is_not_taken_over(
    ledger: Ledger, engine: Engine
) -> None:
    open_accounts(ledger)
    reservation = reserve(ledger)
    with reading(engine) as connection:
        found = repository.release(connection, reservation.id)
    assert found is not None
    ledger.settle(reservation, "reply", b"{}")
    with writing(engine) as connection:
        assert not repository.take_lease(connection, found, lease="mine", until_ms=2**40)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "change",
    [
        {"version_id": "v2"},
        {"cost": replace(TENTH, rho=1)},
        {"cost": replace(TENTH, rho_delta=0)},
        {"lease": ""},
        {"created_at": "2024"},
        {"id": "rel_absent"},
    ],
)
def test_a_reservation_that_is_not_as_reserved_is_not_confirmed(
    ledger: Ledger, change: dict[str, object]
) -> None:
    open_accounts(ledger)
    assert not ledger.confirm(replace(reserve(ledger), **change))


def test_the_first_settled_body_wins_for_ever(ledger: Ledger) -> None:
    open_accounts(ledger)
    reservation = reserve(ledger)
    assert ledger.settle(reservation, "no_reply", b"first") == b"first"
    head = ledger.head()
    assert ledger.settle(reservation, "reply", b"second") == b"first"
    assert ledger.release("alice", reservation.id) == b"first"
    assert ledger.head() == head
    assert not ledger.confirm(reservation)
    assert ledger.verify() == []


def test_a_lease_that_is_given_up_can_be_taken_over_at_once(ledger: Ledger) -> None:
    open_accounts(ledger)
    first = reserve(ledger, "k")
    ledger.give_up(first.lease)
    assert not ledger.confirm(first)
    stale = ask(ledger, idempotency_key="k")
    assert isinstance(stale, Stale)
    ledger.give_up(first.lease)  # it is another's now
    assert ledger.confirm(stale.reservation)
    assert isinstance(ask(ledger, idempotency_key="k"), InFlight)


def test_only_a_reserved_release_is_settled_and_only_for_good(ledger: Ledger) -> None:
    open_accounts(ledger)
    reservation = reserve(ledger)
    with pytest.raises(NotFound):
        ledger.settle(replace(reservation, id="rel_absent"), "reply", b"")
    with pytest.raises(ValueError, match="status"):
        ledger.settle(reservation, "pending", b"")


def test_no_time_of_settling_is_stored(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    reservation = reserve(ledger)
    clock.sleep(17)
    ledger.settle(reservation, "reply", b"{}")
    settled = ledger.entries(limit=1)[0].draft
    assert (settled.action, settled.at) == ("settle", None)
    assert clock.now().isoformat()[:19] not in "".join(ledger.export())


def test_analysts_see_their_own_releases_only_newest_first(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    made = []
    for _ in range(3):
        made.append(reserve(ledger))
        clock.sleep(1)
    ledger.settle(made[1], "reply", b"one")
    newest, settled, oldest = ledger.releases("alice")
    assert isinstance(newest, Pending)
    assert isinstance(oldest, Pending)
    assert (newest.id, settled, oldest.id) == (made[2].id, b"one", made[0].id)
    assert ledger.releases("alice", limit=1, offset=1) == (b"one",)
    assert ledger.releases("bob") == ()
    assert ledger.release("bob", made[1].id) is None
    assert ledger.release("alice", "rel_\x00") is None
