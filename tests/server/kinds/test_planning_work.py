# SPDX-License-Identifier: Apache-2.0
"""The most expensive question that each kind's schema allows is planned with bounded work and
memory, or refused at once.

Work is counted, not timed: calls of Python, and the size of what is decomposed. A design of 256
columns takes about .4 s of one core, of which .06 s for each forecast at another amount; collinear
terms take .7 s.
"""

import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.query import Privacy
from reticent_server.errors import ReticentError
from reticent_server.kinds import KINDS
from reticent_server.pipeline import planning
from reticent_server.pipeline.forecasts import forecast_json
from support.kinds.dearest import FACTS, DearQuestion, dear_questions

CALLS = 560_000
"""Of Python functions: about .1 µs to 1 µs each; the longest formula takes .5 s to read."""

COLUMNS = 256
DECOMPOSITIONS = 60
"""Of matrices of COLUMNS, whose cubes are added up: 6 ms each."""

MEGABYTES = 100
"""Of what a plan holds at its peak: designs of 4,096 public rows, 8 MB each, of which some are held
at a time.
"""

QUESTIONS = dear_questions()


@dataclass
class Work:
    """calls: of functions. cubes: of the sizes of decomposed matrices."""

    calls: int = 0
    cubes: int = 0


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    work, decompose = Work(), np.linalg.eigh

    def noted(a: Any, *more: Any, **options: Any) -> Any:
        work.cubes += np.shape(a)[-1] ** 3
        return decompose(a, *more, **options)

    def called(_frame: Any, event: str, _argument: Any) -> None:
        work.calls += event == "call"

    monkeypatch.setattr(np.linalg, "eigh", noted)
    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield work
    finally:
        sys.setprofile(before)


def plan(question: DearQuestion) -> None:
    """All that the reply to POST /v1/plans asks of it."""
    with suppress(ReticentError):  # some are refused, which takes no longer
        ready = planning.plan(FACTS, question.query, Privacy(1.0, 1e-6), gaussian=True)
        forecast_json(ready)
        _ = ready.planned.precision


def test_there_is_one_of_every_kind() -> None:
    asked = {question.query.kind for question in QUESTIONS}  # type: ignore[attr-defined]
    assert {kind.name for kind in KINDS if kind.for_analysts} <= asked


@pytest.mark.slow
@pytest.mark.sample(64)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.label)
def test_the_work_and_the_memory_of_a_plan_are_bounded(
    question: DearQuestion, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracemalloc.start()
    try:
        with counted(monkeypatch) as work:
            plan(question)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert work.calls <= CALLS
    assert work.cubes <= DECOMPOSITIONS * COLUMNS**3
    assert peak <= MEGABYTES << 20
