# SPDX-License-Identifier: Apache-2.0
"""`tools/mutants.py` on a tree of one function: what it calls killed, and that a run goes on where
it was stopped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.documents.code_blocks import ROOT

RUN = """
import sys
sys.path.insert(0, {tools!r})
import mutants
from pathlib import Path
mutants.ROOT, mutants.LIBRARIES = Path({tree!r}), ()
sys.exit(mutants.main(sys.argv[1:]))
"""
TESTS = """
import atexit
import os
from multiprocessing import Process
from pathlib import Path

import pytest
from doubled import doubled, halved

def test_two():
    assert doubled(1) == 2

def test_nothing():
    assert doubled(0) == 0

@pytest.mark.parametrize("x", [0, pytest.param(1, marks=(pytest.mark.audit, pytest.mark.rest))])
def test_rest(x):
    assert doubled(x) == 2 * x

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=(pytest.mark.audit, pytest.mark.rest))])
def test_wrong_rest(x):
    assert doubled(x) == 2

def test_wrong():
    assert halved(2) == 3

def test_in_a_process():
    atexit.register(Path(os.environ["ENDED"]).touch)
    one = Process(target=doubled, args=(1,))
    one.start()
    one.join()
    assert doubled(1) == 2
"""


def mutant(name: str, old: str, new: str, test: str) -> dict[str, str]:
    return {"name": name, "file": "server/doubled.py", "old": old, "new": new, "test": test}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("server", "client", "r", "tests", "benchmarks", "migrations", "tools"):
        (tmp_path / name).mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["server"]\naddopts = "-p no:cacheprovider"\n'
        'markers = ["audit", "rest"]\n'
    )
    (tmp_path / "server/doubled.py").write_text(
        "def doubled(x):\n    return 2 * x\n\n\ndef halved(x):\n    return x / 2\n"
    )
    (tmp_path / "tests/test_doubled.py").write_text(TESTS)
    entries = [
        mutant("three", "2 * x", "3 * x", "tests/test_doubled.py::test_two"),
        mutant("begun", "2 * x", "3 * x", "tests/test_doubled.py::test_in_a_process"),
        mutant("unseen", "2 * x", "3 * x", "tests/test_doubled.py::test_nothing"),
        mutant("late", "2 * x", "3 * x", "tests/test_doubled.py::test_rest"),
        mutant("soon", "2 * x", "3 * x", "tests/test_doubled.py::test_wrong_rest"),
        mutant("never", "2 * x", "2.0 * x", "tests/test_doubled.py::test_wrong_rest"),
        mutant("gone", "4 * x", "3 * x", "tests/test_doubled.py::test_two"),
        mutant("untried", "x / 2", "x / 3", "tests/test_doubled.py::test_wrong"),
    ]
    (tmp_path / "tools/mutants.json").write_text(json.dumps(entries))
    return tmp_path


def run(tree: Path, *arguments: str) -> tuple[int, list[str]]:
    """The exit status and the lines."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV_", "PYTEST_"))}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # each run would import them anew
    environment["ENDED"] = str(tree / "ended")
    found = subprocess.run(
        [sys.executable, "-c", RUN.format(tools=str(ROOT / "tools"), tree=str(tree)), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert found.stderr == ""
    return found.returncode, found.stdout.splitlines()


@pytest.mark.slow
def test_a_mutant_that_was_changed_is_run_again(tree: Path) -> None:
    file = tree / "results.jsonl"
    first = run(tree, "--results", str(file), "thr", "elsewhere")
    assert first == (0, ["killed    three", "1 of 1 mutants killed"])
    assert run(tree, "--results", str(file), "three")[1] == ["1 of 1 mutants killed"]
    path = tree / "tools/mutants.json"
    path.write_text(path.read_text().replace('"3 * x"', '"4 * x"', 1))
    assert run(tree, "--results", str(file), "three")[1][0] == "killed    three"


@pytest.mark.slow
def test_a_mutant_is_killed_seen_through_stale_or_not_tried_of_several_at_once(tree: Path) -> None:
    """Each in a tree of its own: what one replaces, another does not see. The cases that the suite
    leaves out are run for what it does not see, and have to be green for that alone.
    """
    entries = json.loads((tree / "tools/mutants.json").read_text())
    (tree / "tests/test_again.py").write_text(TESTS)
    again = [
        e | {"name": f"{e['name']} again", "test": e["test"].replace("doubled", "again")}
        for e in entries
    ]
    (tree / "tools/mutants.json").write_text(json.dumps(entries + again))
    status, lines = run(tree, "-j", "3")
    found = sorted(lines[:-1])
    assert status == 1
    assert [line.split()[0] for line in found] == sorted(
        2 * ["killed", "killed", "killed", "killed", "STALE", "SURVIVED", "RED", "RED"]
    )
    assert {"killed    late", "killed    soon", "RED       never"} < set(found)
    assert lines[-1] == "8 of 16 mutants killed"
    assert (tree / "ended").exists()  # what a test leaves to the end is done
