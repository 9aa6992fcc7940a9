# SPDX-License-Identifier: Apache-2.0
"""`pytest --processes N`: each test is run once, and reported as if there were one process."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.documents.code_blocks import ROOT
from support.forks import Shares

if TYPE_CHECKING:
    from pathlib import Path

CONFTEST = """
import pytest
from support import forks

@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    forks.run(session, 2)
    return True
"""
PASSING = """
import pathlib
import pytest

@pytest.fixture(scope="module")
def shared():
    yield 1
    with pathlib.Path("ended").open("a") as file:
        file.write("x")

@pytest.mark.parametrize("case", range(9))
def test_passes(case, shared, tmp_path):
    assert tmp_path.parent.name.startswith("process")
    with pathlib.Path("ran").open("a") as file:
        file.write(str(case))
"""
FAILING = """
import os

def test_fails():
    print("what it printed")
    assert 1 + 1 == 3

def test_ends_its_process():
    os._exit(5)

def test_after_it():
    pass
"""


@pytest.mark.parametrize("processes", [1, 3])
def test_each_test_is_given_once(processes: int) -> None:
    shares = Shares(["a"] * 5 + ["b"] * 2 + ["c"], processes)
    given = [shares.next(i % processes) for i in range(8)]
    assert sorted(map(int, given)) == list(range(8))  # type: ignore[arg-type]
    assert shares.next(0) is None


def test_what_another_takes_are_whole_files() -> None:
    shares = Shares(["a"] * 5 + ["b"] * 3, 2)
    own = [shares.next(1) for _ in range(4)]
    assert own == [4, 5, 6, 7]
    assert [shares.next(1), shares.next(0), shares.next(1)] == [2, 0, 3]


def test_what_was_not_begun_is_another_s() -> None:
    shares = Shares(["a"] * 4, 2)
    assert (shares.next(1), shares.next(1)) == (2, 3)
    shares.put_back(1, 3)
    assert shares.left == 3
    assert [shares.next(0) for _ in range(3)] == [0, 1, 3]


def test_what_fails_or_ends_its_process_has_failed(tmp_path: Path) -> None:
    files = {"conftest.py": CONFTEST, "test_a.py": PASSING, "test_b.py": FAILING}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {"PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    made = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True
    )
    assert made.returncode == pytest.ExitCode.TESTS_FAILED
    assert "2 failed, 10 passed" in made.stdout, made.stdout + made.stderr
    assert "what it printed" in made.stdout
    assert "its process ended, with status 5" in made.stdout
    assert sorted((tmp_path / "ran").read_text()) == list("012345678")
    assert set((tmp_path / "ended").read_text()) == {"x"}
