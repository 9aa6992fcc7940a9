# SPDX-License-Identifier: Apache-2.0
"""When a reply is shown: from the plan, the speed of this machine, and how much is computed at the
same time.

All three are public: a plan is made from public facts; the machine is measured at start on a table
that is made up; and what is computed are releases that were charged and whose deadlines have not
come. So is whether columns are in memory: earlier requests and the sizes of columns decide it.

A plan's own deadline is generous, since it has to hold on any machine. Where the machine was
measured, a reply is shown after some slack over what the plan takes on it alone, and after what has
turns before it (pipeline.timetable, where it is proved that no other computation's time is in it).
What a plan takes is known in two ways:

- of *steady* plans (domain.plan.Planned.steady) the machine was asked at two numbers of records: a
  share of what is expected, for each sort of plan, the largest of its examples, and between the two
  numbers on the line in log n;
- of all others, and of tables with fewer records, by what is expected at most on a machine of this
  speed.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from reticent_server.domain.clock import Clock
from reticent_server.domain.plan import Plan
from reticent_server.pipeline.timetable import Timetable

SLACK, STEADY_SLACK = 2.0, 1.6
"""Of the time that is expected, and of that of steady plans, which was measured: it varies by a
third or so, and what arrives later takes its share."""
LEAST_SPEED, LARGEST_SPEED = 0.5, 50.0
"""Outside, something other than the machine was measured: it slept, or was busy with something
else."""
OVERHEAD_MS = 8.0
"""Of a charge, its two transactions, and a thread that has to wait for its turn: measured 3 to
6."""


Shares = Mapping[str, Mapping[int, float]]
"""Of each sort of plans and number of records: milliseconds on this machine over those that are
expected."""


BUDGET = 0.75
"""Of what a computation is promised: what it takes, with a fifth more. So much is kept free for it
where others wait."""

TURN_MS = 12.0
"""Of a turn beside its computation, on a machine whose pace is 1 or a faster one: the charge, which
is written to a disk, the question whether it holds, and storing and sending the reply. Measured 11
to 14 of a mean that takes 3."""


ARRIVAL_MS = 20.0
"""Of authorising and planning a request while computations run: measured 5 (a mean) to 19 (a
description of a table)."""

LOOK_MS = 50
"""Between two looks of who waits for a turn: so long it may begin late after a refused charge."""


@dataclass(frozen=True, slots=True)
class BegunTurn:
    """plan: with the deadline that was promised, counted from `started`, the turn's planned start
    in the clock's seconds."""

    plan: Plan
    started: float


class Pace:
    """Unmeasured, the plans' own deadlines hold."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._speed: float | None = None
        self._shares: Shares = {}
        self._processes = 1
        self._timetable = Timetable(self._now)

    def measured(self, speed: float, processes: int, shares: Shares | None = None) -> None:
        """speed: how long this machine takes, relative to the one whose pace is 1. processes: that
        serve on it; each is taken to be as busy as this one."""
        self._processes, self._shares = processes, shares or {}
        self._speed = min(max(speed, LEAST_SPEED), LARGEST_SPEED)

    def promised(self, ready: Plan, *, warm: bool, beside: int | None = None) -> Plan:
        """The plan with the deadline that holds here and now.

        warm: whether its columns are in memory. beside: computations at the same time, of a release
        whose turn comes later; None: as the timetable has them.
        """
        alone = self._alone(ready, warm=warm)
        if alone is None:
            return ready
        if beside is None:
            wait = self._timetable.wait(alone, self._budget(alone), self._processes)
        else:
            wait = self._processes * beside * alone
        return replace(ready, deadline_ms=ceil(alone + wait), alone_ms=alone)

    def _alone(self, ready: Plan, *, warm: bool) -> float | None:
        """After how many milliseconds the reply is due where nothing else is computed; None: when
        the plan itself says."""
        if self._speed is None or ready.expected_ms is None:
            return None
        cold = 0.0 if warm else self._speed * ready.cold_ms
        taken = self._share(ready, self._speed) * ready.expected_ms
        alone = OVERHEAD_MS + min(taken + cold, self._speed * ready.deadline_ms)
        return max(alone, self._work(alone))

    def _work(self, alone: float) -> float:
        """What a turn takes of the machine, of that `alone`, and beside it."""
        return TURN_MS * max(1.0, self._speed or 0.0) + BUDGET * (alone - OVERHEAD_MS)

    def _budget(self, alone: float) -> float:
        return min(alone, self._work(alone))

    def _share(self, ready: Plan, speed: float) -> float:
        """Of what is expected of the plan, alone: what it takes here, with its slack."""
        shares, n = self._shares.get(ready.sort, {}) if ready.sort else {}, ready.facts.slots
        if not shares or n < min(shares):
            return SLACK * speed
        at = sorted(shares)
        return STEADY_SLACK * float(np.interp(np.log(n), np.log(at), [shares[k] for k in at]))

    @asynccontextmanager
    async def arriving(self) -> AsyncIterator[None]:
        """A request that is authorised and planned in the block. It is let in when that makes no
        reply late that is promised; what is promised meanwhile allows for it."""
        if self._speed is None:
            yield
            return
        budget = self._speed * ARRIVAL_MS
        while (wait := self._timetable.admit(budget, self._processes)) > 0:
            await asyncio.sleep(ceil(wait) / 1e3)
        try:
            yield
        finally:
            self._timetable.arrived()

    @contextmanager
    def turn(self, ready: Plan, *, warm: bool) -> Iterator[BegunTurn]:
        """A turn of the timetable, which has begun; it is waited for. What leaves the block before
        the reply is due has computed nothing."""
        alone = self._alone(ready, warm=warm)
        if alone is None:
            yield BegunTurn(ready, self._clock.monotonic())
            return
        turn = self._timetable.enter(alone, self._budget(alone), self._processes)
        try:
            while (left := self._timetable.remaining(turn)) > 0:
                self._clock.sleep(min(ceil(left), LOOK_MS) / 1e3)
            start = turn.start or 0.0
            deadline_ms = ceil(turn.due - start)
            yield BegunTurn(replace(ready, deadline_ms=deadline_ms, alone_ms=alone), start / 1e3)
        finally:
            self._timetable.leave(turn)

    @contextmanager
    def computing(self, ready: Plan) -> Iterator[None]:
        """One more computation, which the other queue has promised and begins now."""
        alone = ready.deadline_ms if ready.alone_ms is None else ready.alone_ms
        if self._speed is None:
            yield
            return
        turn = self._timetable.add(self._budget(alone), self._now() + ready.deadline_ms)
        try:
            yield
        finally:
            self._timetable.leave(turn)

    def _now(self) -> float:
        return 1e3 * self._clock.monotonic()


def shown_after_ms(grid_ms: int, deadline_ms: int, elapsed_ms: float) -> int:
    """The first point of the time grid at or after the deadline; for what overruns it, the first of
    twice, four times, … as much: the number of points would tell the time."""
    shown = -(-deadline_ms // grid_ms) * grid_ms
    while shown < elapsed_ms:
        shown *= 2
    return shown
