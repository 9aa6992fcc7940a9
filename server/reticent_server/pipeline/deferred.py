# SPDX-License-Identifier: Apache-2.0
"""Releases that are answered later: accepted and charged now, computed at their turn, cancelled
before.

answer_later   authorise → plan → is there room? → reserve (queued) → 202
at the turn    begin (or skip, where it was cancelled) → execute → settle
cancel         give back what a queued release has cost, and its turn
"""

from dataclasses import replace
from functools import partial
from math import ceil

from reticent_server.domain.plan import Plan
from reticent_server.domain.principal import Principal
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import QueueFull, RateLimited, Unavailable
from reticent_server.ledger.service import Fresh, InFlight, Outcome, Pending, Replay, Stale
from reticent_server.pipeline import browse
from reticent_server.pipeline.answer import (
    covered,
    execute,
    planned_ms,
    prepared,
    promised,
    reserve,
    resume,
)
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.documents import cancelled_body
from reticent_server.pipeline.request import Prepared
from reticent_server.pipeline.schedule import Computation, Job, PlannedStart
from reticent_server.pipeline.services import Services

CURATORS = ""
"""Whose queue the curator's own releases are in."""


def answer_later(services: Services, principal: Principal, ask: Ask) -> bytes:
    """Accepts and charges a release; the pending one, or the stored one of an idempotency key.

    Raises QueueFull, and then charges nothing, and what `answer` raises before it computes.
    """
    request = covered(services, principal, ask)
    return accept(services, principal, prepared(services, request))


def accept(services: Services, principal: Principal, planned: Prepared | bytes) -> bytes:
    """The same of what was prepared; or what was stored."""
    if isinstance(planned, bytes):
        return planned
    ready = promised(services, planned.plan, beside=services.settings.release_slots)
    with services.queue.admission:
        key = planned.request.ask.idempotency_key
        start_ms = _expected_start(services, principal, key, planned_ms(services, ready))
        outcome = reserve(services, replace(planned, plan=ready), start_ms)
    _put(services, ready, outcome, principal.id)
    match outcome:
        case Replay(body=body):
            return body
        case InFlight(release_id=release_id):
            return browse.release(services, principal, release_id)
        case Fresh(reservation=reservation) | Stale(reservation=reservation):
            return browse.release(services, principal, reservation.id)


def cancel(services: Services, principal: Principal, release_id: str) -> bytes:
    """Cancels a release that has not begun, and gives back its cost and its turn; the cancelled
    release.

    Raises NotFound, Conflict where it has begun (after that there is no refund), and RateLimited: a
    cancelled release costs no budget, and leaves entries in the ledger for ever.
    """
    wait = services.cancellations.wait(principal.id)
    if wait > 0:
        raise RateLimited("You have cancelled too often; wait, then cancel again.", ceil(wait))

    def body(pending: Pending) -> bytes:
        return cancelled_body(services.catalog.facts_of(pending.version_id), pending)

    cancelled = services.ledger.cancel(principal.id, release_id, body)
    services.queue.drop(release_id)
    return cancelled


def queue_again(services: Services, stale: Stale) -> None:
    """Puts a release that another process has left in its queue into this one's."""
    begin = partial(_resumed, services, stale)
    services.queue.put(
        stale.analyst_id or CURATORS, stale.duration_ms, Job(stale.reservation, begin)
    )


def close(services: Services) -> None:
    """Ends the queue: what has begun is finished, and of what has not the leases are given up, so
    that the next server, or a retry with its idempotency key, computes it at once."""
    left = [reservation.lease for reservation in services.queue.close()]
    if left:
        services.settler.give_up(*left)


def _expected_start(
    services: Services, principal: Principal, key: str | None, duration_ms: int
) -> int:
    """When the release is expected to begin, after all of the analyst's that are not settled, in
    every process. Raises QueueFull; but a key that was used before is no new release."""
    own_ms = services.ledger.planned_ms(principal.id)
    limit = services.settings.queue_seconds
    excess_ms = own_ms + duration_ms - 1000 * limit
    if excess_ms > 0 and not services.ledger.has_key(principal.id, key):
        raise QueueFull(limit, ceil(excess_ms / 1000))
    return services.queue.expected_start_ms(principal.id, own_ms)


def _put(services: Services, ready: Plan, outcome: Outcome, owner: str) -> None:
    duration = planned_ms(services, ready)
    match outcome:
        case Fresh(reservation=reservation):
            begin = partial(_begun, services, ready, reservation)
            services.queue.put(owner, duration, Job(reservation, begin))
        case Stale(reservation=reservation):
            computation = partial(resume, services, outcome)
            services.queue.put(owner, duration, Job(reservation, lambda _start: computation))
        case _:
            return


def _begun(
    services: Services, ready: Plan, queued: Reservation, start: PlannedStart
) -> Computation | None:
    """At its turn: the release is shown where the plan says, counted from the planned start."""
    begun = _under_lease(services, queued, start.ms)
    if begun is None:
        return None
    return partial(_execute, services, ready, begun, start.seconds)


def _execute(services: Services, ready: Plan, begun: Reservation, started: float) -> bytes:
    with services.pace.computing(ready):
        return execute(services, ready, begun, started)


def _resumed(services: Services, stale: Stale, start: PlannedStart) -> Computation | None:
    begun = _under_lease(services, stale.reservation, start.ms)
    if begun is None:
        return None
    taken = replace(stale, reservation=begun)
    return partial(resume, services, taken, start.seconds)


def _under_lease(services: Services, queued: Reservation, start_ms: int) -> Reservation | None:
    """The reservation under a computing lease. Where the database is away, the release is found
    again by recovery as soon as it is back."""
    try:
        with services.settler.giving_up_undecided():
            return services.ledger.begin(queued, start_ms)
    except Unavailable:
        services.settler.give_up(queued.lease)
        raise
