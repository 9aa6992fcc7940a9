# SPDX-License-Identifier: Apache-2.0
"""What the time of a reply tells of the records: every kind's examples asked of three tables, as one
analyst after the other asks, with the default time grid.

The tables are `plain` (the rows of kinds.example), `neighbour` (one record of them replaced) and
`adversarial` (all records alike, at the ends of their columns, one half of a column missing). Each
question is asked of each table equally often, in a random order, by a process of its own over
loopback sockets, once the machine is measured. For the two pairs with `plain` it prints the AUC of
telling the tables apart by a reply's time, within a question and as a mean over questions with its
standard error (.5: nothing is told), the largest of one question, and how many replies were late.

BENCH_REPLIES (3e3) in all; BENCH_REPLY_ROWS (1e4) of a table; BENCH_ASKERS (1) at the same time.
"""

import json
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.stats import rankdata

from benchmarks.peers import overruns, served
from reticent_server.api.logs import configure_logging
from reticent_server.app import build_services
from reticent_server.cli.dataset_register import SourcePlace, register_dataset
from reticent_server.cli.init import prepare
from reticent_server.domain.query import query_json
from reticent_server.kinds import KINDS, example
from reticent_server.pipeline.calibration import measured
from reticent_server.settings import Settings

REPLIES = int(float(os.environ.get("BENCH_REPLIES", "3e3")))
N = int(float(os.environ.get("BENCH_REPLY_ROWS", "1e4")))
ASKERS = int(os.environ.get("BENCH_ASKERS", "1"))
PRIVACY = {"epsilon": 1.0, "delta": 1e-7}
SCHEMA = """\
columns:
  y: {kind: numeric, lower: -10, upper: 10}
  x: {kind: numeric, lower: -5, upper: 5}
  k: {kind: integer, lower: 0, upper: 9}
  g: {kind: categorical, levels: [a, b, c]}
  b: {kind: boolean}
  m: {kind: numeric, lower: 0, upper: 1, missing: [""]}
"""
PLAIN, OTHERS = "plain", ("neighbour", "adversarial")


def tables():
    plain = example.rows(N)
    neighbour = {name: values.copy() for name, values in plain.items()}
    ends = {"y": 10.0, "x": -5.0, "k": 9.0, "g": 2.0, "b": 1.0, "m": 1.0}
    for name, end in ends.items():
        neighbour[name][N // 2] = end
    adversarial = {name: np.full(N, end) for name, end in ends.items()}
    adversarial["m"][::2] = np.nan
    return {PLAIN: plain} | dict(zip(OTHERS, (neighbour, adversarial), strict=True))


def write(folder: Path, rows) -> None:
    folder.mkdir()
    levels = np.array(["a", "b", "c"])
    arrays = {name: pa.array(values) for name, values in rows.items()}
    arrays["g"] = pa.array(levels[rows["g"].astype(int)])
    arrays["b"] = pa.array(rows["b"] > 0)
    arrays["k"] = pa.array(rows["k"].astype(int))
    arrays["m"] = pa.array(rows["m"], from_pandas=True)
    pq.write_table(pa.table(arrays), folder / "part.parquet")


def installation(folder: Path):
    """Services on the three tables, and a key."""
    settings = Settings(
        database_url=f"sqlite:///{folder / 'reticent.db'}",
        vault_url=f"sqlite:///{folder / 'vault.db'}",
        secrets_file=folder / "secrets.json",
        threads=2,
        requests_per_minute=10**6,
    )
    prepare(settings)
    (folder / "schema.yaml").write_text(SCHEMA)
    for name, rows in tables().items():
        write(folder / name, rows)
        register_dataset(settings, name, SourcePlace(parquet=folder / name), folder / "schema.yaml")
    services = build_services(settings)
    analyst, key = services.access.add_analyst("a", by="t")
    for name in (PLAIN, *OTHERS):
        budget = {"epsilon": 1e6, "delta": 0.009, "rule": "basic", "by": "bench"}
        services.ledger.set_population_cap(name, **budget)
        services.ledger.set_analyst_budget(analyst, name, "bench", **budget)
        services.access.grant(analyst, name, by="t")
    speed, shares = measured(settings.threads, settings.block_rows)
    services.pace.measured(speed, 1, shares)
    return services, key


def asked(url: str, key: str, bodies, order):
    """Seconds of each reply, in `order`: a place of `bodies`; infinite for what is refused."""
    found = np.empty(len(order))
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=600) as http:
        for place, which in enumerate(order):
            start = time.perf_counter()
            reply = http.post("/v1/releases", json=bodies[which])
            found[place] = time.perf_counter() - start if reply.is_success else np.inf
    return found


def auc(one, other) -> float:
    """The chance that a time of `other` is longer, ties by half."""
    ranks = rankdata(np.concatenate([one, other]))[len(one) :]
    return float((ranks.sum() - len(other) * (len(other) + 1) / 2) / (len(one) * len(other)))


def main() -> None:
    configure_logging("error")
    questions = [query_json(q) for kind in KINDS if kind.for_analysts for q in kind.examples]
    names = (PLAIN, *OTHERS)
    bodies = [
        {"dataset": name, "query": query, "privacy": PRIVACY}
        for query in questions
        for name in names
    ]
    repeats = max(2, REPLIES // len(bodies))
    orders = np.random.default_rng(2026).permuted(
        np.tile(np.arange(len(bodies)), (ASKERS, -(-repeats // ASKERS))), axis=1
    )
    with tempfile.TemporaryDirectory() as temporary:
        services, key = installation(Path(temporary))
        before = overruns()
        pool = ProcessPoolExecutor(ASKERS, mp_context=get_context("spawn"))
        with served(services) as url, pool:
            asked(url, key, bodies, range(len(bodies)))  # columns are read, threads started
            jobs = [pool.submit(asked, url, key, bodies, order) for order in orders]
            times = np.concatenate([job.result() for job in jobs])
        late = overruns() - before
        services.engine.close()
    which = orders.ravel()
    by_body = [times[which == k] for k in range(len(bodies))]
    answered = [k for k in range(0, len(bodies), 3) if np.isfinite(by_body[k]).all()]
    found = {"replies": int(np.isfinite(times).sum()), "late": late, "questions": len(answered)}
    print(f"{found['replies']} replies to {len(answered)} questions of {N} records, {late} late")
    for place, name in enumerate(OTHERS, 1):
        each = np.array([auc(by_body[k], by_body[k + place]) for k in answered])
        error = float(each.std(ddof=1) / np.sqrt(len(each)))
        kind = questions[answered[int(np.argmax(np.abs(each - 0.5)))] // 3]["kind"]
        print(
            f"{name}: AUC {each.mean():.3f} ± {error:.3f}; the farthest {each.min():.2f} and "
            f"{each.max():.2f} ({kind}), of {len(by_body[0])} replies a table"
        )
        found[f"auc_{name}"], found[f"auc_{name}_error"] = float(each.mean()), error
    print(json.dumps({"benchmark": "reply_times", "n": N, "askers": ASKERS} | found))
