# SPDX-License-Identifier: Apache-2.0
"""Whatever is asked in whatever order: Σ entries = balance ≤ cap, by a model of a few integers."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from reticent_server import database
from reticent_server.domain.amounts import ZERO, Amounts
from reticent_server.domain.cost import PrivacyCost
from reticent_server.errors import BudgetExhausted, Conflict
from reticent_server.ledger.model import analyst_account, population_account
from reticent_server.ledger.service import Fresh, InFlight, Ledger, Replay, Stale
from support.databases.migrated import SetClock, migrated
from support.ledger.accounts import LEASE_SECONDS, ask, whole_caps

PEOPLE = population_account("people")
ACCOUNTS = {a: analyst_account(a, "houses") for a in ("alice", "bob")}
UNIT = {"basic": 10**9, "zcdp": 10**12}
tenths = st.integers(1, 6)


class LedgerMachine(RuleBasedStateMachine):
    """Budgets and costs in tenths; every account's rule is drawn at the start."""

    releases = Bundle("releases")

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        engine = database.connect(self.stack.enter_context(migrated("sqlite", folder)))
        self.stack.callback(engine.dispose)
        self.clock = SetClock()
        self.ledger = Ledger(engine, self.clock, LEASE_SECONDS, whole_caps)
        self.caps: dict[str, int] = {}
        self.spent: dict[str, int] = {}
        self.rules: dict[str, str] = {}
        self.reasons = map(str, count())
        self.used: set[tuple[str | None, str | None]] = set()

    @initialize(rules=st.tuples(*[st.sampled_from(["basic", "zcdp"])] * 3))
    def open(self, rules: tuple[str, str, str]) -> None:
        for account, chosen in zip((PEOPLE, *ACCOUNTS.values()), rules, strict=True):
            self.rules[account], self.spent[account] = chosen, 0
            self._set(account, 10, chosen)

    def _set(self, account: str, cap: int, chosen: str | None = None) -> None:
        given = {"epsilon": cap / 10, "delta": 1e-6, "rule": chosen, "by": "carol"}
        if account == PEOPLE:
            self.ledger.set_population_cap("people", **given)
        else:
            self.ledger.set_analyst_budget(account.split(":")[1], "houses", "people", **given)
        self.caps[account] = cap

    @rule(account=st.sampled_from([PEOPLE, *ACCOUNTS.values()]), cap=st.integers(1, 20))
    def change_cap(self, account: str, cap: int) -> None:
        if cap < self.spent[account]:
            self._refused(lambda: self._set(account, cap), Conflict)
        else:
            self._set(account, cap)

    @rule(
        target=releases,
        who=st.sampled_from(["alice", "bob", None]),
        cost=tenths,
        key=st.sampled_from([None, "k1", "k2"]),
    )
    def reserve(self, who: str | None, cost: int, key: str | None) -> object:
        accounts = [PEOPLE] + ([ACCOUNTS[who]] if who else [])
        amount = PrivacyCost(cost * 10**8, 0, cost * 10**11)
        name = None if key is None else f"{key}-{cost}"

        def call() -> object:
            return ask(self.ledger, analyst_id=who, cost=amount, idempotency_key=name)

        used = name is not None and (who, name) in self.used
        if not used and any(self.spent[a] + cost > self.caps[a] for a in accounts):
            self._refused(call, BudgetExhausted)
            return multiple()
        outcome = call()
        if used:
            assert isinstance(outcome, Replay | InFlight | Stale)
            return multiple()
        assert isinstance(outcome, Fresh)
        self.used.add((who, name))
        for account in accounts:
            self.spent[account] += cost
        return outcome.reservation

    @rule(reservation=releases, body=st.binary(max_size=3))
    def settle(self, reservation: object, body: bytes) -> None:
        stored = self.ledger.settle(reservation, "reply", body)  # type: ignore[arg-type]
        assert self.ledger.settle(reservation, "failed", b"later") == stored  # type: ignore[arg-type]

    @rule()
    def wait(self) -> None:
        self.clock.sleep(LEASE_SECONDS)

    @rule(account=st.sampled_from([PEOPLE, *ACCOUNTS.values()]), amount=tenths)
    def credit(self, account: str, amount: int) -> None:
        given = Amounts(amount * UNIT[self.rules[account]] // 10, 0)

        def call() -> object:
            return self.ledger.credit(account, given, reason=next(self.reasons), by="carol")

        if amount > self.spent[account]:
            self._refused(call, Conflict)
        else:
            call()
            self.spent[account] -= amount

    def _refused(self, call: Callable[[], object], error: type[Exception]) -> None:
        before = self.ledger.head()
        try:
            call()
        except error:
            assert self.ledger.head() == before
        else:
            raise AssertionError("was not refused")

    @invariant()
    def balances_are_the_models_and_the_sums_of_entries(self) -> None:
        sums = dict.fromkeys(self.spent, ZERO)
        for entry in self.ledger.entries(limit=10_000):
            sums[entry.draft.account] += entry.draft.change
        for balance in self.ledger.all_balances():
            unit = UNIT[balance.rule] // 10
            assert balance.spent == sums[balance.account]
            assert balance.spent.primary == self.spent[balance.account] * unit
            assert balance.cap.primary == self.caps[balance.account] * unit
            assert balance.spent.within(balance.cap)

    def teardown(self) -> None:
        assert self.ledger.verify() == []
        self.stack.close()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=20,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
