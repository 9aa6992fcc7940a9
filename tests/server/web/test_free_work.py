# SPDX-License-Identifier: Apache-2.0
"""Free work takes turns: a few pieces at a time, one of each owner's, in fair order; what nobody
waits for is dropped.

What is refused is refused within a few turns of the event loop, which are counted, so that a test
that fails does not wait.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import thread_time
from typing import Any, cast

import pytest
from fastapi import Request

from reticent_server.domain.patience import checkpoint, took
from reticent_server.errors import CallerLeft, InvalidQuery, RateLimited
from reticent_server.web import free_work
from reticent_server.web.free_work import FreeWork

SECONDS = 60
"""Of a machine that is busy with other things."""

TURNS = 50
"""Of the event loop, in which whatever needs no thread has happened."""


@dataclass
class Gate:
    """Work that stands still until it is let go, or until the end of the block; `begun` has the
    names in the order of beginning.
    """

    begun: list[str] = field(default_factory=list)
    events: dict[str, threading.Event] = field(default_factory=dict)

    def call(self, name: str, seconds: float = 0.0) -> Callable[[], str]:
        event = self.events[name] = threading.Event()

        def work() -> str:
            self.begun.append(name)
            assert event.wait(SECONDS)
            took(seconds)
            return name

        return work

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, *_: object) -> None:
        for event in self.events.values():
            event.set()

    async def has_begun(self, *names: str) -> None:
        async with asyncio.timeout(SECONDS):
            while not set(names) <= set(self.begun):
                await asyncio.sleep(0.001)


class Caller:
    """A request whose caller hangs up when told to."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def request(self) -> Request:
        return cast(Request, self)


def start(work: FreeWork, owner: str, call: Any, request: Any = None) -> "asyncio.Task[Any]":
    return asyncio.create_task(work.run(owner, request, call))


async def turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def refused_at_once(work: FreeWork, owner: str, call: Any) -> RateLimited:
    task = start(work, owner, call)
    await turns()
    assert task.done(), "it waits"
    error = task.exception()
    assert isinstance(error, RateLimited)
    return error


def test_two_at_a_time_and_one_of_an_owner() -> None:
    async def scene() -> None:
        work = FreeWork(2, 4, SECONDS)
        with Gate() as gate:
            names = ("a1", "a2", "b1", "c1")
            tasks = [start(work, name[0], gate.call(name)) for name in names]
            await gate.has_begun("a1", "b1")
            assert sorted(gate.begun) == ["a1", "b1"]
            assert work.waiting == 2
            gate.events["b1"].set()
            await gate.has_begun("c1")
            gate.events["c1"].set()
            assert await tasks[3] == "c1"
            assert "a2" not in gate.begun
            for event in gate.events.values():
                event.set()
            assert await asyncio.gather(*tasks) == list(names)
            assert work.waiting == 0

    asyncio.run(scene())


def test_who_has_had_the_least_begins() -> None:
    """a's first piece took ten seconds of processor time: b's three of one second each come before
    its second.
    """

    async def scene() -> None:
        work = FreeWork(1, 4, SECONDS)
        with Gate() as gate:
            first = start(work, "a", gate.call("a1", 10.0))
            await gate.has_begun("a1")
            rest = [start(work, "a", gate.call("a2"))]
            rest += [start(work, "b", gate.call(f"b{i}", 1.0)) for i in range(3)]
            await asyncio.sleep(0)
            for event in gate.events.values():
                event.set()
            await asyncio.gather(first, *rest)
            assert gate.begun == ["a1", "b0", "b1", "b2", "a2"]
            assert (work._served, work._level, work._queues) == ({}, 0.0, {})

    asyncio.run(scene())


def test_who_asks_for_long_pieces_leaves_a_slot_to_others() -> None:
    """a and b have had a piece of a second each: of their next ones one is worked on, and the other
    slot is c's at once.
    """

    async def scene() -> None:
        work = FreeWork(2, 4, SECONDS)
        with Gate() as gate:
            before = [start(work, owner, gate.call(f"{owner}1", 1.0)) for owner in "ab"]
            await gate.has_begun("a1", "b1")
            tasks = [start(work, owner, gate.call(f"{owner}2", 0.0)) for owner in "ab"]
            gate.events["a1"].set()
            await gate.has_begun("a2")
            gate.events["b1"].set()
            await asyncio.gather(*before)
            tasks.append(start(work, "c", gate.call("c1")))
            await gate.has_begun("c1")
            assert "b2" not in gate.begun
            for event in gate.events.values():
                event.set()
            await asyncio.gather(*tasks)

    asyncio.run(scene())


def test_only_so_many_of_an_owner_wait() -> None:
    """The third is refused, and told when to come; another's is not; a release waits all the
    same.
    """

    async def scene() -> None:
        work = FreeWork(1, 1, SECONDS)
        with Gate() as gate:
            tasks = [start(work, "a", gate.call(name)) for name in ("a1", "a2")]
            await gate.has_begun("a1")
            assert (await refused_at_once(work, "a", gate.call("a3"))).retry_after >= 1
            tasks.append(start(work, "b", gate.call("b1")))
            tasks.append(asyncio.create_task(work.run("a", None, gate.call("a4"), bounded=False)))
            await asyncio.sleep(0)
            assert work.waiting == 3
            for event in gate.events.values():
                event.set()
            assert await asyncio.gather(*tasks) == ["a1", "a2", "b1", "a4"]
            assert "a3" not in gate.begun

    asyncio.run(scene())


def test_a_full_queue_still_takes_one_of_somebody_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_work, "ALL", 2)

    async def scene() -> None:
        work = FreeWork(1, 9, SECONDS)
        with Gate() as gate:
            tasks = [start(work, "a", gate.call(f"a{i}")) for i in range(3)]
            await gate.has_begun("a0")
            await refused_at_once(work, "a", gate.call("a9"))
            tasks.append(start(work, "b", gate.call("b0")))
            await asyncio.sleep(0)
            await refused_at_once(work, "b", gate.call("b9"))
            for event in gate.events.values():
                event.set()
            await asyncio.gather(*tasks)

    asyncio.run(scene())


def test_what_nobody_waits_for_any_more_never_begins() -> None:
    async def scene() -> None:
        work = FreeWork(1, 4, SECONDS)
        with Gate() as gate:
            first = start(work, "a", gate.call("a1"))
            await gate.has_begun("a1")
            caller = Caller()
            second = start(work, "b", gate.call("b1"), caller.request)
            await asyncio.sleep(0)
            assert work.waiting == 1
            caller.left.set()
            await turns()
            assert second.done(), "it waits"
            with pytest.raises(CallerLeft):
                await second
            assert work.waiting == 0
            gate.events["a1"].set()
            await first
            assert gate.begun == ["a1"]

    asyncio.run(scene())


def test_who_hangs_up_ends_the_work_at_its_next_checkpoint() -> None:
    begun, go = threading.Event(), threading.Event()

    def work_on() -> str:
        checkpoint()
        begun.set()
        assert go.wait(SECONDS)
        checkpoint()
        return "to the end"

    async def scene() -> None:
        work, caller = FreeWork(1, 4, SECONDS), Caller()
        task = start(work, "a", work_on, caller.request)
        async with asyncio.timeout(SECONDS):
            while not begun.is_set():
                await asyncio.sleep(0.001)
        caller.left.set()
        await turns()
        go.set()
        with pytest.raises(CallerLeft):
            await task
        assert await work.run("a", None, lambda: "next") == "next"

    asyncio.run(scene())


def test_what_takes_too_long_is_refused_and_gives_its_slot_back() -> None:
    """Of processor time: the loop ends, however busy the machine is."""

    def work_on() -> None:
        until = thread_time() + 10
        while thread_time() < until:
            checkpoint()

    async def scene() -> None:
        work = FreeWork(1, 4, 0.05)
        with pytest.raises(InvalidQuery, match=r"more than 0\.05 s to plan"):
            await work.run("a", None, work_on)
        assert await work.run("a", None, lambda: "next") == "next"

    asyncio.run(scene())


def test_a_checkpoint_without_a_limit_is_nothing() -> None:
    checkpoint()
    took(1.0)
