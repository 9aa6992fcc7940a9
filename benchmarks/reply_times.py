# SPDX-License-Identifier: Apache-2.0
"""Reply times of every kind, over neighbouring and adversarial tables: does a time tell which table
was asked about, and how many replies are late?

A server of its own is started with the default time grid, and measures its pace. Eight tables of
10⁴ records have one schema, one profile and one number of records, so that whatever is planned is
the same for all: only the records differ. Each kind's first example is asked of each of them at a
small ε, in random order, one request after the other; then bursts of sixteen requests at once.

An *area* is that of the better of two classifiers of a reply, by its time and by the time's
distance from the median, between one table and the seven others: .5 where the time says nothing.
Beside it is the band of chance, the 99 % quantile of the same over random labels: the largest of
the eight tables, for each kind; and, for each table, of all kinds together (a time is ranked within
its kind). A reply is late where the server has logged that it overran its deadline.

`python -m benchmarks reply_times` asks 2,400 times, which says .03 of an area at most;
`python -m benchmarks.reply_times 10000` is the long form, an hour and a half of two slow free
cores, which `make nightly` runs. Ends with 1 where an area of all kinds is above both .53 and its
band. Late replies are no verdict on a machine that is not quiet: they are counted.

BENCH_KINDS (all): names of kinds, by commas. BENCH_BURSTS: of sixteen requests; a 64th of the
replies unless told. Of 0 replies there are bursts only.
"""

import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np
from scipy.stats import rankdata

from reticent_server.cli.dataset_load import load_dataset
from reticent_server.domain.query import query_json
from reticent_server.kinds import KINDS, example
from reticent_server.kinds.profile.plan import profile_of
from reticent_server.pipeline.profile import release_profile
from support.installations.small import SCHEMA, build, opened, serving

N, BURST = 10_000, 16
PRIVACY = {"epsilon": 0.1, "delta": 1e-7}
ASKED = [name for name in os.environ.get("BENCH_KINDS", "").split(",") if name]
LARGEST_AREA, SURE = 0.53, 0.99
RELABELLED = 400  # random labels: a band is off by a tenth of its width
PATIENCE = (
    1200  # seconds to wait for the pace, which a busy machine takes long for, and for a reply
)
CHANGES = ["neighbour", "constant", "extreme", "heavy", "sorted", "ties", "huge"]


def tables() -> dict[str, dict[str, np.ndarray]]:
    """By name: columns of numbers; `b` and `g` are codes."""
    usual, rng = example.rows(N), np.random.default_rng(41)
    bounds = {c.name: (c.lower, c.upper) for c in example.SCHEMA.columns}
    order = np.argsort(usual["y"])
    drawn = rng.standard_t(1.1, size=(3, N))
    return {
        "usual": usual,
        "neighbour": {k: np.append(bounds[k][1], v[1:]) for k, v in usual.items()},
        "constant": {k: np.full(N, v[0]) for k, v in usual.items()},
        "extreme": {k: rng.choice(bounds[k], N) for k in usual},
        "heavy": usual | {k: np.clip(z, *bounds[k]) for k, z in zip("yxm", drawn, strict=True)},
        "sorted": {k: v[order] for k, v in usual.items()},
        "ties": usual | {k: np.round(usual[k] / 5) * 5 for k in "yx"},
        "huge": {k: np.append(bounds[k][1], np.full(N - 1, v[0])) for k, v in usual.items()},
    }


def csv(columns: dict[str, np.ndarray]) -> str:
    """As a curator loads it."""
    levels = np.array(["a", "b", "c"])
    text = {k: np.char.mod("%.6g", v) for k, v in columns.items()}
    text |= {"k": np.char.mod("%d", columns["k"]), "b": np.char.mod("%d", columns["b"])}
    text["g"] = levels[columns["g"].astype(int)]
    return "\n".join([",".join(text), *map(",".join, zip(*text.values(), strict=True)), ""])


def loaded(folder: Path):
    """An installation with the tables, one profile for all, and a key that may ask without end."""
    installation = build(folder)
    (folder / "one.yaml").write_text(SCHEMA)
    names = list(tables())
    for name, columns in tables().items():
        (folder / f"{name}.csv").write_text(csv(columns))
        told = {"separate": "tables of one benchmark"}
        load_dataset(
            installation.settings, name, folder / f"{name}.csv", folder / "one.yaml", **told
        )
    with opened(installation.settings) as services:
        budget = {"epsilon": 1e7, "delta": 0.9, "rule": "basic", "by": "t"}
        analyst, key = services.access.add_analyst("clock", by="t")
        for name in names:
            services.ledger.set_population_cap(name, **budget)
            services.ledger.set_analyst_budget(analyst, name, name, **budget)
            services.access.grant(analyst, name, by="t")
        released = release_profile(services, "usual", epsilon=1.0)
        profile = profile_of(released["result"], released["id"])
        for name in names[1:]:
            services.catalog.set_profile(services.catalog.facts(name).version_id, profile, by="t")
    return installation, key


def paced(log: Path) -> None:
    """Waits until the server has measured its pace."""
    until = time.monotonic() + PATIENCE
    while not any(word in log.read_text() for word in ("pace_measured", "pace_not_measured")):
        if time.monotonic() > until:
            sys.exit("the server has not measured its pace")
        time.sleep(1)


def connected(url: str, key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, timeout=PATIENCE)


def asked(http, query, table) -> float | None:
    """Seconds; None where the question was refused, which it is for every table."""
    started = time.perf_counter()
    body = {"dataset": table, "query": query, "privacy": PRIVACY}
    reply = http.post("/v1/releases", json=body)
    seconds = time.perf_counter() - started
    if reply.status_code == 201:
        assert reply.json()["status"] in {"reply", "no_reply"}, reply.text
        return seconds
    assert reply.status_code in {400, 422}, reply.text
    return None


def questions(url: str, key: str) -> dict[str, dict]:
    """Each kind's first example that can be asked at so small an ε, after one of each table."""
    found = {k.name: query_json(k.examples[0]) for k in KINDS if k.for_analysts}
    wanted = {name: q for name, q in found.items() if not ASKED or name in ASKED}
    with connected(url, key) as http:
        answered = {
            name: [asked(http, query, table) for table in tables()]
            for name, query in wanted.items()
        }
    refused = [name for name, times in answered.items() if None in times]
    split = [name for name in refused if any(answered[name])]
    assert not split, f"refused for some tables only: {split}"
    print(f"not asked, refused at this epsilon: {', '.join(refused) or 'none'}", flush=True)
    return {name: query for name, query in wanted.items() if name not in refused}


def alone(url, key, wanted, replies):
    """(kind, table, seconds) of requests that follow each other, in random order."""
    names = list(tables())
    each = max(2, round(replies / (len(wanted) * len(names))))
    asks = [(kind, table) for kind in wanted for table in range(len(names)) for _ in range(each)]
    order, found = np.random.default_rng(7).permutation(len(asks)), []
    with connected(url, key) as http:
        for kind, table in (asks[i] for i in order):
            found.append((kind, table, asked(http, wanted[kind], names[table])))
    return found


def in_bursts(url, key, wanted, bursts):
    """The same of requests that come sixteen at once, with a pause until all are answered; each
    burst is of one kind, so that what is computed beside a request is alike for all tables."""
    names, rng, found = list(tables()), np.random.default_rng(8), []
    clients = [connected(url, key) for _ in range(BURST)]
    kinds = list(wanted)

    def one(http, kind, table, gate):
        gate.wait()
        found.append((kind, table, asked(http, wanted[kind], names[table])))

    for _ in range(bursts):
        kind, gate = kinds[rng.integers(len(kinds))], threading.Barrier(BURST)
        places = rng.permutation(np.arange(BURST) % len(names))
        pairs = zip(clients, places, strict=True)
        threads = [threading.Thread(target=one, args=(http, kind, t, gate)) for http, t in pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for http in clients:
        http.close()
    return found


def areas(ranks, tables_):
    """(2, tables) of one kind: of each classifier by `ranks` (2, replies), without its better
    side."""
    n = ranks.shape[1]
    found = np.full((2, len(CHANGES) + 1), 0.5)
    for table in np.unique(tables_):
        of = tables_ == table
        many = int(of.sum())
        if many < n:
            sums = ranks[:, of].sum(axis=1) - many * (many + 1) / 2
            found[:, table] = sums / (many * (n - many))
    return found


def judged(found):
    """By kind: the largest area and its band; by table: the same of all kinds; how many areas of
    kinds are above their band."""
    rng, by_kind, all_kinds, weights = np.random.default_rng(9), {}, [], []
    for kind in sorted({kind for kind, _, _ in found}):
        times = np.array([s for k, _, s in found if k == kind])
        of = np.array([t for k, t, _ in found if k == kind])
        ranks = np.array([rankdata(times), rankdata(np.abs(times - np.median(times)))])
        drawn = [areas(ranks, of), *(areas(ranks, rng.permutation(of)) for _ in range(RELABELLED))]
        off = np.abs(np.array(drawn) - 0.5)
        most = off.max(axis=(1, 2))
        band = float(np.quantile(most[1:], SURE))
        by_kind[kind] = (0.5 + float(most[0]), 0.5 + band, float(np.median(times)), len(times))
        all_kinds.append(np.array(drawn) - 0.5)
        weights.append(len(times))
    together = np.abs(np.average(all_kinds, axis=0, weights=weights)).max(axis=1)
    bands = np.quantile(together[1:], SURE, axis=0)
    names = ["usual", *CHANGES]
    by_table = {
        name: (0.5 + float(area), 0.5 + float(band))
        for name, area, band in zip(names, together[0], bands, strict=True)
    }
    return by_kind, by_table


def to_last(found):
    """The mean over bursts of the seconds to the last reply."""
    times = np.array([seconds for _, _, seconds in found]).reshape(-1, BURST)
    return float(times.max(axis=1).mean())


def late_in(log: Path) -> int:
    return log.read_text().count("deadline_overrun")


def reported(name, found, late):
    by_kind, by_table = judged(found)
    print(f"\n{name}: {len(found)} replies, {late} late")
    for kind, (area, band, median, many) in by_kind.items():
        mark = "  above" if area > band else ""
        print(f"{kind:22}{many:6}{1e3 * median:9.0f} ms  area {area:.3f} band {band:.3f}{mark}")
    for table, (area, band) in by_table.items():
        print(f"{table:22} of all kinds    area {area:.3f} band {band:.3f}")
    worst = max(by_table.values())
    above = sum(area > band for area, band, *_ in by_kind.values())
    told = [area > max(LARGEST_AREA, band) for area, band in by_table.values()]
    return {
        "replies": len(found),
        "late": late,
        "largest_area": worst[0],
        "its_band": worst[1],
        "kinds": len(by_kind),
        "kinds_above_band": above,
        "told_apart": sum(told),
    }


def main() -> None:
    replies = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 2400
    bursts = int(os.environ.get("BENCH_BURSTS", max(1, replies // (4 * BURST))))
    with tempfile.TemporaryDirectory() as temporary:
        installation, key = loaded(Path(temporary))
        log = installation.directory / "serve.log"
        with serving(installation, reply_grid_ms=10, cache_bytes=1 << 28) as server:
            paced(log)
            wanted = questions(server.url, key)
            before = late_in(log)
            started = time.monotonic()
            first = alone(server.url, key, wanted, replies) if replies else []
            middle = late_in(log)
            second = in_bursts(server.url, key, wanted, bursts)
            took, end = time.monotonic() - started, late_in(log)
    result = {"alone": reported("one after the other", first, middle - before)} if first else {}
    result["bursts"] = reported(f"bursts of {BURST}", second, end - middle)
    result["bursts"]["seconds_to_last"] = to_last(second)
    seconds = round(took)
    print(json.dumps({"benchmark": "reply_times", "n": N, "seconds": seconds} | result))
    if any(part["told_apart"] for part in result.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
