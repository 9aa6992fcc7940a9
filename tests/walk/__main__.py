# SPDX-License-Identifier: Apache-2.0
"""The long form of the walk: all pairs of values of two fields, each from end to end.

    python tests/walk [--kinds NAME …] [--part K/N] [--sample N] [--seed S] [--again QUESTION]

The parts K of N have each pair once. Exits with 1 where something does not hold; the last lines say
each fault once, with a question that shows it, and how much was walked.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from time import monotonic

import pytest
import structlog

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from support.attacks.seeded_noise import seed_noise  # noqa: E402 - it is not installed
from walk.questions import TABLES, Json, Question  # noqa: E402
from walk.steps import RULES, Walk, walking  # noqa: E402

FORMED = 8
"""Of the questions that are released, one in so many is also put into the form of the workbench,
which plans it along a curve."""
AT_ONCE = 300
"""Replies that R reads in one run."""


def paired(walk: Walk, kind: str, part: slice, random: Random) -> Iterator[list[Question]]:
    """The pairs of values of a part, in an order by chance: each in contexts of the first, about
    tables, of which the first that is planned goes on."""
    pairs = list(walk.interface.pairs(kind))
    random.shuffle(pairs)
    for one, other in pairs[part]:
        contexts = walk.interface.contexts(one)[:3]
        tables = [random.choice(TABLES), *random.sample(TABLES[:2], 2)]
        queries = [other.put(random.choice(contexts)) for _ in tables]
        yield [
            walk.question(random.choice(walk.interface.about(table, query)), table)
            for table, query in zip(tables, queries, strict=True)
        ]


def go(walk: Walk, questions: Sequence[Question], number: int) -> None:
    """The whole way of the first question that is planned."""
    for question in questions:
        plan = walk.planned(question)
        if plan is None:
            continue
        walk.released(question, plan)
        if number % FORMED == 0:
            walk.formed(question)
        if len(walk.replies) >= AT_ONCE:
            walk.read_by_r()
        return


def asked(text: str) -> Question:
    """The question of a fault, as it was printed."""
    body: Json = json.loads(text)
    rule = body.get("rule", RULES[0])
    return Question(body["dataset"], body["query"], rule, body["privacy"]["epsilon"])


def report(walk: Walk, seconds: float) -> None:
    """How much was walked, and each fault once."""
    first: dict[tuple[str, str], list[str]] = {}
    for fault in walk.faults:
        first.setdefault((fault.what, fault.question.query["kind"]), []).append(str(fault))
    for (_, kind), every in sorted(first.items()):
        print(f"{len(every)} x {kind}: {every[0]}")
    amounts = ", ".join(f"{number:,} {what}" for what, number in walk.walked.items())
    print(f"{amounts}; {len(walk.faults)} faults of {len(first)} sorts, in {seconds / 60:.1f} min")


def main() -> int:
    """1 where there are faults."""
    parser = argparse.ArgumentParser(prog="python tests/walk")
    parser.add_argument("--kinds", nargs="+", default=[], help="names of kinds; all by default")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of N parts")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="one in N pairs")
    parser.add_argument("--seed", type=int, default=0, help="of the sample, of noise, of tables")
    parser.add_argument("--again", metavar="QUESTION", help="one question, as a fault prints it")
    given = parser.parse_args()
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    first, parts = map(int, given.part.split("/"))
    part = slice(first - 1, None, parts * given.sample)
    began = monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        pytest.MonkeyPatch.context() as patch,
        walking(Path(folder) / "walk") as walk,
    ):
        seed_noise(patch, f"walk {given.seed}")
        try:
            if given.again:
                go(walk, [asked(given.again)], 0)
            for kind in () if given.again else given.kinds or walk.interface.kinds:
                random = Random(f"{kind} {given.seed}")  # fixed: a seed of its own option
                for number, questions in enumerate(paired(walk, kind, part, random)):
                    go(walk, questions, number)
                print(f"{kind}: {dict(walk.walked)}, {len(walk.faults)} faults", flush=True)
        finally:  # a walk that is stopped says what it has found, too
            walk.read_by_r()
            report(walk, monotonic() - began)
        return 1 if walk.faults else 0


if __name__ == "__main__":
    sys.exit(main())
