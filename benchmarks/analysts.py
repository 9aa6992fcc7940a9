# SPDX-License-Identifier: Apache-2.0
"""Many analysts at once on PostgreSQL, through HTTP: whether any request fails, and whether the
ledger is right at the end.

Every analyst asks for counts, one after the other, as fast as replies come: each under a key of its
own, every tenth request again under the same key, with a look at the budget in between. PostgreSQL
commits to the disk. At the end the whole chain is verified, and what was spent must be exactly what
was answered. Ends with 1 where it is not, or a request has failed.

BENCH_ANALYSTS (100)   how many ask at the same time
BENCH_SECONDS  (600)   for how long
BENCH_WORKERS  (2)     processes of the server
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

from reticent_server.domain.cost import EPSILON_UNITS
from support.databases.postgresql import Cluster
from support.installations.small import build, opened, request_body, serving

ANALYSTS = int(os.environ.get("BENCH_ANALYSTS", "100"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "600"))
WORKERS = os.environ.get("BENCH_WORKERS", "2")
# of a count: ten thousand of them are within an analyst's ε = 100, a million within the cap of
# ε = 1,000 and δ = .01
EPSILON, DELTA = 0.001, 1e-9
AGAIN = 10
# after which a connection is not used again: the server closes it after 5, perhaps at that moment
IDLE_SECONDS = 2
REPLY_SECONDS = 120  # a reply that takes longer has failed


@dataclass
class Seen:
    """What the analysts saw. answered: releases by analyst; other: replies that are no release, by
    status.
    """

    answered: Counter = field(default_factory=Counter)
    other: Counter = field(default_factory=Counter)
    different: int = 0
    seconds: list = field(default_factory=list)


async def analyst(client, name, key, until, seen) -> None:
    """Asks until the time is over. (A 429 or 503 with Retry-After would be counted, and tried
    again.)
    """
    headers = {"Authorization": f"Bearer {key}"}
    body = request_body({"kind": "count"}, epsilon=EPSILON, delta=DELTA)
    number = 0
    while time.monotonic() < until:
        own = headers | {"Idempotency-Key": f"{name}-{number}"}
        start = time.perf_counter()
        first = await sent(client.post("/v1/releases", json=body, headers=own), seen)
        if first is None:
            await asyncio.sleep(1)
            continue
        seen.seconds.append(time.perf_counter() - start)
        seen.answered[name] += 1
        if number % AGAIN == 0:
            again = await sent(client.post("/v1/releases", json=body, headers=own), seen)
            seen.different += again is not None and again != first
        await sent(client.get("/v1/budget", headers=headers), seen)
        number += 1


async def sent(request, seen):
    """The body of a good reply, else None, which is counted."""
    try:
        reply = await request
    except httpx.HTTPError as error:
        seen.other[type(error).__name__] += 1
        return None
    if reply.status_code in {200, 201}:
        return reply.content
    seen.other[reply.status_code] += 1
    return None


async def all_at_once(url, keys) -> Seen:
    seen = Seen()
    limits = httpx.Limits(
        max_connections=None, max_keepalive_connections=None, keepalive_expiry=IDLE_SECONDS
    )
    async with httpx.AsyncClient(base_url=url, timeout=REPLY_SECONDS, limits=limits) as client:
        until = time.monotonic() + SECONDS
        await asyncio.gather(
            *(analyst(client, name, key, until, seen) for name, key in keys.items())
        )
    return seen


def main() -> None:
    cluster = Cluster(durable=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(cluster, Path(folder))
    finally:
        cluster.remove()
    for name, value in found.items():
        print(f"{name:28} {value}")
    print(json.dumps({"benchmark": "analysts"} | found), flush=True)
    sys.exit(", ".join(wrong(found)) or None)


def wrong(found):
    """The figures that are not what they must be."""
    right = {
        "failures": 0,
        "retries_with_another_reply": 0,
        "ledger_problems": 0,
        "pending": 0,
        "stored_releases": found["releases"],
        "spent_is_answered": True,
    }
    return [f"{name} is {found[name]}" for name, value in right.items() if found[name] != value]


def measured(cluster, folder):
    for name in ("ledger", "vault"):
        cluster.execute(f"CREATE DATABASE {name}")
    installation = build(folder, (cluster.url("ledger"), cluster.url("vault")))
    names = [f"analyst{k}" for k in range(ANALYSTS)]
    keys = {name: installation.analyst(name, epsilon=100, delta=1e-3) for name in names}
    with serving(installation, "--workers", WORKERS, reply_grid_ms=10) as server:
        seen = asyncio.run(all_at_once(server.url, keys))
    with opened(installation.settings) as services:
        problems = services.ledger.verify()
        cap = services.ledger.population_balance("people")
        pending = services.ledger.waiting()
        stored = sum(len(services.ledger.releases(a.id, 10**6)) for a in analysts(services, names))
    answered = sum(seen.answered.values())
    return {
        "analysts": ANALYSTS,
        "seconds": SECONDS,
        "releases": answered,
        "failures": sum(seen.other.values()),
        "failures_by_status": {str(k): v for k, v in seen.other.items()},
        "retries_with_another_reply": seen.different,
        "ledger_problems": len(problems),
        "stored_releases": stored,
        "pending": pending,
        "spent_is_answered": bool(cap.spent.primary == round(EPSILON * EPSILON_UNITS) * answered),
        "reply_median": float(np.median(seen.seconds)),
        "reply_p99": float(np.quantile(seen.seconds, 0.99)),
        "releases_a_second": answered / SECONDS,
    }


def analysts(services, names):
    return [services.access.analyst(name) for name in names]


if __name__ == "__main__":
    main()
