# SPDX-License-Identifier: Apache-2.0
"""Threads that map one step over blocks, and share themselves between the passes that are under
way.

A pass is worked on in turns of a few blocks; after its turn a thread takes up the pass whose reply
is due first, and of those the one that has waited longest. A short query thus goes through beside a
long one, whatever came first, and what comes later does not delay a reply that was promised before.
When replies are due is public.
"""

from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from heapq import heappop, heappush
from itertools import count, islice
from math import inf
from threading import Lock, local
from typing import Any

from reticent_server.domain.scratch import ReusedScratch
from reticent_server.domain.steps import Block, SumStep
from reticent_server.engine.block_sums import added, block_sums
from reticent_server.engine.helper import FAILURE, Helper
from reticent_server.engine.pieces import RowSlice
from reticent_server.engine.shared_memory import make_room

# after which a thread takes up the pass that has waited longest: fewer are fairer, more cost less
# to change
TURN_BLOCKS = 16
HELPED_ROWS = 1 << 16  # below it sending a step to a process costs more than it saves; speed only
# helpers that ended by themselves, after which the threads go on without: no endless restarts
MOST_LOSSES = 16


class Workers:
    """A number of threads, each with memory for the arrays of one block, and with a process that
    helps.

    helped: whether passes of HELPED_ROWS rows or more use processes; a single thread does without.
    """

    def __init__(self, threads: int, *, helped: bool = False) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="blocks")
        self._own = local()
        self._helped = helped and threads > 1
        if self._helped:
            make_room()
        self._helpers: list[Helper] = []
        self._losses = 0
        self._changing = Lock()
        self._waiting: list[tuple[float, int, _Pass, bool]] = []

    def totals(
        self,
        step: SumStep,
        pieces: Generator[RowSlice, None, None],
        rows: int = 0,
        block_rows: int = 1,
        due: float = inf,
    ) -> list[Any]:
        """The step's statistics over all pieces; raises what a map or the reading of pieces raises.

        rows, block_rows: how many rows there are, and in a piece, where that is known. due: when
        the reply is to be shown, by any clock that all passes have in common.
        """
        work = _Pass(step, pieces, -(-rows // block_rows), self._threads)
        helped = self._helped and rows >= HELPED_ROWS
        for _ in range(self._threads):
            self._wait(due, work, helped)
        try:
            return work.result()
        finally:
            pieces.close()

    def _wait(self, due: float, work: "_Pass", helped: bool) -> None:
        """A pass waits for one thread's next turn."""
        with self._changing:
            heappush(self._waiting, (due, next(_numbers), work, helped))
        self._pool.submit(self._turn)

    def _turn(self) -> None:
        """One for each pass that waits."""
        with self._changing:
            due, _, work, helped = heappop(self._waiting)
        if work.turn(self._scratch(), self._helper() if helped else None):
            self._wait(due, work, helped)

    def _scratch(self) -> ReusedScratch:
        if not hasattr(self._own, "scratch"):
            self._own.scratch = ReusedScratch()
        scratch: ReusedScratch = self._own.scratch
        return scratch

    def _helper(self) -> Helper | None:
        """This thread's process, a new one in the place of a lost one; None after many losses."""
        helper: Helper | None = getattr(self._own, "helper", None)
        if helper is None or helper.lost:
            self._own.helper = helper = self._another(helper)
        return helper

    def _another(self, lost: Helper | None) -> Helper | None:
        with self._changing:
            if lost is not None:
                self._losses += 1
                self._helpers.remove(lost)
                lost.close()
            if self._losses >= MOST_LOSSES:
                return None
            try:
                self._helpers.append(Helper())
            except OSError:
                self._losses += 1
                return None
            return self._helpers[-1]

    def each(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """work(item) for every item, on the threads, in the order of the items."""
        return list(self._pool.map(work, items))

    def tidy(self) -> None:
        """Lets the processes give up columns that the server has given up."""
        for helper in list(self._helpers):
            helper.tidy()

    def close(self) -> None:
        """Ends threads and processes, after the passes that are under way."""
        self._pool.shutdown()
        for helper in self._helpers:
            helper.close()


_numbers = count()


class _Pass:
    """One step over one table, worked on by several threads.

    It is finished when no piece is left, or after an error, and no thread is at work on it.
    expected: the number of pieces, where it is known: threads take fewer towards the end, and of a
    few pieces equal shares.
    """

    def __init__(
        self, step: SumStep, pieces: Iterator[RowSlice], expected: int, threads: int
    ) -> None:
        self._step = step
        self._pieces = pieces
        self._left, self._threads = expected, threads
        self._least = -(-expected // threads) if 0 < expected <= 4 * threads else 1
        self._number = next(_numbers)
        self._reading, self._changing = Lock(), Lock()
        self._at_work = 0
        self._exhausted = False
        self._totals: list[Any] | None = None
        self._error: BaseException | None = None
        self._finished: Future[list[Any]] = Future()

    def result(self) -> list[Any]:
        """The sums over all pieces, once the last is done. Raises what a piece has raised."""
        return self._finished.result()

    def turn(self, scratch: ReusedScratch, helper: Helper | None) -> bool:
        """Works on a few pieces; False when none is left."""
        with self._changing:
            if self._exhausted:
                return False
            self._at_work += 1
        try:
            self._end_turn(self._sums_of_a_turn(scratch, helper), None)
        except BaseException as error:  # noqa: BLE001 - raised again where the result is wanted
            self._end_turn(None, error)
        return not self._exhausted

    def _sums_of_a_turn(self, scratch: ReusedScratch, helper: Helper | None) -> list[Any] | None:
        sums: list[Any] | None = None
        turn = TURN_BLOCKS
        while turn > 0 and (pieces := self._next_slices(turn if helper else 1)):
            turn -= len(pieces)
            its_sums = helper.sums(self._number, self._step, pieces) if helper else None
            if its_sums is None:
                for piece in pieces:
                    sums = added(sums, _sums_of(self._step, piece.block(scratch)))
            else:
                sums = added(sums, its_sums)
        return sums

    def _next_slices(self, most: int) -> list[RowSlice]:
        """Pieces that no other thread has taken: fewer when few are left; none at the end."""
        with self._reading:
            if self._exhausted:
                return []
            wanted = min(most, max(self._least, 2 * self._left // (3 * self._threads)))
            pieces = list(islice(self._pieces, wanted))
            self._left -= len(pieces)
            if len(pieces) < wanted:
                self._exhausted = True
            return pieces

    def _end_turn(self, sums: list[Any] | None, error: BaseException | None) -> None:
        """Errors lose their traceback, whose frames hold private arrays."""
        with self._changing:
            self._at_work -= 1
            if error is not None:
                self._exhausted, self._error = True, error.with_traceback(None)
            if sums is not None:
                self._totals = added(self._totals, sums)
            if self._exhausted and not self._at_work:
                self._finish()

    def _finish(self) -> None:
        if self._error is None:
            self._finished.set_result(self._totals or [])
        else:
            self._finished.set_exception(self._error)


def _sums_of(step: SumStep, block: Block) -> list[Any]:
    """The block's sums. Raises RuntimeError without a word of what went wrong, as other processes
    do: an exception's text may depend on a private cell.
    """
    try:
        return block_sums(step, block)
    except Exception:  # noqa: BLE001 - see above
        failed = RuntimeError(FAILURE)
    raise failed
