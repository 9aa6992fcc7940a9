"""Releases answered later: planned turns, full queues, cancelling, and nothing that the data decide."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.domain.clock import SystemClock
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Count, Privacy
from reticent_server.errors import Conflict, NotFound, QueueFull
from reticent_server.pipeline import browse, deferred
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.recovery import recover
from reticent_server.pipeline.schedule import ReleaseQueue, Slots, Turn
from reticent_server.pipeline.services import Services
from support_databases import SetClock
from support_installation import Api, Installation, opened, request_body

PATIENCE = 20.0


class StillQueue(ReleaseQueue):
    """A queue whose jobs begin when the test says so."""

    def __init__(self, clock: Any, *, slots: int = 4, limit_seconds: int = 600) -> None:
        super().__init__(clock, slots=slots, limit_seconds=limit_seconds)
        self.jobs: list[tuple[int, Callable[[], object]]] = []

    def put(self, start_ms: int, job: Callable[[], object]) -> None:
        self.jobs.append((start_ms, job))


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def still(installation: Installation, clock: SetClock) -> Iterator[Services]:
    with opened(installation.settings, clock) as services:
        yield replace(services, queue=StillQueue(clock))


def ana(services: Services) -> Principal:
    found = services.access.analyst("ana")
    return Principal(found.id, found.name, "analyst")


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


def jobs(services: Services) -> list[tuple[int, Callable[[], object]]]:
    assert isinstance(services.queue, StillQueue)
    return services.queue.jobs


def test_a_release_is_answered_at_its_turn(services: Services) -> None:
    pending = later(services)
    assert (pending["status"], pending["result"]) == ("pending", None)
    until = time.monotonic() + PATIENCE
    while shown(services, pending["id"])["status"] == "pending":
        assert time.monotonic() < until
        time.sleep(0.02)
    found = shown(services, pending["id"])
    assert (found["status"], "progress" in found) == ("reply", False)
    assert services.ledger.verify() == []
    services.queue.close()


def test_turns_follow_each_other_and_progress_is_the_clocks(
    still: Services, clock: SetClock
) -> None:
    first, second = later(still), later(still)
    (start, _), (after, _) = jobs(still)
    length = after - start
    assert start == still.queue.now_ms()
    assert length > 0
    assert second["progress"] == {"state": "queued", "fraction": 0.0, "remaining_ms": 2 * length}
    clock.sleep(length / 4000)
    halfway = shown(still, first["id"])["progress"]
    assert halfway["fraction"] == pytest.approx(0.25, abs=0.02)
    clock.sleep(100 * length / 1000)
    assert shown(still, first["id"])["progress"]["fraction"] == 1.0


def test_cancelling_before_the_turn_gives_the_cost_back(still: Services) -> None:
    before = spent(still)
    pending = later(still, "k")
    assert spent(still) != before
    found = json.loads(deferred.cancel(still, ana(still), pending["id"]))
    assert (found["status"], found["charged"]["rho"], found["result"]) == ("cancelled", 0.0, None)
    assert spent(still) == before
    assert shown(still, pending["id"]) == found
    jobs(still)[0][1]()
    assert shown(still, pending["id"]) == found, "its turn comes, and nothing is computed"
    assert later(still, "k") == found
    assert still.ledger.verify() == []


def test_what_has_begun_is_not_cancelled(still: Services) -> None:
    pending = later(still)
    jobs(still)[0][1]()
    assert shown(still, pending["id"])["status"] == "reply"
    with pytest.raises(Conflict):
        deferred.cancel(still, ana(still), pending["id"])
    bob = still.access.analyst("bob")
    with pytest.raises(NotFound):
        deferred.cancel(still, Principal(bob.id, bob.name, "analyst"), pending["id"])


def test_a_key_is_charged_once(still: Services) -> None:
    first = later(still, "k")
    once = spent(still)
    assert later(still, "k")["id"] == first["id"]
    assert spent(still) == once
    assert len(jobs(still)) == 1


def test_a_full_queue_charges_nothing_and_knows_its_keys(still: Services, clock: SetClock) -> None:
    services = replace(still, queue=StillQueue(clock, limit_seconds=1))
    accepted = [later(services, "first"), later(services)]
    (start, _), (after, _) = jobs(services)
    accepted += [later(services) for _ in range(1000 // (after - start) - 2)]
    before = spent(services)
    with pytest.raises(QueueFull) as full:
        later(services)
    assert full.value.retry_after >= 1
    assert spent(services) == before
    assert later(services, "first")["id"] == accepted[0]["id"]
    clock.sleep(1.0)
    assert later(services)["status"] == "pending"


def test_a_queue_that_died_is_recovered_without_a_second_charge(
    still: Services, clock: SetClock
) -> None:
    pending = later(still)
    charged = spent(still)
    clock.sleep(still.settings.lease_seconds + 1)
    assert recover(still) == 1
    assert shown(still, pending["id"])["status"] == "reply"
    jobs(still)[0][1]()
    assert spent(still) == charged
    assert still.ledger.verify() == []


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
    jobs(still)[-1][1]()
    refused = api.send("DELETE", begun.headers["location"])
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    full = Api(replace(still, queue=StillQueue(still.clock, limit_seconds=0)), api.key)
    none = full.post("/v1/releases", request_body(), headers=prefer)
    assert (none.status_code, none.json()["code"]) == (503, "queue_full")
    assert int(none.headers["retry-after"]) >= 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), max_size=30), st.integers(1, 4))
def test_no_more_turns_at_once_than_slots(asked: list[tuple[int, int]], number: int) -> None:
    slots = Slots(number)
    turns = [slots.book(earliest, length, 10_000) for earliest, length in asked]
    booked = [turn for turn in turns if turn is not None]
    assert len(booked) == len(asked)
    for (earliest, _), turn in zip(asked, booked, strict=True):
        assert turn.start_ms >= earliest
        at_once = [t for t in booked if t.start_ms <= turn.start_ms < t.end_ms]
        assert len(at_once) <= number


def test_one_analysts_turns_stay_on_one_slot() -> None:
    slots = Slots(2)
    end = 0
    for _ in range(50):
        turn = slots.book(end, 10, 10_000)
        assert turn is not None
        end = turn.end_ms
    assert slots.book(0, 10, 10_000) == Turn(0, 10), "the other slot is free for somebody else"
    assert slots.book(0, 10, 15) is None


def test_jobs_begin_in_the_order_of_their_turns() -> None:
    queue = ReleaseQueue(SystemClock(), slots=1, limit_seconds=60)
    done: list[int] = []
    now = queue.now_ms()
    for k in (3, 1, 2):
        queue.put(now + 40 * k, lambda k=k: done.append(k))  # type: ignore[misc]
    until = time.monotonic() + PATIENCE
    while len(done) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    queue.put(queue.now_ms() + 10**7, lambda: done.append(9))
    queue.close()
    assert done == [1, 2, 3]
