"""Breaks the code on purpose: every mutant must turn the test that should see it red.

Each mutant is one named line, replaced in a copy of the tree; the named test is then run there. The
command fails if a mutant survives, if its line is no longer in the file, or if the test is not green
without it.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("server", "client", "tests", "migrations", "pyproject.toml")
SERVER = "server/reticent_server"


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
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        _copy(tree)
        red = [test for test in sorted({m.test for m in mutants}) if not _green(tree, test)]
        survivors = [m.name for m in mutants if not _killed(tree, m)]
    for test in red:
        print(f"red without a mutant: {test}")
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants killed")
    return 1 if red or survivors else 0


def _copy(tree: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, tree / name, ignore=ignore)
        else:
            shutil.copy(source, tree / name)


def _killed(tree: Path, mutant: Mutant) -> bool:
    path = tree / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        print(f"STALE     {mutant.name}: its line is not in {mutant.file} once")
        return False
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        killed = not _green(tree, mutant.test)
    finally:
        path.write_text(text)
    print(f"{'killed  ' if killed else 'SURVIVED'}  {mutant.name}", flush=True)
    return killed


def _green(tree: Path, test: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not audit", *test.split()]
    done = subprocess.run(
        command, cwd=tree, capture_output=True, text=True, timeout=600, check=False
    )
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
