"""Coverage of 95 % intervals over replications, through planning, the engine and the mechanisms."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.plan import Reservation
from reticent_server.domain.private import Private
from reticent_server.domain.query import LinearRegression, Privacy, ProfileQuery
from reticent_server.engine.local import LocalEngine
from reticent_server.estimators.profile import profile_of
from reticent_server.pipeline import planning
from support_newton import boolean, facts_of, linear_table, numeric

REPLICATIONS = 300


class MemoryTable:
    """Reader, ledger and engine of one table."""

    def __init__(self, arrays, columns, profile=None):
        self.arrays, self.n = arrays, len(arrays["y"])
        self.facts = facts_of(self.n, columns, None)
        self.engine = LocalEngine(
            lambda _: self, self, cache_bytes=1 << 26, threads=1, block_rows=8192
        )
        profile = profile or profile_of(self.release(ProfileQuery(), 1.0), "rel")
        self.facts = replace(self.facts, profile=profile)

    def batches(self, columns):
        yield Private(pa.RecordBatch.from_pydict({k: pa.array(self.arrays[k]) for k in columns}))

    def confirm(self, reservation):
        return True

    def release(self, query, epsilon):
        plan = planning.plan(self.facts, query, Privacy(epsilon, 1e-6))
        reply = self.engine.execute(plan, Reservation("rel", "version", plan.cost, ""))
        assert reply.status == "reply"
        return reply.result


def coverage(make, truth, epsilon):
    """(replications, q) whether each interval has the truth, NaN where there is none.

    make() gives a table and its columns. A profile is released for each twentieth table, and taken
    for the next ones too, which come from the same distribution.
    """
    found, profile = [], None
    for k in range(REPLICATIONS):
        table, columns = make()
        memory = MemoryTable(table, columns, profile if k % 20 else None)
        profile = memory.facts.profile
        formula = "y ~ " + " + ".join(c.name for c in columns if c.name != "y")
        found.append(inside(memory.release(LinearRegression(formula), epsilon), truth))
        memory.engine.close()
    return np.array(found)


def inside(result, truth):
    low, high = np.array(result["confidence_intervals"], dtype=float).T
    return np.where(result["estimable"], (low <= truth) & (truth <= high), np.nan)


def clean(p, n, rng):
    columns = [numeric(f"x{j}", -10, 10) for j in range(p)]
    table = linear_table(n, p, rng)
    return table, [*columns, numeric("y", -100, 100)]


@pytest.mark.audit
@pytest.mark.parametrize(
    ("p", "n", "epsilon", "limits"),
    [
        (4, 5_000, 1.0, (0.93, 0.98)),
        (4, 20_000, 0.2, (0.93, 0.98)),
        (10, 20_000, 1.0, (0.93, 0.98)),
        (4, 3_000, 0.2, (0.90, 1.0)),
    ],
)
def test_intervals_cover(p, n, epsilon, limits):
    rng, truth = np.random.default_rng(4000 + p), np.array([0.0] + [1.0] * p)
    found = coverage(lambda: clean(p, n, rng), truth, epsilon)
    assert limits[0] <= np.nanmean(found) <= limits[1]


@pytest.mark.audit
def test_intervals_cover_with_dummies_and_heavy_tails():
    rng, n = np.random.default_rng(41), 10_000
    columns = [numeric("x", -10, 10), boolean("d"), boolean("rare"), numeric("y", -500, 500)]

    def make():
        table = {
            "x": rng.normal(size=n),
            "d": (rng.random(n) < 0.4).astype(float),
            "rare": (rng.random(n) < 0.05).astype(float),
        }
        signal = 1 + 0.5 * table["x"] - table["d"] + 2 * table["rare"]
        return table | {"y": signal + rng.standard_t(4, n)}, columns

    found = coverage(make, np.array([1.0, 0.5, -1.0, 2.0]), 1.0)
    assert 0.93 <= np.nanmean(found) <= 0.98
    assert np.all(np.nanmean(found, axis=0) >= 0.91)
