"""Releases that are answered later: accepted and charged now, computed at their turn, cancelled before.

answer_later   authorise → plan → find a turn → reserve (queued) → 202
at the turn    begin (or drop, where it was cancelled) → execute → settle
cancel         give back what a queued release has cost
"""

from functools import partial

from reticent_server.domain.plan import Plan, Reservation
from reticent_server.domain.principal import Principal
from reticent_server.errors import QueueFull, ReticentError
from reticent_server.ledger.service import Fresh, InFlight, Outcome, Pending, Replay, Stale
from reticent_server.pipeline import browse, planning
from reticent_server.pipeline.answer import execute, plan_or_stored, reserve, resume
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.documents import cancelled_body
from reticent_server.pipeline.schedule import Turn, turn_of, visible_after_ms
from reticent_server.pipeline.services import Services


def answer_later(services: Services, principal: Principal, ask: Ask) -> bytes:
    """Accepts and charges a release; the pending one, or the stored one of an idempotency key.

    Raises QueueFull, and then charges nothing, and what `answer` raises before it computes.
    """
    ready = plan_or_stored(services, principal, ask)
    if isinstance(ready, bytes):
        return ready
    with services.queue.admission:
        start_ms = _start(services, principal, ask, ready)
        outcome = reserve(services, ready, ask, principal.id, start_ms)
    _put(services, ready, outcome, start_ms)
    match outcome:
        case Replay(body=body):
            return body
        case InFlight(release_id=release_id):
            return browse.release(services, principal, release_id)
        case Fresh(reservation=reservation) | Stale(reservation=reservation):
            return browse.release(services, principal, reservation.id)


def cancel(services: Services, principal: Principal, release_id: str) -> bytes:
    """Cancels a release that has not begun, and gives back its cost; the cancelled release.

    Raises NotFound, and Conflict where it has begun: after that there is no refund.
    """

    def body(pending: Pending) -> bytes:
        return cancelled_body(services.catalog.facts_of(pending.version_id), pending)

    return services.ledger.cancel(principal.id, release_id, body)


def _start(services: Services, principal: Principal, ask: Ask, ready: Plan) -> int:
    """The planned start. Where the queue is full, a key that was used before is no new release."""
    duration = visible_after_ms(services.settings.reply_grid_ms, ready.deadline_ms)
    waiting = [_turn(services, p) for p in services.ledger.pending(principal.id)]
    try:
        return services.queue.turn(waiting, duration).start_ms
    except QueueFull:
        if not services.ledger.has_key(principal.id, ask.idempotency_key):
            raise
        return services.queue.now_ms()


def _turn(services: Services, pending: Pending) -> Turn:
    facts = services.catalog.facts_of(pending.version_id)
    ask = Ask.from_canonical(pending.request)
    try:
        deadline = planning.plan(facts, ask.query, ask.privacy).deadline_ms
    except ReticentError:  # the policy was changed since: nothing will be computed
        deadline = 0
    return turn_of(services.settings, pending, deadline)


def _put(services: Services, ready: Plan, outcome: Outcome, start_ms: int) -> None:
    match outcome:
        case Fresh(reservation=reservation):
            services.queue.put(start_ms, partial(_answer, services, ready, reservation, start_ms))
        case Stale():
            services.queue.put(start_ms, partial(resume, services, outcome))
        case _:
            return


def _answer(services: Services, ready: Plan, queued: Reservation, start_ms: int) -> None:
    """At its turn: the release is shown where the plan says, counted from the planned start."""
    begun = services.ledger.begin(queued)
    if begun is not None:
        late = max(0, services.queue.now_ms() - start_ms) / 1000
        execute(services, ready, begun, services.clock.monotonic() - late)
