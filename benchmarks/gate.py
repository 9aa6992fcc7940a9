# SPDX-License-Identifier: Apache-2.0
"""Will there be intervals? What a plan says of it beside what comes, of ordinary questions about
real tables.

`python -m benchmarks gate` asks each model of `models.json` once (`benchmarks.real_tables`;
docs/benchmarks.md names where the 23 tables come from), with a target and an ε that change from
one to the next, of GATE_RUNS samples of the table with a profile at ε = .5 each. A plan is right
where it expects some interval and some come, or none and none come; of terms the share is told,
too. Plans, the search for a width, a dry run and the simulator all read the same figure: the
plan's `precision`.

GATE_RUNS (3): samples. REAL_TABLES: the folder. GATE_ONLY: a part of a model's name.
"""

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from benchmarks.gauntlet.questions import QuestionFields
from benchmarks.real_tables.__main__ import asked_query
from benchmarks.real_tables.fast import numpy_noise
from benchmarks.real_tables.models import MOST, Folder, RealModel, read_folder

RUNS = int(os.environ.get("GATE_RUNS", "3"))
ONLY = os.environ.get("GATE_ONLY", "")
EPSILONS = tuple(
    map(float, os.environ.get("GATE_EPSILONS", "0.25 1 4").split())
)  # from where few intervals are given to where nearly all are
GOAL = 0.9  # of the answers


@dataclass(frozen=True, slots=True)
class KeptWord:
    """One release beside its plan: expected, came: (q,) of each term."""

    expected: np.ndarray
    came: np.ndarray

    @property
    def right(self) -> bool:
        return bool(self.expected.any() == self.came.any())

    @property
    def promised(self) -> bool:
        """Whether an interval was expected and none came: the worse mistake."""
        return bool(self.expected.any() and not self.came.any())

    @property
    def terms(self) -> float:
        return float(np.mean(self.expected == self.came))


def kept(table, query, epsilon: float) -> KeptWord:
    """What is expected of a question, and what comes."""
    plan = table.plan(query, epsilon)
    expected = np.isfinite(np.array(plan.planned.precision.privacy))
    result = table.reply(plan)
    bounds = [] if result is None else result["confidence_intervals"]
    came = np.array([low is not None for low, _ in bounds] or np.zeros(len(expected), bool))
    return KeptWord(expected, came)


def questions(folder: Folder) -> Iterator[tuple[RealModel, str, float]]:
    """(model, way of asking, ε): every third model at each ε, every other with each target."""
    ways = zip(cycle(("default", "textbook")), cycle(EPSILONS))
    for model, (way, epsilon) in zip(folder.models, ways, strict=False):
        textbook = "squared" if model.linear else "likelihood"
        asked = textbook if way == "textbook" else "default"
        yield model, asked, epsilon


def answers(folder: Folder, model: RealModel, asked: str, epsilon: float) -> list[KeptWord]:
    """Of RUNS samples."""
    frame = folder.frame(model.table)
    wanted = QuestionFields(model.name, model.table, None, (), model.query)
    exposure = getattr(model.query, "exposure", None)
    names = set(wanted.needed(frame).columns) | ({str(exposure)} if exposure else set())
    frame, query = frame.of(names), asked_query(model, asked) or model.query
    found = []
    for k in range(RUNS):
        rng = np.random.default_rng((zlib.crc32(model.name.encode()), k))
        with numpy_noise(rng, on=True):
            table = frame.sample(rng, min(frame.n, MOST))
            found.append(kept(table, query, epsilon))
            table.close()
    return found


def main() -> None:
    folder, found = read_folder(), []
    for model, asked, epsilon in questions(folder):
        if ONLY not in model.name:
            continue
        each = answers(folder, model, asked, epsilon)
        found += each
        print(
            f"{model.name:30s} {asked:10s} eps={epsilon:<4g} expected "
            f"{np.mean([x.expected.mean() for x in each]):.2f} came "
            f"{np.mean([x.came.mean() for x in each]):.2f} right "
            f"{np.mean([x.right for x in each]):.2f} terms {np.mean([x.terms for x in each]):.2f}",
            flush=True,
        )
    right, promised = np.mean([x.right for x in found]), np.mean([x.promised for x in found])
    print(
        f"{len(found)} answers: right {right:.2f} (goal {GOAL}), promised and not given "
        f"{promised:.2f}, right of terms {np.mean([x.terms for x in found]):.2f}"
    )


if __name__ == "__main__":
    main()
