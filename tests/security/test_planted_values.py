# SPDX-License-Identifier: Apache-2.0
"""A value planted in a table is in no reply, no metric and no line of the log, whoever tries to
tell it.
"""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reticent_server.cli.dataset_load import load_dataset
from support.attacks import planted_session as child
from support.installations.small import Installation
from support.processes.forked import Forked, forked

PATIENCE = 120  # seconds


@dataclass(frozen=True)
class Session:
    """A whole session in a process of its own. stdout, stderr: what it says until it ends."""

    process: Forked
    log: Path

    def ended(self) -> tuple[str, str]:
        with self.process.stdout as told:
            stdout = told.read()
        assert self.process.wait(PATIENCE) == 0
        return stdout, self.log.read_text()


@pytest.fixture(scope="module")
def sessions(
    installation_template: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[bool, Session]]:
    """With this project's guards and without, at the same time: they mostly wait for deadlines."""
    place = tmp_path_factory.mktemp("planted")
    both = {
        naked: begun(installation_template, place / str(naked), naked) for naked in (False, True)
    }
    yield both
    for session in both.values():
        session.process.kill()
        session.process.stdout.close()


def begun(template: Installation, directory: Path, naked: bool) -> Session:
    planted = plant(template, directory)
    log = directory / "session.log"
    return Session(forked(child.main, (str(directory), naked), planted.environment, log), log)


def plant(template: Installation, directory: Path) -> Installation:
    """`people` with the planted digits in every record's y and x."""
    shutil.copytree(template.directory, directory)
    installation = replace(template, directory=directory)
    rows = [
        f"{i % 7}.{child.PLANTED},{i % 5 - 2}.{child.PLANTED},{i % 10},a,{i % 2},0.5"
        for i in range(400)
    ]
    (directory / "planted.csv").write_text("\n".join(["y,x,k,g,b,m", *rows]) + "\n")
    load_dataset(
        installation.settings, "people", directory / "planted.csv", directory / "schema.yaml"
    )
    (directory / "keys").write_text(json.dumps(installation.keys))
    return installation


@pytest.mark.slow
def test_nothing_tells_a_planted_value(sessions: dict[bool, Session]) -> None:
    stdout, stderr = sessions[False].ended()
    assert child.PLANTED not in stdout
    assert child.PLANTED not in stderr
    replies = [line for line in stdout.splitlines() if line.startswith("201 ")]
    assert len(replies) == 5 * len(child.TELLERS)
    assert sum('"status":"failed"' in line for line in replies) >= 5
    events = [json.loads(line) for line in stderr.splitlines()]
    named = {event["event"] for event in events}
    expected = {"request", "computation_failed", "thread_failed", "unraisable", "library_message"}
    assert expected | {"unnamed"} <= named
    assert "reticent_requests_total" in stdout


@pytest.mark.slow
def test_without_the_guards_it_would_be_told(sessions: dict[bool, Session]) -> None:
    assert sessions[True].ended()[1].count(child.PLANTED) > 20
