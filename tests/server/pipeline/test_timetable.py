# SPDX-License-Identifier: Apache-2.0
"""The public timetable: what is promised stays promised, and no computation changes it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import pytest

from reticent_server.pipeline.timetable import BESIDE_MS, PlannedTurn, Timetable
from support.seeds import seeded_random


@dataclass
class Now:
    """Milliseconds that pass when a test says so."""

    ms: float = 0.0

    def __call__(self) -> float:
        return self.ms


@pytest.fixture
def now() -> Now:
    return Now()


def test_alone_a_turn_begins_at_once_and_is_due_after_what_it_takes(now: Now) -> None:
    timetable = Timetable(now)
    now.ms = 5.0
    assert timetable.wait(100, 75) == 0
    turn = timetable.enter(100, 75)
    assert (turn.start, turn.due, timetable.remaining(turn)) == (5.0, 105.0, 0)
    now.ms = 205.0
    after = timetable.enter(100, 75)
    assert (after.start, after.due) == (205.0, 305.0)


def test_turns_begin_one_after_the_other_by_their_budgets(now: Now) -> None:
    """The next begins when three quarters of the one before are over, and is due as much later."""
    timetable = Timetable(now)
    turns = [timetable.enter(100, 75) for _ in range(3)]
    assert [turn.due for turn in turns] == [100, 175 + BESIDE_MS, 250 + BESIDE_MS]
    assert [timetable.remaining(turn) for turn in turns] == [0, 75, 150]
    now.ms = 80.0
    assert [timetable.remaining(turn) for turn in turns] == [0, 0, 70]
    assert turns[1].start == 75.0
    now.ms = 300.0
    assert timetable.remaining(turns[2]) == 0
    assert turns[2].start == 150.0


def test_a_short_turn_goes_before_a_long_one_while_that_has_room(now: Now) -> None:
    timetable = Timetable(now)
    long = timetable.enter(1000, 750)
    dues = [timetable.enter(40, 30).due for _ in range(9)]
    assert dues[:8] == [40] + [40 + 30 * k + BESIDE_MS for k in range(1, 8)]
    assert dues[8] == 1000 + 30 + BESIDE_MS, (
        "it would make the long one late: 9 times 30 is more than 250"
    )
    assert long.due == 1000


def test_alike_turns_follow_each_other_whatever_room_there_is(now: Now) -> None:
    """Those of a burst have the room of arrivals: who came last would be due first, beside all."""
    timetable = Timetable(now)
    for _ in range(4):
        timetable.admit(100)
    turns = []
    for _ in range(4):
        timetable.arrived()
        turns.append(timetable.enter(40, 30))
    assert [turn.due for turn in turns] == [40 + 300 + BESIDE_MS * k for k in range(1, 5)]
    assert [turn.start for turn in turns] == [0.0, None, None, None]


def test_a_long_turn_waits_for_short_ones(now: Now) -> None:
    timetable = Timetable(now)
    short, long = timetable.enter(40, 30), timetable.enter(1000, 750)
    assert (short.due, long.due) == (40, 1030 + BESIDE_MS)
    assert (timetable.remaining(short), timetable.remaining(long)) == (0, 30)


def test_who_arrives_makes_later_what_is_promised_afterwards(now: Now) -> None:
    timetable = Timetable(now)
    assert [timetable.admit(30) for _ in range(3)] == [0, 0, 0]
    now.ms = 40.0
    turn = timetable.enter(100, 75)
    assert turn.due == 40 + 100 + 50 + BESIDE_MS
    assert turn.start == 40.0
    now.ms = 90.0
    assert timetable.enter(100, 75).due == 90 + 100 + 75 + BESIDE_MS


def test_who_is_planned_or_refused_makes_nothing_later_any_more(now: Now) -> None:
    timetable = Timetable(now)
    assert [timetable.admit(30) for _ in range(3)] == [0, 0, 0]
    timetable.arrived()
    assert timetable.wait(100, 75) == 60 + BESIDE_MS
    now.ms = 20.0
    timetable.arrived()
    assert timetable.wait(100, 75) == 20 + BESIDE_MS
    timetable.arrived()
    assert timetable.wait(100, 75) == 0


def test_who_arrives_later_waits_for_room(now: Now) -> None:
    timetable = Timetable(now)
    first = timetable.enter(100, 75)
    second = timetable.enter(400, 300)
    assert timetable.admit(20) == 0
    assert timetable.admit(20) == first.due
    now.ms = 100.0
    assert [timetable.admit(20) for _ in range(5)] == [0, 0, 0, 0, second.due - 100]


def test_a_refused_charge_frees_its_turn(now: Now) -> None:
    timetable = Timetable(now)
    first, second = timetable.enter(100, 75), timetable.enter(100, 75)
    now.ms = 10.0
    timetable.leave(first)
    assert (second.start, timetable.remaining(second), second.due) == (10.0, 0, 175 + BESIDE_MS)
    assert timetable.enter(100, 75).due == 10 + 100 + 75 + BESIDE_MS
    timetable.leave(first)


def test_the_turn_of_another_schedule_counts_from_its_beginning(now: Now) -> None:
    timetable = Timetable(now)
    other = timetable.add(75, due=400.0)
    assert other.start == 0.0
    assert timetable.enter(20, 15).due == 20
    assert timetable.enter(600, 450).due == 600 + 15 + 75 + BESIDE_MS
    now.ms = 400.0
    assert timetable.enter(40, 30).due == 400 + 40


def test_a_turn_that_another_schedule_has_kept_from_beginning_begins_late(now: Now) -> None:
    timetable = Timetable(now)
    timetable.enter(100, 75)
    turn = timetable.enter(100, 75)
    timetable.add(1000, due=150.0)
    now.ms = 120.0
    assert timetable.remaining(turn) > 0
    now.ms = 500.0
    assert (timetable.remaining(turn), turn.start, turn.due) == (0, 150, 185)


def test_other_processes_lengthen_what_is_waited_for(now: Now) -> None:
    timetable = Timetable(now)
    timetable.enter(100, 75, 3)
    assert timetable.wait(100, 75, 3) == 3 * 75 + BESIDE_MS
    assert timetable.enter(100, 75, 3).due == 100 + 3 * 75 + BESIDE_MS
    assert timetable.admit(9, 3) > 0
    assert timetable.enter(12, 9, 3).due == 12 + 3 * 75 + BESIDE_MS, (
        "the first has no room for three times 9"
    )


Asked = tuple[float, str, float]


def asked(seed: int) -> list[Asked]:
    """Times, acts and lengths of requests: bursts, and long turns among short ones."""
    draw, found, at = seeded_random(seed), list[Asked](), 0.0
    for _ in range(12):
        at += draw.choice([0.0, 1.0, 50.0, 2000.0])
        for _ in range(draw.choice([1, 3, 16])):
            at += draw.random()
            found.append((at, draw.choice(["turn", "turn", "gone"]), draw.choice([20, 300, 4000])))
    return found


@dataclass
class Machine:
    """What a server does with a timetable: requests are let in, planned for as long as an arrival's
    budget, enter, and are computed from their start on, on a machine that works on what is due
    first. `share`: of its budget that a computation takes, by the number of its request.
    """

    requests: list[Asked]
    share: Any
    now: Now = field(default_factory=Now)
    shown: dict[int, tuple[float, float]] = field(default_factory=dict)
    late: list[int] = field(default_factory=list)

    def run(self) -> None:
        timetable, events = Timetable(self.now), list[tuple[float, int, int, Any]]()
        work = dict[int, tuple[PlannedTurn, float]]()
        at = 0.0
        for number, (time, act, _) in enumerate(self.requests):
            heappush(events, (time, 0, number, act))
        while events:
            time, stage, number, given = heappop(events)
            self._work(work, at, time)
            self.now.ms = at = time
            alone = self.requests[number][2]
            match stage:
                case 0 if (wait := timetable.admit(30)) > 0:
                    heappush(events, (time + wait, 0, number, given))
                case 0:
                    heappush(events, (time + 30, 1, number, given))
                case 1:
                    timetable.arrived()
                    turn = timetable.enter(alone, 0.75 * alone)
                    if given == "gone":
                        timetable.leave(turn)
                    else:
                        heappush(events, (time, 2, number, turn))
                case _ if (wait := timetable.remaining(given)) > 0:
                    heappush(events, (time + max(wait, 1e-3), 2, number, given))
                case _:
                    self.shown[number] = given.start, given.due
                    work[number] = given, self.share(number) * 0.75 * alone
        self._work(work, at, at + 1e9)

    def _work(self, work: dict[int, tuple[PlannedTurn, float]], at: float, until: float) -> None:
        while work and at < until:
            number = min(work, key=lambda k: (work[k][0].due, k))
            turn, left = work[number]
            passed = min(left, until - at)
            at += passed
            if passed < left:
                work[number] = turn, left - passed
                continue
            del work[number]
            if at > turn.due + 0.01:  # the clock's and the sums' rounding
                self.late.append(number)


def machines(seed: int) -> Iterator[Machine]:
    for share in (lambda _: 0.0, lambda _: 1.0, lambda number: (number * 7 % 11) / 10):
        machine = Machine(asked(seed), share)
        machine.run()
        yield machine


@pytest.mark.parametrize("seed", range(8))
def test_replies_are_shown_alike_whatever_computations_take_and_none_is_late(seed: int) -> None:
    """Where arrivals cost the computations nothing and no computation takes more than its
    budget."""
    shown, late = zip(*((machine.shown, machine.late) for machine in machines(seed)), strict=True)
    assert shown[0] == shown[1] == shown[2]
    assert late == ([], [], [])
    assert len(shown[0]) == sum(act == "turn" for _, act, _ in asked(seed))


@pytest.mark.parametrize("seed", range(8))
def test_at_every_time_the_budgets_before_a_turn_fit(seed: int) -> None:
    """(*) of the module: after each act, and however the acts follow each other."""
    now, draw = Now(), seeded_random(seed)
    timetable, turns, arriving = Timetable(now), list[PlannedTurn](), 0
    for _ in range(300):
        now.ms += draw.choice([0.0, 0.5, 10.0, 200.0])
        act = draw.choice(["enter", "enter", "admit", "arrived", "leave"])
        if act == "enter":
            alone = draw.choice([10.0, 100.0, 1000.0])
            turns.append(timetable.enter(alone, 0.75 * alone))
        elif act == "admit":
            arriving += timetable.admit(draw.choice([5.0, 30.0])) == 0
        elif act == "arrived" and arriving:
            timetable.arrived()
            arriving -= 1
        elif act == "leave" and turns:
            timetable.leave(turns.pop(draw.randrange(len(turns))))
        timetable.wait(1, 1)
        assert all(room >= -1e-6 for _, room in timetable._rooms())
        dues = [turn.due for turn in timetable._turns]
        assert dues == sorted(dues)
        assert all(turn.due > now.ms for turn in timetable._turns)
