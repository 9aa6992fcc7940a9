# SPDX-License-Identifier: Apache-2.0
"""When replies are shown, against what their computation takes: every kind's examples, alone, from
memory.

`python -m benchmarks deadlines` measures this machine as a server does at start, then prints for n
= 10⁴ and 10⁶ (BENCH_DEADLINE_ROWS="1e4 1e6"): milliseconds, what the plan expects, when the reply
is shown here (default time grid), that over the computation with a charge (CHARGE_MS), and whether
the plan is steady. `Planned.deadline_shares` is made from it.
"""

import json
import os
import time

import numpy as np

from reticent_server.domain.clock import SystemClock
from reticent_server.engine.local import LocalEngine
from reticent_server.pipeline.calibration import MadeUp, example_plans, measured, milliseconds
from reticent_server.pipeline.pace import Pace, shown_after_ms
from reticent_server.settings import Settings

ROWS = [int(float(n)) for n in os.environ.get("BENCH_DEADLINE_ROWS", "1e4 1e6").split()]
REPEATS, THREADS, BLOCK_ROWS = 3, 2, 1 << 15
CHARGE_MS = 5.0  # of its two transactions: measured 3 to 6; no reply comes sooner with the grid off
WITHIN = 2.5


def main() -> None:
    started = time.process_time()
    speed, shares = measured(THREADS, BLOCK_ROWS)
    pace = Pace(SystemClock())
    pace.measured(speed, 1, shares)
    print(
        f"speed {speed:.2f}, {len(shares)} sorts, {time.process_time() - started:.0f} s of "
        "processor time"
    )
    for n in ROWS:
        table = MadeUp(n)
        size = {"cache_bytes": 1 << 28, "threads": THREADS, "block_rows": BLOCK_ROWS}
        engine = LocalEngine(lambda _, table=table: table, table, **size)
        plans = example_plans(n, first=False)
        took = milliseconds(engine, [plan for _, plan in plans], REPEATS)
        engine.close()
        print_table(n, plans, took, pace)


def print_table(n, plans, took, pace):
    grid, ratios = Settings().reply_grid_ms, []
    for (name, plan), ms in zip(plans, took, strict=True):
        shown = shown_after_ms(grid, pace.promised(plan, warm=True).deadline_ms, 0.0)
        ratios.append(shown / (ms + CHARGE_MS))
        row = f"{name:22}{ms:9.1f}{plan.expected_ms:9.1f}{shown:8}{ratios[-1]:8.1f}"
        print(row + ("" if plan.sort else "  not steady"))
    found = {
        "median_ratio": float(np.median(ratios)),
        "share_within": float(np.mean(np.array(ratios) <= WITHIN)),
        "largest_ratio": max(ratios),
        "overruns": sum(ratio < 1 for ratio in ratios),
    }
    print(json.dumps({"benchmark": "deadlines", "n": n} | found))
