"""Threads that map one step over blocks, and share themselves between the passes that are under way.

A pass is worked on in turns of a few blocks; after its turn a thread takes up the pass that has waited
longest. A short query thus goes through beside a long one, whatever came first.
"""

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from threading import Lock, local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent_server.domain.scratch import ReusedScratch
from reticent_server.domain.steps import Block, Contribution, Scaled, SumStep
from reticent_server.mechanisms import registry

TURN_BLOCKS = 16


class Workers:
    """A number of threads, each with memory for the arrays of one block."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="blocks")
        self._own = local()

    def totals(self, step: SumStep, blocks: Generator[Block, None, None]) -> list[Any]:
        """The step's statistics over all blocks; raises what a map or the reading of blocks raises."""
        work = _Pass(step, blocks)
        for _ in range(self._threads):
            self._pool.submit(self._turn, work)
        try:
            return work.result()
        finally:
            blocks.close()

    def _turn(self, work: "_Pass") -> None:
        if work.turn(self._scratch()):
            self._pool.submit(self._turn, work)

    def _scratch(self) -> ReusedScratch:
        if not hasattr(self._own, "scratch"):
            self._own.scratch = ReusedScratch()
        scratch: ReusedScratch = self._own.scratch
        return scratch

    def close(self) -> None:
        """Ends the threads, after the passes that are under way."""
        self._pool.shutdown()


class _Pass:
    """One step over one table, worked on by several threads.

    It is finished when no block is left, or after an error, and no thread is at work on it.
    """

    def __init__(self, step: SumStep, blocks: Iterator[Block]) -> None:
        self._step = step
        self._blocks = blocks
        self._reading, self._changing = Lock(), Lock()
        self._at_work = 0
        self._exhausted = False
        self._totals: list[Any] | None = None
        self._error: BaseException | None = None
        self._finished: Future[list[Any]] = Future()

    def result(self) -> list[Any]:
        return self._finished.result()

    def turn(self, scratch: ReusedScratch) -> bool:
        """Works on a few blocks; False when none is left."""
        with self._changing:
            if self._exhausted:
                return False
            self._at_work += 1
        try:
            self._end_turn(self._worked(scratch), None)
        except BaseException as error:  # noqa: BLE001 - raised again where the result is wanted
            self._end_turn(None, error)
        return not self._exhausted

    def _worked(self, scratch: ReusedScratch) -> list[Any] | None:
        sums: list[Any] | None = None
        for block in islice(self._taken(), TURN_BLOCKS):
            sums = added(sums, block_sums(self._step, block, scratch))
        return sums

    def _taken(self) -> Iterator[Block]:
        """The blocks that no other thread has taken."""
        while not self._exhausted:
            with self._reading:
                block = next(self._blocks, None)
            if block is None:
                self._exhausted = True
                return
            yield block

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


def block_sums(step: SumStep, block: Block, scratch: ReusedScratch) -> list[Any]:
    """The step's exact integer statistics of one block."""
    block = _taken_out(replace(block, scratch=scratch))
    contributions = step.map_fn(block)
    usable = without(contributions, block.unusable)
    return registry.encode_all(step.parts, usable, scratch)


def _taken_out(block: Block) -> Block:
    """The records that the step is about, as a block of their own."""
    index = block.records
    if index is None:
        return block
    columns = {
        name: values.take(index, out=block.scratch.array(f"column {name}", len(index)), mode="clip")
        for name, values in block.columns.items()
    }
    return replace(
        block,
        rows=len(index),
        columns=columns,
        missing={name: mask[index] for name, mask in block.missing.items()},
        unusable=None if block.unusable is None else block.unusable[index],
        records=None,
    )


def added(totals: list[Any] | None, sums: list[Any]) -> list[Any]:
    return sums if totals is None else [a + b for a, b in zip(totals, sums, strict=True)]


def without(
    contributions: Sequence[Contribution], unusable: NDArray[np.bool_] | None
) -> Sequence[Contribution]:
    """The contributions, but none of the unusable records: what is not finite counts nowhere."""
    if unusable is None or not unusable.any():
        return contributions
    return [_without(c, unusable) for c in contributions]


def _without(contribution: Contribution, unusable: NDArray[np.bool_]) -> Contribution:
    if isinstance(contribution, Scaled):
        return replace(contribution, weights=np.where(unusable, np.nan, contribution.weights))
    return np.where(unusable, np.nan, contribution)
