# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/gauntlet.md and its plot, from the figures of runs; tools/figures.py puts them
there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path

import matplotlib as mpl

from benchmarks.figures import IMAGES
from benchmarks.gauntlet import goals
from benchmarks.gauntlet.goals import FAMILY_COVERAGE, LEAST_COVERAGE
from benchmarks.gauntlet.lines import FitLine, LevelLine, Line, RankLine, from_json
from benchmarks.gauntlet.models import MODELS

BEFORE = Path(__file__).with_name("before.json")
PLOT_EPSILON = 1.0

Lines = Mapping[str, Sequence[Line]]


def lines_of(stored: dict) -> Lines:
    """By model; a figure that was not a number is one again."""
    return {
        model["model"]: [
            from_json({k: float("nan") if v is None else v for k, v in line.items()})
            for line in model["lines"]
        ]
        for model in stored["models"]
        if model["lines"]
    }


def tables(found: Lines) -> str:
    """A table of the fits of each group, and one of quantiles and one of tests."""
    parts = []
    for group, questions in MODELS.items():
        lines = [line for q in questions for line in found.get(q.name, ())]
        fits = [line for line in lines if isinstance(line, FitLine)]
        if fits:
            mean = sum(f.coverage for f in fits if not f.declined)
            given = sum(not f.declined for f in fits)
            parts.append(f"### {group.capitalize()}\nMean coverage {number(mean / given)}.\n")
            parts.append(fit_table(fits))
        parts += [level_table(x) for x in [[v for v in lines if isinstance(v, LevelLine)]] if x]
        parts += [rank_table(x) for x in [[v for v in lines if isinstance(v, RankLine)]] if x]
    return "\n".join(parts)


def summary(found: Lines) -> str:
    """How many lines meet each goal, and which models do not."""
    every = [line for lines in found.values() for line in lines]
    judged = [(line, verdict) for line in every for verdict in line.verdicts()]
    rows = [
        "| goal | lines | met | missed beyond chance | not met, by model (ε) |",
        "|---|---|---|---|---|",
    ]
    for goal in dict.fromkeys(verdict.goal for _, verdict in judged):
        here = [(line, v) for line, v in judged if v.goal == goal]
        met, missed = sum(v.met for _, v in here), sum(v.missed for _, v in here)
        rows.append(
            f"| {goal} | {len(here)} | {met} | {missed} | "
            f"{named(x for x, v in here if not v.met)} |"
        )
    return "\n".join(rows) + "\n"


def named(lines: Iterable[Line]) -> str:
    """Models with the ε of their lines."""
    epsilons: dict[str, list[str]] = {}
    for line in lines:
        epsilons.setdefault(line.model, []).append(budget(line.epsilon))
    return "; ".join(f"{model} ({', '.join(values)})" for model, values in epsilons.items())


def fit_table(lines: Sequence[FitLine]) -> str:
    """Rows of a model and ε."""
    rows = [
        (
            "| model | n | ε | coverage | rms z | worst coefficient | flagged | noise | forecast "
            "| > 10 × | < .6 × | misses |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join(rows + [fit_row(line) for line in lines]) + "\n"


def fit_row(line: FitLine) -> str:
    missed = goals.names(line.verdicts(), missed=True)
    told = "declined" if line.declined else ", ".join(missed)
    worst = f"`{line.worst}` {number(line.worst_coverage)}".replace("|", "\\|")
    cells = [
        line.model,
        f"{line.n:,}",
        budget(line.epsilon),
        number(line.coverage),
        number(line.rms_z),
        worst,
        number(line.flagged),
        number(line.noise),
        f"{number(line.forecast)} ({number(line.furthest)})",
        number(line.wild),
        number(line.short),
        told,
    ]
    return f"| {' | '.join(cells)} |"


def level_table(lines: Sequence[LevelLine]) -> str:
    rows = ["### Levels of tests\n", "| test | n | ε | rejects at 5 % | of | flagged | misses |"]
    rows.append("|---|---|---|---|---|---|---|")
    for line in lines:
        share = number(line.rejected / max(line.tests, 1))
        missed = ", ".join(goals.names(line.verdicts(), missed=True))
        cells = (line.model, f"{line.n:,}", budget(line.epsilon), share, str(line.tests))
        rows.append(f"| {' | '.join(cells)} | {line.flagged} | {missed} |")
    return "\n".join(rows) + "\n"


def rank_table(lines: Sequence[RankLine]) -> str:
    rows = [
        "### Ranks of quantiles\n",
        "| column | n | ε | rms rank error | worst | forecast scale |",
    ]
    rows.append("|---|---|---|---|---|---|")
    for line in lines:
        records = " | ".join(f"{x:.1f}" for x in (line.error, line.worst, line.forecast))
        rows.append(f"| {line.model} | {line.n:,} | {budget(line.epsilon)} | {records} |")
    return "\n".join(rows) + "\n"


def number(x: float) -> str:
    """Two places and no leading zero, – for what nothing tells of."""
    if isnan(x):
        return "–"
    text = f"{x:.2f}" if x < 100 else f"{x:.2g}"
    return "0" if text == "0.00" else text.removeprefix("0")


def budget(epsilon: float) -> str:
    return f"{epsilon:g}".removeprefix("0")


def plot(found: Lines, before: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Coverage by model at ε = 1: now, and before the redesign where it was measured then."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gauntlet"
    import matplotlib.pyplot as plt

    now = [
        line
        for questions in MODELS.values()
        for question in questions
        for line in found.get(question.name, ())
        if isinstance(line, FitLine) and line.epsilon == PLOT_EPSILON
    ]
    figure, axis = plt.subplots(figsize=(7.5, 0.155 * len(now) + 1.2))
    for height, line in enumerate(reversed(now)):
        old = before.get(line.model, {}).get(f"{PLOT_EPSILON:g}")
        if old is not None:
            axis.plot([old, line.coverage], [height, height], color="0.8", linewidth=1, zorder=1)
            axis.scatter(old, height, s=16, facecolors="none", edgecolors="tab:red", zorder=2)
        if not line.declined:
            axis.scatter(line.coverage, height, s=16, color="tab:blue", zorder=3)
    axis.scatter([], [], s=16, color="tab:blue", label="now")
    axis.scatter([], [], s=16, facecolors="none", edgecolors="tab:red", label="before the redesign")
    axis.axvspan(*FAMILY_COVERAGE, color="tab:green", alpha=0.15)
    axis.axvline(LEAST_COVERAGE, color="tab:green", linewidth=0.8, linestyle="--")
    axis.set_yticks(range(len(now)), [line.model for line in reversed(now)], fontsize=6)
    axis.set(xlabel="coverage of 95 % intervals, ε = 1", ylim=(-1, len(now)))
    axis.legend(loc="center left", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def drawn(files: Sequence[Path]) -> str:
    """The tables of one run or of several, each of some models; the plot is drawn."""
    found: dict[str, Sequence[Line]] = {}
    for path in files:
        found |= lines_of(json.loads(path.read_text(encoding="utf-8")))
    before = json.loads(BEFORE.read_text(encoding="utf-8"))
    plot(found, before, IMAGES / "gauntlet.svg")
    return summary(found) + "\n" + tables(found)
