# SPDX-License-Identifier: Apache-2.0
"""The table of linear models over real tables, one line a model, and its plot.

    python -m benchmarks.real_tables --kind linear --asked squared --fast --json FILE
    python -m benchmarks.real_tables.report FILE

prints the table as Markdown and draws docs/images/real-tables.svg.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

from benchmarks.figures import IMAGES
from benchmarks.gauntlet.report import number

SOURCES = {
    "log wage, CPS1988": "AER::CPS1988",
    "raw wage, CPS1988": "AER::CPS1988",
    "college distance": "AER::CollegeDistance",
    "loan rate, raw money": "openintro::loans_full_schema",
    "loan amount, 12 purposes": "openintro::loans_full_schema",
    "arrival delay, carriers": "openintro::nycflights",
    "departure delay, raw": "openintro::nycflights",
    "air time on distance": "openintro::nycflights",
    "house price, Ames": "modeldata::ames",
    "log price, 28 quarters": "modeldata::ames",
    "log price, condition 9": "modeldata::ames",
    "room price, factors": "modeldata::hotel_rates",
    "home runs": "plyr::baseball",
    "reading, rare ethnicity": "mlmRev::star",
    "evaluations": "lme4::InstEval",
    "wealth, raw": "wooldridge::k401ksubs",
    "wealth, inc x e401k": "wooldridge::k401ksubs",
    "birth weight": "wooldridge::bwght",
    "log duration, did": "wooldridge::injury",
    "duration raw, did": "wooldridge::injury",
    "two-year college": "wooldridge::twoyear",
    "log wage, 526": "wooldridge::wage1",
    "mothers' hours": "wooldridge::labsup",
}
"""R package and data set, from which complete cases of a model's columns are taken."""
_GOAL = 0.9  # of intervals of 95 %: covered, of 24 samples

Lines = Sequence[dict[str, Any]]


def table(lines: Lines) -> str:
    """One line a model."""
    rows = [
        "| model | table | n | covered | intervals given | width | warned |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in lines:
        cells = [line["model"], f"`{SOURCES[line['model']]}`", f"{line['n']:,}"]
        values = (line[k] for k in ("textbook", "given", "width", "warned"))
        cells += [number(float("nan") if x is None else x) for x in values]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def plot(lines: Lines, path: Path) -> None:
    """Coverage of least squares and the width of its intervals, by model."""
    told = [x for x in lines if x["given"] > 0]
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "real tables"
    import matplotlib.pyplot as plt

    size = (8.5, 0.24 * len(told) + 1.2)
    figure, axes = plt.subplots(1, 2, figsize=size, sharey=True, squeeze=False)
    places = range(len(told))
    shown = {"textbook": ("covered", _GOAL), "width": ("width over that of lm()", 1.0)}
    for axis, (key, (label, goal)) in zip(axes[0], shown.items(), strict=True):
        axis.scatter([x[key] for x in told], places, s=18)
        axis.axvline(goal, color="grey", lw=0.8)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0, 0].set_yticks(places, [x["model"] for x in told], fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def drawn(path: Path) -> str:
    """The table of a run's file; the plot goes to docs/images."""
    lines = json.loads(path.read_text("utf-8"))
    plot(lines, IMAGES / "real-tables.svg")
    return table(lines)


def main() -> None:
    sys.stdout.write(drawn(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
