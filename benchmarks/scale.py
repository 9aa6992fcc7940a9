# SPDX-License-Identifier: Apache-2.0
"""How a regression grows: with rows (cached and streamed), with columns, and on a cluster.

The engine as it serves, without HTTP. Each regime runs in a process of its own, so that its memory
is its own; a table is made when it is needed and removed after it.

BENCH_PARTS    which of cached, columns, dask, streamed (all)
BENCH_ROWS     the largest table that is cached, and the cluster's (1e7)
BENCH_STREAMED the largest table that is streamed (5e7: 5 GB of disk)
BENCH_COLUMNS  numbers of slopes at BENCH_COLUMN_ROWS (1e5) rows (5,10,20,40,60,100)
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.tables import AnyReservation, planned, reader, write_table
from reticent_server.engine.blocks import Table
from reticent_server.engine.cluster_engine import ClusterEngine
from reticent_server.engine.local import LocalEngine
from support.processes.children import children

ROOT = Path(__file__).parents[1]
P = 10
CELL_BYTES = 9  # a value and a mark
THREADS = 2
PARTS = os.environ.get("BENCH_PARTS", "cached,columns,dask,streamed").split(",")
LARGEST = int(float(os.environ.get("BENCH_ROWS", "1e7")))
STREAMED = int(float(os.environ.get("BENCH_STREAMED", "5e7")))
COLUMNS = [int(p) for p in os.environ.get("BENCH_COLUMNS", "5,10,20,40,60,100").split(",")]
COLUMN_ROWS = int(float(os.environ.get("BENCH_COLUMN_ROWS", "1e5")))
CACHE = 4 << 30
STREAM_CACHE = 768 << 20


def resident_mb():
    fields = Path("/proc/self/status").read_text().split("VmRSS:")[1]
    return int(fields.split()[0]) / 1024


class Peak:
    """The largest resident memory above what there was before, sampled."""

    def __enter__(self):
        self.before = self.largest = resident_mb()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            self.largest = max(self.largest, resident_mb())

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    @property
    def above_mb(self):
        return self.largest - self.before


def engine(found, cache_bytes, cluster=None):
    sizes = {"cache_bytes": cache_bytes, "threads": THREADS, "block_rows": 1 << 15}
    if cluster is None:
        return LocalEngine(lambda _: found, AnyReservation(), **sizes)
    return ClusterEngine(cluster, lambda _: found, AnyReservation(), **sizes)


def helpers_seconds():
    """Processor time of the processes that help this one."""
    found = 0
    for pid in children("self"):
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found += int(stat[11]) + int(stat[12])
    return found / os.sysconf("SC_CLK_TCK")


def settle() -> None:
    """Waits until the processes that help have started, and do nothing."""
    before = -1.0
    while helpers_seconds() > before:
        before = helpers_seconds()
        time.sleep(1.5)


def cpu_seconds():
    """Of this process and of those that help: what others do on the machine hardly changes it."""
    return time.process_time() + helpers_seconds()


def fit(folder, n, p, cache_bytes, repeats):
    """Best seconds of a fit after a first one, of that first one, and memory above idle."""
    found, (plan, reservation) = reader(folder, p), planned(n, p)
    local = engine(found, cache_bytes)
    times, work = [], []
    with Peak() as peak:
        for _ in range(repeats + 1):
            before, start = cpu_seconds(), time.perf_counter()
            assert local.execute(plan, reservation).status == "reply"
            times.append(time.perf_counter() - start)
            work.append(cpu_seconds() - before)
            settle()
    local.close()
    best, least = min(times[1:] or times), min(work[1:] or work)
    return {
        "first_seconds": times[0],
        "seconds": best,
        "cpu_seconds": least,
        "microseconds_a_row": 1e6 * best / n,
        "cpu_microseconds_a_row": 1e6 * least / n,
        "passes": plan.planned.passes,
        "memory_mb": peak.above_mb,
    }


def sums(local, found, step, plan):
    """A pass's exact integers as lists."""
    table = Table(found, plan.facts.version_id, plan.facts.schema, plan.planned.columns)
    return [total.unwrap().tolist() for total in local.totals(table, step)]


def on_dask(folder, n, p):
    """The same fits on two worker processes; whether passes have the same sums, also one in which a
    worker is killed."""
    from reticent_server.engine.dask_cluster import local_cluster
    from support.processes.cluster_maps import KillsItsWorker

    found, (plan, reservation) = reader(folder, p), planned(n, p)
    there, here = engine(found, 0, local_cluster(2, cache_bytes=CACHE)), engine(found, CACHE)
    first = next(plan.planned.run())
    times, work = ([], []), ([], [])
    for turn in range(5):  # they take turns, so that others' work on the machine meets both
        for k, each in enumerate((there, here)):
            before, start = cpu_seconds(), time.perf_counter()
            assert each.execute(plan, reservation).status == "reply"
            if turn:  # the first one reads
                times[k].append(time.perf_counter() - start)
                work[k].append(cpu_seconds() - before)
    everything = replace(first, subset=None)
    expected = [sums(here, found, step, plan) for step in (first, everything)]
    same = [sums(there, found, step, plan) for step in (first, everything)] == expected
    killer = KillsItsWorker(first.map_fn, n // 2, Path(folder) / "killed")
    after = sums(there, found, replace(everything, map_fn=killer), plan)
    killed = (Path(folder) / "killed").exists()
    there.close()
    here.close()
    return {
        "seconds": min(times[0]),
        "overhead": min(times[0]) / min(times[1]),
        "cpu_seconds": min(work[0]),
        "cpu_overhead": min(work[0]) / min(work[1]),
        "same_sums": same,
        "worker_killed": killed,
        "same_sums_after_kill": after == expected[1],
    }


def in_child(what, *arguments):
    """The JSON that a function of this module prints in a process of its own."""
    code = f"import json, benchmarks.scale as s; print(json.dumps(s.{what}(*{arguments!r})))"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,  # its own traceback is shown
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    if done.returncode:
        sys.exit(f"{what}{arguments} failed")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def written(folder, n, p):
    """A table for as long as it is needed. Exits where the disk has no room for it."""
    place = Path(folder) / f"n{n}p{p}"
    needed = 1.2 * n * (p + 1) * 8
    if shutil.disk_usage(folder).free < needed:
        sys.exit(f"{needed / 1e9:.0f} GB of disk are needed for {n} rows")
    write_table(place, n, p)
    try:
        yield str(place)
    finally:
        shutil.rmtree(place)


def measured(folder):
    """(name, figures), one after the other."""
    growing = {LARGEST // 100, LARGEST // 10, LARGEST} if "cached" in PARTS else set()
    for n in sorted(growing | ({LARGEST} if "dask" in PARTS else set())):
        with written(folder, n, P) as place:
            if "cached" in PARTS:
                yield f"cached n={n:.0e}", in_child("fit", place, n, P, CACHE, 3)
            if "dask" in PARTS and n == LARGEST:
                yield f"dask n={n:.0e}", in_child("on_dask", place, n, P)
    for p in COLUMNS if "columns" in PARTS else ():
        with written(folder, COLUMN_ROWS, p) as place:
            yield f"columns p={p}", in_child("fit", place, COLUMN_ROWS, p, CACHE, 3)
    for n in sorted({STREAMED // 50, STREAMED // 5, STREAMED}) if "streamed" in PARTS else ():
        room = min(STREAM_CACHE, n * (P + 1) * CELL_BYTES // 2)
        with written(folder, n, P) as place:
            yield f"streamed n={n:.0e}", in_child("fit", place, n, P, room, 0)


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, figures in measured(folder):
            found[name] = figures
            print(f"{name:20} { ({k: round(v, 3) for k, v in figures.items()}) }", flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps({"benchmark": "scale", "machine": machine} | found))


if __name__ == "__main__":
    main()
