# SPDX-License-Identifier: Apache-2.0
"""Asks questions of their tables, one after the other, and says loudly what could not be asked."""

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.gauntlet import goals
from benchmarks.gauntlet.lines import Line
from benchmarks.gauntlet.questions import GauntletQuestion
from benchmarks.gauntlet.tables import AbsentTable, table
from reticent_server.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one question: its lines, or why there are none. silent: ε at which no sample got a reply;
    broken: an error that is nobody's answer, a defect.
    """

    question: GauntletQuestion
    lines: list[Line]
    silent: tuple[float, ...] = ()
    refused: str = ""
    skipped: str = ""
    broken: str = ""

    def goals(self, *, missed: bool) -> set[str]:
        """The goals that any line misses beyond chance, or does not meet."""
        found = {
            name for line in self.lines for name in goals.names(line.verdicts(), missed=missed)
        }
        return found | ({goals.ANSWERED} if self.refused or self.silent or self.broken else set())


def asked(
    question: GauntletQuestion, reps: int, epsilons: Sequence[float] | None = None
) -> Outcome:
    """One question at `epsilons`, or at its own."""
    try:
        whole = table(question.table)
    except AbsentTable as error:
        return Outcome(question, [], skipped=str(error))
    try:
        wanted = tuple(epsilons or question.epsilons)
        lines = question.lines(whole, wanted, reps)
        heard = {line.epsilon for line in lines}
        return Outcome(question, lines, tuple(e for e in wanted if e not in heard))
    except InvalidRequest as error:
        return Outcome(question, [], refused=str(error))
    except Exception as error:  # noqa: BLE001 - one model's defect does not end a run of hours
        traceback.print_exc()
        return Outcome(question, [], broken=f"{type(error).__name__}: {error}")


def run(
    questions: Sequence[GauntletQuestion], reps: int, epsilons: Sequence[float] | None = None
) -> Iterator[Outcome]:
    """Each question in turn, printed as it is answered."""
    for question in questions:
        start = time.perf_counter()
        outcome = asked(question, reps, epsilons)
        for line in outcome.lines:
            missed = goals.names(line.verdicts(), missed=True)
            unmet = goals.names(line.verdicts(), missed=False)
            said = "declined" if line.declined else ", ".join(missed).upper() or ", ".join(unmet)
            print(f"{line.text()} | {said or 'ok'}", flush=True)
        if outcome.silent:
            print(
                f"{question.kind} | {question.name} | no reply at eps {outcome.silent}", flush=True
            )
        if outcome.skipped:
            print(f"!! SKIPPED {question.name}: {outcome.skipped}", flush=True)
        if outcome.refused:
            print(f"{question.kind} | {question.name} | refused: {outcome.refused}", flush=True)
        if outcome.broken:
            print(f"!! BROKEN {question.name}: {outcome.broken}", flush=True)
        print(f"    ({time.perf_counter() - start:.0f} s)", flush=True)
        yield outcome
