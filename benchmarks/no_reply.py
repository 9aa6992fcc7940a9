"""How often propose–test–release has no reply, against n and ε, on standard normal columns.

`python -m benchmarks no_reply` prints a table and one JSON line, and draws docs/images/no-reply.svg: the
share without a reply of NO_REPLY_RUNS releases a cell, each of new data. NO_REPLY_SIZES and
NO_REPLY_EPSILONS, as in NO_REPLY_SIZES=1000,10000, choose other cells.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.query import DepthMedian, Iqr, Median
from reticent_server.pipeline.planning_robust import plan_robust
from support_recipes import answer, block_of, facts_of, numeric

RUNS = int(os.environ.get("NO_REPLY_RUNS", "20"))
SIZES = tuple(map(int, os.environ.get("NO_REPLY_SIZES", "1000,3000,10000,30000,100000").split(",")))
EPSILONS = tuple(map(float, os.environ.get("NO_REPLY_EPSILONS", "0.5,1,4").split(",")))
COLUMNS = tuple(numeric(f"x{j}", -50.0, 50.0) for j in range(2))
QUERIES = {
    "iqr": Iqr("x0"),
    "median, ptr": Median("x0", "ptr"),
    "depth, iqr": DepthMedian(("x0", "x1"), "iqr", directions=100),
    "depth, mad": DepthMedian(("x0", "x1"), "mad", directions=100),
    "depth, trimmed": DepthMedian(("x0", "x1"), "trimmed", directions=100),
}


def share(query, n, epsilon) -> float:
    """The share of runs without a reply."""
    rng = np.random.default_rng([n, int(100 * epsilon)])
    offer = PrivacyCost(int(epsilon * EPSILON_UNITS), DELTA_UNITS // 10**6, 10**12)
    plan = plan_robust(facts_of(n, COLUMNS), query, offer)
    blocks = (block_of(x0=rng.normal(size=n), x1=rng.normal(size=n)) for _ in range(RUNS))
    return float(np.mean([answer(plan, block) is None for block in blocks]))


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
    save(figure, axes, "no-reply", columns=5)


def main() -> None:
    found = {}
    print(f"{'':16} {'n':>8}" + "".join(f"{f'ε = {e:g}':>10}" for e in EPSILONS))
    for name, query in QUERIES.items():
        found[name] = []
        for n in SIZES:
            row = [share(query, n, epsilon) for epsilon in EPSILONS]
            found[name].append(row)
            print(f"{name:16} {n:8}" + "".join(f"{v:10.2f}" for v in row), flush=True)
    plot(found)
    result = {"benchmark": "no_reply", "runs": RUNS, "sizes": SIZES, "epsilons": EPSILONS}
    print(json.dumps(result | {"no_reply": found}))


if __name__ == "__main__":
    main()
