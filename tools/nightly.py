# SPDX-License-Identifier: Apache-2.0
"""Everything that takes long, in one go, and one report: the audit, the benchmarks, all mutants,
the gauntlet, real tables, figures.

    python tools/nightly.py [--resume] [--only TEXT …] [--list] [--check]

Each step is a command of its own; those that look at no clock run as many at a time as there are
cores. What it printed, how it ended and how long it took are kept in build/nightly/COMMIT as soon
as it ends, and build/nightly.md says it of all steps, whatever became of the others; the command
fails if one is red. A run that was stopped goes on with --resume: steps that were green for the
same commit are not run again, nor the tests of the audit that passed, nor the mutants that were
killed. --only: steps whose names have one of the texts; the report keeps what is known of the
others. --check: whether each step can start is tried, and none is run. The last step puts the
figures into the documentation (tools/figures.py), with the commit that made them.

A tree with changes that are not committed has a folder of its own, COMMIT-changed; the
documentation does not count, since figures are put there.
"""

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.__main__ import NAMES as BENCHMARKS  # noqa: E402 - it is not installed
from benchmarks.real_tables.models import MODELS, TABLES  # noqa: E402
from tools.mutants import cores  # noqa: E402

PYTHON = sys.executable
GREEN, RED = "green", "RED"
ABSENT = "ABSENT"
"""Not run: a file that it needs is not on this machine."""
SHOWN_LINES = 25  # of a red step's output, in the report: where a test run names what failed
RESULTS = "mutants.jsonl"
GAUNTLET = "gauntlet.json"
REAL_TABLES = "real_tables.json"


@dataclass(frozen=True, slots=True)
class NightStep:
    """A command; `{folder}` in it is where the commit's results are, `{passed}` a file of the
    step's own that names what of it has passed, for a run that goes on. trial: a command that ends
    well, in seconds, where this one can start. beside: it takes one core and looks at no clock, so
    that others of the kind may run at the same time. needs: a file without which it is not run.
    """

    name: str
    command: tuple[str, ...]
    trial: tuple[str, ...]
    beside: bool = False
    needs: Path | None = None


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """result: GREEN, RED or ABSENT; seconds by the clock."""

    result: str
    seconds: float


def _with_help(
    name: str, *command: str, beside: bool = False, needs: Path | None = None
) -> NightStep:
    """A step whose program says its options with --help."""
    named = next(i for i, part in enumerate(command) if part != "-m") + 1
    return NightStep(name, (PYTHON, *command), (PYTHON, *command[:named], "--help"), beside, needs)


LONG_FORMS = {"reply_times": ("10000",)}
"""What a benchmark that has a long form is told by night."""


TIMED = (
    *("speed", "planning", "peers", "at_once", "scale", "persons", "dry_run", "sources", "service"),
    *("analysts", "groups", "deadlines", "flood", "reply_times"),
)
"""Benchmarks whose figures are of time or memory: the machine is theirs alone."""


def _benchmark(name: str) -> NightStep:
    tried = (PYTHON, "-c", f"import benchmarks.{name}")
    told = LONG_FORMS.get(name)
    command = ("benchmarks", name) if told is None else (f"benchmarks.{name}", *told)
    return NightStep(f"bench {name}", (PYTHON, "-m", *command), tried, name not in TIMED)


PYTEST = (PYTHON, "-m", "pytest", "-m", "audit")
AUDITED = (
    *(("privacy",), ("security",), ("server",), ("kinds",)),
    ("browser", "client", "concurrency", "contract", "docs", "gauntlet", "walk", "r"),
    ("audit_models", "audit_newton"),
)
"""Folders of tests, by the steps that run their audit."""


def _audit(folders: Sequence[str]) -> NightStep:
    tests = [f"tests/{folder}" for folder in folders]
    passed = ("--passed", "{passed}")
    # one more than cores, since some tests wait
    at_once = ("-n", f"{cores() + 1}", "--dist", "worksteal")
    run = (*passed, *at_once, "--durations", "20", "-rfE", *tests)
    name = folders[0] if len(folders) == 1 else f"{folders[0]} to {folders[-1]}"
    return NightStep(f"audit {name}", (*PYTEST, *run), (*PYTEST, "--collect-only", *tests))


WALKS = 4
"""Parts of the pairs of values that the walk asks, each a step of at most three hours."""


def _walk(part: int) -> NightStep:
    return _with_help(
        f"walk {part}", "tests/walk/__main__.py", "--part", f"{part}/{WALKS}", beside=True
    )


REAL = ("benchmarks.real_tables", "--kind", "linear", "--asked", "squared", "--fast")
JUDGED = ("-m", "benchmarks.gauntlet", "--json", f"{{folder}}/{GAUNTLET}")
STEPS = (
    *map(_audit, AUDITED),
    _with_help("gauntlet", *JUDGED, beside=True),
    _with_help(
        *("real tables", "-m", *REAL, "--json", f"{{folder}}/{REAL_TABLES}"),
        beside=True,
        needs=TABLES / MODELS,
    ),
    *map(_walk, range(1, WALKS + 1)),
    *(_benchmark(name) for name in BENCHMARKS if name not in TIMED),
    _with_help("mutants", "tools/mutants.py", "--results", f"{{folder}}/{RESULTS}"),
    *(_benchmark(name) for name in TIMED),
    _with_help("figures", "tools/figures.py", "{folder}"),
)


@dataclass(frozen=True, slots=True)
class Night:
    """The results of one commit, in a folder of its own."""

    root: Path
    commit: str

    @property
    def folder(self) -> Path:
        return self.root / "build/nightly" / self.commit

    def log(self, step: NightStep) -> Path:
        return self.folder / f"{step.name.replace(' ', '-')}.txt"

    def passed(self, step: NightStep) -> Path:
        return self.log(step).with_suffix(".passed")

    def outcomes(self) -> dict[str, StepOutcome]:
        """By step, of those that have ended."""
        state = self.folder / "state.json"
        if not state.exists():
            return {}
        return {k: StepOutcome(**v) for k, v in json.loads(state.read_text("utf-8")).items()}

    def keep(self, step: NightStep, outcome: StepOutcome) -> None:
        known = self.outcomes() | {step.name: outcome}
        text = json.dumps({name: asdict(each) for name, each in known.items()}, indent=1)
        part = self.folder / "state.json.part"
        part.write_text(text + "\n", "utf-8")
        part.replace(self.folder / "state.json")

    def run(self, step: NightStep) -> StepOutcome:
        """Runs a step to its end."""
        places = {"{folder}": self.folder, "{passed}": self.passed(step)}
        command = list(step.command)
        for name, place in places.items():
            command = [part.replace(name, str(place)) for part in command]
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}  # a log shows how far it has come
        started = time.monotonic()
        with self.log(step).open("w", encoding="utf-8") as log:
            if step.needs is not None and not step.needs.exists():
                print(f"{step.needs.name} is not on this machine", file=log)
                return StepOutcome(ABSENT, 0.0)
            done = subprocess.run(
                command,
                cwd=self.root,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return StepOutcome(GREEN if done.returncode == 0 else RED, time.monotonic() - started)

    def report(self, steps: Sequence[NightStep]) -> str:
        """A table of all steps, and the end of what those said that are not green."""
        known = self.outcomes()
        parts = [
            f"# Nightly run of {self.commit}\n",
            f"{_sum(known, steps)}\n",
            "| step | result | minutes | output |",
            "|---|---|---|---|",
            *(self._row(step, known.get(step.name)) for step in steps),
            "",
        ]
        for step in steps:
            if step.name in known and known[step.name].result != GREEN:
                lines = self.log(step).read_text("utf-8", errors="replace").splitlines()
                parts += [f"## {step.name}\n", "```text", *lines[-SHOWN_LINES:], "```\n"]
        return "\n".join(parts)

    def _row(self, step: NightStep, outcome: StepOutcome | None) -> str:
        if outcome is None:
            return f"| {step.name} | not run | | |"
        log = self.log(step).relative_to(self.root)
        return f"| {step.name} | {outcome.result} | {outcome.seconds / 60:.1f} | `{log}` |"


def _sum(known: Mapping[str, StepOutcome], steps: Sequence[NightStep]) -> str:
    ended = [known[step.name].result for step in steps if step.name in known]
    return (
        f"{ended.count(GREEN)} of {len(steps)} steps green, {ended.count(RED)} red, "
        f"{ended.count(ABSENT)} absent, {len(steps) - len(ended)} not run."
    )


def commit_of(root: Path) -> str:
    """The commit's short name; with what is not committed it is another tree."""

    def git(*arguments: str) -> str:
        return subprocess.check_output(("git", *arguments), cwd=root, text=True).strip()

    changed = git("status", "--porcelain", "--untracked-files=no", ":!docs")
    return git("rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")


def started(step: NightStep, root: Path) -> bool:
    """Whether a step can start; what its trial said is printed where it cannot."""
    done = subprocess.run(step.trial, cwd=root, capture_output=True, text=True, check=False)
    print(f"{step.name}: {'starts' if done.returncode == 0 else done.stdout + done.stderr}")
    return done.returncode == 0


def ended(night: Night, steps: Sequence[NightStep]) -> Iterator[tuple[NightStep, StepOutcome]]:
    """Each step as soon as it has ended: those that follow one another and may run beside each
    other as many at a time as there are cores, others alone.
    """
    for beside, some in itertools.groupby(steps, lambda step: step.beside):
        lanes = ThreadPoolExecutor(cores() if beside else 1)
        try:
            runs = {lanes.submit(night.run, step): step for step in some}
            for run in as_completed(runs):
                yield runs[run], run.result()
        finally:  # who stops the night wants no further step to begin
            lanes.shutdown(cancel_futures=True)


def main(arguments: Sequence[str], steps: Sequence[NightStep] = STEPS, root: Path = ROOT) -> int:
    """1 if a step that has ended is red."""
    parser = argparse.ArgumentParser(prog="python tools/nightly.py")
    parser.add_argument("--resume", action="store_true", help="keep the steps that are green")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of steps' names")
    parser.add_argument("--list", action="store_true", help="the steps")
    parser.add_argument("--check", action="store_true", help="try whether each step can start")
    given = parser.parse_args(arguments)
    wanted = [step for step in steps if any(text in step.name for text in given.only)]
    if given.list:
        print("\n".join(step.name for step in wanted))
        return 0
    if given.check:
        return 0 if False not in [started(step, root) for step in wanted] else 1
    night = Night(root, commit_of(root))
    if not given.resume and given.only == [""]:
        shutil.rmtree(night.folder, ignore_errors=True)
    night.folder.mkdir(parents=True, exist_ok=True)
    known = night.outcomes() if given.resume else {}
    left = [step for step in wanted if step.name not in known or known[step.name].result != GREEN]
    for step in wanted:
        if step not in left:
            print(f"{step.name}: {GREEN} before", flush=True)
        elif not given.resume:
            night.passed(step).unlink(missing_ok=True)
    for step, outcome in ended(night, left):
        night.keep(step, outcome)
        print(f"{step.name}: {outcome.result}, {outcome.seconds / 60:.1f} min", flush=True)
        (root / "build/nightly.md").write_text(night.report(steps), "utf-8")
    (root / "build/nightly.md").write_text(night.report(steps), "utf-8")
    return 1 if any(each.result == RED for each in night.outcomes().values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
