# SPDX-License-Identifier: Apache-2.0
"""The two tables of docs/benchmarks.md about tests by their names, from the lines that
benchmarks.named_tests prints.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

WITHIN = (0.035, 0.065)  # of a level of .05, the goal


@dataclass(frozen=True, slots=True)
class Printed:
    """A line: shares; coverages are NaN where the test has no interval."""

    test: str
    law: str
    n: str
    epsilon: str
    level: float
    peer_level: float
    power: float
    peer_power: float
    coverage_none: float
    coverage_effect: float


def parsed(lines: Iterable[str]) -> list[Printed]:
    """The lines of the table, whatever stands around it."""
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return [
        Printed(*row[:4], *map(float, row[4:]))
        for row in rows
        if len(row) == 10 and row[0] not in {"test", "---"}
    ]


def levels(found: Sequence[Printed]) -> str:
    """A row of each test: levels and coverages over its lines."""
    rows = [
        (
            "| test | lines | level, mean | range | .035–.065 | SciPy, mean | range | .035–.065 | "
            "coverage, mean | least |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, lines in _by_test(found).items():
        covered = [c for x in lines for c in (x.coverage_none, x.coverage_effect) if c == c]  # noqa: PLR0124 - no NaN
        least = f"{share(fmean(covered), 2)} | {share(min(covered), 2)}" if covered else "– | –"
        ours, peers = (_spread([getattr(x, k) for x in lines]) for k in ("level", "peer_level"))
        rows.append(f"| `{name}` | {len(lines)} | {ours} | {peers} | {least} |")
    return "\n".join(rows) + "\n"


def powers(found: Sequence[Printed]) -> str:
    """A row of each test and law: power at each ε, and SciPy's, for each n."""
    sizes = list(dict.fromkeys(line.n for line in found))
    heads = " | ".join(f"n = {n}" for n in sizes)
    rows = [f"| test | law | {heads} |", "|---|---|" + "---|" * len(sizes)]
    cells: dict[tuple[str, str], dict[str, list[Printed]]] = defaultdict(lambda: defaultdict(list))
    for line in found:
        cells[line.test, line.law][line.n].append(line)
    for (test, law), by_size in cells.items():
        texts = [_powers(by_size[n]) for n in sizes]
        rows.append(f"| `{test}` | {law} | {' | '.join(texts)} |")
    return "\n".join(rows) + "\n"


def _powers(lines: Sequence[Printed]) -> str:
    if not lines:
        return "–"
    ours = " / ".join(share(line.power, 2) for line in lines)
    return f"{ours} ({share(fmean(line.peer_power for line in lines), 2)})"


def _by_test(found: Sequence[Printed]) -> dict[str, list[Printed]]:
    lines: dict[str, list[Printed]] = {}
    for line in found:
        lines.setdefault(line.test, []).append(line)
    return lines


def _spread(levels: Sequence[float]) -> str:
    within = sum(WITHIN[0] <= level <= WITHIN[1] for level in levels)
    ends = f"{share(min(levels), 3)}–{share(max(levels), 3)}"
    return f"{share(fmean(levels), 3)} | {ends} | {within}"


def share(x: float, places: int) -> str:
    """Without a leading zero."""
    return f"{x:.{places}f}".removeprefix("0")
