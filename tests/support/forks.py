# SPDX-License-Identifier: Apache-2.0
"""`--processes N`: the tests are run in N processes that are forked once they are collected.

pytest-xdist starts its processes afresh: each imports everything and collects all tests again,
which takes a twentieth of the suite's processor time in each. What is forked has it all in memory.
"""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any

import pytest

from support.sampling import file_of

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

FORK = get_context("fork")


class Shares:
    """The numbers of the tests that are not yet given out, a share for each process. They are in
    the order of their collection, as the tests of a file and of a folder share what they need.
    """

    def __init__(self, files: Sequence[str], processes: int) -> None:
        ends = [len(files) * i // processes for i in range(processes + 1)]
        self._files = files
        self._shares = [range(*part) for part in pairwise(ends)]

    @property
    def left(self) -> int:
        return sum(map(len, self._shares))

    def next(self, process: int) -> int | None:
        """The next of a process's share. Where nothing is left of it, it takes the second half of
        the longest: whole files, where that one has several.
        """
        if not self._shares[process]:
            self._take_half(process)
        share = self._shares[process]
        self._shares[process] = share[1:]
        return share[0] if share else None

    def put_back(self, process: int, test: int) -> None:
        """What a process was given and has not begun: the one before its share."""
        self._shares[process] = range(test, test + 1 + len(self._shares[process]))

    def _take_half(self, process: int) -> None:
        longest = max(range(len(self._shares)), key=lambda other: len(self._shares[other]))
        share = self._shares[longest]
        half = len(share) // 2
        files = [self._files[test] for test in share]
        starts = [i for i in range(1, len(share)) if files[i] != files[i - 1]]
        cut = min(starts, key=lambda i: abs(i - half), default=half)
        self._shares[longest], self._shares[process] = share[:cut], share[cut:]


@dataclass(slots=True)
class Runner:
    """A process and what it was given: the number of the test that it runs, and of its next. It
    asks for a next before it runs one: fixtures end by what the next test needs.
    """

    number: int
    process: ForkProcess
    connection: Connection
    runs: int | None = None
    following: int | None = None
    has_ended: bool = False

    def give(self, test: int | None) -> None:
        self.runs, self.following = self.following, test
        self.has_ended = test is None and self.runs is None
        self.connection.send(test)


def run(session: pytest.Session, processes: int) -> None:
    """What a process reports is as if it had happened in this one. A test in which its process ends
    has failed.
    """
    session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    shares = Shares([file_of(item) for item in session.items], processes)
    runners: list[Runner] = []
    try:
        for number in range(processes):
            runners.append(_started(session, number, [each.connection for each in runners]))
        _serve(session, shares, runners)
    finally:
        for runner in runners:
            if not runner.has_ended:
                runner.process.kill()
            runner.process.join()
    _say_why_it_stopped(session, shares.left)


def _started(session: pytest.Session, number: int, others: Sequence[Connection]) -> Runner:
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=_run, args=(session, number, theirs, [*others, ours]))
    process.start()
    theirs.close()
    return Runner(number, process, ours)


def _serve(session: pytest.Session, shares: Shares, runners: Sequence[Runner]) -> None:
    running: dict[Any, Runner] = {runner.connection: runner for runner in runners}
    while running:
        for ready in wait(list(running)):
            runner = running[ready]
            try:
                _answer(session, shares, runner, runner.connection.recv())
            except (EOFError, ConnectionError):
                _fail_what_ran(session, shares, runner)
            if runner.has_ended:
                del running[ready]


def _answer(session: pytest.Session, shares: Shares, runner: Runner, report: Any) -> None:
    """None asks for a test; all else is a report."""
    if report is None:
        stops = session.shouldfail or session.shouldstop
        runner.give(None if stops else shares.next(runner.number))
        return
    made = session.config.hook.pytest_report_from_serializable(config=session.config, data=report)
    _report(session, made)


def _report(session: pytest.Session, report: pytest.TestReport) -> None:
    hook = session.config.hook
    hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        hook.pytest_runtest_logfinish(nodeid=report.nodeid, location=report.location)


def _fail_what_ran(session: pytest.Session, shares: Shares, runner: Runner) -> None:
    runner.has_ended = True
    runner.process.join()
    if runner.following is not None:
        shares.put_back(runner.number, runner.following)
    if runner.runs is not None:
        item = session.items[runner.runs]
        words = f"its process ended, with status {runner.process.exitcode}"
        _report(session, pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call"))


def _say_why_it_stopped(session: pytest.Session, left: int) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    if left:
        raise session.Failed(f"{left} tests were not run: every process has ended")


def _run(
    session: pytest.Session, number: int, connection: Connection, others: Sequence[Connection]
) -> None:
    """In a forked process: runs what it is given, and reports it. What the first process is to do
    when it exits is not this one's to do.
    """
    for other in others:
        other.close()
    atexit._clear()
    _make_its_own(session.config, number)
    session.config.pluginmanager.register(Sender(session.config, connection))
    test = _asked(session, connection)
    while test is not None:
        following = _asked(session, connection)
        session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        test = following
    _asked(session, connection)
    atexit._run_exitfuncs()


def _make_its_own(config: pytest.Config, number: int) -> None:
    """What output is captured in, and the folder of temporary files. It prints nothing."""
    manager = config.pluginmanager
    manager.unregister(name="terminalreporter")
    capture = manager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = factory.getbasetemp() / f"process{number}"
    factory._basetemp.mkdir(mode=0o700)


def _asked(session: pytest.Session, connection: Connection) -> pytest.Item | None:
    connection.send(None)
    number = connection.recv()
    return None if number is None else session.items[number]


class Sender:
    """The plugin that sends reports."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook
        self._connection.send(
            hook.pytest_report_to_serializable(config=self._config, report=report)
        )
