# SPDX-License-Identifier: Apache-2.0
"""Sixteen regressions at the same time against one, through HTTP, from a table in memory.

n = 10⁶, p = 10, two threads, time grid off; sixteen analysts ask once each, and wait for the last
reply. Seconds and processor seconds of all processes are the least of a few rounds that take turns
with single fits. Memory is that of the server and of the processes that help it, each page of
shared memory once (PSS), above what there is after a fit, when nothing is asked: while one fit and
while sixteen are computed, and again when nothing is asked. BENCH_PEER_ROWS (1e6): the table's
rows. BENCH_ROUNDS (3).
"""

import json
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.peers import N, P, ask, client, installation, served
from benchmarks.scale import cpu_seconds, settle
from reticent_server.api.logs import configure_logging
from support.processes.children import children

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LOOK_SECONDS = 0.05  # between two looks at memory


def memory_mb():
    """Of this process and of those that help it; a page that several have counts once."""
    return sum(map(_pss_mb, ["self", *children("self")]))


def _pss_mb(pid):
    fields = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\nPss:")[1]
    return int(fields.split()[0]) / 1024


class Watched:
    """Seconds, processor seconds and the most memory, of what is done meanwhile."""

    def __enter__(self):
        self.most = memory_mb()
        self._ended = threading.Event()
        self._looks = threading.Thread(target=self._look)
        self._looks.start()
        self._cpu, self._start = cpu_seconds(), time.perf_counter()
        return self

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self.most = max(self.most, memory_mb())

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._start
        self.cpu = cpu_seconds() - self._cpu
        self._ended.set()
        self._looks.join()


def asked(url, keys):
    """One fit an analyst, at the same time."""

    def one(key) -> None:
        with client(url, key) as http:
            ask(http)

    with Watched() as watched, ThreadPoolExecutor(len(keys)) as pool:
        list(pool.map(one, keys))
    return watched


def main() -> None:
    configure_logging("error")
    with tempfile.TemporaryDirectory() as folder:
        services, keys = installation(Path(folder))
        with served(services) as url:
            asked(url, keys[:1])
            settle()
            asked(url, keys[:1])
            idle = memory_mb()
            rounds = [(asked(url, keys[:1]), asked(url, keys)) for _ in range(ROUNDS)]
            settle()
            after = memory_mb()
    ones, many = zip(*rounds, strict=True)
    found = {
        "fits": len(keys),
        "seconds_of_one": min(one.seconds for one in ones),
        "cpu_seconds_of_one": min(one.cpu for one in ones),
        "seconds": min(each.seconds for each in many),
        "cpu_seconds": min(each.cpu for each in many),
        "memory_of_one_mb": max(one.most for one in ones) - idle,
        "memory_mb": max(each.most for each in many) - idle,
        "memory_kept_mb": after - idle,
    }
    found["times"] = found["seconds"] / found["seconds_of_one"]
    found["cpu_times"] = found["cpu_seconds"] / found["cpu_seconds_of_one"]
    for key, value in found.items():
        print(f"{key:24} {value:.3f}")
    print(json.dumps({"benchmark": "at_once", "n": N, "p": P} | found))


if __name__ == "__main__":
    main()
