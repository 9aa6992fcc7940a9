# SPDX-License-Identifier: Apache-2.0
"""Whole-column steps in the engine: joined in order, paid for in every amount, No Reply as a
status.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.columns import SmoothMedian, StableBin, UniformBins
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Guarantee, Plan
from reticent_server.domain.private import Private
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.schema import Column, ColumnKind, Schema, Unit
from reticent_server.domain.steps import ColumnStep
from reticent_server.engine.blocks import Table
from reticent_server.engine.cache import ColumnCache
from reticent_server.engine.columns import gather
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.shared.columns import ColumnsMap
from reticent_server.mechanisms import column_registry
from reticent_server.numerics.lattices import lattice_between
from support.seeds import seeded

N = 1003
SCHEMA = Schema((Column("x", ColumnKind.NUMERIC, -10, 10), Column("y", ColumnKind.NUMERIC, 0, 1)))
LATTICE = lattice_between(-10.0, 10.0)
MEDIAN = SmoothMedian(LATTICE, 10**9, 10**12)
UNSAFE = StableBin("median", LATTICE, UniformBins(1.0), 10**9, 10**12)


class MemoryReader:
    n = N
    arrays: dict[str, Any] = {  # noqa: RUF012
        "x": seeded(1).uniform(-9, 9, N), "y": np.arange(N) / N
    }  # fmt: skip

    def batches(self, columns: Any) -> Iterator[Any]:
        for low in range(0, N, 250):
            cut = {k: pa.array(self.arrays[k][low : low + 250]) for k in columns}
            yield Private(pa.RecordBatch.from_pydict(cut))


@dataclass(frozen=True)
class OneStep:
    part: Any
    columns: tuple[str, ...] = ("x", "y")
    passes: int = 1
    mechanism: str = "test"
    reference: str = "test"
    rho: int = 0
    forecast: Any = None

    def run(self) -> Iterator[Any]:
        (found,) = yield ColumnStep("one", (self.part,), ColumnsMap(("x",)))
        return {"value": float(found.values[0])} if found.passed else None


class Ledger:
    def confirm(self, reservation: Any) -> bool:
        return True


def execute(part: Any, cost: Any = None, max_rows: int = 1) -> Any:
    cost = cost or column_registry.cost(part)
    schema = replace(SCHEMA, unit=Unit("person", max_rows)) if max_rows > 1 else SCHEMA
    facts = DatasetFacts("d", "d", 1, "v1", N // max_rows, schema)
    guarantee = Guarantee("unconditional", "row", 1.0, 1e-6, "test", "test", "test")
    plan = Plan(facts, Count(), 1.0, 1e-6, cost, guarantee, OneStep(part), 100)
    engine = LocalEngine(
        lambda _: MemoryReader(), Ledger(), cache_bytes=1 << 24, threads=1, block_rows=64
    )
    return engine.execute(plan, Reservation("rel_1", "v1", cost, ""))


@pytest.mark.parametrize("block_rows", [1, 100, 5000])
@pytest.mark.parametrize("cache_bytes", [0, 1 << 24])
def test_columns_are_joined_in_stored_order(block_rows: int, cache_bytes: int) -> None:
    table = Table(MemoryReader(), "v1", SCHEMA, ("x", "y"))
    step = ColumnStep("two", (MEDIAN, MEDIAN), _Both())
    blocks = table.blocks(ColumnCache(cache_bytes), block_rows)
    both, one = (found.unwrap() for found in gather(step, N, blocks))
    assert np.array_equal(both, [MemoryReader.arrays["y"], MemoryReader.arrays["x"]])
    assert np.array_equal(one, [MemoryReader.arrays["x"]])


@dataclass(frozen=True)
class _Both:
    def __call__(self, block: Any) -> Any:
        return ColumnsMap(("y", "x"))(block) + ColumnsMap(("x",))(block)


def test_a_reply() -> None:
    release = execute(MEDIAN)
    assert release.status == "reply"
    assert abs(release.result["value"]) < 3


def test_a_test_that_fails_is_no_reply() -> None:
    release = execute(UNSAFE)
    assert (release.status, release.result) == ("no_reply", None)


@pytest.mark.parametrize("amount", ["epsilon", "delta", "rho", "rho_delta"])
def test_every_amount_must_have_been_paid(amount: str) -> None:
    cost = column_registry.cost(MEDIAN)
    short = replace(cost, **{amount: getattr(cost, amount) - 1})
    assert execute(MEDIAN, short).status == "failed"


def test_a_unit_of_several_rows_is_refused() -> None:
    assert execute(MEDIAN, max_rows=17).status == "failed"
