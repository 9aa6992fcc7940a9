# SPDX-License-Identifier: Apache-2.0
"""What takes long to plan goes to processes of its own: the same answers, within limits of time and
memory.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from annotated_types import Ge

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.patience import Patience, checkpoint
from reticent_server.domain.query import Privacy
from reticent_server.errors import CallerLeft, InvalidQuery, ReticentError
from reticent_server.kinds import KINDS, example
from reticent_server.pipeline import planner as planners
from reticent_server.pipeline import planning
from reticent_server.pipeline.planner import Planner
from reticent_server.pipeline.simulator import ruled, simulate
from reticent_server.settings import Settings
from support.processes.forked import forked_child

FACTS = DatasetFacts("e", "e", 1, "e", 10**5, example.SCHEMA)
SECONDS = 60


@pytest.fixture
def _forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of the fork server: a new interpreter imports the server for two seconds first."""
    monkeypatch.setattr(planners, "child", forked_child)


@pytest.fixture
def planner() -> Iterator[Planner]:
    made = started()
    yield made
    made.close()


def started(seconds: float = SECONDS, megabytes: int = 3072) -> Planner:
    """With one process, which is ready."""
    made = Planner(1, seconds, megabytes)
    made.start()
    assert made.run(os.getpid) != os.getpid()
    return made


@pytest.mark.slow
def test_every_kinds_plan_is_the_same_from_another_process() -> None:
    """A new interpreter, with as little memory as a server may give it."""
    limits = Settings.model_fields["plan_megabytes"].metadata
    least = next(limit.ge for limit in limits if isinstance(limit, Ge))
    with closing(started(megabytes=least)) as planner:
        for kind in KINDS:
            query, privacy = kind.examples[0], Privacy(1.0, 1e-6)
            here = planning.plan(FACTS, query, privacy)
            there = planner.run(planning.plan, FACTS, query, privacy)
            assert (there.cost, there.deadline_ms) == (here.cost, here.deadline_ms)
            assert there.guarantee == here.guarantee
            assert repr(there.planned.forecast) == repr(here.planned.forecast), kind.name
        account = ruled(None, 8.0, 1e-5)
        assert planner.run(simulate, FACTS, account, 20) == simulate(FACTS, account, 20)


@pytest.mark.usefixtures("_forked")
def test_a_refusal_is_the_same_from_another_process(planner: Planner) -> None:
    with pytest.raises(InvalidQuery, match="twice"):
        planner.run(_refuse, "twice")
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        planner.run(_divide, 0)
    assert planner.run(_divide, 2) == 0.5


@pytest.mark.usefixtures("_forked")
def test_time_and_memory_of_a_piece_have_limits() -> None:
    made = started(seconds=0.1)
    try:
        with pytest.raises(InvalidQuery, match=r"more than 0.1 s to plan"):
            made.run(_forever)
        with pytest.raises(InvalidQuery, match="too much memory"):
            made.run(_fill, 4 << 30)
        assert made.run(os.getpid) != os.getpid()
    finally:
        made.close()


@pytest.mark.usefixtures("_forked")
def test_a_process_that_is_lost_is_replaced(planner: Planner) -> None:
    lost = planner.run(os.getpid)
    with pytest.raises(InvalidQuery, match="too much time or memory"):
        planner.run(os._exit, 1)
    assert planner.run(os.getpid) not in {lost, os.getpid()}


@pytest.mark.usefixtures("_forked")
def test_a_process_that_has_run_out_of_memory_or_failed_plans_no_more(planner: Planner) -> None:
    """What it was importing then is half there, and would fail the next one's plan; a library may
    say that it has no memory by any error."""
    used = planner.run(os.getpid)
    with pytest.raises(InvalidQuery, match="too much memory"):
        planner.run(_fill, 4 << 30)
    second = planner.run(os.getpid)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        planner.run(_divide, 0)
    assert len({used, second, planner.run(os.getpid), os.getpid()}) == 4


@pytest.mark.usefixtures("_forked")
def test_nobody_gets_the_answer_of_an_order_before(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever has kept this process from reading it."""
    with monkeypatch.context() as patch:
        patch.setattr(planners._Process, "_await", lambda _: _divide(0))
        with pytest.raises(ZeroDivisionError):
            planner.run(_divide, 4)
    assert planner.run(_divide, 2) == 0.5


def test_where_the_system_gives_no_process_plans_are_made_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A piece that takes long, or that has lost its process, is answered all the same; the next one
    tries again."""
    tried: list[int] = []

    def child(*_: object) -> None:
        tried.append(1)
        raise BlockingIOError("no room for another process")

    monkeypatch.setattr(planners, "child", child)
    monkeypatch.setattr(planners, "DEAR_SECONDS", -1.0)
    made = Planner(2, SECONDS, 1024)
    assert [made.run(_divide, 2) for _ in range(3)] == [0.5] * 3
    assert len(tried) == 3
    made.close()


@dataclass
class DeadAtStart:
    """A process that ends before it can plan. met: what happens before it is gone."""

    met: Callable[[], object]
    lost: bool = True

    def is_ready(self) -> bool:
        return False

    def close(self) -> None:
        self.met()


def test_a_process_that_two_callers_find_dead_is_counted_once() -> None:
    """Else whoever came later would wait for a process that is not there."""
    made = Planner(1, SECONDS, 1024)
    again = partial(made.run, _divide, 2)
    made._idle, made._present = [DeadAtStart(again), DeadAtStart(again)], 2  # type: ignore[list-item]
    assert again() == 0.5
    assert (made._present, made._idle) == (0, [])


@pytest.mark.usefixtures("_forked")
def test_who_hangs_up_stops_the_process() -> None:
    """Long before the ten seconds of processor time that a piece may take here."""
    planner = started(seconds=10)
    patience, raised = Patience(SECONDS), []

    def ask() -> None:
        try:
            with patience.limits():
                planner.run(_forever)
        except ReticentError as error:
            raised.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    while planner._idle:
        time.sleep(0.001)
    patience.leave()
    thread.join(SECONDS)
    assert raised == [CallerLeft]
    assert patience.spent >= 0
    assert planner.run(os.getpid) != os.getpid()
    planner.close()


def test_processes_start_with_the_first_dear_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    monkeypatch.setattr(Planner, "start", lambda planner: begun.append(planner._number))
    made = Planner(2, SECONDS, 1024)
    made.run(_divide, 2)
    assert begun == []
    monkeypatch.setattr(planners, "DEAR_SECONDS", -1.0)
    made.run(_divide, 2)
    assert begun == [2]


def _refuse(why: str) -> None:
    raise InvalidQuery(f"Do not ask {why}.")


def _divide(by: float) -> float:
    return 1 / by


def _forever() -> None:
    while True:
        checkpoint()


def _fill(size: int) -> int:
    return int(np.ones(size, dtype=np.uint8).sum())
