# SPDX-License-Identifier: Apache-2.0
"""When replies are shown, against what their computation takes: every kind's examples, alone, from memory.

`python -m benchmarks deadlines` prints, for n = 10⁴ and 10⁶ (BENCH_DEADLINE_ROWS="1e4 1e6"): milliseconds, what the plan
expects, when the reply is shown here (the machine's speed taken from the same run, the default time grid), that over the
computation, and the plan's own deadline. `Planned.taken` is made from it.
"""

import json
import os

import numpy as np

from reticent_server.engine.local import LocalEngine
from reticent_server.pipeline.calibration import MadeUp, example_plans, milliseconds, speed_of
from reticent_server.pipeline.pace import Pace, shown_after_ms
from reticent_server.settings import Settings

ROWS = [int(float(n)) for n in os.environ.get("BENCH_DEADLINE_ROWS", "1e4 1e6").split()]
MANY, REPEATS = 10**5, 3


def main() -> None:
    for n in ROWS:
        table = MadeUp(n)
        size = {"cache_bytes": 1 << 28, "threads": 2, "block_rows": 1 << 15}
        engine = LocalEngine(lambda _, table=table: table, table, **size)
        plans = example_plans(n, first=n > MANY)
        took = [milliseconds(engine, plan, REPEATS) for _, plan in plans]
        engine.close()
        print_table(n, plans, took)


def print_table(n, plans, took):
    pace, grid = Pace(), Settings().reply_grid_ms
    speed = speed_of([plan for _, plan in plans], took)
    pace.measured(speed, 1)
    ratios = []
    for (name, plan), ms in zip(plans, took, strict=True):
        shown = shown_after_ms(grid, pace.promised(plan, warm=True).deadline_ms, 0.0)
        ratios.append(shown / ms)
        row = f"{name:22}{ms:9.1f}{plan.expected_ms:9.1f}{shown:8}{shown / ms:8.1f}"
        print(row + f"{plan.deadline_ms:9}")
    slow = [ratio for ratio, ms in zip(ratios, took, strict=True) if ms >= grid]
    found = {
        "speed": speed,
        "median_ratio": float(np.median(ratios)),
        "median_ratio_above_grid": float(np.median(slow)),
        "overruns": sum(ratio < 1 for ratio in ratios),
    }
    print(json.dumps({"benchmark": "deadlines", "n": n} | found))
