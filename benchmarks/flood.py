# SPDX-License-Identifier: Apache-2.0
"""Free work that is asked for as fast as the network allows: what do others notice, and does the
server keep its memory?

A few keys send 64 of the most expensive questions a second: plans of 242 columns, of which half are
hung up on, releases beyond the budget, and pages of the workbench with a question in their address.
A curator opens, one after the other, the files that take most to look at: little Parquet that is
360 MB of text when it is unpacked, ten thousand columns, blank lines, and the widest table that is
taken. Strangers send bodies that drip, that are packed, and that are too long, guess keys, and ask
for what is not theirs; and the longest of every part of a request that is let in: heads, cookies,
addresses, chunks, lists of a form, a study's file with its dearest analyses. Of sixteen analysts,
fifteen meanwhile look at their budgets and plan, once a second, and one fits. The same sixteen
alone come first.

The last lines say PASS or FAIL of each goal. Times are no verdict on a machine that is not quiet:
where the sixteen alone wait longer than QUIET for their budgets, they say so, and memory alone is
judged. Ends with 1 where a goal is missed, with 2 where the machine was not quiet.

BENCH_SECONDS   (300)  of the flood; the sixteen have a fifth of it alone before
BENCH_RATE      (64)   expensive questions a second, of all flooders together
BENCH_FLOODERS  (8)    keys that send them
BENCH_ROWS      (100000)
"""

import asyncio
import gzip
import io
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from reticent_server.cli.dataset_load import load_dataset
from reticent_server.domain.roles import STAFF
from reticent_server.pipeline.pace_file import PaceFile
from reticent_server.workbench.analyses import MOST_STRUCTURAL
from support.installations.small import SCHEMA, _add_analyst, _table, build, opened, serving

SECONDS = float(os.environ.get("BENCH_SECONDS", "300"))
RATE = float(os.environ.get("BENCH_RATE", "64"))
FLOODERS = int(os.environ.get("BENCH_FLOODERS", "8"))
ROWS = int(os.environ.get("BENCH_ROWS", "100000"))
ANALYSTS = 16
SETTLING_SECONDS = 180  # after the start at the most: the server measures its pace
PAUSE_SECONDS = 1.0  # of an analyst between two rounds
WARMING_SECONDS = 20  # of the sixteen, before they are watched
DEAR = "y ~ poly(x, 10)*poly(m, 10)*b"
FIT = {"kind": "linear_regression", "formula": "y ~ x + k + g"}
LONGEST = 60.0  # seconds that an analyst waits for a reply: one that takes longer counts as so much
LONG_CELL = 6_000_000  # characters, in each of sixty rows
MANY_COLUMNS, WIDE = 10_000, 500  # more than are looked at, and as many as are taken
BLANK_BYTES = 20_000_000
PACKED_BYTES = 50_000_000  # of which gzip makes 50 KB
TOO_LONG, DEEP = 1_000_000, 60_000  # bytes of a body and of a head; brackets within each other
DRIPPING = 32  # connections that send a byte a second
HEAD = 15_000
"""Bytes of the longest head that is let in, but for what every request has."""

COLUMNS = 64
"""Of the widest study."""

GOALS = {"budget_p99": 0.5, "health_p99": 0.5, "fit_p95_ratio": 2.0, "memory_mb": 600}
QUIET = {"alone budget p99": 0.1, "alone fit p95": 1.5}
"""Seconds of the sixteen alone on a quiet machine at the most: .02 and .7 with two free cores."""


@dataclass
class FloodedPlace:
    """Of the server, and what was seen there: seconds by name, statuses by name."""

    host: str
    port: int
    seconds: dict = field(default_factory=lambda: defaultdict(list))
    statuses: dict = field(default_factory=lambda: defaultdict(Counter))

    async def ask(self, method, path, headers, body=b"", patience=LONGEST, kind="application/json"):
        """Status, head and body; status 0: hung up after `patience` seconds."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}", "Connection: close"]
        lines += [f"{k}: {v}" for k, v in headers.items()]
        if body:
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        return await self.exchange("\r\n".join([*lines, "", ""]).encode() + body, patience)

    async def exchange(self, request, patience=LONGEST):
        """The same of a request's bytes, which asks for the connection to be closed."""
        writer = None
        try:
            async with asyncio.timeout(patience):
                reader, writer = await asyncio.open_connection(self.host, self.port)
                writer.write(request)
                reply = await reader.read()
        except (TimeoutError, OSError):
            return 0, "", b""
        finally:
            if writer is not None:
                writer.close()
        head, _, content = reply.partition(b"\r\n\r\n")
        return (int(head[9:12]) if head else 0), head.decode("latin-1"), content

    async def timed(self, name, *request, **options):
        start = time.perf_counter()
        send = self.exchange if len(request) == 1 else self.ask
        status, _, content = await send(*request, **options)
        self.seconds[name].append(time.perf_counter() - start)
        self.statuses[name][status] += 1
        return status, content


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def body(query, epsilon, dataset="many"):
    asked = {"dataset": dataset, "query": query, "privacy": {"epsilon": epsilon}}
    return json.dumps(asked).encode()


async def analyst(place, key, until, phase, *, fits):
    """Looks and plans once a second; or fits, one fit after the other."""
    plan = body(FIT, 0.01)
    while time.monotonic() < until:
        if fits:
            await place.timed(f"{phase} fit", "POST", "/v1/releases", bearer(key), plan)
            continue
        await place.timed(f"{phase} budget", "GET", "/v1/budget", bearer(key))
        await place.timed(f"{phase} ready", "GET", "/readyz", {})
        await place.timed(f"{phase} health", "GET", "/healthz", {})
        await place.timed(f"{phase} plan", "POST", "/v1/plans", bearer(key), plan)
        await asyncio.sleep(PAUSE_SECONDS)


def everybody(place, keys, until, phase):
    return (analyst(place, key, until, phase, fits=not k) for k, key in enumerate(keys))


async def signed_in(place, key, site="workbench"):
    """The cookie of a session in the workbench, or in the console."""
    _, head, page = await place.ask("GET", f"/{site}/sign-in", {})
    form = urlencode({"form_token": form_token(page), "key": key}).encode()
    sent = {"Cookie": cookie_of(head)}
    _, head, _ = await place.ask("POST", f"/{site}/sign-in", sent, form, kind=FORM)
    return cookie_of(head)


FORM = "application/x-www-form-urlencoded"


def cookie_of(head):
    return re.search(r"(?i)set-cookie: ([^;]+)", head)[1]


def form_token(page):
    return re.search(rb'name="form_token" value="([0-9a-f]{96})"', page)[1].decode()


def unpacked_parquet():
    """A file of 13 KB that holds 360 MB of text, in one group of rows."""
    text, file = pa.array(["x" * LONG_CELL]).take(pa.array([0] * 60)), io.BytesIO()
    pq.write_table(pa.table({"text": text}), file, compression="zstd", use_dictionary=False)
    return file.getvalue()


def worst_files():
    """By name, what takes most to look at."""
    header = ",".join(f"c{i}" for i in range(MANY_COLUMNS))
    row = ",".join(["1"] * MANY_COLUMNS)
    names = ",".join(f"{i:0256d}" for i in range(WIDE))
    cells = "\n".join(",".join([f"{k:040d}"] * WIDE) for k in range(1000))
    return {
        "unpacked.parquet": unpacked_parquet(),
        "columns.csv": f"{header}\n{row}\n".encode(),
        "blank.csv": b"a,b\n" + b"\n" * BLANK_BYTES + b"1,2\n",
        "wide.csv": f"{names}\n{cells}\n".encode(),
    }


async def sent_file(place, cookie, name, content, form="/console/tables"):
    """The address of its page. form: the page that takes it."""
    headers = {"Cookie": cookie}
    _, _, page = await place.ask("GET", form, headers)
    parts = [
        b'--b\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n',
        form_token(page).encode(),
        b'\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="',
        name.encode(),
        b'"\r\n\r\n',
        content,
        b"\r\n--b--\r\n",
    ]
    kind = "multipart/form-data; boundary=b"
    _, head, _ = await place.ask("POST", form, headers, b"".join(parts), kind=kind)
    return re.search(r"(?i)location: (\S+)", head)[1]


async def curator(place, key, files, until):
    """Opens the worst files, one look after the other."""
    cookie = await signed_in(place, key, "console")
    pages = {name: await sent_file(place, cookie, name, content) for name, content in files.items()}
    while time.monotonic() < until:
        for name, page in pages.items():
            await place.timed(f"curator {name}", "GET", page, {"Cookie": cookie})


async def flood(place, keys, until):
    """RATE expensive questions a second; nobody waits for the one before."""
    cookies = [await signed_in(place, key) for key in keys]
    sent, number, start = set(), 0, time.monotonic()
    while time.monotonic() < until:
        key, cookie = keys[number % len(keys)], cookies[number % len(keys)]
        # another one each time, so that nothing is kept of the one before
        where = f"x > {-4 - number / 1e5}"
        query = {"kind": "linear_regression", "formula": DEAR, "where": where}
        match number // len(keys) % 4:
            case 0:
                ask = place.timed("flood plan", "POST", "/v1/plans", bearer(key), body(query, 1))
            case 1:
                ask = place.timed(
                    "flood hung up",
                    "POST",
                    "/v1/plans",
                    bearer(key),
                    body(query, 1),
                    patience=0.3,
                )
            case 2:
                ask = place.timed(
                    "flood release", "POST", "/v1/releases", bearer(key), body(query, 90)
                )
            case _:
                fields = {"kind": query["kind"], "epsilon": 1, "q.formula": DEAR, "q.where": where}
                page = f"/workbench/datasets/many?{urlencode(fields)}"
                ask = place.timed("flood page", "GET", page, {"Cookie": cookie})
        task = asyncio.create_task(ask)
        sent.add(task)
        task.add_done_callback(sent.discard)
        number += 1
        await asyncio.sleep(max(0.0, start + number / RATE - time.monotonic()))
    for task in sent:
        task.cancel()


def abuses(key):
    """By name, a request of which none is answered with more than a few words."""
    packed = gzip.compress(b"{" + b" " * PACKED_BYTES + b"}", 9)
    zipped = bearer(key) | {"Content-Encoding": "gzip"}
    return {
        "packed": ("POST", "/v1/plans", zipped, packed),
        "too long": ("POST", "/v1/plans", bearer(key), b" " * TOO_LONG),
        "deep": ("POST", "/v1/plans", bearer(key), b"[" * DEEP),
        "guess": ("GET", "/v1/budget", bearer("rk_" + "0" * 43)),
        "not theirs": ("GET", "/v1/releases/rel_absent", bearer(key)),
        "long head": ("GET", "/healthz", {"X-Long": "x" * TOO_LONG}),
    }


def longest_heads():
    """By name, requests of strangers: the longest of each part that is let in, or a little more,
    made of what takes most to read."""
    begin = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    plain = begin % b"/healthz"
    chunked = b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    escaped = b'Cookie: a="%s"\r\n\r\n'
    fields = b"&".join(b"a%d=[" % k for k in range(HEAD // 8))
    return {
        "head of 15 KB": plain + b"A: " + b"a " * (HEAD // 2) + b"\r\n\r\n",
        "head of 200 KB": plain + b"A: " + b"a" * 200_000 + b"\r\n\r\n",
        "blanks before no value": plain + b"A:" + b" " * HEAD + b"\0\r\n\r\n",
        "many headers": plain + b"A:\r\n" * 4000 + b"\r\n",
        "as many headers": plain + b"Connection: a, b\r\n" * 120 + b"\r\n",
        "cookie of 4 KB": plain + escaped % (b'\\"' * 2000),
        "cookie of 100 KB": plain + escaped % (b'\\"' * 50_000),
        "page's cookie": begin % b"/workbench/" + escaped % (b'\\"' * 2000),
        "path of 15 KB": begin % (b"/" + b"%2F" * (HEAD // 3)) + b"\r\n",
        "address of 15 KB": begin % (b"/workbench/?" + fields) + b"\r\n",
        "token of 15 KB": plain + b"Authorization: Bearer " + b"a." * (HEAD // 2) + b"\r\n\r\n",
        "small chunks": chunked + b"\r\n" + b"1\r\n \r\n" * 40_000 + b"0\r\n\r\n",
        "chunk's extension": chunked + b"\r\n1;" + b"a=" * HEAD + b"\r\n \r\n0\r\n\r\n",
        "trailer": chunked + b"\r\n0\r\nA:" + b" " * HEAD + b"\0\r\n\r\n",
    }


def widest_study():
    """A study's file of as many columns as it may have, and of a warning that is lines alone."""
    size = COLUMNS + 1
    terms, unit = ["Intercept", *(f"v{k}" for k in range(COLUMNS))], np.eye(size).tolist()
    sums = (np.full((size, size), 0.25) + 0.75 * np.eye(size)).tolist()
    noise = {"root": unit, "sd": 1e-4}
    narrow = {"moments": sums, "noise": noise, "ratio": 1.0, "typical": 0.1}
    guarantee = dict.fromkeys(("tier", "unit", "mechanism", "statement", "reference"), "x")
    document = {
        "id": "rel_widest",
        "dataset": "widest",
        "version": 1,
        "status": "reply",
        "created_at": "2026-01-01",
        "query": {"kind": "study", "variables": terms[1:]},
        "charged": {"epsilon": 1.0, "delta": 1e-6, "rho": 0.1},
        "guarantee": guarantee | {"epsilon": 1.0, "delta": 1e-6, "assumptions": []},
        "result": {
            "terms": terms,
            "variables": {term: [term] for term in terms[1:]},
            "centres": [0.0] * size,
            "scales": [1.0] * size,
            "dummies": [False] * size,
            "moments": sums,
            "noise": noise,
            "narrow": narrow,
            "radius": 10.0,
            "clipped": {"share": 0.0},
            "n": 10_000,
            "warnings": ["\n" * 30_000],
        },
    }
    return json.dumps(document).encode()


async def on_the_desk(place, key, until):
    """Loads the widest study, and asks for its dearest analyses and exports again and again."""
    cookie = {"Cookie": await signed_in(place, key)}
    page = await sent_file(
        place, cookie["Cookie"], "widest.json", widest_study(), "/workbench/studies"
    )
    model = "f =~ " + " + ".join(f"v{k}" for k in range(MOST_STRUCTURAL))
    done = {
        "correlations": {"a": "correlations", "g": "", "variables": ""},
        "structural": {"a": "structural", "g": "", "model": model},
    }
    asked = {name: urlencode({"done": urlencode(each)}) for name, each in done.items()}
    brackets = urlencode({"analysis": "correlations", "run": "1", "f.variables": "[" * 1900})
    while time.monotonic() < until:
        for name, query in asked.items():
            await place.timed(f"desk {name}", "GET", f"{page}?{query}", cookie)
        await place.timed("desk brackets", "GET", f"{page}?{brackets}", cookie)
        export = f"{page}/export/csv?{asked['correlations']}"
        await place.timed("desk csv", "GET", export, cookie)


async def abusers(place, requests, until):
    """All of these again and again, beside connections that send a byte of a body a second."""
    async with asyncio.TaskGroup() as group:
        for _ in range(DRIPPING):
            group.create_task(dripping(place, until))
        while time.monotonic() < until:
            for name, request in requests.items():
                parts = (request,) if isinstance(request, bytes) else request
                await place.timed(f"abuse {name}", *parts)
            await asyncio.sleep(PAUSE_SECONDS / 4)


async def dripping(place, until):
    while time.monotonic() < until:
        writer = None
        try:
            _, writer = await asyncio.open_connection(place.host, place.port)
            writer.write(b"POST /v1/plans HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n\r\n{")
            while time.monotonic() < until and not writer.is_closing():
                await asyncio.sleep(1)
                writer.write(b" ")
                await writer.drain()
        except OSError:  # it was closed
            pass
        finally:
            if writer is not None:
                writer.close()


async def watched(process, until, seen):
    """What is resident of the process and of those below it, by name, twice a second."""
    while time.monotonic() < until:
        seen.append(resident(process))
        await asyncio.sleep(0.5)


def resident(process):
    """MB of memory that is not of a file or shared, of a process and of all below it, by module:
    of those that other threads than the main one have started, too."""
    kept = Counter()
    for each in (top := psutil.Process(process), *top.children(recursive=True)):
        with suppress(psutil.Error):  # it has ended meanwhile
            line = each.cmdline()
            module = line[line.index("-m") + 1] if each is not top and "-m" in line else "server"
            memory = each.memory_info()
            kept[module] += (memory.rss - getattr(memory, "shared", 0)) / 2**20
    return kept


def percentile(values, share):
    return round(float(np.percentile(values, 100 * share)), 3) if values else None


async def phases(place, process, keys, flooders, carol):
    # made before: for as long as this process packs, it would look at nobody's reply
    files, abused = worst_files(), abuses(flooders[0]) | longest_heads()
    idle, memory = resident(process), []
    # processes that plan and sum start with the first questions that need them
    await asyncio.gather(*everybody(place, keys, time.monotonic() + WARMING_SECONDS, "first"))
    until = time.monotonic() + SECONDS / 5
    await asyncio.gather(*everybody(place, keys, until, "alone"))
    until = time.monotonic() + SECONDS
    await asyncio.gather(
        *everybody(place, keys, until, "flooded"),
        flood(place, flooders, until),
        curator(place, carol, files, until),
        on_the_desk(place, flooders[0], until),
        on_the_desk(place, flooders[1], until),
        abusers(place, abused, until),
        watched(process, until, memory),
    )
    return idle.total(), max(memory, key=Counter.total)


def settle(installation):
    """Waits until the server has measured its pace, which takes processes and a core."""
    file, until = PaceFile(installation.settings), time.monotonic() + SETTLING_SECONDS
    while file.read() is None and time.monotonic() < until:
        time.sleep(1)


def measured(folder):
    installation = build(folder)
    (folder / "many.csv").write_text(_table(ROWS))
    (folder / "many.yaml").write_text(SCHEMA)
    load_dataset(installation.settings, "many", folder / "many.csv", folder / "many.yaml")
    with opened(installation.settings) as services:
        carol = services.access.add_curator("carol", STAFF, by="t")
        services.ledger.set_population_cap("many", epsilon=1e6, delta=0.1, rule="basic", by="b")
        keys = [
            _add_analyst(services, f"analyst{k}", "many", 1000, 1e-2, "basic")
            for k in range(ANALYSTS)
        ]
        flooders = [
            _add_analyst(services, f"flooder{k}", "many", 1, 1e-3, "zcdp") for k in range(FLOODERS)
        ]
    # the default limit of a key is kept: 600 a minute
    with serving(
        installation, reply_grid_ms=10, requests_per_minute=600, sign_ins_per_minute=1000
    ) as server:
        host, port = server.url.removeprefix("http://").split(":")
        place = FloodedPlace(host, int(port))
        settle(installation)
        idle, most = asyncio.run(phases(place, server.process.pid, keys, flooders, carol))
    found = {
        f"{name} {label}": percentile(values, share)
        for name, values in sorted(place.seconds.items())
        for label, share in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    found |= {f"{name} replies": dict(counts) for name, counts in place.statuses.items()}
    ratio = (found["flooded fit p95"] or LONGEST) / (found["alone fit p95"] or LONGEST)
    return found | {
        "budget_p99": found["flooded budget p99"] or LONGEST,
        "health_p99": found["flooded health p99"] or LONGEST,
        "fit_p95_ratio": round(ratio, 2),
        "memory_idle_mb": round(idle),
        "memory_most": {module: round(taken) for module, taken in most.items()},
        "memory_mb": round(most.total() - idle),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder))
    for name, value in found.items():
        print(f"{name:28} {value}")
    print(json.dumps({"benchmark": "flood", "seconds": SECONDS, "rate": RATE} | found))
    lines, code = verdict(found)
    print("\n".join(lines))
    sys.exit(code)


def verdict(found):
    """(lines, exit code): of each goal, and of the machine before the flood."""
    busy = [name for name, most in QUIET.items() if (found[name] or LONGEST) > most]
    lines = [f"machine not quiet: {name} {found[name]} s (at most {QUIET[name]})" for name in busy]
    missed = False
    for name, goal in GOALS.items():
        if busy and name != "memory_mb":
            lines.append(f"{name}: no verdict, {found[name]} (goal {goal})")
            continue
        met = found[name] <= goal
        missed |= not met
        lines.append(f"{name}: {'PASS' if met else 'FAIL'}, {found[name]} (goal {goal})")
    return lines, 1 if missed else 2 if busy else 0


if __name__ == "__main__":
    main()
