# SPDX-License-Identifier: Apache-2.0
"""Reserving and settling, inside the caller's transaction."""

import json
from dataclasses import dataclass, replace
from secrets import token_urlsafe

from sqlalchemy import Connection

from reticent_server.chain import repository as chain
from reticent_server.chain.entries import Draft, canonical_json, digest
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import BudgetExhausted, IdempotencyConflict, NotFound
from reticent_server.ledger import repository
from reticent_server.ledger.model import (
    CURATOR,
    Charge,
    Fresh,
    InFlight,
    Outcome,
    Pending,
    ReleaseRecord,
    Replay,
    Stale,
    Standing,
    analyst_account,
    population_account,
)
from reticent_server.ledger.refusals import exhausted, no_account
from reticent_server.ledger.rules import MAX_AMOUNT, charge
from reticent_server.living import own_mark

SETTLED = ("reply", "no_reply", "failed")
QUEUED = "queued-"
TURN = "turn"
"""In the detail of a debit and of a settlement: when the release is computed and shown, by plan."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a call: `at` as text, `now_ms` and `until_ms` (the lease's end) since the
    epoch.
    """

    at: str
    now_ms: int
    until_ms: int


def reserve(connection: Connection, asked: Charge, lease: str, moment: Moment) -> Outcome:
    """Charges what is asked, under a lease for whoever computes it, or resumes the release that its
    idempotency key names.

    Raises BudgetExhausted, IdempotencyConflict; IntegrityError where another has just now committed
    a release under the same key (the caller asks again, and then finds it).
    """
    record = _record(asked, lease, moment)
    if asked.idempotency_key is not None:
        present = repository.release_by_key(connection, record.owner, asked.idempotency_key)
        if present is not None:
            return _resume(connection, present, record, lease, moment)
    repository.insert_release(connection, record)  # first: a second one with this key waits here
    chain.append(connection, [_debit(connection, record, a) for a in record.accounts])
    return Fresh(record.reservation)


def _record(asked: Charge, lease: str, moment: Moment) -> ReleaseRecord:
    request = canonical_json(asked.request)
    return ReleaseRecord(
        id="rel_" + token_urlsafe(20)[:26],
        owner=asked.analyst_id or "",
        dataset=asked.dataset,
        version_id=asked.version_id,
        population=asked.population,
        request=request,
        request_sha256=digest(request),
        idempotency_key=asked.idempotency_key,
        epsilon=_storable(asked.cost.epsilon),
        delta=_storable(asked.cost.delta),
        rho=_storable(asked.cost.rho),
        rho_delta=_storable(asked.cost.rho_delta),
        created_at=moment.at,
        status="pending",
        body=None,
        lease=lease if asked.start_ms is None else QUEUED + lease,
        lease_until_ms=moment.until_ms,
        start_ms=moment.now_ms if asked.start_ms is None else asked.start_ms,
        duration_ms=asked.duration_ms,
        project_id=asked.project_id,
        promise=None if asked.promise is None else canonical_json(asked.promise),
        gaussian=_storable(asked.cost.gaussian) or None,
    )


def _storable(amount: int) -> int:
    if amount > MAX_AMOUNT:
        raise BudgetExhausted("That costs more than any account can hold.")
    return amount


def _debit(connection: Connection, record: ReleaseRecord, account_id: str) -> Draft:
    """Debits one account, and gives the entry that says so. Raises BudgetExhausted."""
    account = repository.account(connection, account_id)
    if account is None:
        raise no_account(is_analysts=account_id.startswith("analyst:"))
    amount = charge(record.cost, account.rule)
    if not repository.spend(connection, account_id, amount):
        raise exhausted(repository.account(connection, account_id) or account, amount)
    detail = {"release_sha256": release_digest(record), TURN: turn_of(record)}
    actor = record.owner or CURATOR
    return Draft("debit", account_id, actor, record.created_at, record.id, amount, detail)


def release_digest(record: ReleaseRecord) -> str:
    """SHA-256 of what never changes in a release, for its debits."""
    fixed = [
        record.id,
        record.owner,
        record.dataset,
        record.version_id,
        record.population,
        record.request_sha256,
        record.idempotency_key,
        [record.epsilon, record.delta, record.rho, record.rho_delta],
        record.created_at,
    ]
    if record.project_id is not None:  # an analyst's own project leaves the digest as it was
        fixed.append(record.project_id)
    if record.promise is not None:  # of an earlier version of this software
        fixed.append(digest(record.promise))
    if record.gaussian is not None:
        fixed.append([record.gaussian])
    return digest(canonical_json(fixed))


def turn_of(record: ReleaseRecord) -> list[int | bool | None]:
    """(beginning since the epoch, from there to when it is shown, whether it can be cancelled), in
    ms: as stored now.
    """
    return [record.start_ms, record.duration_ms, record.lease.startswith(QUEUED)]


def standing(
    connection: Connection,
    analyst_id: str | None,
    dataset: str,
    population: str,
    idempotency_key: str | None,
    project_id: str | None = None,
) -> Standing:
    """The accounts that a request would be charged to, and what its key was used for before."""
    account, owner, key = repository.account, analyst_id or "", idempotency_key
    payer = project_id or owner
    own = account(connection, analyst_account(payer, dataset)) if payer else None
    record = repository.release_by_key(connection, owner, key) if key is not None else None
    return Standing(
        analyst=own,
        population=account(connection, population_account(population)),
        request=None if record is None else json.loads(record.request),
    )


def _resume(
    connection: Connection, stored: ReleaseRecord, asked: ReleaseRecord, lease: str, moment: Moment
) -> Outcome:
    if (stored.dataset, stored.request_sha256) != (asked.dataset, asked.request_sha256):
        raise IdempotencyConflict("Use a new idempotency key for a new request.")
    if stored.body is not None:
        return Replay(stored.body)
    return take_over(connection, stored, lease, moment) or InFlight(stored.id)


def take_over(
    connection: Connection, stored: ReleaseRecord, lease: str, moment: Moment
) -> Stale | None:
    """A pending release whose lease has expired, under a new one, else None; one of many gets
    it.
    """
    if stored.lease_until_ms > moment.now_ms or not repository.take_lease(
        connection, stored, lease=lease, until_ms=moment.until_ms
    ):
        return None
    return _stale(stored, lease)


def _stale(stored: ReleaseRecord, lease: str) -> Stale:
    return Stale(
        reservation=replace(stored, lease=lease).reservation,
        request=json.loads(stored.request),
        analyst_id=stored.owner or None,
        dataset=stored.dataset,
        population=stored.population,
        duration_ms=stored.duration_ms or 0,
        promise=stored.promised,
    )


def queue_again(
    connection: Connection, stored: ReleaseRecord, lease: str, moment: Moment
) -> Stale | None:
    """A queued release whose lease has expired, under a new queued lease; else None."""
    lease = QUEUED + lease
    if not stored.lease.startswith(QUEUED) or stored.lease_until_ms > moment.now_ms:
        return None
    if not repository.take_lease(connection, stored, lease=lease, until_ms=moment.until_ms):
        return None
    return _stale(stored, lease)


LEASE_BYTES = 12
"""Of chance in a lease: 96 bits, so that nobody guesses one; with the mark of its holder and QUEUED
it has 36 of the 40 characters of its column.
"""


def new_lease() -> str:
    """A lease that nobody else can have, with the mark of this process. (Of a queued release,
    QUEUED stands before it.)
    """
    return f"{own_mark()}.{token_urlsafe(LEASE_BYTES)}"


def holder_of(lease: str) -> str:
    """The mark of the process that has made a lease; empty where it says none."""
    return lease.removeprefix(QUEUED).partition(".")[0] if "." in lease else ""


def confirm(connection: Connection, reservation: Reservation, moment: Moment) -> bool:
    """Whether this is a committed, pending reservation, as made here, whose lease is still held."""
    record = repository.release(connection, reservation.id)
    if record is None or record.status != "pending" or record.lease_until_ms <= moment.now_ms:
        return False
    if record.lease.startswith(QUEUED):  # it could still be cancelled
        return False
    return record.reservation == reservation


def settle(connection: Connection, release_id: str, status: str, body: bytes) -> bytes:
    """Stores the body unless one is stored, and returns the one that is. Raises NotFound."""
    if status not in SETTLED:
        raise ValueError("not a status in which a release is settled")
    won = repository.settle(connection, release_id, status, body)
    if won is None:
        first = repository.release(connection, release_id)
        if first is None or first.body is None:
            raise NotFound("There is no such release.")
        return first.body
    detail = {"status": status, "body_sha256": digest(body), TURN: turn_of(won)}
    actor = won.owner or CURATOR
    draft = Draft("settle", won.accounts[-1], actor, None, release_id, detail=detail)
    chain.append(connection, [draft])
    return body


def shown(record: ReleaseRecord) -> bytes | Pending:
    """A release as its owner sees it: the stored bytes, or what is public of a pending one."""
    if record.body is not None:
        return record.body
    return Pending(
        id=record.id,
        dataset=record.dataset,
        version_id=record.version_id,
        created_at=record.created_at,
        cost=record.cost,
        request=json.loads(record.request),
        queued=record.lease.startswith(QUEUED),
        start_ms=record.start_ms or 0,
        duration_ms=record.duration_ms or 0,
        promise=record.promised,
    )
