# SPDX-License-Identifier: Apache-2.0
"""The order of an answer's steps, when it becomes visible, and what happens after a crash."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reticent_server.domain.plan import Plan, Release
from reticent_server.domain.principal import Principal
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.errors import IdempotencyConflict, NotFound, Unavailable
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.glm.query import Glm
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.profile.kind import ProfileQuery
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.ledger.model import Charge
from reticent_server.ledger.service import Fresh, Pending
from reticent_server.pipeline import browse, planning
from reticent_server.pipeline.answer import answer, execute, plan
from reticent_server.pipeline.ask import Ask
from reticent_server.pipeline.pace import BUDGET, OVERHEAD_MS, TURN_MS
from reticent_server.pipeline.recovery import recover
from reticent_server.pipeline.services import Services
from support.installations.small import Installation, opened, without_reader

ASK = Ask("people", Count(), Privacy(0.5), "key")


@dataclass
class FakeClock:
    """Time that passes only by sleeping and by `work`."""

    seconds: float = 0.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


class FakeEngine:
    """An engine that takes `seconds` and looks at the ledger while it computes."""

    def __init__(self, clock: FakeClock, seconds: float = 0.0) -> None:
        self._clock = clock
        self._seconds = seconds
        self.runs = 0
        self.look: Callable[[Plan, Reservation], Any] = lambda *_: None
        self.seen: list[Any] = []

    def execute(self, ready: Plan, reservation: Reservation) -> Release:
        self.runs += 1
        self._clock.seconds += self._seconds
        self.seen.append(self.look(ready, reservation))
        return Release("reply", {"value": self.runs})

    def holds(self, _ready: Plan) -> bool:
        return True

    def close(self) -> None:
        """Nothing to end."""


@dataclass(frozen=True)
class World:
    services: Services
    clock: FakeClock
    engine: FakeEngine
    ana: Principal

    def with_engine(self, seconds: float) -> "World":
        engine = FakeEngine(self.clock, seconds)
        return replace(self, engine=engine, services=replace(self.services, engine=engine))  # type: ignore[arg-type]

    def pending(self) -> str:
        """A reservation whose holder has died; its release's id."""
        return reserved(self, ASK).id


def reserved(world: World, ask: Ask) -> Reservation:
    """The ask, charged and not computed."""
    ready = plan(world.services, world.ana, ask)
    outcome = world.services.ledger.reserve(
        Charge(
            analyst_id=world.ana.id,
            dataset=ask.dataset,
            version_id=ready.facts.version_id,
            population=ready.facts.population,
            cost=ready.cost,
            request=ask.canonical(),
            idempotency_key=ask.idempotency_key,
        )
    )
    assert isinstance(outcome, Fresh)
    return outcome.reservation


@pytest.fixture
def world(installation: Installation) -> Iterator[World]:
    clock = FakeClock()
    settings = installation.settings.model_copy(update={"reply_grid_ms": 100, "lease_seconds": 60})
    with opened(settings, clock) as services:
        ana = services.access.authenticate(installation.keys["ana"])
        assert ana is not None
        engine = FakeEngine(clock)
        yield World(replace(services, engine=engine), clock, engine, ana)  # type: ignore[arg-type]


def test_the_charge_is_committed_before_the_engine_runs(
    world: World, installation: Installation
) -> None:
    def look(_: Plan, reservation: Reservation) -> Any:
        with opened(installation.settings, world.clock) as other:
            found = other.ledger.release(world.ana.id, reservation.id)
            return other.ledger.balances(world.ana.id)[0].spent.primary, type(found)

    world.engine.look = look
    ready = plan(world.services, world.ana, ASK)
    answer(world.services, world.ana, ASK)
    assert world.engine.seen == [(ready.cost.rho, Pending)]


@pytest.mark.parametrize("seconds", [0.0, 0.005])
def test_a_reply_waits_for_its_turn_and_is_charged_then(world: World, seconds: float) -> None:
    """It is shown after its planned start, not after that at which its thread went on."""
    world = world.with_engine(seconds)
    clock, pace, sleep = world.clock, world.services.pace, world.clock.sleep
    seen: list[tuple[float, int]] = []

    def waiting(duration: float) -> None:
        seen.append((clock.seconds, len(world.services.ledger.releases(world.ana.id))))
        sleep(duration)

    pace.measured(1.0, 1)
    clock.sleep = waiting  # type: ignore[method-assign]
    ready = plan(world.services, world.ana, ASK)
    with pace.turn(ready, warm=True) as first:
        answer(world.services, world.ana, ASK)
    alone = first.plan.alone_ms or 0.0
    start = min(alone, TURN_MS + BUDGET * (alone - OVERHEAD_MS)) / 1e3
    assert alone < 100, "the grid's first point"
    assert clock.seconds == pytest.approx(start + 0.1, abs=1e-9)
    assert [charged for _, charged in seen] == [0, 1]
    assert seen[1][0] == pytest.approx(start + seconds, abs=2e-3)


@pytest.mark.parametrize("seconds", [0.0, 0.04, 0.069])
def test_a_reply_is_visible_at_the_same_time_whatever_the_work(
    world: World, seconds: float
) -> None:
    """At the first point of the grid after the planned deadline, and stored only then."""
    world = world.with_engine(seconds)
    seen_while_waiting: list[Any] = []
    sleep = world.clock.sleep

    def waiting(duration: float) -> None:
        seen_while_waiting.extend(world.services.ledger.releases(world.ana.id))
        sleep(duration)

    world.clock.sleep = waiting  # type: ignore[method-assign]
    deadline = plan(world.services, world.ana, ASK).deadline_ms
    answer(world.services, world.ana, ASK)
    assert deadline == 70
    assert world.clock.seconds == pytest.approx(0.1, abs=1e-9)
    assert [type(found) for found in seen_while_waiting] == [Pending]
    assert isinstance(world.services.ledger.releases(world.ana.id)[0], bytes)


def test_an_overrun_goes_to_a_multiple_of_the_deadline(world: World) -> None:
    world = world.with_engine(0.234)
    answer(world.services, world.ana, ASK)
    assert world.clock.seconds == pytest.approx(0.4, abs=1e-9)


def test_an_error_of_the_vault_comes_at_the_deadline_too(world: World) -> None:
    def away(*_: Any) -> None:
        raise Unavailable("The data set cannot be read now.")

    world.engine.look = away
    with pytest.raises(Unavailable):
        answer(world.services, world.ana, ASK)
    assert world.clock.seconds == pytest.approx(0.1, abs=1e-9)


def test_after_an_error_of_the_vault_a_retry_starts_at_once(world: World) -> None:
    def away(*_: Any) -> None:
        raise Unavailable("The data set cannot be read now.")

    broken = world.with_engine(0.0)
    broken.engine.look = away
    for _ in range(2):
        with pytest.raises(Unavailable, match="cannot be read"):
            answer(broken.services, world.ana, ASK)
    assert broken.engine.runs == 2
    assert json.loads(answer(world.services, world.ana, ASK))["status"] == "reply"
    assert len(world.services.ledger.releases(world.ana.id)) == 1


def test_planning_and_looking_never_open_a_row(world: World) -> None:
    blind = without_reader(world.services)
    for query in (Count("k > 3"), Mean("y"), LinearRegression("y ~ x + C(g)")):
        planned = plan(blind, world.ana, Ask("people", query, Privacy(1.0)))
        assert planned.cost.rho > 0
        assert 0 < planned.deadline_ms < 10_000
    assert browse.dataset(blind, world.ana, "people")["n"] == 400
    assert browse.accounts(blind, world.ana)[0]["spent"]["rho"] == 0


def test_the_deadline_is_a_function_of_public_facts(world: World) -> None:
    facts = world.services.catalog.facts("people")

    def deadline(n: int, query: Any, epsilon: float = 1.0) -> int:
        return planning.plan(replace(facts, n=n), query, Privacy(epsilon)).deadline_ms

    fit = LinearRegression("y ~ x")
    assert deadline(10**6, fit) > deadline(10**5, fit) > deadline(10**5, Mean("y"))
    # Draws of quantiles and slow scores have their time, too.
    assert deadline(400, ProfileQuery()) > deadline(400, Mean("y")) + 100
    slow, quick = (
        Glm("k ~ x", f, dispersion=d) for f, d in (("negative_binomial", 0.5), ("poisson", None))
    )
    assert deadline(10**5, slow) > deadline(10**5, quick)


def test_a_dead_process_loses_nothing(world: World) -> None:
    release_id = world.pending()
    spent = world.services.ledger.balances(world.ana.id)[0].spent
    assert recover(world.services) == 0  # its lease has not expired
    world.clock.seconds += 61
    assert recover(world.services) == 1
    body = world.services.ledger.release(world.ana.id, release_id)
    assert isinstance(body, bytes)
    assert answer(world.services, world.ana, ASK) == body
    assert world.engine.runs == 1
    assert recover(world.services) == 0
    assert world.services.ledger.balances(world.ana.id)[0].spent == spent
    assert world.services.ledger.verify() == []


def test_a_retry_takes_an_abandoned_release_over(world: World) -> None:
    release_id = world.pending()
    world.clock.seconds += 61
    with pytest.raises(IdempotencyConflict):
        answer(world.services, world.ana, replace(ASK, privacy=Privacy(0.6)))
    assert json.loads(answer(world.services, world.ana, ASK))["id"] == release_id
    assert len(world.services.ledger.releases(world.ana.id)) == 1


def test_a_retry_while_it_is_computed_waits_and_then_gives_up(world: World) -> None:
    world.pending()
    with pytest.raises(Unavailable):
        answer(world.services, world.ana, ASK)
    assert world.engine.runs == 0


def test_an_abandoned_release_is_computed_on_its_own_version(
    world: World, installation: Installation
) -> None:
    from reticent_server.cli.dataset_load import load_dataset

    release_id = world.pending()
    directory = installation.directory
    load_dataset(
        installation.settings,
        "people",
        directory / "secret.csv",
        directory / "schema.yaml",
        separate="the file stands in for a second version",
    )
    world.clock.seconds += 61
    used = []
    world.engine.look = lambda ready, _: used.append((ready.facts.version, ready.facts.n))
    assert recover(world.services) == 1
    assert used == [(1, 400)]
    body = world.services.ledger.release(world.ana.id, release_id)
    assert isinstance(body, bytes)
    assert (json.loads(body)["version"], json.loads(body)["status"]) == (1, "reply")


def test_an_abandoned_release_that_can_no_longer_be_planned_fails(world: World) -> None:
    release_id = world.pending()
    world.clock.seconds += 61
    facts = world.services.catalog.facts("people")
    world.services.catalog.set_policy("people", replace(facts.policy, max_epsilon=0.1), by="t")
    shown = json.loads(browse.release(world.services, world.ana, release_id))
    assert (shown["status"], shown["result"]) == ("pending", None)
    with pytest.raises(Unavailable):  # not "refused", which would mean that nothing was charged
        answer(world.services, world.ana, ASK)
    assert recover(world.services) == 1
    shown = json.loads(browse.release(world.services, world.ana, release_id))
    assert (shown["status"], shown["result"], shown["version"]) == ("failed", None, 1)
    assert json.loads(answer(world.services, world.ana, ASK)) == shown
    assert world.engine.runs == 0
    assert world.services.ledger.verify() == []


def test_two_that_compute_the_same_release_store_one(world: World) -> None:
    """The lease ran out while the first was computing: the second's draw is stored, once."""
    stored: list[bytes] = []
    second = FakeEngine(world.clock)
    helper = replace(world.services, engine=second)  # type: ignore[arg-type]

    def overtaken(ready: Plan, reservation: Reservation) -> None:
        world.clock.seconds += 61
        stale = helper.ledger.take_over(reservation.id)
        assert stale is not None
        stored.append(execute(helper, ready, stale.reservation, world.clock.monotonic()))

    second.runs = 41
    world.engine.look = overtaken
    assert answer(world.services, world.ana, ASK) == stored[0]
    assert json.loads(stored[0])["result"] == {"value": 42}
    assert world.services.ledger.verify() == []


@pytest.mark.parametrize("name", ["secret", "absent"])
def test_no_grant(world: World, name: str) -> None:
    for call in (plan, answer):
        with pytest.raises(NotFound, match="No such data set, or no grant for it"):
            call(world.services, world.ana, replace(ASK, dataset=name))


@pytest.mark.parametrize(
    "query",
    [
        Count(),
        Count(where="k > 3"),
        Mean("y"),
        LinearRegression("y ~ x", tuning=1.5, confidence_level=0.9),
        ProfileQuery(),
    ],
)
def test_an_ask_survives_storage(query: Any) -> None:
    ask = Ask("people", query, Privacy(1.0, 1e-6))
    assert Ask.from_canonical(json.loads(json.dumps(ask.canonical()))) == ask
