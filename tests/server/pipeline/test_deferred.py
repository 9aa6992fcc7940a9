# SPDX-License-Identifier: Apache-2.0
"""Releases answered later: planned turns, full queues, cancelling, and nothing that the data
decide.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import pytest

from reticent_server.domain.clock import SystemClock
from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.roles import ANALYST
from reticent_server.errors import Conflict, NotFound, QueueFull, RateLimited, Unavailable
from reticent_server.kinds.count.kind import Count
from reticent_server.ledger.model import Pending
from reticent_server.pipeline import answer as answering
from reticent_server.pipeline import browse, deferred
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.recovery import recover
from reticent_server.pipeline.schedule import (
    Computation,
    Job,
    PlannedStart,
    ReleaseQueue,
    turn_of,
)
from reticent_server.pipeline.services import Services
from support.databases.migrated import SetClock
from support.installations.small import Api, Installation, opened, request_body
from support.processes.waiting import PATIENCE, until


class StillQueue(ReleaseQueue):
    """A queue whose turns begin when the test says so."""

    def __init__(self, clock: Any, slots: int = 4) -> None:
        super().__init__(clock, slots=slots, keep=lambda _: None, keep_seconds=200)
        self._keeper = Thread(target=lambda: None)  # begins no turn
        self._keeper.start()

    def turn(self) -> int | None:
        """The next turn, from its beginning to its end: its planned start."""
        found = self._fair.begin(self._ticks())
        if found is None:
            return None
        self._at_turn(*found)
        return found[1]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def still(installation: Installation, clock: SetClock) -> Iterator[Services]:
    with opened(installation.settings, clock) as services:
        yield replace(services, queue=StillQueue(clock))


def ana(services: Services) -> Principal:
    found = services.access.analyst("ana")
    return Principal(found.id, found.name, ANALYST)


def ask(key: str | None = None) -> Ask:
    return Ask("people", Count(), Privacy(0.5, 1e-6), key)


def later(services: Services, key: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(deferred.answer_later(services, ana(services), ask(key)))
    return found


def shown(services: Services, release_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(browse.release(services, ana(services), release_id))
    return found


def spent(services: Services) -> Any:
    return services.ledger.balances(ana(services).id)[0].spent


def turn(services: Services) -> int | None:
    assert isinstance(services.queue, StillQueue)
    return services.queue.turn()


def test_a_release_is_answered_at_its_turn(services: Services) -> None:
    pending = later(services)
    assert (pending["status"], pending["result"]) == ("pending", None)
    until(lambda: shown(services, pending["id"])["status"] != "pending")
    found = shown(services, pending["id"])
    assert (found["status"], "progress" in found) == ("reply", False)
    assert services.ledger.verify() == []
    services.queue.close()


def test_turns_follow_each_other_and_progress_is_the_clocks(
    still: Services, clock: SetClock
) -> None:
    first, second = later(still), later(still)
    length = first["progress"]["remaining_ms"]
    assert length > 0
    assert second["progress"] == {"state": "queued", "fraction": 0.0, "remaining_ms": 2 * length}
    start = still.queue.now_ms()
    assert turn(still) == start
    assert shown(still, first["id"])["status"] == "reply"
    assert turn(still) is None, "the second's turn begins when the first's is over by plan"
    clock.sleep(length / 1000)
    assert turn(still) == start + length


def test_progress_of_what_runs_is_the_clock_s(
    still: Services, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = later(still)
    length = pending["progress"]["remaining_ms"]
    monkeypatch.setattr(deferred, "execute", lambda *_: None)  # it takes long
    clock.sleep(5.0)
    late = shown(still, pending["id"])["progress"]
    assert late == {"state": "queued", "fraction": 0.0, "remaining_ms": length}
    turn(still)
    clock.sleep(length / 4000)
    running = shown(still, pending["id"])["progress"]
    assert running["state"] == "running"
    assert running["fraction"] == pytest.approx((5000 + length / 4) / length, abs=0.02) or (
        running["fraction"] == 1.0
    )
    clock.sleep(100 * length / 1000)
    assert shown(still, pending["id"])["progress"]["fraction"] == 1.0


def test_a_release_that_waits_is_planned_for_a_full_machine(still: Services) -> None:
    still.pace.measured(1.0, 1)
    alone = json.loads(answering.answer(still, ana(still), ask()))
    assert alone["status"] == "reply"
    ready = answering.plan(still, ana(still), ask())
    pending = later(still)
    beside = 1 + still.settings.release_slots
    assert pending["progress"]["remaining_ms"] == pytest.approx(
        beside * ready.deadline_ms, abs=beside
    )


def test_cancelling_before_the_turn_gives_the_cost_back(still: Services) -> None:
    before = spent(still)
    pending = later(still, "k")
    assert spent(still) != before
    found = json.loads(deferred.cancel(still, ana(still), pending["id"]))
    assert (found["status"], found["charged"]["rho"], found["result"]) == ("cancelled", 0.0, None)
    assert spent(still) == before
    assert shown(still, pending["id"]) == found
    assert turn(still) is None, "its turn is gone"
    assert later(still, "k") == found
    assert still.ledger.verify() == []


def test_what_has_begun_is_not_cancelled(still: Services) -> None:
    pending = later(still)
    turn(still)
    assert shown(still, pending["id"])["status"] == "reply"
    with pytest.raises(Conflict):
        deferred.cancel(still, ana(still), pending["id"])
    bob = still.access.analyst("bob")
    with pytest.raises(NotFound):
        deferred.cancel(still, Principal(bob.id, bob.name, ANALYST), pending["id"])


def test_a_key_is_charged_once(still: Services, clock: SetClock) -> None:
    first = later(still, "k")
    once = spent(still)
    assert later(still, "k")["id"] == first["id"]
    assert spent(still) == once
    assert turn(still) is not None
    clock.sleep(60)
    assert turn(still) is None


def limited(services: Services, **changes: Any) -> Services:
    return replace(services, settings=services.settings.model_copy(update=changes))


def test_a_full_queue_charges_nothing_and_knows_its_keys(still: Services, clock: SetClock) -> None:
    services = limited(still, queue_seconds=1)
    first = later(services, "first")
    length = first["progress"]["remaining_ms"]
    for _ in range(1000 // length - 1):
        later(services)
    before = spent(services)
    with pytest.raises(QueueFull) as full:
        later(services)
    assert full.value.retry_after >= 1
    assert spent(services) == before
    assert later(services, "first")["id"] == first["id"]
    turn(services)
    assert later(services)["status"] == "pending"


def dan(services: Services, installation: Installation) -> Principal:
    installation.analyst("dan", epsilon=50, delta=1e-3)
    found = services.access.analyst("dan")
    return Principal(found.id, found.name, ANALYST)


@pytest.mark.slow
def test_who_cancels_again_and_again_keeps_nobody_waiting(
    still: Services, installation: Installation
) -> None:
    """A cancelled release costs nothing, so its turn must be nobody's."""
    other = dan(still, installation)
    services = replace(limited(still), queue=StillQueue(still.clock, slots=1))
    for _ in range(25):
        deferred.cancel(services, ana(services), later(services)["id"])
    found = json.loads(deferred.answer_later(services, other, ask()))
    length = still.ledger.planned_ms(other.id)
    assert found["progress"]["remaining_ms"] == length
    assert turn(services) == services.queue.now_ms()
    assert json.loads(browse.release(services, other, found["id"]))["status"] == "reply"


def test_a_cancellation_in_another_process_frees_the_turn(
    still: Services, installation: Installation
) -> None:
    other = dan(still, installation)
    here = replace(still, queue=StillQueue(still.clock, slots=1))
    elsewhere = replace(still, queue=StillQueue(still.clock))
    gone = [later(here) for _ in range(3)]
    found = json.loads(deferred.answer_later(here, other, ask()))
    for pending in gone:
        deferred.cancel(elsewhere, ana(elsewhere), pending["id"])
    while json.loads(browse.release(here, other, found["id"]))["status"] == "pending":
        assert turn(here) == here.queue.now_ms()
    assert still.ledger.verify() == []


@pytest.mark.slow
def test_cancellations_are_limited_for_each_analyst(
    still: Services, installation: Installation, clock: SetClock
) -> None:
    other = dan(still, installation)
    number = still.settings.cancels_per_minute
    released = [later(still)["id"] for _ in range(number + 1)]
    for release_id in released[:number]:
        deferred.cancel(still, ana(still), release_id)
    with pytest.raises(RateLimited) as limited:
        deferred.cancel(still, ana(still), released[number])
    assert 0 < limited.value.retry_after <= 60
    assert shown(still, released[number])["status"] == "pending"
    theirs = json.loads(deferred.answer_later(still, other, ask()))
    deferred.cancel(still, other, theirs["id"])
    clock.sleep(61)
    deferred.cancel(still, ana(still), released[number])


@pytest.mark.slow
def test_more_than_a_hundred_of_one_analyst_s_stay_on_one_slot(
    still: Services, installation: Installation
) -> None:
    """Somebody else's begins at once, on one of the other slots."""
    other = dan(still, installation)
    for _ in range(130):
        later(still)
    assert turn(still) is not None
    assert turn(still) is None
    found = json.loads(deferred.answer_later(still, other, ask()))
    assert found["progress"]["remaining_ms"] == still.ledger.planned_ms(other.id)
    assert turn(still) is not None
    assert json.loads(browse.release(still, other, found["id"]))["status"] == "reply"


def test_a_queue_that_died_is_recovered_without_a_second_charge(
    still: Services, clock: SetClock
) -> None:
    """In the queue of another process, where it can still be cancelled."""
    first, second = later(still), later(still)
    charged = spent(still)
    clock.sleep(still.settings.lease_seconds + 1)
    after = replace(still, queue=StillQueue(clock))
    recover(after)
    assert shown(after, second["id"])["progress"]["state"] == "queued"
    cancelled = json.loads(deferred.cancel(after, ana(after), second["id"]))
    assert cancelled["status"] == "cancelled"
    assert turn(after) is not None
    assert shown(after, first["id"])["status"] == "reply"
    assert turn(still) is not None, (
        "the process was not dead: its turn comes, and it computes nothing"
    )
    assert spent(after) != charged
    assert still.ledger.verify() == []


def test_a_graceful_end_parks_nothing(still: Services, clock: SetClock) -> None:
    """The next server computes at once what had not begun; a retry with its key does, too."""
    released = [later(still, f"k{k}") for k in range(4)]
    begun = still.queue.now_ms()
    assert turn(still) == begun
    charged = spent(still)
    deferred.close(still)
    assert set(still.ledger.stale()) == {r["id"] for r in released[1:]}
    after = replace(still, queue=StillQueue(clock))
    again = later(after, "k1")
    assert again["id"] == released[1]["id"]
    recover(after)
    for _ in range(3):
        assert turn(after) is not None
        clock.sleep(60)
    assert {shown(after, r["id"])["status"] for r in released} == {"reply"}
    assert spent(after) == charged
    assert after.ledger.verify() == []


def test_leases_of_what_waits_are_kept(services: Services) -> None:
    """A queue that is longer than a lease is not taken for an abandoned one."""
    kept: list[int] = []
    queue = ReleaseQueue(
        SystemClock(), slots=1, keep=lambda held: kept.append(len(held)), keep_seconds=0.05
    )
    job = Job(Reservation("rel_1", "v1", PrivacyCost(1, 1, 1), "now", "l"), lambda _: time.sleep)
    for name in ("rel_1", "rel_2", "rel_3"):
        queue.put("ana", 10**6, replace(job, reservation=replace(job.reservation, id=name)))
    until(lambda: kept.count(2) >= 2)
    assert [r.id for r in queue.close()] == ["rel_2", "rel_3"]


def test_no_lease_is_prolonged_after_the_end() -> None:
    """The caller gives up what `close` returns; a lease that was prolonged then would park it."""
    begun, go, order = Event(), Event(), list[str]()

    def keep(_held: Sequence[Reservation]) -> None:
        begun.set()
        assert go.wait(PATIENCE)
        order.append("kept")

    queue = ReleaseQueue(SystemClock(), slots=1, keep=keep, keep_seconds=0)
    reservation = Reservation("rel_1", "v1", PrivacyCost(1, 1, 1), "now", "l")
    queue.put("ana", 1, Job(reservation, lambda _: None))
    assert begun.wait(PATIENCE)
    closing = Thread(target=lambda: (queue.close(), order.append("closed")))
    closing.start()
    closing.join(0.5)
    go.set()
    closing.join(PATIENCE)
    assert order == ["kept", "closed"]


def test_over_http(installation: Installation, still: Services) -> None:
    api = Api(still, installation.keys["ana"])
    prefer = {"Prefer": "return=minimal, Respond-Async; x=1"}
    accepted = api.post("/v1/releases", request_body(), headers=prefer)
    assert accepted.status_code == 202
    assert accepted.headers["preference-applied"] == "respond-async"
    assert int(accepted.headers["retry-after"]) >= 1
    path = accepted.headers["location"]
    assert api.get(path).json()["progress"]["state"] == "queued"
    assert Api(still, installation.keys["eve"]).send("DELETE", path).status_code == 404
    cancelled = api.send("DELETE", path)
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    begun = api.post("/v1/releases", request_body(), headers=prefer)
    turn(still)
    refused = api.send("DELETE", begun.headers["location"])
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    later(limited(still, queue_seconds=1))
    full = Api(limited(still, queue_seconds=0), api.key)
    none = full.post("/v1/releases", request_body(), headers=prefer)
    assert (none.status_code, none.json()["code"]) == (503, "queue_full")
    assert int(none.headers["retry-after"]) >= 1


def test_jobs_begin_in_the_order_in_which_they_came() -> None:
    """By plan: which of two threads is faster is not looked at."""
    queue = ReleaseQueue(SystemClock(), slots=1, keep=lambda _: None, keep_seconds=200)
    starts: dict[str, int] = {}

    def begin(name: str, start: PlannedStart) -> Computation:
        starts[name] = start.ms
        return lambda: None

    for name in ("rel_3", "rel_1", "rel_2"):
        reservation = Reservation(name, "v1", PrivacyCost(1, 1, 1), "now", "l")
        queue.put("ana", 20, Job(reservation, partial(begin, name)))
    until(lambda: len(starts) == 3)
    assert sorted(starts, key=lambda name: starts[name]) == ["rel_3", "rel_1", "rel_2"]
    queue.close()


def test_a_job_that_fails_keeps_nobody_waiting() -> None:
    queue = ReleaseQueue(SystemClock(), slots=1, keep=lambda _: None, keep_seconds=200)
    done: list[str] = []

    def fail(_start: PlannedStart) -> Any:
        raise KeyError("the database is away")

    first = Reservation("rel_1", "v1", PrivacyCost(1, 1, 1), "now", "l")
    queue.put("ana", 10**6, Job(first, fail))
    queue.put("ana", 10, Job(replace(first, id="rel_2"), lambda _: lambda: done.append("rel_2")))
    until(lambda: done)
    queue.close()
    assert done == ["rel_2"]


class SteppingClock(SystemClock):
    """A machine's clock whose time of day is set anew."""

    ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self.ahead


FREE = PrivacyCost(1, 1, 1)
STEPS = [timedelta(hours=1), timedelta(hours=-1), timedelta(days=2), timedelta(days=-2)]


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_turn_begins_whatever_the_time_of_day_is_set_to(step: timedelta) -> None:
    """After it was set once, and set back, there is a turn for each that waits, by plan when the
    one before is over."""
    clock = SteppingClock()
    queue = ReleaseQueue(clock, slots=1, keep=lambda _: None, keep_seconds=200)
    starts: list[PlannedStart] = []

    def begin(start: PlannedStart) -> Computation:
        starts.append(start)
        return lambda: None

    began = clock.monotonic()
    for number, ahead in enumerate((timedelta(), step, timedelta(), -step), 1):
        clock.ahead = ahead
        queue.put("ana", 20, Job(Reservation(f"rel_{number}", "v1", FREE, "now", "l"), begin))
        until(lambda number=number: len(starts) == number)
        start, now = starts[-1], clock.monotonic()
        assert began - 0.001 <= start.seconds <= now
        late = queue.now_ms() - start.ms
        assert -2 <= late <= 1000 * (clock.monotonic() - start.seconds) + 2
    assert all(b.seconds - a.seconds > 0.0199 for a, b in pairwise(starts))
    queue.close()


def test_a_release_that_has_begun_is_not_further_away_than_its_turn_is_long() -> None:
    """Where the time of day was an hour ahead when it began."""
    begun = Pending("rel_1", "d", "v1", "now", FREE, {}, start_ms=3_600_000, duration_ms=90)
    assert turn_of(begun, 5000).remaining_ms(5000) == 90


def test_a_server_that_stops_waits_for_no_deadline_without_end(
    still: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reticent_server.pipeline.schedule.STOP_SECONDS", 0.01)
    monkeypatch.setattr("reticent_server.pipeline.answer.LOOK_SECONDS", 0.01)
    clock = SystemClock()
    queue = ReleaseQueue(clock, slots=1, keep=lambda _: None, keep_seconds=200)
    settings = still.settings.model_copy(update={"reply_grid_ms": 10})
    services = replace(still, queue=queue, clock=clock, settings=settings)
    waiting, ended = Event(), list[str]()

    def wait() -> None:
        waiting.set()
        try:
            answering.wait_for_deadline(services, clock.monotonic(), 10**9)
        except Unavailable:
            ended.append("given up")

    queue.put("ana", 20, Job(Reservation("rel_1", "v1", FREE, "now", "l"), lambda _: wait))
    assert waiting.wait(PATIENCE)
    queue.close()
    assert ended == ["given up"]
