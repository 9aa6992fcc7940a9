# SPDX-License-Identifier: Apache-2.0
"""Time and memory of one regression of 10⁶ records and 10 slopes, from a warm cache.

One thread, and once with two and their processes; the engine and mechanisms as they serve, without
HTTP; the vault is replaced by arrays in memory. In the same run: numpy's sum of the same array and
scikit-learn's HuberRegressor. `reads`: how many such sums a fit takes, in processor time of one
thread. Draws docs/images/passes.svg: what each pass takes, in such sums, which depends little on
how fast a machine is and how busy. BENCH_SPEED_ROWS (1e6): the table's rows.
"""

import json
import os
import platform
import resource
import time
import tracemalloc

import numpy as np
import pyarrow as pa

from benchmarks.figures import IMAGES
from benchmarks.scale import settle
from benchmarks.tables import AnyReservation
from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning

N = int(float(os.environ.get("BENCH_SPEED_ROWS", "1e6")))
P, REPEATS = 10, 3
NAMES = [f"x{j}" for j in range(P)]


class ArrayReader:
    """A reader of arrays in memory."""

    n = N

    def __init__(self, arrays) -> None:
        self.arrays = arrays

    def batches(self, columns):
        cut = {k: pa.array(self.arrays[k]) for k in columns}
        yield Private(pa.RecordBatch.from_pydict(cut))


def data():
    rng = np.random.default_rng(2026)
    x = rng.normal(size=(N, P))
    y = x @ np.linspace(1, 0.1, P) + rng.normal(scale=0.5, size=N)
    return {name: np.ascontiguousarray(x[:, j]) for j, name in enumerate(NAMES)} | {"y": y}


def facts(arrays):
    columns = tuple(Column(k, ColumnKind.NUMERIC, -20.0, 20.0) for k in arrays)
    quantiles = {k: tuple(np.quantile(a, PROFILE_PROBABILITIES)) for k, a in arrays.items()}
    profile = Profile({k: ColumnProfile(quantiles=q) for k, q in quantiles.items()})
    return DatasetFacts("bench", "bench", 1, "v", N, Schema(columns), profile)


def seconds(call, repeats=REPEATS):
    """The best of a few: what else the machine does only adds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


class PassEngine(LocalEngine):
    """by_pass: the least processor time of each pass since it was emptied, in milliseconds."""

    def totals(self, table, step):
        start = time.process_time()
        found = super().totals(table, step)
        took = 1e3 * (time.process_time() - start)
        self.by_pass = getattr(self, "by_pass", {})
        self.by_pass[step.label] = round(min(took, self.by_pass.get(step.label, took)), 1)
        return found


def engine_of(arrays, threads):
    return PassEngine(
        lambda _: ArrayReader(arrays),
        AnyReservation(),
        cache_bytes=1 << 30,
        threads=threads,
        block_rows=1 << 15,
    )


def main() -> None:
    arrays = data()
    public = facts(arrays)
    query = LinearRegression("y ~ " + " + ".join(NAMES))

    def make_plan():
        return planning.plan(public, query, Privacy(1.0, 1e-6))

    make_plan()
    plan_seconds = seconds(make_plan, 20)
    plan = make_plan()
    reservation = Reservation("rel_bench", "v", plan.cost, "")

    def fit(on=None) -> None:
        assert (on or engine).execute(plan, reservation).status == "reply"

    two = engine_of(arrays, 2)
    fit(two)
    settle()
    fit(two)
    two_seconds = seconds(lambda: fit(two), 2 * REPEATS)
    two.close()
    engine = engine_of(arrays, 1)
    fit()
    cpu, by_pass = min((fit_by_pass(engine, fit) for _ in range(2 * REPEATS)), key=lambda x: x[0])
    found = {
        "fit_seconds": seconds(fit),
        "fit_seconds_two_threads": two_seconds,
        "fit_cpu_seconds": cpu,
        "passes": plan.planned.passes,
        "plan_milliseconds": 1e3 * plan_seconds,
        "memory_above_cache_mb": peak_megabytes(fit),
        "peak_resident_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    } | peers(arrays)
    found["machine"] = f"{platform.machine()} {platform.python_version()}"
    found["reads"] = found["fit_cpu_seconds"] / found["numpy_sum_cpu_seconds"]
    found["pass_milliseconds"] = by_pass
    draw(by_pass, 1e3 * found["fit_cpu_seconds"], 1e3 * found["numpy_sum_cpu_seconds"])
    for key, value in found.items():
        print(f"{key:28} {round(value, 4) if isinstance(value, int | float) else value}")
    print(json.dumps({"benchmark": "speed", "n": N, "p": P} | found))


def fit_by_pass(engine, fit):
    """Processor seconds of one fit, and milliseconds of each of its passes."""
    engine.by_pass = {}
    return cpu_seconds(fit), dict(engine.by_pass)


WHOLE = {
    "whitening 3": "whitening, all rows",
    "newton step 6": "last step but one, all rows",
    "residual scale 6": "scale of the residuals, all rows",
    "newton step 7": "last step, all rows",
}
"""Passes over all rows, by label; the others go over a part."""


def parts_of(by_pass, fit, reading):
    """What a fit's milliseconds are made of, in readings of the array that take `reading` each."""
    whole = {words: by_pass[label] for label, words in WHOLE.items() if label in by_pass}
    part = sum(took for label, took in by_pass.items() if label not in WHOLE)
    passes = sum(by_pass.values())
    found = whole | {"all passes over a part": part, "between the passes": max(fit - passes, 0.0)}
    return {words: took / reading for words, took in found.items()}


def draw(by_pass, fit, reading) -> None:
    """One bar a pass over all rows, one for the other passes, one for what is between them."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "benchmarks"
    import matplotlib.pyplot as plt

    bars = parts_of(by_pass, fit, reading)
    figure, axis = plt.subplots(figsize=(7, 0.42 * len(bars) + 0.9))
    axis.barh(list(reversed(bars)), list(reversed(bars.values())), color="tab:blue")
    for place, took in enumerate(reversed(bars.values())):
        axis.text(took, place, f" {took:.0f}", va="center")
    axis.set_xlim(right=1.15 * max(bars.values()))
    axis.set_xlabel(f"readings of the array, {sum(bars.values()):.0f} in all; n = {N:,}, p = {P}")
    axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(IMAGES / "passes.svg", metadata={"Date": None})


def cpu_seconds(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def peak_megabytes(call):
    """Peak of what the call allocates (numpy reports its buffers), the cache being full before."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def peers(arrays):
    from sklearn.linear_model import HuberRegressor

    x = np.column_stack([arrays[k] for k in NAMES])
    return {
        "numpy_sum_seconds": seconds(x.sum),
        "numpy_sum_cpu_seconds": min(cpu_seconds(x.sum) for _ in range(20)),
        "sklearn_huber_seconds": seconds(lambda: HuberRegressor(alpha=0.0).fit(x, arrays["y"]), 1),
    }


if __name__ == "__main__":
    main()
