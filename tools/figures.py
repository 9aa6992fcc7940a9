# SPDX-License-Identifier: Apache-2.0
"""Puts the figures of a nightly run into the documentation, with the commit that made them.

    python tools/figures.py build/nightly/COMMIT

A region of a page, from `<!-- figures: NAME -->` to `<!-- figures: end -->`, is replaced by the
table of that name: made of what the run's steps left in the folder. A step that has left nothing
leaves its region as it is, with the commit of its own run, and is named. A page may not name a
table that does not exist.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import named_tests_tables  # noqa: E402 - it is not installed
from benchmarks.gauntlet import report  # noqa: E402
from benchmarks.real_tables import report as real_report  # noqa: E402
from tools.nightly import STEPS  # noqa: E402

REGION = re.compile(r"<!-- figures: (?!end)(\w+) -->\n.*?<!-- figures: end -->", re.DOTALL)
FIRST_TABLE = re.compile(r"^\|.*\n\|[-|: ]+\|\n(?:\|.*\n)*", re.MULTILINE)


def gauntlet(folder: Path) -> str | None:
    """The gauntlet's tables; its plot is drawn, too."""
    path = folder / "gauntlet.json"
    if not path.exists():
        return None
    return report.drawn([path])


def real_tables(folder: Path) -> str | None:
    """Linear models over real tables; their plot is drawn, too."""
    path = folder / "real_tables.json"
    return real_report.drawn(path) if path.exists() else None


def printed(name: str) -> Callable[[Path], str | None]:
    """The table that a benchmark prints."""

    def table(folder: Path) -> str | None:
        path = folder / f"bench-{name}.txt"
        found = FIRST_TABLE.search(path.read_text("utf-8")) if path.exists() else None
        return found.group() if found else None

    return table


def of_named_tests(
    table: Callable[[Sequence[named_tests_tables.Printed]], str],
) -> Callable[[Path], str | None]:
    """A table over the lines that the benchmark named_tests prints."""

    def made(folder: Path) -> str | None:
        path = folder / "bench-named_tests.txt"
        lines = (
            named_tests_tables.parsed(path.read_text("utf-8").splitlines()) if path.exists() else []
        )
        return table(lines) if lines else None

    return made


def ended(step: str) -> Callable[[Path], str | None]:
    """How a step of the run ended, and what it printed last; a benchmark, all that it printed. Of
    an audit that was stopped and went on also how many tests have passed in all its parts.
    """

    def told(folder: Path) -> str | None:
        state = folder / "state.json"
        outcome = json.loads(state.read_text("utf-8")).get(step) if state.exists() else None
        if outcome is None:
            return None
        log = folder / f"{step.replace(' ', '-')}.txt"
        text = log.read_text("utf-8")
        lines = [line for line in text.splitlines() if shown(line)]
        how = f"**{outcome['result']}**, {outcome['seconds'] / 60:.1f} minutes"
        if step.startswith("bench "):
            return "\n".join([f"{how}.\n", "```text", *(lines or tabled(text)), "```"])
        last = f": {lines[-1].strip('= ')}" if lines else "."
        passed = log.with_suffix(".passed")
        tests = len(passed.read_text("utf-8").splitlines()) if passed.exists() else 0
        if tests and f"{tests} passed" not in last:
            how = f"{how} of the last part, {tests} tests passed in all"
        return how + last

    return told


def shown(line: str) -> bool:
    """Not what is for programs, or names a place on the machine that ran it."""
    places = {str(ROOT), str(ROOT.parent), tempfile.gettempdir(), str(Path.home())} - {"/"}
    return not line.startswith(("{", "== ")) and not any(place in line for place in places)


def tabled(text: str) -> list[str]:
    """The lines of a table of what a benchmark prints that prints JSON objects alone, one a row,
    without the columns that are the same in all; objects in which there are others follow as they
    are.
    """
    objects = {line: json.loads(line) for line in text.splitlines() if line.startswith("{")}
    deep = [
        line for line, each in objects.items() if any(isinstance(v, dict) for v in each.values())
    ]
    rows = [each for line, each in objects.items() if line not in deep]
    names = list(dict.fromkeys(name for row in rows for name in row))
    varied = [name for name in names if len({str(row.get(name)) for row in rows}) > 1] or names
    told = [[str(row.get(name, "")) for name in varied] for row in rows]
    lines = [varied, ["---"] * len(varied), *told] if rows else []
    return [f"| {' | '.join(line)} |" for line in lines] + deep


TABLES: dict[str, Callable[[Path], str | None]] = {
    "gauntlet": gauntlet,
    "real_tables": real_tables,
    "every_kind": printed("every_kind"),
    "levels_of_named_tests": of_named_tests(named_tests_tables.levels),
    "powers_of_named_tests": of_named_tests(named_tests_tables.powers),
    **{f"step_{each.name.replace(' ', '_')}": ended(each.name) for each in STEPS[:-1]},
}


def pages(docs: Path) -> Iterator[Path]:
    for path in sorted(docs.rglob("*.md")):
        if REGION.search(path.read_text("utf-8")):
            yield path


def filled(text: str, tables: dict[str, str | None], commit: str) -> str:
    """The page's text with those of its regions replaced whose tables are there. KeyError: no such
    table.
    """

    def region(found: re.Match[str]) -> str:
        table = tables[found[1]]
        if table is None:
            return found[0]
        made = f"<small>Made at commit `{commit}`.</small>"
        return f"<!-- figures: {found[1]} -->\n{made}\n\n{table.strip()}\n\n<!-- figures: end -->"

    return REGION.sub(region, text)


def main(folder: Path, docs: Path = ROOT / "docs") -> int:
    """0; which tables were filled is printed."""
    tables = {name: make(folder) for name, make in TABLES.items()}
    for path in pages(docs):
        text = path.read_text("utf-8")
        path.write_text(filled(text, tables, folder.name), "utf-8")
    print(json.dumps({name: "filled" if table else "not made" for name, table in tables.items()}))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python tools/figures.py")
    parser.add_argument("folder", type=Path, help="what a nightly run has left")
    sys.exit(main(parser.parse_args().folder.resolve()))
