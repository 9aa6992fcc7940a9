# SPDX-License-Identifier: Apache-2.0
"""Releases that wait for their turn: begun or cancelled, whichever is committed first.

A queued release has a lease of its own kind. Beginning replaces it and cancelling settles the
release, each by one update that is conditional on that lease: so one of them wins, and a
computation that has begun is never refunded.
"""

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Connection

from reticent_server.chain import repository as chain
from reticent_server.chain.entries import Draft, digest
from reticent_server.domain.amounts import ZERO
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import Conflict, NotFound
from reticent_server.ledger import repository
from reticent_server.ledger.model import CURATOR, Pending, ReleaseRecord
from reticent_server.ledger.reservations import TURN, Moment, shown
from reticent_server.ledger.rules import charge

CANCELLED = "cancelled"
NO_RELEASE = "You have no such release."
BEGUN = "The computation has begun, so the release cannot be cancelled any more."


def begin(
    connection: Connection, reservation: Reservation, lease: str, start_ms: int, moment: Moment
) -> Reservation | None:
    """The reservation under a computing lease; None where its queued one is gone."""
    record = repository.release(connection, reservation.id)
    if record is None or record.lease != reservation.lease:
        return None
    until_ms = moment.until_ms
    if not repository.take_lease(
        connection, record, lease=lease, until_ms=until_ms, start_ms=start_ms
    ):
        return None
    return replace(reservation, lease=lease)


def cancel(
    connection: Connection,
    owner: str,
    release_id: str,
    body_of: Callable[[Pending], bytes],
    moment: Moment,
) -> bytes:
    """The body of the cancelled release, stored. Raises NotFound, Conflict."""
    record = repository.release(connection, release_id) if release_id.isprintable() else None
    if record is None or record.owner != owner:
        raise NotFound(NO_RELEASE)
    if record.status == CANCELLED and record.body is not None:
        return record.body
    pending = shown(record)
    if isinstance(pending, bytes) or not pending.queued:
        raise Conflict(BEGUN)
    body = body_of(pending)
    if not repository.cancel(connection, record, body):
        raise Conflict(BEGUN)
    drafts = [_reversal(connection, record, account, moment) for account in record.accounts]
    chain.append(connection, [*drafts, _settled(record, body, moment)])
    return body


def _reversal(
    connection: Connection, record: ReleaseRecord, account_id: str, moment: Moment
) -> Draft:
    account = repository.account(connection, account_id)
    if account is None:
        raise NotFound(NO_RELEASE)
    amount = charge(record.cost, account.rule)
    if not repository.give_back(connection, account_id, amount):
        raise Conflict("The account has been credited with this release already; ask the curator.")
    actor = record.owner or CURATOR
    return Draft("reversal", account_id, actor, moment.at, record.id, ZERO - amount)


def _settled(record: ReleaseRecord, body: bytes, moment: Moment) -> Draft:
    """A cancellation's time is the analyst's own, so it may be kept."""
    turn = [record.start_ms, record.duration_ms, False]
    detail = {"status": CANCELLED, "body_sha256": digest(body), TURN: turn}
    actor = record.owner or CURATOR
    return Draft("settle", record.accounts[-1], actor, moment.at, record.id, detail=detail)
