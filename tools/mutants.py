# SPDX-License-Identifier: Apache-2.0
"""Breaks the code on purpose: every mutant must turn the test that should see it red.

    python tools/mutants.py [--results FILE] [WORD …]

Each mutant is one named line, replaced in a copy of the tree; the named test is then run there. The
command fails if a mutant survives, if its line is no longer in the file, or if the test is not green
without it.
Where `make test` runs a sample of a test's cases, the rest are run for what the sample does not kill. A mutant with
`"audit": true` is one of a test that `make audit` runs. WORD: only mutants whose names have one of the words. FILE gets one line of JSON a mutant as soon
as it is known: its name, the result, the seconds and what it replaces. A run that was stopped goes on with the
same FILE: a mutant that was killed there, and has not been changed since, is not run again.

Every run is a fork of this process, which has the libraries (none of this project's code) in memory:
importing them takes longer than most of the tests.
"""

import gc
import importlib
import json
import os
import pkgutil
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import _pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("server", "client", "r", "tests", "benchmarks", "migrations", "pyproject.toml")
SECONDS = 900
LIBRARIES = (
    *("adbc_driver_postgresql.dbapi", "adbc_driver_sqlite.dbapi", "alembic.command", "fastapi"),
    *("httpx", "hypothesis", "limits", "numpy", "opendp.prelude", "patsy", "prometheus_client"),
    *("psycopg", "pyarrow.parquet", "pydantic", "pytest", "rich.table", "schemathesis"),
    *("scipy.optimize", "scipy.special", "scipy.stats", "sqlalchemy", "statsmodels.api"),
    *("structlog", "threadpoolctl", "typer", "uvicorn", "yaml"),
    *("_hypothesis_pytestplugin", "anyio.pytest_plugin", "pytest_cov.plugin"),
    *("schemathesis.pytest.plugin", "xdist.plugin"),
)
IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
SUITE, REST, ALL = "not audit", "rest", ""
"""Selections of a test's cases, by their marks."""
KILLED = "killed"
SURVIVED = "SURVIVED"
STALE = "STALE"
"""Its line is not in its file once."""
RED = "RED"
"""Not tried: its test is red without it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` is replaced by `new` in `file`; `test` must then fail. audit: the test is one of the audit."""

    name: str
    file: str
    old: str
    new: str
    test: str
    audit: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """What each mutant came to, printed and kept in `file` (None: printed only)."""

    file: Path | None

    def add(self, mutant: Mutant, result: str, seconds: float) -> None:
        print(f"{result:<9} {mutant.name}", flush=True)
        if self.file is not None:
            line = {"result": result, "seconds": round(seconds, 1), **asdict(mutant)}
            with self.file.open("a") as lines:
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")

    def killed(self) -> set[Mutant]:
        """The mutants that were killed: the last line of each counts."""
        if self.file is None or not self.file.exists():
            return set()
        last: dict[Mutant, str] = {}
        for line in self.file.read_text().splitlines():
            entry = json.loads(line)
            given = {name: entry[name] for name in Mutant.__slots__ if name in entry}
            last[Mutant(**given)] = entry["result"]
        return {mutant for mutant, result in last.items() if result == KILLED}


def main(arguments: list[str]) -> int:
    """0 if every mutant is killed."""
    results, wanted = _read(arguments)
    mutants = [Mutant(**entry) for entry in json.loads((ROOT / "tools/mutants.json").read_text())]
    mutants = [m for m in mutants if not wanted or any(w in m.name for w in wanted)]
    left = set(mutants) - results.killed()
    by_test: dict[tuple[str, bool], list[Mutant]] = {}
    for mutant in mutants:
        if mutant in left:
            by_test.setdefault((mutant.test, mutant.audit), []).append(mutant)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        _copy(tree)
        _import_libraries()
        for (test, audit), its in by_test.items():
            left -= _killed_by(tree, test, its, results, audit=audit)
    print(f"{len(mutants) - len(left)} of {len(mutants)} mutants killed")
    return 1 if left else 0


def _read(arguments: list[str]) -> tuple[Results, list[str]]:
    if arguments[:1] != ["--results"]:
        return Results(None), arguments
    return Results(Path(arguments[1])), arguments[2:]


def _killed_by(
    tree: Path, test: str, mutants: list[Mutant], results: Results, *, audit: bool
) -> set[Mutant]:
    """Those of the mutants that turn the test red, if it is green without them."""
    started = time.monotonic()
    selections = (ALL,) if audit else (SUITE, REST)
    if not all(_green(tree, test, selection) for selection in selections):
        for mutant in mutants:
            results.add(mutant, RED, time.monotonic() - started)
        return set()
    killed = set()
    for mutant in mutants:
        started = time.monotonic()
        result = _result(tree, mutant, selections)
        results.add(mutant, result, time.monotonic() - started)
        if result == KILLED:
            killed.add(mutant)
    return killed


def _copy(tree: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tree / name, ignore=ignore)
        else:
            shutil.copy(source, tree / name)


def _import_libraries() -> None:
    """And what pytest imports; none of it is looked at again by a child's garbage collection, which takes longer than
    starting does."""
    own = [found.name for found in pkgutil.iter_modules(_pytest.__path__, "_pytest.")]
    for name in (*LIBRARIES, *own):
        try:
            importlib.import_module(name)
        except (
            ImportError
        ):  # of an extra that is not installed; its tests import it, or are skipped
            continue
    gc.collect()
    gc.freeze()


def _result(tree: Path, mutant: Mutant, selections: tuple[str, ...]) -> str:
    path = tree / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        return STALE
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        survived = all(_green(tree, mutant.test, selection) for selection in selections)
        return SURVIVED if survived else KILLED
    finally:
        path.write_text(text)


def _green(tree: Path, test: str, selection: str) -> bool:
    """Whether the test's cases of a selection pass in the copy; what does not end does not pass."""
    child = os.fork()
    if child == 0:
        os._exit(_passed(tree, test, selection))
    ended = time.monotonic() + SECONDS
    while time.monotonic() < ended:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _passed(tree: Path, test: str, selection: str) -> int:
    """pytest's exit status, 0 where there is no such case, in a process group of its own; its children use the copy, too."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir(tree)
    sys.dont_write_bytecode = True  # a mutant of the same size and second would not be read again
    sources = os.pathsep.join(str(tree / name) for name in ("server", "client"))
    os.environ |= {"PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    import pytest  # noqa: PLC0415

    status = int(pytest.main(["-q", "-x", "-W", IMPORTED, "-m", selection, *test.split()]))
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
