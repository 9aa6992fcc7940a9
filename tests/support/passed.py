# SPDX-License-Identifier: Apache-2.0
"""A run of tests that goes on where it was stopped: names of tests that have passed, in a file."""

from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "tests that FILE names are not run; those that pass are added to it"
    parser.addoption("--passed", type=Path, metavar="FILE", help=words)


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("passed")
    if file is not None:
        config.pluginmanager.register(Passed(file, reports=not hasattr(config, "workerinput")))


class Passed:
    """Leaves out the tests that `file` names, one a line, and adds each that passes, once it is
    over. Of several processes the one that reports writes; the others read, before any of
    their tests has begun.
    """

    def __init__(self, file: Path, *, reports: bool) -> None:
        self._file, self._reports = file, reports
        self._called: set[str] = set()
        self._before = set(file.read_text("utf-8").splitlines()) if file.exists() else set()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        left_out = [item for item in items if item.nodeid in self._before]
        items[:] = [item for item in items if item.nodeid not in self._before]
        config.hook.pytest_deselected(items=left_out)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._reports or not report.passed:
            self._called.discard(report.nodeid)
        elif report.when == "call":
            self._called.add(report.nodeid)
        elif report.when == "teardown" and report.nodeid in self._called:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{report.nodeid}\n")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """No test that is left is no failure."""
        if self._before and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._before:
            terminalreporter.write_line(f"passed before: {len(self._before)}")
