"""How often propose–test–release has no reply, against n and ε, on standard normal columns.

`python -m benchmarks no_reply` prints a table and one JSON line; RUNS answers a cell, each of new data.
"""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from reticent_server.domain.cost import DELTA_UNITS, EPSILON_UNITS, PrivacyCost
from reticent_server.domain.query import DepthMedian, Iqr, Median
from reticent_server.pipeline.planning_robust import plan_robust
from support_recipes import answer, block_of, facts_of, numeric

RUNS = 20
SIZES, EPSILONS = (1_000, 10_000, 100_000), (0.5, 1.0, 4.0)
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
    offer = PrivacyCost(int(epsilon * EPSILON_UNITS), DELTA_UNITS // 10**6, 10**10)
    plan = plan_robust(facts_of(n, COLUMNS), query, offer)
    blocks = (block_of(x0=rng.normal(size=n), x1=rng.normal(size=n)) for _ in range(RUNS))
    return float(np.mean([answer(plan, block) is None for block in blocks]))


def main() -> None:
    found = {}
    print(f"{'':16} {'n':>8}" + "".join(f"{f'ε = {e:g}':>10}" for e in EPSILONS))
    for name, query in QUERIES.items():
        for n in SIZES:
            row = [share(query, n, epsilon) for epsilon in EPSILONS]
            found[f"{name}, n = {n}"] = row
            print(f"{name:16} {n:8}" + "".join(f"{v:10.2f}" for v in row), flush=True)
    result = {"benchmark": "no_reply", "runs": RUNS, "epsilons": EPSILONS, "no_reply": found}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
