# SPDX-License-Identifier: Apache-2.0
"""How often propose–test–release has no reply, against n and ε, on standard normal columns.

`python -m benchmarks no_reply` prints a table and one JSON line, and draws
docs/images/no-reply.svg: the share without a reply of NO_REPLY_RUNS releases a cell, each of new
data. For depth medians it is the mean over the tables of the exact chance, given the table. The fit
by influence is a regression of x0 on x1. NO_REPLY_SIZES, NO_REPLY_EPSILONS and NO_REPLY_KINDS, as
in NO_REPLY_SIZES=1000,10000, choose other cells. Cells are kept in the file of lines
NO_REPLY_CELLS, where it is given, and those found there are not run again.
"""

import json
import os
from pathlib import Path

import numpy as np

from reticent_server.domain.query import Privacy
from reticent_server.kinds.depth_median.query import DepthMedian
from reticent_server.kinds.iqr.kind import Iqr
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline.planning import plan as planned
from support.attacks.pass_probabilities import reply_probability
from support.kinds.recipes import answer, block_of, facts_of, numeric

RUNS = int(os.environ.get("NO_REPLY_RUNS", "20"))
SIZES = tuple(map(int, os.environ.get("NO_REPLY_SIZES", "1000,3000,10000,30000,100000").split(",")))
EPSILONS = tuple(map(float, os.environ.get("NO_REPLY_EPSILONS", "0.5,1,4").split(",")))
COLUMNS = tuple(numeric(f"x{j}", -50.0, 50.0) for j in range(2))
QUERIES = {
    "iqr": Iqr("x0", "ptr"),
    "median, ptr": Median("x0", "ptr"),
    "depth, iqr": DepthMedian(("x0", "x1"), "iqr", directions=100),
    "depth, mad": DepthMedian(("x0", "x1"), "mad", directions=100),
    "depth, trimmed": DepthMedian(("x0", "x1"), "trimmed", directions=100),
    "influence, ptr": LinearRegression("x0 ~ x1", mechanism="influence"),
}
KINDS = os.environ.get("NO_REPLY_KINDS", ",".join(k.replace(", ", " ") for k in QUERIES)).split(",")
CELLS = os.environ.get("NO_REPLY_CELLS")
DELTA = 1e-6


def share(name, n, epsilon) -> float:
    """The share of runs without a reply, kept from an earlier run or computed."""
    key = [name, n, epsilon, RUNS]
    kept = Path(CELLS).read_text("utf-8").splitlines() if CELLS and Path(CELLS).exists() else []
    for line in map(json.loads, kept):
        if line[:4] == key:
            return line[4]
    found = computed(QUERIES[name], n, epsilon)
    if CELLS:
        with Path(CELLS).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([*key, found]) + "\n")
    return found


def computed(query, n, epsilon) -> float:
    rng = np.random.default_rng([n, int(100 * epsilon)])
    plan = planned(facts_of(n, COLUMNS), query, Privacy(epsilon, DELTA)).planned
    tables = (rng.normal(size=(2, n)) for _ in range(RUNS))
    if isinstance(query, DepthMedian):
        return float(np.mean([1 - reply_probability(plan.part, x) for x in tables]))
    return float(np.mean([answer(plan, block_of(x0=x[0], x1=x[1])) is None for x in tables]))


def plot(found) -> None:
    """A panel for each ε, a line for each mechanism."""
    from benchmarks.figures import panels, save

    figure, axes = panels(1, len(EPSILONS))
    for k, (axis, epsilon) in enumerate(zip(axes[0], EPSILONS, strict=True)):
        for name, rows in found.items():
            axis.semilogx(SIZES, [row[k] for row in rows], marker="o", label=name, alpha=0.8)
        axis.set_title(f"ε = {epsilon:g}")
        axis.set_xlabel("records n")
    axes[0, 0].set_ylabel("share without a reply")
    save(figure, axes, "no-reply", columns=len(found))


def main() -> None:
    found = {}
    print(f"{'':16} {'n':>8}" + "".join(f"{f'ε = {e:g}':>10}" for e in EPSILONS))
    for name in (k for k in QUERIES if k.replace(", ", " ") in KINDS):
        found[name] = []
        for n in SIZES:
            row = [share(name, n, epsilon) for epsilon in EPSILONS]
            found[name].append(row)
            print(f"{name:16} {n:8}" + "".join(f"{v:10.2f}" for v in row), flush=True)
    plot(found)
    result = {"benchmark": "no_reply", "runs": RUNS, "sizes": SIZES, "epsilons": EPSILONS}
    print(json.dumps(result | {"no_reply": found}))


if __name__ == "__main__":
    main()
