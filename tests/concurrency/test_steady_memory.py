# SPDX-License-Identifier: Apache-2.0
"""Ten minutes of everything that callers do: the memory of a server's processes stays where it
is.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from threading import Event, Thread

import httpx
import pytest

from reticent_server.domain.roles import STAFF
from support.installations.both_backends import installation
from support.installations.small import Installation, Server, opened, request_body, serving
from support.processes.children import descendants

__all__ = ["installation"]

MINUTES = float(os.environ.get("AUDIT_MINUTES", "10"))
SAMPLE_SECONDS = 2.0
WARM = 0.4
"""The part of the time in which caches, pools and threads come to be."""

MOST_GROWTH = 0.03
"""From the first to the second half of what remains: an allocator's noise, not a leak. (A leak of 1
KB a request would be some 10 % here.)
"""

QUERIES = (
    {"kind": "count", "where": "k > 3"},
    {"kind": "mean", "column": "y"},
    {"kind": "histogram", "column": "y", "bins": [-10, 0, 10]},
    {"kind": "quantiles", "column": "x", "probabilities": [0.25, 0.5, 0.75]},
    {"kind": "linear_regression", "formula": "y ~ x + C(g)"},
)


def resident_kb(pid: int) -> int:
    """The memory of a process and all below it, without what they share with files."""
    total = 0
    for process in {pid} | descendants(pid):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                total += int(line.split()[1])
    return total


class Load:
    """Callers of every sort, each in a thread; `replies` counts by what they did and the status."""

    def __init__(self, server: Server, console: str, keys: list[str], curator: str) -> None:
        self.replies: Counter[tuple[str, int]] = Counter()
        self.ended = Event()
        self._server, self._console, self._curator = server, console, curator
        callers: list[Callable[[], None]] = [self._curate, self._stranger]
        for key in keys:
            callers += [lambda key=key: self._ask(key), lambda key=key: self._come_back(key)]
        self._threads = [Thread(target=caller) for caller in callers]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def _http(self, key: str, url: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=url or self._server.url, headers=headers, timeout=60)

    def _count(self, what: str, reply: httpx.Response) -> httpx.Response:
        self.replies[what, reply.status_code] += 1
        return reply

    def _ask(self, key: str) -> None:
        number = 0
        with self._http(key) as http:
            while not self.ended.is_set():
                body = request_body(QUERIES[number % len(QUERIES)], epsilon=0.001, delta=1e-9)
                retried = {"Idempotency-Key": f"k{number}"}
                for _ in range(2):
                    self._count("ask", http.post("/v1/releases", json=body, headers=retried))
                self._count("plan", http.post("/v1/plans", json=body))
                for path in ("/v1/datasets", "/v1/budget", "/v1/releases?limit=10", "/readyz"):
                    self._count("look", http.get(path))
                number += 1

    def _come_back(self, key: str) -> None:
        """Releases that are answered later, a part of which are cancelled."""
        later, number = {"Prefer": "respond-async"}, 0
        with self._http(key) as http:
            while not self.ended.wait(0.05):
                body = request_body(epsilon=0.001, delta=1e-9)
                made = self._count("later", http.post("/v1/releases", json=body, headers=later))
                number += 1
                if made.status_code == 202 and number % 4 == 0:
                    self._count("cancel", http.delete(made.headers["location"]))

    def _curate(self) -> None:
        """Signs in, looks at every page, sets a budget, signs out; and reads the metrics."""
        with self._http(self._curator, self._console) as http:
            while not self.ended.wait(0.5):
                fields = {"form_token": _token(http.get("/console/sign-in")), "key": self._curator}
                self._count("sign in", http.post("/console/sign-in", data=fields))
                for page in ("", "analysts", "budgets", "ledger", "datasets/people"):
                    shown = self._count("page", http.get(f"/console/{page}"))
                cap = {"dataset": "people", "epsilon": "1000", "delta": "0.01"}
                cap |= {"form_token": _token(shown)}
                self._count("form", http.post("/console/budgets/set", data=cap))
                left = {"form_token": _token(http.get("/console/"))}
                self._count("sign out", http.post("/console/sign-out", data=left))
                self._count("metrics", http.get("/metrics"))

    def _stranger(self) -> None:
        """Wrong keys, no keys, and bodies that are none."""
        wrong = "rk_" + "0" * 16 + "_" + "A" * 43
        with self._http(wrong) as http:
            while not self.ended.wait(0.02):
                self._count("stranger", http.get("/v1/datasets"))
                self._count("stranger", http.post("/v1/releases", content=b"{" * 1000))
                self._count("stranger", http.get("/nothing"))


def _token(page: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]+)"', page.text)
    assert found is not None
    return found[1]


@pytest.mark.audit
def test_memory_stays_where_it_is(installation: Installation) -> None:
    keys = [installation.analyst(f"a{k}", epsilon=1e3, delta=1e-2) for k in range(3)]
    with opened(installation.settings) as services:
        curator = services.access.add_curator("carol", STAFF, by="t")
    settings = {"cancels_per_minute": 10**6, "sign_ins_per_minute": 10**6}
    options = ("--workers", "2", "--curator-port", "0")
    with serving(installation, *options, **settings) as server:
        assert server.process.stdout is not None
        console = server.process.stdout.readline().split()[3].removesuffix("/metrics")
        load, sizes = Load(server, console, keys, curator), []
        load.start()
        try:
            for _ in range(max(10, int(60 * MINUTES / SAMPLE_SECONDS))):
                time.sleep(SAMPLE_SECONDS)
                sizes.append(resident_kb(server.process.pid))
        finally:
            load.end()
        assert server.end() == 0
    steady = sizes[int(WARM * len(sizes)) :]
    first, second = median(steady[: len(steady) // 2]), median(steady[len(steady) // 2 :])
    print(
        f"{installation.settings.database_url[:10]}: MB at the start {sizes[0] / 1e3:.0f}, after "
        "warming up "
        f"{first / 1e3:.1f}, later {second / 1e3:.1f}; {load.replies.total()} replies: "
        f"{dict(sorted(load.replies.items()))}"
    )
    assert not {status for _, status in load.replies if status >= 500 and status != 503}
    assert second <= first * (1 + MOST_GROWTH)
    with opened(installation.settings) as services:
        assert services.ledger.verify() == []
