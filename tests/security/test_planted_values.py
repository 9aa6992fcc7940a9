"""A value planted in a table is in no reply, no metric and no line of the log, whoever tries to tell it."""

import json
import os
import subprocess
import sys

import pytest

import support_planted_session as child
from reticent_server.cli.dataset_load import load_dataset
from support_installation import Installation


@pytest.fixture
def planted(installation: Installation) -> Installation:
    """`people` with the planted digits in every record's y and x."""
    directory = installation.directory
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


def session(planted: Installation, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, child.__file__, str(planted.directory), *options],
        env=planted.environment | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def test_nothing_tells_a_planted_value(planted: Installation) -> None:
    done = session(planted)
    assert child.PLANTED not in done.stdout
    assert child.PLANTED not in done.stderr
    replies = [line for line in done.stdout.splitlines() if line.startswith("201 ")]
    assert len(replies) == 5 * len(child.TELLERS)
    assert sum('"status":"failed"' in line for line in replies) >= 5
    events = [json.loads(line) for line in done.stderr.splitlines()]
    named = {event["event"] for event in events}
    expected = {"request", "computation_failed", "thread_failed", "unraisable", "library_message"}
    assert expected | {"unnamed"} <= named
    assert "reticent_requests_total" in done.stdout


def test_without_the_guards_it_would_be_told(planted: Installation) -> None:
    assert session(planted, "naked").stderr.count(child.PLANTED) > 20
