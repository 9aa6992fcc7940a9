# SPDX-License-Identifier: Apache-2.0
"""A flood of the most expensive plans on a served installation, beside a curator who opens a file
that would fill the memory: its short form.

The long one, with times, is `python -m benchmarks flood`. Nothing here depends on how fast the
machine is: a plan of the flood takes most of a second of processor time, and a dozen of them would
have to end before one more request arrives.
"""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from benchmarks.flood import (
    DEAR,
    FIT,
    FloodedPlace,
    bearer,
    body,
    resident,
    sent_file,
    signed_in,
    unpacked_parquet,
    watched,
)

from reticent_server.domain.roles import STAFF
from support.installations.small import Installation, opened, serving

PLANS, WAIT = 40, 12
"""Sent at once by one key, and how many of a key's may wait beside the one that is worked on."""

MEGABYTES = 600
READS = ("/v1/budget", "/v1/datasets", "/readyz", "/healthz")
HOUR = 3600.0


async def retried(place: FloodedPlace, *request: Any) -> int:
    """The status, of another try where the first was to come again."""
    while True:
        status, head, _ = await place.ask(*request, patience=HOUR)
        if status != 429:
            return status
        await asyncio.sleep(float(head.lower().split("retry-after: ")[1].split()[0]))


async def scene(place: FloodedPlace, process: int, keys: dict[str, str], carol: str) -> None:
    ended: list[str] = []
    memory: list[Counter[str]] = [resident(process)]
    watching = asyncio.create_task(watched(process, float("inf"), memory))

    async def plan(name: str, *request: Any) -> tuple[int, str, bytes]:
        reply = await place.ask("POST", "/v1/plans", *request, patience=HOUR)
        if reply[0] == 200:
            ended.append(name)
        return reply

    dear = body({"kind": "linear_regression", "formula": DEAR}, 1, "people")
    flood = [asyncio.create_task(plan("ana", bearer(keys["ana"]), dear)) for _ in range(PLANS)]
    refused: list[tuple[int, str, bytes]] = []
    for reply in asyncio.as_completed(flood):
        refused.append(await reply)
        if len(refused) == PLANS - 1 - WAIT:  # all that have no place
            break
    for status, head, content in refused:
        assert (status, json.loads(content)["code"]) == (429, "rate_limited")
        assert int(head.lower().split("retry-after: ")[1].split()[0]) >= 1

    async def look() -> int:
        cookie = await signed_in(place, carol, "console")
        page = await sent_file(place, cookie, "little.parquet", unpacked_parquet())
        status, _, shown = await place.ask("GET", page, {"Cookie": cookie}, patience=HOUR)
        assert b"cannot be read" in shown
        return status

    looking = asyncio.create_task(look())
    counts: Counter[int] = Counter()
    for path in READS * 4:
        counts[(await place.ask("GET", path, bearer(keys["bob"]), patience=HOUR))[0]] += 1
    assert counts == {200: 4 * len(READS)}
    bobs = await plan("bob", bearer(keys["bob"]), body(FIT, 0.1, "secret"))
    assert bobs[0] == 200
    assert ended.count("ana") < 1 + WAIT  # bob's had its turn before theirs
    for task in flood:  # who hangs up is forgotten
        task.cancel()
    assert await looking == 422
    asked = ("POST", "/v1/plans", bearer(keys["ana"]), body(FIT, 0.1, "people"))
    assert await retried(place, *asked) == 200
    assert ended.count("ana") < 1 + WAIT
    watching.cancel()
    assert max(seen.total() for seen in memory) - memory[0].total() <= MEGABYTES


@pytest.mark.slow
def test_a_flood_keeps_nobody_waiting_and_does_not_fill_the_memory(
    installation: Installation,
) -> None:
    with opened(installation.settings) as services:
        carol = services.access.add_curator("carol", STAFF, by="t")
    with serving(installation, plan_slots=1, plan_queue=WAIT) as server:
        host, port = server.url.removeprefix("http://").split(":")
        place = FloodedPlace(host, int(port))
        asyncio.run(scene(place, server.process.pid, installation.keys, carol))
