# SPDX-License-Identifier: Apache-2.0
"""Breaks the code on purpose: every mutant must turn the test that should see it red.

    python tools/mutants.py [WORD …]

Each mutant is one named line, replaced in a copy of the tree; the named test is then run there. The
command fails if a mutant survives, if its line is no longer in the file, or if the test is not green
without it. WORD: only mutants whose names have one of the words.

Every run is a fork of this process, which has the libraries (none of this project's code) in memory:
importing them takes longer than most of the tests.
"""

import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("server", "client", "tests", "benchmarks", "migrations", "pyproject.toml")
SECONDS = 900
LIBRARIES = (
    *("adbc_driver_postgresql.dbapi", "adbc_driver_sqlite.dbapi", "alembic.command", "fastapi"),
    *("httpx", "hypothesis", "limits", "numpy", "opendp.prelude", "patsy", "prometheus_client"),
    *("psycopg", "pyarrow.parquet", "pydantic_settings", "pytest", "rich.table", "schemathesis"),
    *("scipy.optimize", "scipy.special", "scipy.stats", "sqlalchemy", "statsmodels.api"),
    *("structlog", "threadpoolctl", "typer", "uvicorn", "yaml"),
)
IMPORTED = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` is replaced by `new` in `file`; `test` must then fail."""

    name: str
    file: str
    old: str
    new: str
    test: str


def main() -> int:
    """0 if every mutant is killed."""
    wanted = sys.argv[1:]
    mutants = [Mutant(**entry) for entry in json.loads((ROOT / "tools/mutants.json").read_text())]
    mutants = [m for m in mutants if not wanted or any(w in m.name for w in wanted)]
    by_test: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_test.setdefault(mutant.test, []).append(mutant)
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        _copy(tree)
        _import_libraries()
        for test, its in by_test.items():
            if _green(tree, test):
                killed += sum(_killed(tree, mutant) for mutant in its)
            else:
                print(f"RED       without a mutant, so {len(its)} not tried: {test}", flush=True)
    print(f"{killed} of {len(mutants)} mutants killed")
    return 0 if killed == len(mutants) else 1


def _copy(tree: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tree / name, ignore=ignore)
        else:
            shutil.copy(source, tree / name)


def _import_libraries() -> None:
    for name in LIBRARIES:
        try:
            importlib.import_module(name)
        except (
            ImportError
        ):  # of an extra that is not installed; its tests import it, or are skipped
            continue


def _killed(tree: Path, mutant: Mutant) -> bool:
    path = tree / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        print(f"STALE     {mutant.name}: its line is not in {mutant.file} once", flush=True)
        return False
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        killed = not _green(tree, mutant.test)
    finally:
        path.write_text(text)
    print(f"{'killed  ' if killed else 'SURVIVED'}  {mutant.name}", flush=True)
    return killed


def _green(tree: Path, test: str) -> bool:
    """Whether the test passes in the copy; one that does not end does not pass."""
    child = os.fork()
    if child == 0:
        os._exit(_passed(tree, test))
    ended = time.monotonic() + SECONDS
    while time.monotonic() < ended:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _passed(tree: Path, test: str) -> int:
    """pytest's exit status, in a process group of its own; its children use the copy, too."""
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.chdir(tree)
    sys.dont_write_bytecode = True  # a mutant of the same size and second would not be read again
    sources = os.pathsep.join(str(tree / name) for name in ("server", "client"))
    os.environ |= {"PYTHONPATH": sources, "PYTHONDONTWRITEBYTECODE": "1"}
    import pytest  # noqa: PLC0415

    options = ("-q", "-x", "-m", "not audit", "-W", IMPORTED)
    return int(pytest.main([*options, *test.split()]))


if __name__ == "__main__":
    sys.exit(main())
