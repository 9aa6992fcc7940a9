# SPDX-License-Identifier: Apache-2.0
"""When replies are shown: by the plan, the machine's measured speed and what else is computed; by
no cell.
"""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from reticent_server.domain.clock import Clock
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Plan
from reticent_server.domain.query import Privacy
from reticent_server.kinds import KINDS, example
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.pipeline import calibration, planning
from reticent_server.pipeline import pace as paces
from reticent_server.pipeline.calibration import USUAL, example_plans, keep_pace, speed_of
from reticent_server.pipeline.pace import (
    ARRIVAL_MS,
    BUDGET,
    LARGEST_SPEED,
    LEAST_SPEED,
    OVERHEAD_MS,
    SLACK,
    STEADY_SLACK,
    TURN_MS,
    Pace,
    shown_after_ms,
)
from reticent_server.pipeline.services import Services
from reticent_server.pipeline.timetable import BESIDE_MS
from support.databases.migrated import SetClock
from support.installations.small import SCHEMA


@dataclass(frozen=True)
class Planned:
    """What a deadline asks of a plan."""

    steady: bool
    mechanism: str = "test"
    name: str = "Planned"


def plan_of(expected_ms: float = 50.0, cold_ms: float = 30.0, deadline_ms: int = 1000) -> Plan:
    (_, plan), *_ = example_plans(400, first=True)
    return replace(plan, expected_ms=expected_ms, cold_ms=cold_ms, deadline_ms=deadline_ms)


def pace_of(
    speed: float = 1.0, processes: int = 1, shares: Any = None, clock: Clock | None = None
) -> Pace:
    pace = Pace(clock or SetClock())
    pace.measured(speed, processes, shares)
    return pace


def deadline(pace: Pace, plan: Plan, *, warm: bool = True, beside: int | None = None) -> float:
    return pace.promised(plan, warm=warm, beside=beside).deadline_ms


def behind(alone: float, speed: float = 1.0, processes: int = 1) -> float:
    """By how much the next one is due later for one that was promised `alone`."""
    work = TURN_MS * max(1.0, speed) + BUDGET * (alone - OVERHEAD_MS)
    return BESIDE_MS + processes * min(alone, work)


def test_before_it_is_measured_the_plans_own_deadlines_hold() -> None:
    plan = plan_of()
    assert Pace(SetClock()).promised(plan, warm=True) is plan
    unknown = replace(plan, expected_ms=None)
    assert pace_of().promised(unknown, warm=True) is unknown


def test_a_deadline_is_the_expected_time_with_slack_on_this_machine() -> None:
    plan = plan_of()
    assert deadline(pace_of(), plan) == OVERHEAD_MS + SLACK * 50
    assert deadline(pace_of(3.0), plan) == OVERHEAD_MS + 3 * SLACK * 50
    assert deadline(pace_of(), plan, warm=False) == OVERHEAD_MS + SLACK * 50 + 30
    assert deadline(pace_of(3.0), plan, warm=False) == OVERHEAD_MS + 3 * (SLACK * 50 + 30)


def test_of_a_steady_plan_it_is_what_was_measured() -> None:
    """Between the two numbers of records on the line in log n, beyond them as at the nearer one;
    with fewer, as of the others.
    """
    plan = replace(plan_of(), planned=Planned(steady=True))
    pace = pace_of(3.0, shares={"Planned: test": {10**4: 0.25, 10**6: 0.75}})

    def shown(n: int, **more: Any) -> float:
        return deadline(pace, replace(plan, facts=replace(plan.facts, n=n)), **more)

    def promised(taken: float) -> Any:
        work = 3 * TURN_MS + BUDGET * STEADY_SLACK * taken
        return pytest.approx(max(OVERHEAD_MS + STEADY_SLACK * taken, work), abs=1)

    assert shown(10**4) == promised(0.25 * 50)
    assert shown(10**5) == promised(0.5 * 50)
    assert shown(10**6) == shown(10**8) == promised(0.75 * 50)
    assert shown(9_999) == OVERHEAD_MS + 3 * SLACK * 50
    assert shown(10**6, warm=False) == OVERHEAD_MS + STEADY_SLACK * 0.75 * 50 + 3 * 30
    assert shown(10**6, beside=2) == pytest.approx(3 * shown(10**6), abs=3)


def test_plans_whose_time_records_decide_are_shown_as_before() -> None:
    shares = {"Planned: test": {100: 0.2}}
    for planned in (Planned(steady=False), Planned(steady=True, mechanism="another")):
        plan = replace(plan_of(), planned=planned)
        assert deadline(pace_of(shares=shares), plan) == OVERHEAD_MS + SLACK * 50


@pytest.mark.slow
def test_what_iterates_on_records_is_not_steady() -> None:
    plans = example_plans(400, first=False)
    sorts = {name: {plan.sort for each, plan in plans if each == name} for name, _ in plans}
    assert all(
        None not in sorts[kind] for kind in ("count", "mean", "quantiles", "study", "t_test")
    )
    assert None not in sorts["quantile_regression"] | sorts["discontinuity"]
    assert sorts["depth_median"] == sorts["subsample_aggregate"] == sorts["m_estimate"] == {None}
    for name, plan in plans:
        family = getattr(plan.query, "family", "")
        if family in {"poisson", "gamma", "negative_binomial"} or (
            getattr(plan.query, "mechanism", "") == "influence"
        ):
            assert plan.sort is None, name


@pytest.mark.slow
def test_a_machine_measures_every_sort_at_both_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a sort the largest share of its examples, so that none of them is late."""
    sizes: list[int] = []
    monkeypatch.setattr(calibration, "FEW", 400)
    monkeypatch.setattr(calibration, "RECORDS", 800)

    def took(_: Any, plans: Any, rounds: int) -> list[float]:
        assert rounds == calibration.ROUNDS
        sizes.append(len(plans))
        return [(k + 1) * (plan.expected_ms or 0.0) for k, plan in enumerate(plans)]

    monkeypatch.setattr(calibration, "milliseconds", took)
    speed, shares = calibration.measured(1, 4096)
    every = [plan for _, plan in example_plans(800, first=False)]
    firsts = [plan for _, plan in example_plans(800, first=True)]
    assert set(shares) == {plan.sort for plan in every if plan.sort}
    assert {tuple(sorted(known)) for known in shares.values()} == {(400, 800)}
    assert (
        sizes
        == [
            len(firsts)
            + sum(p.sort is not None and p.query not in {q.query for q in firsts} for p in every)
        ]
        * 2
    )
    assert max(known[800] for known in shares.values()) == sizes[0]
    assert speed == pytest.approx(sum(range(1, len(firsts) + 1)) / len(firsts) / USUAL)


def test_it_is_never_above_what_the_plan_allows_on_such_a_machine() -> None:
    assert deadline(pace_of(), plan_of(expected_ms=9000.0)) == OVERHEAD_MS + 1000
    assert deadline(pace_of(2.0), plan_of(expected_ms=9000.0)) == OVERHEAD_MS + 2000


def test_a_turn_s_deadline_counts_from_its_planned_start() -> None:
    """Whatever the time is when the thread goes on, and whatever the one before it takes."""
    clock, plan = SetClock(), plan_of()
    pace = pace_of(clock=clock)
    begin = clock.monotonic()
    alone = deadline(pace, plan)
    with pace.turn(plan, warm=True) as first:
        assert (first.started, first.plan.deadline_ms) == (begin, alone)
        assert deadline(pace, plan) == alone + behind(alone)
        with pace.turn(plan, warm=True) as second:
            start = begin + (behind(alone) - BESIDE_MS) / 1e3
            assert clock.monotonic() == pytest.approx(start, abs=2e-3)
            assert second.started == pytest.approx(start, abs=1e-6)
            assert second.plan.deadline_ms == alone + BESIDE_MS
        assert deadline(pace, plan) == alone
    assert deadline(pace, plan) == alone


def test_beside_others_that_come_later_and_other_processes() -> None:
    pace, plan = pace_of(processes=3), plan_of()
    alone = deadline(pace, plan)
    assert deadline(pace, plan, beside=1) == 4 * alone
    with pace.turn(plan, warm=True):
        assert deadline(pace, plan) == alone + behind(alone, processes=3)


def test_a_computation_that_fails_counts_no_more() -> None:
    pace, plan = pace_of(), plan_of()
    alone = deadline(pace, plan)
    with pytest.raises(KeyError), pace.turn(plan, warm=True):
        raise KeyError
    with pytest.raises(KeyError), pace.computing(pace.promised(plan, warm=True)):
        raise KeyError
    assert deadline(pace, plan) == alone


@pytest.mark.slow
def test_what_the_other_queue_computes_counts_until_it_is_due() -> None:
    """As what it was promised alone, and not as what it was promised beside others."""
    clock, plan = SetClock(), plan_of()
    pace = pace_of(clock=clock)
    alone = deadline(pace, plan)
    with pace.computing(pace.promised(plan, warm=True, beside=4)):
        assert deadline(pace, plan_of(2000.0)) == OVERHEAD_MS + 1000 + behind(alone)
        clock.sleep(alone / 1e3)
        assert deadline(pace, plan_of(2000.0)) == OVERHEAD_MS + 1000
    with pace.computing(replace(plan, alone_ms=None, deadline_ms=400)):
        assert deadline(pace, plan_of(2000.0)) == OVERHEAD_MS + 1000 + behind(400)


def test_requests_that_arrive_make_it_later_and_wait_where_they_would_make_others_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, plan, slept = SetClock(), plan_of(), list[float]()
    pace = pace_of(2.0, processes=3, clock=clock)
    alone = deadline(pace, plan)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.sleep(seconds)

    async def scene() -> None:
        async with pace.arriving(), pace.arriving():
            assert deadline(pace, plan) == alone + BESIDE_MS + 2 * 3 * 2.0 * ARRIVAL_MS
            with pace.turn(plan, warm=True) as turn:
                assert slept == []
                async with AsyncExitStack() as stack:
                    while not slept:
                        await stack.enter_async_context(pace.arriving())
                assert slept == [turn.plan.deadline_ms / 1e3]
        with pytest.raises(KeyError):
            async with pace.arriving():
                raise KeyError

    monkeypatch.setattr(paces, "asyncio", SimpleNamespace(sleep=sleep))
    asyncio.run(scene())
    assert deadline(pace, plan) == alone


def test_before_it_is_measured_nobody_waits() -> None:
    clock, plan = SetClock(), plan_of()
    pace, begin = Pace(clock), clock.monotonic()
    with pace.turn(plan, warm=True) as first, pace.turn(plan, warm=True) as second:
        assert first == second
        assert (first.plan, first.started) == (plan, begin)
        with pace.computing(plan):
            assert pace.promised(plan, warm=True) is plan

    async def arrives() -> None:
        async with pace.arriving(), pace.arriving():
            assert pace.promised(plan, warm=True) is plan

    asyncio.run(arrives())


def test_a_short_computation_goes_before_long_ones_that_have_room_for_it() -> None:
    clock, short, long = SetClock(), plan_of(expected_ms=10.0), plan_of(expected_ms=400.0)
    pace = pace_of(clock=clock)
    alone = {name: deadline(pace, plan) for name, plan in (("short", short), ("long", long))}
    with pace.turn(long, warm=True):
        assert deadline(pace, short) == alone["short"]
        with pace.turn(short, warm=True) as turn:
            assert turn.plan.deadline_ms == alone["short"]
    with pace.turn(short, warm=True):
        assert deadline(pace, long) == alone["long"] + behind(alone["short"])


@pytest.mark.parametrize(("measured", "taken"), [(1e-3, LEAST_SPEED), (1e6, LARGEST_SPEED)])
def test_a_measurement_that_cannot_be_the_machines_is_cut(measured: float, taken: float) -> None:
    plan = plan_of()
    assert deadline(pace_of(measured), plan) == deadline(pace_of(taken), plan)


def test_an_overrun_tells_its_octave_only() -> None:
    """Not the number of points of the grid."""
    assert shown_after_ms(10, 61, 12.0) == 70
    assert shown_after_ms(10, 61, 70.0) == 70
    assert {shown_after_ms(10, 61, elapsed) for elapsed in (71.0, 95.0, 140.0)} == {140}
    assert shown_after_ms(10, 61, 141.0) == 280


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("n", [400, 10**4, 10**6, 10**8])
def test_every_example_is_expected_before_the_plans_own_deadline(n: int) -> None:
    plans = example_plans(n, first=False)
    assert {name for name, _ in plans} == {kind.name for kind in KINDS if kind.for_analysts}
    for name, plan in plans:
        assert plan.expected_ms is not None
        assert 0 < plan.expected_ms <= plan.deadline_ms, name


def test_a_larger_table_takes_longer() -> None:
    few, many = (dict(example_plans(n, first=True)) for n in (10**5, 10**6))
    assert all((many[kind].expected_ms or 0) > (few[kind].expected_ms or 0) for kind in few)


def test_examples_are_about_the_table_that_is_made_up() -> None:
    rows = example.rows(1000)
    assert set(rows) == {column.name for column in example.SCHEMA.columns}
    assert [line.split(":")[0].strip() for line in SCHEMA.splitlines()[2:]] == list(rows)
    for column in example.SCHEMA.columns:
        values = rows[column.name]
        assert column.lower <= values.min() < values.max() or column.name == "m"
        assert values.max() <= column.upper


@pytest.mark.slow
def test_a_server_measures_once_and_keeps_its_own_deadlines_where_it_cannot(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "FEW", 200)
    monkeypatch.setattr(calibration, "RECORDS", 400)
    plan, both = plan_of(), []
    monkeypatch.setattr(
        calibration, "example_plans", lambda n, first: example_plans(n, first=first)[:3]
    )
    for failing in (True, False):
        with monkeypatch.context() as patch:
            if failing:
                patch.setattr(calibration, "example_plans", lambda *_args, **_kwargs: 1 / 0)
            calibration._measure(services, 2)
        both.append(services.pace.promised(plan, warm=True))
    assert both[0] is plan
    assert both[1].deadline_ms != plan.deadline_ms


def test_a_machine_is_as_slow_as_its_examples_are_late() -> None:
    plans = [plan_of(10.0), plan_of(200.0)]
    assert speed_of(plans, [10 * USUAL, 200 * USUAL]) == pytest.approx(1.0)
    assert speed_of(plans, [20 * USUAL, 800 * USUAL]) == pytest.approx(3.0)


def test_without_a_time_grid_nothing_is_measured(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(calibration, "Thread", lambda **kwargs: started.append(kwargs))
    assert services.settings.reply_grid_ms == 0
    keep_pace(services, 1)
    assert not started


def test_many_counts_take_the_time_of_their_noise() -> None:
    """Each has noise of its own, whose exact draw takes longer than counting 10⁴ records."""
    facts = DatasetFacts("example", "example", 1, "example", 10**4, example.SCHEMA, None)

    def expected(bins: int) -> float:
        question = Histogram("y", tuple(range(bins + 1)))
        return planning.plan(facts, question, Privacy(1.0, 1e-6)).expected_ms or 0.0

    assert expected(1000) - expected(10) > 990 * 0.017  # milliseconds, as measured
