# SPDX-License-Identifier: Apache-2.0
"""Breaks the code on purpose: every mutant must turn the test that should see it red.

    python tools/mutants.py [--results FILE] [--jobs N] [WORD …]

Each mutant is one named line, replaced in a copy of the tree; the named test is then run there. The
command fails if a mutant survives, if its line is no longer in the file, or if the test is not
green without it. Where `make test` runs a sample of a test's cases, the rest are run for what the
sample does not kill. A mutant with `"audit": true` is one of a test that `make audit` runs. WORD:
only mutants whose names have one of the words. FILE gets one line of JSON a mutant as soon as it is
known: its name, the result, the seconds and what it replaces. A run that was stopped goes on with
the same FILE: a mutant that was killed there, and has not been changed since, is not run again. N:
tests at a time, each with a copy of the tree of its own; as many as there are cores unless told.

Every run is a fork of this process, which has the libraries (none of this project's code) in
memory: importing them takes longer than most of the tests.
"""

import argparse
import atexit
import compileall
import gc
import importlib
import json
import os
import pkgutil
import py_compile
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import _pytest

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    *("server", "client", "r", "tests", "benchmarks", "migrations", "docs", "tools"),
    "pyproject.toml",
)
COMPILED = ("server", "client", "tests/support", "benchmarks")
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
    """`old` is replaced by `new` in `file`; `test` must then fail. audit: the test is one of the
    audit.
    """

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


@dataclass(frozen=True, slots=True)
class Group:
    """The mutants that one test should see."""

    test: str
    audit: bool
    mutants: tuple[Mutant, ...]


def main(arguments: list[str]) -> int:
    """0 if every mutant is killed."""
    asked = _read(arguments)
    results = Results(asked.results)
    mutants = [Mutant(**entry) for entry in json.loads((ROOT / "tools/mutants.json").read_text())]
    mutants = [m for m in mutants if not asked.words or any(w in m.name for w in asked.words)]
    left = set(mutants) - results.killed()
    groups = _groups([mutant for mutant in mutants if mutant in left])
    if groups:
        _import_libraries()
        with tempfile.TemporaryDirectory() as folder:
            _copy(Path(folder, "tree"))
            for killed in _each(groups, results, Path(folder), min(asked.jobs, len(groups))):
                left -= killed
    print(f"{len(mutants) - len(left)} of {len(mutants)} mutants killed")
    return 1 if left else 0


def cores() -> int:
    """Those that this process may use; all of the machine where the system cannot tell (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--results", type=lambda name: Path(name).absolute(), metavar="FILE")
    parser.add_argument("--jobs", "-j", type=int, default=cores())
    parser.add_argument("words", nargs="*", metavar="WORD")
    return parser.parse_args(arguments)


def _groups(mutants: Sequence[Mutant]) -> list[Group]:
    found: dict[tuple[str, bool], list[Mutant]] = {}
    for mutant in mutants:
        found.setdefault((mutant.test, mutant.audit), []).append(mutant)
    return [Group(test, audit, tuple(its)) for (test, audit), its in found.items()]


def _each(
    groups: Sequence[Group], results: Results, folder: Path, jobs: int
) -> Iterator[set[Mutant]]:
    """The killed of each group, from processes that are forked from this one. A test starts
    processes of its own, which multiprocessing forbids to the processes of its `Pool`.
    """
    with ProcessPoolExecutor(jobs, get_context("fork"), _start, (folder,)) as pool:
        yield from pool.map(partial(_killed_by, results), groups)


def _start(folder: Path) -> None:
    """A process that tries mutants, in a copy of the tree."""
    own = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(folder / "tree", own, dirs_exist_ok=True)
    os.chdir(own)


def _killed_by(results: Results, group: Group) -> set[Mutant]:
    """Those of the mutants that turn the test red, if it is green without them. What the suite's
    cases do not see is shown to the others, which take longer. The tree is the folder worked in.
    """
    tree = Path.cwd()
    started = time.monotonic()
    killed: set[Mutant] = set()
    left = group.mutants
    for selection in (ALL,) if group.audit else (SUITE, REST):
        left = _survivors(tree, replace(group, mutants=left), selection, results, killed)
    for mutant in left:
        results.add(mutant, SURVIVED, time.monotonic() - started)
    return killed


def _survivors(
    tree: Path, group: Group, selection: str, results: Results, killed: set[Mutant]
) -> tuple[Mutant, ...]:
    """The mutants that the cases of a selection do not see; the seen are put to `killed`. Without
    mutants nothing is run.
    """
    started = time.monotonic()
    if group.mutants and not _green(tree, group.test, selection):
        for mutant in group.mutants:
            results.add(mutant, RED, time.monotonic() - started)
        return ()
    left = []
    for mutant in group.mutants:
        started = time.monotonic()
        result = _result(tree, mutant, selection)
        if result == SURVIVED:
            left.append(mutant)
            continue
        results.add(mutant, result, time.monotonic() - started)
        if result == KILLED:
            killed.add(mutant)
    return tuple(left)


def _copy(tree: Path) -> None:
    """What tests need, and what it is compiled to. A source is compared with its hash: a mutant may
    be as long as the line that it replaces, and written in the same second.
    """
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tree / name, ignore=ignore)
        elif source.exists():
            shutil.copy(source, tree / name)
    for name in COMPILED:
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        compileall.compile_dir(tree / name, quiet=2, invalidation_mode=mode)


def _import_libraries() -> None:
    """And what pytest imports; none of it is looked at again by a child's garbage collection, which
    takes longer than starting does.
    """
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


def _result(tree: Path, mutant: Mutant, selection: str) -> str:
    path = tree / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        return STALE
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        return SURVIVED if _green(tree, mutant.test, selection) else KILLED
    finally:
        path.write_text(text)


def _green(tree: Path, test: str, selection: str) -> bool:
    """Whether the test's cases of a selection pass in the copy; what does not end does not pass."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            atexit._clear()  # noqa: SLF001 - the copies of the tree are not the child's to remove
            status = _passed(tree, test, selection)
            atexit._run_exitfuncs()  # noqa: SLF001 - a test's databases are 100 MB of memory
        finally:  # whatever pytest raises: a child never goes on as what it was forked from
            os._exit(status)
    try:
        return _status(child) == 0
    finally:  # what a test has begun and not ended would take the time of the next
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _status(child: int) -> int | None:
    """The exit status; None where it has not ended in time."""
    ended = time.monotonic() + SECONDS
    while time.monotonic() < ended:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _passed(tree: Path, test: str, selection: str) -> int:
    """pytest's exit status, 0 where there is no such case, in a process group of its own; its
    children use the copy, too.
    """
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir(tree)
    sys.dont_write_bytecode = True  # what is compiled is of the tree without a mutant
    sources = os.pathsep.join(str(tree / name) for name in ("server", "client"))
    os.environ |= {"PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    import pytest  # noqa: PLC0415

    status = int(pytest.main(["-q", "-x", "-W", IMPORTED, "-m", selection, *test.split()]))
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
