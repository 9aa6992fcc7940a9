# SPDX-License-Identifier: Apache-2.0
"""Whose computation begins when, and when each reply is due: one machine's public timetable.

Each release that is computed has a turn. A turn has its *budget*, the milliseconds that the plan
says it takes here, and a *due* time, at which its reply is shown. Requests that are authorised and
planned have a budget, too. The timetable follows an imagined machine which works off budgets and
nothing else: first those of arrivals, then that of the turn that is due first. A turn begins when
this machine comes to it, so that computations do not divide the interpreter among themselves, and
is due no sooner than the machine has worked off the budgets before it and its own.

*What is promised stays promised.* With L_i the budget that is left of turn i, A that of arrivals,
and t the time, every turn j has

    A + Σ {L_i : turn i is due no later than j} ≤ due_j - t,    until t = due_j.    (*)

A turn that comes is due after its own budget and those of all that are due before it, and goes
before another, much longer one only where that one's difference of the two sides of (*), its
*room*, is at least its budget. A request is let in to be planned only where each room is at least
an arrival's budget. As time passes the machine works off one millisecond a millisecond of the left
side of (*) for each turn j that has any, in the order of the sum, so (*) goes on to hold, and the
machine has ended turn j by its due time. The real one has, where computations take no longer than
their budgets.

*Nothing private is in it.* Budgets, and the times at which requests come, are planned, are refused
(as charges may be) or are due, are all that is read: no method is told when a computation ends. A
turn's start and due time, and when a request is let in, are therefore functions of public values,
whatever records make computations take; a computation that takes longer than its promise changes
the time of no other reply unless that is late, too.

What it does not know: the work of reads and of free plans, for which budgets have room; and what
the other queue (pipeline.schedule) has promised, whose turns come with due times of their own and
may break (*) for others. A request is planned on the same processors as computations, so *when it
is planned* may be some milliseconds later beside one of them; its turn is counted from then.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Lock

BESIDE_MS = 10.0
"""Of a turn that has anything before it, for threads that change places: Python hands over every 5
ms. So far apart, too, replies are shown."""

MUCH_LONGER = 4.0
"""Times its own budget is that of a turn before which another one goes. A turn that has begun goes
on beside those before it: of alike ones many would, each promised the time of one."""


@dataclass(slots=True, eq=False)
class PlannedTurn:
    """budget: what is left of it on the imagined machine. due: when the reply is shown. whole: the
    budget at first. start: when the imagined machine has come to it; None: not yet. All in
    milliseconds, of the timetable's clock."""

    budget: float
    due: float
    whole: float
    start: float | None = None


class Timetable:
    """now: the clock's milliseconds, which never go back."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._at = now()
        self._arrivals, self._arriving = 0.0, 0
        self._turns: list[PlannedTurn] = []
        self._lock = Lock()

    def admit(self, budget: float, times: float = 1.0) -> float:
        """Lets a request in to be planned, and gives 0; or gives the milliseconds after which there
        may be room for it. times: as for `enter`."""
        with self._lock:
            self._follow()
            closed = [turn.due for turn, room in self._rooms() if room < times * budget]
            if closed:
                return min(closed) - self._at
            self._arrivals += budget
            self._arriving += 1
            return 0.0

    def arrived(self) -> None:
        """A request that was let in is planned, or refused: it takes no more of the machine before
        its turn."""
        with self._lock:
            self._follow()
            self._arrivals -= self._arrivals / self._arriving
            self._arriving -= 1

    def wait(self, alone: float, budget: float, times: float = 1.0) -> float:
        """How much later than after `alone` a turn that came now would be due; the arguments are
        those of `enter`."""
        with self._lock:
            self._follow()
            return self._due(self._place(alone, budget, times), alone, times) - self._at - alone

    def enter(self, alone: float, budget: float, times: float = 1.0) -> PlannedTurn:
        """A turn that comes now. alone: after which it is due where there is nothing else, and
        which is no less than its budget. times: by how much what is before it may be slower than
        this timetable knows, as other processes have timetables of their own."""
        with self._lock:
            self._follow()
            place = self._place(alone, budget, times)
            turn = PlannedTurn(budget, self._due(place, alone, times), budget)
            self._turns.insert(place, turn)
            self._begin()
            return turn

    def add(self, budget: float, due: float) -> PlannedTurn:
        """A turn that another schedule has promised for a time of this clock, and that begins
        now."""
        with self._lock:
            self._follow()
            turn = PlannedTurn(budget, due, budget, self._at)
            place = sum(other.due <= due for other in self._turns)
            self._turns.insert(place, turn)
            return turn

    def remaining(self, turn: PlannedTurn) -> float:
        """Milliseconds until the turn begins at the earliest, if none before it leaves; 0: it has
        begun."""
        with self._lock:
            self._follow()
            if turn.start is not None:
                return 0.0
            return sum(other.budget for other in self._turns_before(turn))

    def leave(self, turn: PlannedTurn) -> None:
        """There is nothing to compute: the charge was refused, say. Does nothing after the turn's
        due time."""
        with self._lock:
            self._follow()
            if turn in self._turns:
                self._turns.remove(turn)
                self._begin()

    def _follow(self) -> None:
        """The imagined machine up to now."""
        now = self._now()
        while self._at < now:
            self._end()
            working = next((turn for turn in self._turns if turn.budget > 0), None)
            next_due = min((turn.due for turn in self._turns), default=inf)
            left = self._arrivals or (working.budget if working else inf)
            passed = min(left, now - self._at, max(0.0, next_due - self._at))
            if self._arrivals:
                self._arrivals -= passed
            elif working:
                working.budget -= passed
            self._at = now if passed == now - self._at else self._at + passed
        self._end()

    def _end(self) -> None:
        """Turns that are due are over, and the next one begins."""
        self._turns = [turn for turn in self._turns if turn.due > self._at]
        self._begin()

    def _begin(self) -> None:
        """The first turn with anything left begins, arrivals or not: these do not keep all of a
        machine busy."""
        working = next((turn for turn in self._turns if turn.budget > 0), None)
        if working is not None and working.start is None:
            working.start = self._at

    def _place(self, alone: float, budget: float, times: float) -> int:
        """The first place after which every turn is much longer, has room for the budget and is due
        no sooner."""
        rooms, place = self._rooms(), len(self._turns)
        while place:
            turn, room = rooms[place - 1]
            sooner = self._due(place - 1, alone, times)
            alike = turn.whole < MUCH_LONGER * budget
            if alike or room < times * budget or turn.due < sooner:
                break
            place -= 1
        return place

    def _due(self, place: int, alone: float, times: float) -> float:
        """Of a turn at a place: after those before it, so that it begins before it is due whatever
        becomes of these, and replies are stored and sent one after the other."""
        latest = max((turn.due for turn in self._turns[:place]), default=0.0)
        return max(latest + BESIDE_MS, self._at + alone + self._wait(place, times))

    def _wait(self, place: int, times: float) -> float:
        """How much later than alone a turn at a place is due."""
        before = self._before(place)
        return BESIDE_MS + times * before if before else 0.0

    def _before(self, place: int) -> float:
        """What is left of arrivals and of the turns before a place."""
        return self._arrivals + sum(turn.budget for turn in self._turns[:place])

    def _rooms(self) -> list[tuple[PlannedTurn, float]]:
        """Each turn and its room, in the order in which they are due."""
        return [
            (turn, turn.due - self._at - self._before(place + 1))
            for place, turn in enumerate(self._turns)
        ]

    def _turns_before(self, turn: PlannedTurn) -> list[PlannedTurn]:
        return self._turns[: self._turns.index(turn)]
