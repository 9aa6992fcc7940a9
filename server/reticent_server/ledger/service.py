# SPDX-License-Identifier: Apache-2.0
"""The ledger: every budget, every charge and every stored answer, one transaction a call."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from reticent_server.accounting.conversions import zcdp_caps
from reticent_server.catalog.tables import catalog_identity
from reticent_server.chain import guards
from reticent_server.chain import repository as chain
from reticent_server.chain.acts import Change, record, require_recorded
from reticent_server.chain.anchors import Anchor
from reticent_server.chain.entries import Entry, canonical_json, entry_row
from reticent_server.chain.repository import TrailPart
from reticent_server.chain.rows import stored_rows
from reticent_server.database import reading, writing
from reticent_server.domain.amounts import Amounts, Rule
from reticent_server.domain.clock import Clock
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import Unavailable
from reticent_server.ledger import audit, budgets, queueing, repository, reservations
from reticent_server.ledger.model import (
    Balance,
    Charge,
    Fresh,
    InFlight,
    Outcome,
    Pending,
    Replay,
    Stale,
    Standing,
    analyst_account,
    population_account,
)
from reticent_server.ledger.reservations import Moment
from reticent_server.ledger.rules import ZcdpCaps
from reticent_server.living import gone

__all__ = [
    "Balance",
    "Entry",
    "Fresh",
    "InFlight",
    "Ledger",
    "Outcome",
    "Pending",
    "Replay",
    "Stale",
    "Standing",
    "Undecided",
]

T = TypeVar("T")


class Undecided(Unavailable):
    """The database was lost while committing: nobody knows yet whether one of `leases` was given.

    Whoever gets this gives them up when the database is back, as nobody else could.
    """

    def __init__(self, detail: str, leases: Sequence[str]) -> None:
        super().__init__(detail)
        self.leases = leases


# each fails only where another request inserted the same key in between; the second finds it stored
_ATTEMPTS = 5


class Ledger:
    """Accounts, reservations, entries. Amounts given as floats mean the decimal that prints.

    lease_seconds: how long a reservation's holder may compute before another may take it over.
    zcdp_caps: (ε, δ) in units → (ρ*, δ″) in units, for accounts under the rule zcdp.
    """

    def __init__(
        self, engine: Engine, clock: Clock, lease_seconds: int, zcdp_caps: ZcdpCaps = zcdp_caps
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._lease = timedelta(seconds=lease_seconds)
        self._zcdp_caps = zcdp_caps

    def close(self) -> None:
        """Closes the connections to the database, also those of others who share them."""
        self._engine.dispose()

    def set_population_cap(
        self,
        population: str,
        *,
        epsilon: float,
        delta: float,
        rule: Rule | None = None,
        query_delta: float | None = None,
        by: str,
    ) -> Balance:
        """Opens the population's account, or changes its cap (over all analysts and the profile).

        query_delta: as in budgets.Offer. Raises Conflict (a cap below what is spent; another rule),
        InvalidPrivacy.
        """
        holder = budgets.Holder(population_account(population), population)
        return self._set(holder, budgets.BudgetTerms(epsilon, delta, rule, query_delta), by)

    def set_analyst_budget(
        self,
        analyst_id: str,
        dataset: str,
        population: str,
        *,
        epsilon: float,
        delta: float,
        rule: Rule | None = None,
        query_delta: float | None = None,
        by: str,
    ) -> Balance:
        """Opens the analyst's account for a data set, or changes its cap; raises as the above."""
        account = analyst_account(analyst_id, dataset)
        holder = budgets.Holder(account, population, analyst_id, dataset)
        return self._set(holder, budgets.BudgetTerms(epsilon, delta, rule, query_delta), by)

    def open_accounts(
        self,
        connection: Connection,
        project_id: str,
        offers: Sequence[tuple[str, str, budgets.BudgetTerms]],
        by: str,
    ) -> None:
        """Opens a new project's accounts in the caller's transaction. offers: (data set,
        population, budget). Raises InvalidPrivacy."""
        at = self._moment().at
        for dataset, population, offer in offers:
            account = analyst_account(project_id, dataset)
            holder = budgets.Holder(account, population, project_id, dataset)
            budgets.set_budget(connection, holder, offer, self._zcdp_caps, by, at)

    def credit(self, account: str, amount: Amounts, *, reason: str, by: str) -> Balance:
        """Subtracts `amount` (by the account's rule, in units) from what is spent, as an entry.

        For debits whose answer nobody can have seen: that is for the curator to know.
        Raises NotFound, InvalidRequest, Conflict (less is spent).
        """
        with writing(self._engine) as connection:
            return budgets.credit(connection, account, amount, reason, by, self._moment().at)

    def freeze(self, accounts: Sequence[str], *, reason: str, by: str) -> Sequence[Balance]:
        """Counts all that is left of accounts as spent. Raises NotFound, InvalidRequest."""
        with writing(self._engine) as connection:
            return budgets.freeze(connection, accounts, reason, by, self._moment().at)

    def lost(self, anchored: Sequence[Anchor]) -> Sequence[Anchor]:
        """The anchors that are not in the chain, and whose loss nobody has accepted."""
        with reading(self._engine) as connection:
            return [anchor for anchor in anchored if not chain.is_in(connection, anchor)]

    def accept_rollback(self, lost: Sequence[Anchor], *, reason: str, by: str) -> Sequence[Balance]:
        """Makes an older copy one that may be served: all that any account has left counts as
        spent, since it may have been after the copy was made, and an entry names the heads that
        were lost. Raises InvalidRequest (no reason)."""
        at = self._moment().at
        with writing(self._engine) as connection:
            require_recorded(connection, catalog_identity, (1,))
            last = chain.chain_head(connection)[0]
            frozen = budgets.freeze(connection, None, reason, by, at)
            detail = {
                chain.LOST: [anchor.hash for anchor in lost],
                "entries_missing_at_least": max(anchor.seq for anchor in lost) - last,
                "reason": reason.strip(),
            }
            record(
                connection, [Change(chain.ROLLBACK, catalog_identity, (1,), detail)], by=by, at=at
            )
            return frozen

    def reserve(self, asked: Charge) -> Outcome:
        """Charges the population's and the analyst's account, or neither, and commits.

        The curator's own is charged to the population only. With an idempotency key that was used
        before for the same request, nothing is charged: Replay, InFlight or Stale. With a start the
        computation waits, until about then, for `begin`, and can be cancelled. Raises
        BudgetExhausted (nothing is stored), IdempotencyConflict, InvalidRequest, Undecided.
        """
        lease = reservations.new_lease()
        with _undecided(lease):
            return self._retried(lambda c: reservations.reserve(c, asked, lease, self._moment()))

    def begin(self, reservation: Reservation, start_ms: int) -> Reservation | None:
        """Takes a queued release for computing; None where it was cancelled or taken. After this
        there is no refund. start_ms: the planned beginning of its turn, since the epoch. Raises
        Undecided."""
        lease = reservations.new_lease()
        with _undecided(lease), writing(self._engine) as connection:
            return queueing.begin(connection, reservation, lease, start_ms, self._moment())

    def keep_queued(self, reservations: Sequence[Reservation]) -> None:
        """Prolongs the leases of queued releases that wait in a process that is alive."""
        held = [(reservation.id, reservation.lease) for reservation in reservations]
        if held:
            with writing(self._engine) as connection:
                repository.keep_leases(connection, held, self._moment().until_ms)

    def queue_again(self, release_id: str) -> Stale | None:
        """An abandoned release whose computation had not begun, queued anew; else None. Raises
        Undecided."""
        lease = reservations.new_lease()
        with _undecided(lease), writing(self._engine) as connection:
            record = repository.release(connection, release_id)
            if record is None or record.body is not None:
                return None
            return reservations.queue_again(connection, record, lease, self._moment())

    def cancel(
        self, analyst_id: str | None, release_id: str, body_of: Callable[[Pending], bytes]
    ) -> bytes:
        """Gives back what a queued release has cost, and stores the body of a cancelled one.

        A cancelled release again: its stored body. Raises NotFound (also for another's), and
        Conflict where the computation has begun.
        """
        with writing(self._engine) as connection:
            moment = self._moment()
            return queueing.cancel(connection, analyst_id or "", release_id, body_of, moment)

    def has_key(self, analyst_id: str, idempotency_key: str | None) -> bool:
        """Whether the analyst has used the key."""
        if idempotency_key is None:
            return False
        with reading(self._engine) as connection:
            record = repository.release_by_key(connection, analyst_id, idempotency_key)
        return record is not None

    def standing(
        self,
        analyst_id: str | None,
        dataset: str,
        population: str,
        idempotency_key: str | None = None,
        project_id: str | None = None,
    ) -> Standing:
        """The accounts that a request would be charged to, and what its key was used for before.
        project_id: of the shared project that would pay; None: the analyst's own."""
        with reading(self._engine) as connection:
            return reservations.standing(
                connection, analyst_id, dataset, population, idempotency_key, project_id
            )

    def stored(
        self, analyst_id: str, dataset: str, request: dict[str, Any], idempotency_key: str | None
    ) -> bytes | Pending | None:
        """The release that the analyst's key has made; None where it has made none for this
        request."""
        if idempotency_key is None:
            return None
        with reading(self._engine) as connection:
            record = repository.release_by_key(connection, analyst_id, idempotency_key)
        if record is None or (record.dataset, record.request) != (dataset, canonical_json(request)):
            return None
        return reservations.shown(record)

    def planned_ms(self, analyst_id: str) -> int:
        """How long the analyst's releases that are not settled take in all, by plan."""
        with reading(self._engine) as connection:
            return repository.planned_ms(connection, analyst_id)

    def waiting(self) -> int:
        """How many releases are charged and not visible yet, of all analysts."""
        with reading(self._engine) as connection:
            return repository.waiting(connection)

    def confirm(self, reservation: Reservation) -> bool:
        """Whether it is committed, pending, as made by reserve, and its lease still held."""
        with reading(self._engine) as connection:
            return reservations.confirm(connection, reservation, self._moment())

    def settle(self, reservation: Reservation, status: str, body: bytes) -> bytes:
        """Stores the answer for ever, or returns the one that was stored first.

        status: reply, no_reply or failed. No time is stored; but the order of the chain tells
        between which charges the answer was stored, so settle when the answer becomes visible.
        """
        with writing(self._engine) as connection:
            return reservations.settle(connection, reservation.id, status, body)

    def take_over(self, release_id: str) -> Stale | None:
        """An abandoned release; None if it is settled, leased or absent. Raises Undecided."""
        lease = reservations.new_lease()
        with _undecided(lease), writing(self._engine) as connection:
            record = repository.release(connection, release_id)
            if record is None or record.body is not None:
                return None
            return reservations.take_over(connection, record, lease, self._moment())

    def give_up(self, *leases: str) -> None:
        """Ends leases, where they are held, so that others may take the releases over at once."""
        with writing(self._engine) as connection:
            repository.end_leases(connection, leases)

    def give_up_of_the_dead(self) -> int:
        """Ends the leases of processes of this machine that are gone, which nobody would wait for;
        how many.

        (A process that has a lease began before it was read here, so that it is seen if it is
        alive.)
        """
        with reading(self._engine) as connection:
            leases = repository.held_leases(connection, self._moment().now_ms)
        dead = gone({reservations.holder_of(lease) for lease in leases})
        lost = [lease for lease in leases if reservations.holder_of(lease) in dead]
        if lost:
            self.give_up(*lost)
        return len(lost)

    def stale(self, limit: int = 100) -> tuple[str, ...]:
        """Ids of pending releases whose lease has expired, oldest first; for take_over at start."""
        with reading(self._engine) as connection:
            records = repository.abandoned(connection, self._moment().now_ms, limit)
        return tuple(record.id for record in records)

    def release(self, analyst_id: str | None, release_id: str) -> bytes | Pending | None:
        """The caller's own release (None: the curator's own); None where there is none."""
        if not release_id.isprintable():
            return None
        with reading(self._engine) as connection:
            record = repository.release(connection, release_id)
        if record is None or record.owner != (analyst_id or ""):
            return None
        return reservations.shown(record)

    def releases(
        self, analyst_id: str | None, limit: int = 100, offset: int = 0
    ) -> tuple[bytes | Pending, ...]:
        """The caller's own releases (None: the curator's own), newest first."""
        with reading(self._engine) as connection:
            records = repository.releases_of(connection, analyst_id or "", limit, offset)
        return tuple(reservations.shown(record) for record in records)

    def balances(self, analyst_id: str) -> tuple[Balance, ...]:
        """An analyst's accounts, by data set."""
        with reading(self._engine) as connection:
            return tuple(repository.accounts_of(connection, analyst_id))

    def population_balance(self, population: str) -> Balance | None:
        """The account of the cap over all analysts of a population; None where none is set."""
        with reading(self._engine) as connection:
            return repository.account(connection, population_account(population))

    def all_balances(self) -> tuple[Balance, ...]:
        """Every account, for the curator."""
        with reading(self._engine) as connection:
            return tuple(repository.all_accounts(connection))

    def entries(
        self, account: str | None = None, limit: int = 50, actions: Sequence[str] = ()
    ) -> tuple[Entry, ...]:
        """The last entries, newest first, of one account or of all. actions: of these alone; none:
        of any."""
        with reading(self._engine) as connection:
            return tuple(chain.last_entries(connection, account, limit, actions))

    def search(
        self,
        words: Sequence[str] = (),
        *,
        before: int | None = None,
        limit: int = 50,
        part: TrailPart = TrailPart.ALL,
    ) -> tuple[Entry, ...]:
        """The last entries of a part before number `before` that name one of `words`, newest
        first."""
        with reading(self._engine) as connection:
            entries = chain.entries_about(connection, words, before=before, limit=limit, part=part)
        return tuple(entries)

    def any_release(self, release_id: str) -> tuple[str | None, bytes | Pending] | None:
        """(owner's id, release) of anybody's release, for the curator; owner None: the curator's
        own."""
        if not release_id.isprintable():
            return None
        with reading(self._engine) as connection:
            record = repository.release(connection, release_id)
        return None if record is None else (record.owner or None, reservations.shown(record))

    def head(self) -> str:
        """The hash of the last entry: kept elsewhere, it anchors the whole chain."""
        with reading(self._engine) as connection:
            return chain.chain_head(connection)[1]

    def has(self, anchor: Anchor) -> bool:
        """Whether the entry that was anchored is in the chain."""
        with reading(self._engine) as connection:
            return chain.is_in(connection, anchor)

    def anchor(self) -> Anchor:
        """The last entry, to be written down elsewhere."""
        at = self._moment().at
        with reading(self._engine) as connection:
            return Anchor(*chain.chain_head(connection), at)

    def verify(self, *heads: str) -> list[str]:
        """What is wrong, in sentences; empty if all is well.

        Looks for the triggers, keys and checks that keep entries as they are. Recomputes every
        hash, and from the entries every account, every release and every row of access and
        catalogue. heads: anchored ones, which must be in the chain (else an old copy was restored).
        """
        with reading(self._engine) as connection:
            lacking = guards.schema_problems(connection)
            found = guards.problems(connection) + lacking
            if not guards.is_readable(connection):
                return [*found, "Entries and rows were not checked: tables are not all there."]
            return found + problems_in(connection, heads)

    def export(self) -> Iterator[str]:
        """The chain as JSON lines: what is hashed of each entry, and the hash. No results."""
        with reading(self._engine) as connection:
            for entry in chain.all_entries(connection):
                row = entry_row(entry.seq, entry.draft) | {"hash": entry.hash}
                yield json.dumps(row, sort_keys=True)

    def _set(self, holder: budgets.Holder, offer: budgets.BudgetTerms, by: str) -> Balance:
        at, caps = self._moment().at, self._zcdp_caps
        return self._retried(lambda c: budgets.set_budget(c, holder, offer, caps, by, at))

    def _retried(self, change: Callable[[Connection], T]) -> T:
        """Runs a change in a transaction of its own, again if another inserted the same key."""
        for _ in range(_ATTEMPTS):
            try:
                with writing(self._engine) as connection:
                    return change(connection)
            except IntegrityError as error:
                last = error
        raise Unavailable("The ledger is busy; try again.") from last

    def _moment(self) -> Moment:
        now = self._clock.now()
        return Moment(
            at=now.isoformat(timespec="microseconds"),
            now_ms=int(now.timestamp() * 1000),
            until_ms=int((now + self._lease).timestamp() * 1000),
        )


@contextmanager
def _undecided(lease: str) -> Iterator[None]:
    """Raises Undecided for Unavailable, where the block may have committed all the same."""
    try:
        yield
    except Unavailable as error:
        raise Undecided(error.detail, (lease, reservations.QUEUED + lease)) from error


def problems_in(connection: Connection, heads: Collection[str] = ()) -> list[str]:
    """What `verify` finds in the caller's transaction."""
    return audit.verify(
        entries=chain.all_entries(connection),
        chain_head=chain.chain_head(connection),
        accounts=repository.all_accounts(connection),
        releases=repository.all_releases(connection),
        rows=stored_rows(connection),
        anchored=heads,
    )
