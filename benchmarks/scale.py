"""How a regression grows: with rows (cached and streamed), with columns, on a cluster, cold.

The engine as it serves, without HTTP. Each regime runs in a process of its own, so that its memory is
its own. BENCH_ROWS (10⁷) is the largest table; 5·10⁷ take 5 GB of disk.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.tables import AnyReservation, planned, reader, write_table
from reticent_server.engine.blocks import Table
from reticent_server.engine.local import LocalEngine

P = 10
LARGEST = int(float(os.environ.get("BENCH_ROWS", "1e7")))
THREADS = 2


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

    def _watch(self):
        while not self._ended.wait(0.02):
            self.largest = max(self.largest, resident_mb())

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    @property
    def above_mb(self):
        return self.largest - self.before


def engine(found, cache_bytes, cluster=None):
    return LocalEngine(
        lambda _: found,
        AnyReservation(),
        cache_bytes=cache_bytes,
        threads=THREADS,
        block_rows=1 << 15,
        cluster=cluster,
    )


def fit(folder, n, p, cache_bytes, repeats):
    """Best seconds of a fit after a first one, of that first one, and memory above idle."""
    found, (plan, reservation) = reader(folder, p), planned(n, p)
    local = engine(found, cache_bytes)
    times = []
    with Peak() as peak:
        for _ in range(repeats + 1):
            start = time.perf_counter()
            assert local.execute(plan, reservation).status == "reply"
            times.append(time.perf_counter() - start)
    local.close()
    return {
        "first_seconds": times[0],
        "seconds": min(times[1:] or times),
        "passes": plan.estimator.passes,
        "memory_mb": peak.above_mb,
    }


def on_dask(folder, n, p):
    """The same fits on two worker processes, and whether a pass has the same sums."""
    from reticent_server.engine.dask_cluster import local_cluster

    found, (plan, reservation) = reader(folder, p), planned(n, p)
    cluster = local_cluster(2, cache_bytes=4 << 30)
    there, here = engine(found, 0, cluster), engine(found, 4 << 30)
    step = next(plan.estimator.run())
    sums = [
        [
            t.unwrap()
            for t in e.totals(Table(found, "v", plan.facts.schema, plan.estimator.columns), step)
        ]
        for e in (there, here)
    ]
    times = []
    for each in (there, here):
        runs = []
        for _ in range(4):
            start = time.perf_counter()
            each.execute(plan, reservation)
            runs.append(time.perf_counter() - start)
        times.append(min(runs[1:]))
    there.close()
    here.close()
    return {
        "seconds": times[0],
        "overhead": times[0] / times[1],
        "same_sums": all((a == b).all() for a, b in zip(*sums, strict=True)),
    }


def in_child(what, *arguments):
    """The JSON that a function of this module prints in a process of its own."""
    code = f"import json, benchmarks.scale as s; print(json.dumps(s.{what}(*{arguments!r})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in (10**5, 10**6, 10**7):
            if n <= LARGEST:
                place = str(write_table(Path(folder) / f"n{n}", n, P))
                found[f"cached n={n:.0e}"] = in_child("fit", place, n, P, 4 << 30, 3)
        for p in (5, 20, 40, 60):  # a formula may have 64 design columns
            place = str(write_table(Path(folder) / f"p{p}", 10**5, p))
            found[f"cached n=1e+05 p={p}"] = in_child("fit", place, 10**5, p, 4 << 30, 3)
        largest = min(LARGEST, 10**7)
        place = str(Path(folder) / f"n{largest}")
        found[f"dask n={largest:.0e}"] = in_child("on_dask", place, largest, P)
        streams = sorted({10**6, largest, LARGEST})
        for n in streams:
            place = Path(folder) / f"n{n}"
            if not place.exists():
                write_table(place, n, P)
            found[f"streamed n={n:.0e}"] = in_child("fit", str(place), n, P, 0, 0)
    for key, value in found.items():
        print(f"{key:24} { ({k: round(v, 3) for k, v in value.items()}) }", flush=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps({"benchmark": "scale", "machine": machine} | found))


if __name__ == "__main__":
    main()
