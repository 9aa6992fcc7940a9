# SPDX-License-Identifier: Apache-2.0
"""Answering: the only path from a request to a reply, and the order of its steps."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan, Release
from reticent_server.domain.principal import Principal
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import (
    InvalidRequest,
    PolicyRefused,
    ReticentError,
    SourceAway,
    Unavailable,
)
from reticent_server.events import EventLogger
from reticent_server.ledger.model import Charge
from reticent_server.ledger.service import (
    Fresh,
    InFlight,
    Outcome,
    Pending,
    Replay,
    Stale,
    Standing,
)
from reticent_server.pipeline import defaults, metrics, planning
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.coverage import refuse_uncovered
from reticent_server.pipeline.documents import (
    Json,
    as_promised,
    plan_json,
    promise_json,
    promised_counted,
    promised_gaussian,
    release_body,
    unplanned_body,
)
from reticent_server.pipeline.pace import shown_after_ms
from reticent_server.pipeline.plan_pieces import plan_and_document, plan_for
from reticent_server.pipeline.protocols import require_agreed
from reticent_server.pipeline.request import AdmittedRequest, Prepared, admitted
from reticent_server.pipeline.schedule import visible_after_ms
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.wanted import Wanted

__all__ = ["Ask", "answer", "charge_and_execute", "execute", "plan", "plan_json", "resume"]

STILL_COMPUTED = "The release is still being computed; send the request again."
# between looks at a release that another process computes: at most that much is added to the wait
_POLL_SECONDS = 0.05

log = EventLogger(__name__)


def plan(services: Services, principal: Principal, ask: Ask) -> Plan:
    """Authorise → plan: free, and reads no private cell."""
    return plan_with_accounts(services, principal, ask)[0]


def plan_with_accounts(
    services: Services, principal: Principal, ask: Ask, wanted: Wanted | None = None
) -> tuple[Plan, Standing]:
    """The plan, and the accounts that it would be charged to. wanted: widths for which the least ε,
    up to the ask's, is found.
    """
    request = admitted(services, principal, ask)
    require_agreed(services, ask, request.facts)
    ready = services.planner.run(plan_for, request.facts, ask, request.standing, wanted)
    return promised(services, ready), request.standing


def plan_document(
    services: Services,
    principal: Principal,
    ask: Ask,
    wanted: Wanted | None = None,
    target: float | None = None,
) -> Json:
    """The same as JSON, with its forecast, whose target is a ratio (pipeline.forecasts)."""
    request = admitted(services, principal, ask)
    facts, standing = request.facts, request.standing
    require_agreed(services, ask, facts)
    ready, document = services.planner.run(plan_and_document, facts, ask, standing, wanted, target)
    return document | {"deadline_ms": promised(services, ready).deadline_ms}


def promised(services: Services, ready: Plan, *, beside: int | None = None) -> Plan:
    """The plan with the deadline that holds here and now (pipeline.pace)."""
    return services.pace.promised(ready, warm=services.engine.holds(ready), beside=beside)


def answer(services: Services, principal: Principal, ask: Ask) -> bytes:
    """Authorise → plan → reserve → execute → settle: the stored bytes of the release."""
    request = covered(services, principal, ask)
    return finished(services, prepared(services, request))


def finished(services: Services, ready: Prepared | bytes) -> bytes:
    """Reserve → execute → settle of what was prepared; or what was stored."""
    if isinstance(ready, bytes):
        return ready
    return charge_and_execute(services, ready)


def covered(services: Services, principal: Principal, ask: Ask) -> AdmittedRequest | bytes:
    """Authorise, and ask the accounts: takes a few reads. The stored bytes where the request's key
    has made a release of it already.

    Raises BudgetExhausted, before anything is planned, for what the accounts cannot cover
    (pipeline.coverage).
    """
    request = admitted(services, principal, ask).with_stored_delta
    standing = request.standing
    if standing.request is None:
        refuse_uncovered(standing, defaults.least_cost(request.facts, request.ask, standing))
    elif isinstance(stored := _stored(services, request), bytes):
        return stored
    return request


def prepared(services: Services, request: AdmittedRequest | bytes) -> Prepared | bytes:
    """Holds it against the protocol that it names, and plans it: free. What was stored where it
    cannot be planned any more, after a change of the policy or of the schema: a refusal would say
    that nothing was charged.
    """
    if isinstance(request, bytes):
        return request
    facts, ask, standing = request.facts, request.ask, request.standing
    try:
        require_agreed(services, ask, facts)
        planned = services.planner.run(defaults.planned, facts, ask, standing)
    except (InvalidRequest, PolicyRefused):
        stored = _stored(services, request)
        if isinstance(stored, bytes):
            return stored
        if stored is not None:
            raise Unavailable(STILL_COMPUTED) from None
        raise
    return request.planned_as(planned)


def _stored(services: Services, request: AdmittedRequest) -> bytes | Pending | None:
    """What the request's key has made of it, if anything."""
    ask, asker = request.ask, str(request.analyst_id)
    return services.ledger.stored(asker, ask.dataset, ask.canonical(), ask.idempotency_key)


def charge_and_execute(services: Services, ready: Prepared) -> bytes:
    """Wait for a turn → reserve (committed) → execute → settle. Who waits is charged nothing
    yet."""
    with services.pace.turn(ready.plan, warm=services.engine.holds(ready.plan)) as turn:
        ready = replace(ready, plan=turn.plan)
        outcome = reserve(services, ready)
        match outcome:
            case Replay(body=body):
                return body
            case InFlight(release_id=release_id):
                return _wait(services, ready, release_id)
            case Stale():
                return resume(services, outcome)
            case Fresh(reservation=reservation):
                return execute(services, ready.plan, reservation, turn.started)


def reserve(services: Services, ready: Prepared, start_ms: int | None = None) -> Outcome:
    """Charges what the plan costs. start_ms: the expected start of a computation that is to
    wait. Raises SourceAway, and charges nothing, where the rows cannot be read now.
    """
    request, plan = ready.request, ready.plan
    if request.standing.request is None and not services.engine.holds(plan):
        require_source(services, plan.facts)
    with services.settler.giving_up_undecided():
        return services.ledger.reserve(
            Charge(
                analyst_id=request.analyst_id,
                dataset=plan.facts.name,
                version_id=plan.facts.version_id,
                population=plan.facts.population,
                cost=plan.cost,
                request=request.ask.canonical(),
                idempotency_key=request.ask.idempotency_key,
                duration_ms=planned_ms(services, plan),
                start_ms=start_ms,
                project_id=request.project_id,
                promise=promise_json(plan),
            )
        )


def require_source(services: Services, facts: DatasetFacts) -> None:
    """Raises SourceAway where a data set's rows cannot be read now, and names it in the log: before
    anything is charged, so that the cause is nobody's secret."""
    try:
        services.readiness.require_source(facts.version_id)
    except SourceAway as away:
        log.error("dataset_unreadable", dataset=facts.name, cause=away.cause)
        raise


def planned_ms(services: Services, ready: Plan) -> int:
    """From the beginning of a plan's computation to when its release is shown."""
    return visible_after_ms(services.settings.reply_grid_ms, ready.deadline_ms)


def resume(services: Services, taken: Stale, started: float | None = None) -> bytes:
    """Execute → settle for a reservation taken over: nothing is charged again.

    It is planned on the version that it was made for. Where it cannot be planned as it was paid for
    (the policy was changed, a profile was published since), the release is a failed one. started:
    its planned beginning; None: now.
    """
    started = services.clock.monotonic() if started is None else started
    with _given_up_if_lost(services, taken.reservation):
        ask = Ask.from_canonical(taken.request)
        facts = services.catalog.facts_of(taken.reservation.version_id)
        try:
            gaussian, counted = promised_gaussian(taken.promise), promised_counted(taken.promise)
            ready = planning.plan(facts, ask.query, ask.privacy, gaussian=gaussian, counted=counted)
        except ReticentError:
            body = unplanned_body(facts, taken.reservation, ask)
            return _settled(services, taken.reservation, "failed", body)
        ready = as_promised(ready, taken.promise)
    return execute(services, ready, taken.reservation, started)


def execute(services: Services, ready: Plan, reservation: Reservation, started: float) -> bytes:
    """Execute → wait for the deadline → settle.

    The release is stored only when it becomes visible: before, a second request, a look at the
    caller's releases, or the order of the ledger's entries could tell when it was computed. Where
    it cannot be computed (the vault does not answer), the next request with its key starts at once;
    where it cannot be stored now, it is stored when the database is back.
    """
    with _given_up_if_lost(services, reservation):
        try:
            release = _computed_on_time(services, ready, reservation, started)
        except Unavailable:
            name = ready.facts.name
            log.error("release_not_computed", release_id=reservation.id, dataset=name)
            raise
        if release.status == "failed":  # said now, as the order of lines tells a time, too
            log.error("computation_failed", release_id=reservation.id)
        body = release_body(ready, reservation, release)
    return _settled(services, reservation, release.status, body)


@contextmanager
def _given_up_if_lost(services: Services, reservation: Reservation) -> Iterator[None]:
    """Ends the lease where the block ends without an answer, in whatever way."""
    try:
        yield
    except BaseException:
        services.settler.give_up(reservation.lease)
        raise


def _settled(services: Services, reservation: Reservation, status: str, body: bytes) -> bytes:
    stored = services.settler.settle(reservation, status, body)
    metrics.settled(status)
    return stored


def _computed_on_time(
    services: Services, ready: Plan, reservation: Reservation, started: float
) -> Release:
    try:
        return services.engine.execute(ready, reservation)
    finally:
        wait_for_deadline(services, started, ready.deadline_ms)


LOOK_SECONDS = 1.0
"""Between two looks whether the server stops, of who waits for a deadline."""


def wait_for_deadline(services: Services, started: float, deadline_ms: int) -> None:
    """Sleeps until the first point of the time grid at or after the plan's deadline.

    The true time is not rounded up to the grid: that would tell the number of ticks. An overrun of
    the deadline is shown at a multiple of it, and is logged. Raises Unavailable where the server
    stops before.
    """
    grid = services.settings.reply_grid_ms
    if grid == 0:
        return
    elapsed = (services.clock.monotonic() - started) * 1e3
    shown = shown_after_ms(grid, deadline_ms, elapsed)
    end = services.clock.monotonic() + (shown - elapsed) / 1e3
    for _ in range(int((shown - elapsed) / 1e3 / LOOK_SECONDS)):
        services.clock.sleep(LOOK_SECONDS)
        if services.queue.ended.is_set():
            raise Unavailable(STILL_COMPUTED)
    services.clock.sleep(max(0.0, end - services.clock.monotonic()))
    if shown > visible_after_ms(grid, deadline_ms):
        metrics.OVERRUNS.inc()
        log.warning("deadline_overrun")


def _wait(services: Services, ready: Prepared, release_id: str) -> bytes:
    """The body of a release that another request is computing; Unavailable when it takes long."""
    patience = (ready.plan.deadline_ms + services.settings.reply_grid_ms + 1000) / 1e3
    for _ in range(1 + int(patience / _POLL_SECONDS)):
        release = services.ledger.release(ready.request.analyst_id, release_id)
        if isinstance(release, bytes):
            return release
        services.clock.sleep(_POLL_SECONDS)
    raise Unavailable(STILL_COMPUTED)
