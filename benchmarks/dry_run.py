# SPDX-License-Identifier: Apache-2.0
"""A dry run of 10⁹ rows on a cluster: what is measured of one worker and of the scheduler, and what
follows from it.

Three things are measured. A regression's passes over one worker's share: processor time of each,
and the bytes of its task and of its sums, as they are pickled. The scheduler: passes of a hundred
tasks without rows, on a cluster of this machine that has a hundred places. Reading: the first pass,
which fills the worker's cache from Parquet. The simulation adds them up for W workers with a core
each: a pass ends when the largest share is done, and the server deals with W tasks one after the
other. Nothing else is assumed, so a network's time for the first reading, and workers that others
use too, come on top.

BENCH_ROWS    rows of the share that is measured (1e7)
BENCH_ALL     rows of the table (1e9)
BENCH_WORKERS numbers of workers (25,50,100,200)
"""

import json
import os
import pickle
import tempfile
import time
from pathlib import Path

from distributed import Client, LocalCluster

from benchmarks.tables import AnyReservation, planned, reader, write_table
from reticent_server.engine.blocks import Table
from reticent_server.engine.cluster_engine import ClusterEngine
from reticent_server.engine.dask_cluster import DaskCluster, equal_shares
from reticent_server.engine.partition import sums_of_parts
from reticent_server.vault.parquet_source import PARTITION_ROWS

P = 10
CACHE = 4 << 30
BLOCK_ROWS = 1 << 15
PLACES, TURNS = 100, 10
SHARE = int(float(os.environ.get("BENCH_ROWS", "1e7")))
EVERYTHING = int(float(os.environ.get("BENCH_ALL", "1e9")))
WORKERS = [int(w) for w in os.environ.get("BENCH_WORKERS", "25,50,100,200").split(",")]


class OneWorker:
    """A cluster of this process, which notes what every pass costs."""

    def __init__(self) -> None:
        self.passes = []

    def totals(self, parts, step, block_rows):
        start = time.process_time()
        sums = sums_of_parts(parts, step, block_rows, CACHE)
        self.passes.append(
            {
                "cpu_seconds": time.process_time() - start,
                "part_bytes": len(pickle.dumps(parts)) / len(parts),
                "step_bytes": len(pickle.dumps((step, block_rows))),
                "sums_bytes": len(pickle.dumps(sums)),
            }
        )
        return sums

    def close(self) -> None:
        """Nothing was started."""


def share(folder):
    """The passes of two fits: of the first, which reads the files, and of one from the cache."""
    found, (plan, reservation) = reader(folder, P), planned(SHARE, P)
    worker = OneWorker()
    sizes = {"cache_bytes": 0, "threads": 1, "block_rows": BLOCK_ROWS}
    engine = ClusterEngine(worker, lambda _: found, AnyReservation(), **sizes)
    fits = []
    for _ in range(2):
        assert engine.execute(plan, reservation).status == "reply"
        fits.append(worker.passes)
        worker.passes = []
    engine.close()
    return fits


def scheduling(folder):
    """(processor seconds, seconds) of the server and its scheduler for a pass of PLACES tasks that
    hardly have a row: the least of TURNS.
    """
    rows = 1 << 10
    write_table(Path(folder), rows, P)
    found, (plan, _) = reader(folder, P), planned(rows, P)
    (part,) = Table(found, "v", plan.facts.schema, plan.planned.columns).parts()
    step = next(plan.planned.run())
    local = LocalCluster(
        n_workers=1,
        threads_per_worker=PLACES,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    )
    cluster = DaskCluster(Client(local, set_as_default=False), cache_bytes=CACHE)
    used, taken = [], []
    for _ in range(TURNS):
        before, start = time.process_time(), time.perf_counter()
        cluster.totals([part] * PLACES, step, BLOCK_ROWS)
        used.append(time.process_time() - before)
        taken.append(time.perf_counter() - start)
    cluster.close()
    return min(used), min(taken)


def simulated(first, later, task_seconds, workers):
    """What a fit takes on so many workers. first, later: passes over the share, from files and from
    the cache.
    """
    scale = largest_share(workers) / SHARE
    parts = EVERYTHING / PARTITION_ROWS
    return {
        "workers": workers,
        "rows_of_a_worker": largest_share(workers),
        "first_pass_seconds": first[0]["cpu_seconds"] * scale + workers * task_seconds,
        "pass_seconds": max(p["cpu_seconds"] for p in later) * scale + workers * task_seconds,
        "fit_seconds": sum(p["cpu_seconds"] * scale + workers * task_seconds for p in later),
        "scheduler_seconds": len(later) * workers * task_seconds,
        "sent_mb_a_pass": max(p["part_bytes"] * parts + p["step_bytes"] * workers for p in later)
        / 1e6,
        "returned_mb_a_pass": max(p["sums_bytes"] for p in later) * workers / 1e6,
        "cache_gb_of_a_worker": largest_share(workers) * (P + 1) * 9 / 1e9,
    }


class _Part:
    """So many rows."""

    def __init__(self, n) -> None:
        self.n = n


def largest_share(workers):
    """Rows of the worker that has most."""
    whole, rest = divmod(EVERYTHING, PARTITION_ROWS)
    parts = [_Part(PARTITION_ROWS)] * whole + ([_Part(rest)] if rest else [])
    return max(sum(part.n for part in each) for each in equal_shares(parts, workers))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = write_table(Path(folder) / "share", SHARE, P)
        first, later = share(str(place))
        cpu, latency = scheduling(str(Path(folder) / "small"))
    for k, each in enumerate(later):
        shown = {name: round(value, 4) for name, value in each.items()}
        print(f"pass {k:2} {shown}")
    found = [simulated(first, later, cpu / PLACES, w) for w in WORKERS]
    for each in found:
        print({name: round(value, 3) for name, value in each.items()})
    measured = {
        "passes": len(later),
        "first_pass_cpu_seconds": first[0]["cpu_seconds"],
        "pass_cpu_seconds": [p["cpu_seconds"] for p in later],
        "task_cpu_seconds": cpu / PLACES,
        "pass_of_100_tasks_seconds": latency,
    }
    print(json.dumps({"benchmark": "dry_run", "measured": measured, "simulated": found}))


if __name__ == "__main__":
    main()
