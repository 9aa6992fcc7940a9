# SPDX-License-Identifier: Apache-2.0
"""Whether a change of the code changes any reply: releases of every kind's examples at seeded
noise, compared to the byte.

    cd tests && python -m support.kinds.same_replies FILE            stores what this tree replies
    cd tests && python -m support.kinds.same_replies FILE --compare  names what differs from FILE

Each example is asked about four made-up tables: with a profile, without one, of persons with
several rows, and a small one at a small epsilon, where intervals are declined. Kept are result,
forecast, cost and planned times. Bits of floats depend on the processor and on its linear algebra,
so a file is good for one machine.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.facts import PROFILE_PROBABILITIES, ColumnProfile, DatasetFacts, Profile
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import InvalidRequest
from reticent_server.kinds.example import SCHEMA
from reticent_server.kinds.registry import stored_query
from reticent_server.mechanisms import secret_rows, subsample_aggregate
from reticent_server.pipeline import planning
from reticent_server.vault.places import ABSENT_MASK
from support.attacks.recorder import Served
from support.attacks.seeded_noise import seed_noise
from support.kinds.examples import QUERIES
from support.seeds import seeded

DELTA = 1e-6
TABLES = {  # records or persons, whether there is a profile, rows a person, epsilon
    "profile": (3000, True, 1, 2.0),
    "no profile": (2000, False, 1, 1.0),
    "persons": (1500, True, 3, 3.0),
    "small": (400, True, 1, 0.4),
}
ABSENT_SHARE = 0.3  # of a person's places, without a row


def table(rows: int, seed: int) -> dict[str, Any]:
    """Columns of the examples' schema: y and b go with x, k is a count."""
    rng = seeded(seed)
    x, e = rng.normal(size=(2, rows))
    return {
        "y": np.clip(1 + 2 * x + e, -10, 10),
        "x": np.clip(x, -5, 5),
        "k": rng.poisson(np.exp(0.5 + 0.3 * x)).clip(0, 9).astype(float),
        "g": rng.integers(0, 3, rows).astype(float),
        "b": (rng.random(rows) < 1 / (1 + np.exp(-x))).astype(float),
        "m": rng.random(rows),
    }


def profile_of(column: Column, values: Any) -> ColumnProfile:
    """Exact quantiles, or counts of levels."""
    if column.kind in {ColumnKind.CATEGORICAL, ColumnKind.BOOLEAN}:
        levels = int(column.upper - column.lower) + 1
        return ColumnProfile(counts=tuple(np.bincount(values.astype(int), minlength=levels) * 1.0))
    return ColumnProfile(quantiles=tuple(np.quantile(values, PROFILE_PROBABILITIES).tolist()))


def facts_of(n: int, rows: int, *, profiled: bool) -> DatasetFacts:
    """Public facts of a table of n rows, or of n persons with up to `rows` rows."""
    other = table(20_000, 1)
    profile = Profile({c.name: profile_of(c, other[c.name]) for c in SCHEMA.columns})
    schema = Schema(SCHEMA.columns, Unit("person", rows) if rows > 1 else Unit())
    return DatasetFacts("people", "people", 1, "v", n, schema, profile if profiled else None)


def reply(name: str, facts: DatasetFacts, query: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """What is said of a question, or why it is refused."""
    cells = table(facts.slots, 5)
    if facts.schema.unit.many_rows:
        cells[ABSENT_MASK] = seeded(9).random(facts.slots) < ABSENT_SHARE
    served = Served(facts, cells)
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, name)
        patch.setattr(secret_rows, "secret_key", lambda: bytes(secret_rows.KEY_BYTES))
        patch.setattr(subsample_aggregate, "secret_order", np.arange)
        try:
            plan = planning.plan(facts, stored_query(query), Privacy(epsilon, DELTA))
        except InvalidRequest as refused:
            return {"refused": refused.detail}
        engine = LocalEngine(lambda _: served, served, cache_bytes=0, threads=1, block_rows=4096)
        try:
            release = engine.execute(plan, Reservation("r", "v", plan.cost, ""))
        finally:
            engine.close()
    times = [plan.deadline_ms, plan.expected_ms, plan.cold_ms]
    found: dict[str, Any] = {"status": release.status, "result": release.result}
    found |= {"rho": plan.cost.rho, "forecast": dict(plan.planned.forecast), "times": times}
    kept: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return kept


def replies(wanted: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, reply) of each example about each table, those with `wanted` in their names."""
    for about, (n, profiled, rows, epsilon) in TABLES.items():
        facts = facts_of(n, rows, profiled=profiled)
        for example, query in QUERIES.items():
            name = f"{about}: {example}"
            if wanted in name:
                yield name, reply(name, facts, query, epsilon)


def main(arguments: list[str], wanted: str = "") -> int:
    """0: stored, or all the same. wanted: as of `replies`."""
    file = Path(arguments[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        now = dict(replies(wanted))
    if "--compare" not in arguments:
        file.write_text(json.dumps(now, sort_keys=True, indent=0), "utf-8")
        return 0
    before = json.loads(file.read_text("utf-8"))
    differ = sorted(
        name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
    )
    print(f"{len(now)} replies, {len(differ)} differ", *differ, sep="\n")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
