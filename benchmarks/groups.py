# SPDX-License-Identifier: Apache-2.0
"""Answers by 50 groups against those of the whole table: processor time of the engine, one thread,
columns in memory.

For each kind the least of a few runs that alternate between both, in all and of the passes over the
rows alone; the rest is noise, selections and what is made of releases for each group.
BENCH_GROUP_ROWS (1e6), BENCH_GROUPS (50), BENCH_GROUP_KINDS: names.
"""

import json
import os
import time

import numpy as np

from benchmarks.speed import ArrayReader
from benchmarks.tables import AnyReservation
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.describe.kind import Describe
from reticent_server.kinds.histogram.kind import Histogram
from reticent_server.kinds.mean.kind import Mean
from reticent_server.kinds.median.kind import Median
from reticent_server.kinds.quantiles.kind import Quantiles
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.kinds.sum.kind import Sum
from reticent_server.pipeline import planning

N = int(float(os.environ.get("BENCH_GROUP_ROWS", "1e6")))
G = int(os.environ.get("BENCH_GROUPS", "50"))
P, REPEATS = 5, 3
NAMES = [f"x{j}" for j in range(P)]
QUESTIONS = {
    "count": lambda by: Count(by=by),
    "sum": lambda by: Sum("x0", by=by),
    "mean": lambda by: Mean("x0", by=by),
    "histogram": lambda by: Histogram("x0", tuple(np.linspace(-20, 20, 21).tolist()), by=by),
    "quantiles": lambda by: Quantiles("x0", (0.25, 0.5, 0.75), by=by),
    "median": lambda by: Median("x0", by=by),
    "describe": lambda by: Describe(("x0", "x1", "x2"), by=by),
    "linear_regression": lambda by: LinearRegression("y ~ " + " + ".join(NAMES), by=by),
}
KINDS = os.environ.get("BENCH_GROUP_KINDS", " ".join(QUESTIONS)).split()


class TimedEngine(LocalEngine):
    """passes: processor seconds of the passes so far."""

    passes = 0.0

    def totals(self, table, step):
        start = time.process_time()
        found = super().totals(table, step)
        self.passes += time.process_time() - start
        return found


def data():
    rng = np.random.default_rng(2026)
    arrays = {name: rng.normal(size=N) for name in NAMES}
    arrays["y"] = 0.3 * sum(arrays.values()) + rng.normal(scale=0.5, size=N)
    return arrays | {"g": rng.integers(0, G, N).astype(float)}


def facts(arrays):
    levels = tuple(f"l{k}" for k in range(G))
    columns, profiles = [], {}
    for name, values in arrays.items():
        if name == "g":
            columns.append(Column(name, ColumnKind.CATEGORICAL, 0, G - 1, levels))
            counts = np.bincount(values.astype(int), minlength=G).astype(float)
            profiles[name] = ColumnProfile(counts=tuple(counts.tolist()))
        else:
            columns.append(Column(name, ColumnKind.NUMERIC, -20.0, 20.0))
            quantiles = np.quantile(values, PROFILE_PROBABILITIES).tolist()
            profiles[name] = ColumnProfile(quantiles=tuple(quantiles))
    return DatasetFacts("bench", "bench", 1, "v", N, Schema(tuple(columns)), Profile(profiles))


def seconds(engine, plan):
    engine.passes, start = 0.0, time.process_time()
    release = engine.execute(plan, Reservation("rel_bench", "v", plan.cost, ""))
    assert release.status == "reply"
    return time.process_time() - start, engine.passes


def main() -> None:
    arrays = data()
    public, reader = facts(arrays), ArrayReader(arrays)
    reader.n = N
    engine = TimedEngine(
        lambda _: reader, AnyReservation(), cache_bytes=1 << 30, threads=1, block_rows=1 << 15
    )
    found = {}
    for kind in KINDS:
        ask = QUESTIONS[kind]
        plans = [planning.plan(public, ask(by), Privacy(1.0, 1e-6)) for by in (None, "g")]
        runs = np.array([[seconds(engine, plan) for plan in plans] for _ in range(REPEATS + 1)])
        (whole, whole_passes), (by, by_passes) = runs[1:].min(axis=0)
        found[kind] = {
            "seconds": whole,
            "seconds_by_groups": by,
            "times": by / whole,
            "times_of_passes": by_passes / whole_passes,
        }
        row = "".join(f"{value:12.4f}" for value in found[kind].values())
        print(f"{kind:20}{row}", flush=True)
    print(json.dumps({"benchmark": "groups", "n": N, "groups": G} | found))


if __name__ == "__main__":
    main()
