# SPDX-License-Identifier: Apache-2.0
"""What `python -m benchmarks flood` says at its end, of figures that are given."""

import os
import subprocess
import sys
from threading import Event, Thread
from typing import Any

import pytest
from benchmarks.flood import resident, verdict

GOOD = {
    "alone budget p99": 0.02,
    "alone fit p95": 0.7,
    "budget_p99": 0.2,
    "health_p99": 0.2,
    "fit_p95_ratio": 1.4,
    "memory_mb": 400,
}


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({}, 0, "budget_p99: PASS"),
        ({"budget_p99": 0.51}, 1, "budget_p99: FAIL"),
        ({"health_p99": 0.51}, 1, "health_p99: FAIL"),
        ({"fit_p95_ratio": 2.1}, 1, "fit_p95_ratio: FAIL"),
        ({"memory_mb": 601}, 1, "memory_mb: FAIL"),
        ({"alone budget p99": 6.5, "budget_p99": 9.0}, 2, "machine not quiet: alone budget p99"),
        ({"alone fit p95": 4.0, "fit_p95_ratio": 5.0}, 2, "fit_p95_ratio: no verdict"),
        ({"alone fit p95": None}, 2, "machine not quiet"),
        ({"alone fit p95": 4.0, "memory_mb": 827}, 1, "memory_mb: FAIL"),
    ],
)
def test_each_goal_has_a_verdict(change: dict[str, Any], code: int, said: str) -> None:
    lines, found = verdict(GOOD | change)
    assert found == code
    assert any(line.startswith(said) for line in lines)


def test_memory_counts_processes_that_other_threads_have_started() -> None:
    code = "import sys; kept = b'x' * 50_000_000; print(); sys.stdin.read()"
    grown, looked = Event(), Event()

    def keep() -> None:
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            grown.set()
            looked.wait(60)
            process.communicate()

    before = resident(os.getpid()).total()
    thread = Thread(target=keep)
    thread.start()
    try:
        assert grown.wait(60)
        assert resident(os.getpid()).total() - before > 45
    finally:
        looked.set()
        thread.join()
