# SPDX-License-Identifier: Apache-2.0
"""Many at once: exactly what the cap allows, one charge a key, one holder of a lease."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import Engine

from reticent_server import database
from reticent_server.domain.amounts import Amounts
from reticent_server.errors import BudgetExhausted, Conflict
from reticent_server.ledger import audit
from reticent_server.ledger.service import Fresh, InFlight, Ledger, Stale
from support.databases.migrated import SetClock
from support.databases.postgresql import new_database
from support.ledger import ledger_process
from support.ledger.accounts import LEASE_SECONDS, ask, open_accounts, whole_caps
from support.ledger.ledger_process import race
from support.processes.forked import Forked, forked


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """The results of calls that start together, one thread each."""
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_24_threads_of_a_tenth_against_one_are_answered_10_times(ledger: Ledger, rule: str) -> None:
    open_accounts(ledger, rule=rule)
    assert race(ledger, 24) == 10
    assert [b.remaining.primary for b in ledger.all_balances()] == [0, 0]
    assert ledger.verify() == []


def test_the_population_caps_analysts_who_join_forces(ledger: Ledger) -> None:
    open_accounts(ledger)
    names = [f"analyst{i}" for i in range(8)]
    for name in names:
        given = {"epsilon": 1, "delta": 1e-6, "rule": "basic", "by": "carol"}
        ledger.set_analyst_budget(name, "houses", "people", **given)

    def spend(name: str) -> int:
        return sum(_answered(ledger, analyst_id=name) for _ in range(3))

    assert sum(at_once([lambda n=name: spend(n) for name in names])) == 10
    assert ledger.verify() == []


def _answered(ledger: Ledger, **changes: Any) -> bool:
    try:
        return isinstance(ask(ledger, **changes), Fresh)
    except BudgetExhausted:
        return False


def racer(url: str, gate: Path) -> Forked:
    """A process with twelve threads that spend when its gate opens."""
    os.mkfifo(gate)
    arguments = ("race", url, "12", str(gate))
    return forked(ledger_process.main, arguments, dict(os.environ), gate.with_suffix(".log"))


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_two_processes_share_one_budget(
    ledger: Ledger, database_url: str, tmp_path: Path, rule: str
) -> None:
    open_accounts(ledger, rule=rule)
    gates = [tmp_path / "first", tmp_path / "second"]
    children = [racer(database_url, gate) for gate in gates]
    for process in children:
        assert process.stdout.readline() == "ready\n"
    for gate in gates:
        gate.write_text("")
    assert sum(int(process.stdout.read()) for process in children) == 10
    for process in children:
        assert process.wait(60) == 0
        process.stdout.close()
    assert ledger.verify() == []


def test_one_key_in_parallel_is_one_charge(ledger: Ledger) -> None:
    open_accounts(ledger, cap=0.1)
    outcomes = at_once([lambda: ask(ledger, idempotency_key="k")] * 8)
    (fresh,) = [o for o in outcomes if isinstance(o, Fresh)]
    assert outcomes.count(InFlight(fresh.reservation.id)) == 7
    assert [b.spent.primary for b in ledger.all_balances()] == [10**8, 10**8]
    assert ledger.verify() == []


def test_an_abandoned_release_is_taken_over_by_one(ledger: Ledger, clock: SetClock) -> None:
    open_accounts(ledger)
    first = ask(ledger, idempotency_key="k")
    assert isinstance(first, Fresh)
    clock.sleep(LEASE_SECONDS)
    calls = [
        lambda: ask(ledger, idempotency_key="k"),
        lambda: ledger.take_over(first.reservation.id),
    ]
    outcomes = at_once(calls * 4)
    (taken,) = [o for o in outcomes if isinstance(o, Stale)]
    assert ledger.confirm(taken.reservation)
    assert [b.spent.primary for b in ledger.all_balances()] == [10**8, 10**8]


def test_of_two_answers_one_is_stored(ledger: Ledger) -> None:
    open_accounts(ledger)
    first = ask(ledger)
    assert isinstance(first, Fresh)
    bodies = [b"%d" % i for i in range(8)]
    stored = at_once(
        [lambda b=body: ledger.settle(first.reservation, "reply", b) for body in bodies]
    )
    assert len(set(stored)) == 1
    assert ledger.release("alice", first.reservation.id) == stored[0]
    assert ledger.verify() == []


def test_a_cap_is_lowered_between_charges_and_never_below_them(ledger: Ledger) -> None:
    open_accounts(ledger)

    def lower() -> bool:
        try:
            ledger.set_population_cap("people", epsilon=0.2, delta=1e-6, by="carol")
        except Conflict:
            return False
        return True

    results = at_once([lower, *[lambda: _answered(ledger)] * 8])
    lowered, answered = results[0], sum(results[1:])
    assert answered == (2 if lowered else 8)
    assert ledger.verify() == []


def test_accounts_opened_at_once_are_opened_once(ledger: Ledger) -> None:
    at_once([lambda: open_accounts(ledger)] * 4)
    actions = [entry.draft.action for entry in ledger.entries()]
    assert (actions.count("open"), actions.count("cap")) == (2, 6)
    assert ledger.verify() == []


def test_verify_sees_one_consistent_state_while_others_write(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request is charged and answered between reading the entries and the accounts."""
    open_accounts(ledger)
    ask(ledger)
    real = audit._accounts

    def after_a_write(*arguments: Any) -> list[str]:
        with ThreadPoolExecutor(1) as pool:
            outcome = pool.submit(ask, ledger).result()
            pool.submit(ledger.settle, outcome.reservation, "reply", b"{}").result()
        return real(*arguments)

    monkeypatch.setattr(audit, "_accounts", after_a_write)
    assert ledger.verify() == []
    assert len(ledger.releases("alice")) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
)
def test_two_upgrades_at_once_make_one_database(
    backend: str, tmp_path: Path, begun: Callable[..., Any]
) -> None:
    url = new_database() if backend == "postgresql" else f"sqlite:///{tmp_path / 'reticent.db'}"
    statuses = [begun("upgrade", url) for _ in range(2)]
    assert [status() for status in statuses] == [0, 0]
    engine: Engine = database.connect(url)
    ledger = Ledger(engine, SetClock(), LEASE_SECONDS, whole_caps)
    open_accounts(ledger)
    assert [b.spent for b in ledger.all_balances()] == [Amounts(0, 0)] * 2
    engine.dispose()
