# SPDX-License-Identifier: Apache-2.0
"""The engine: exact sums whatever the blocks, and no release without a valid reservation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Guarantee, Plan
from reticent_server.domain.private import Private
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import Block, CountSum, GramSum, SumStep, VectorSum
from reticent_server.engine import local as local_engine
from reticent_server.engine.blocks import Table
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import Unavailable
from reticent_server.kinds.count.kind import Count
from reticent_server.mechanisms import disjoint_groups, registry
from reticent_server.mechanisms.disjoint_groups import GroupsMap
from support.seeds import seeded

N = 6_011
SCHEMA = Schema((
    Column("x", ColumnKind.NUMERIC, -10, 10),
    Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"), ("NA",)),
))  # fmt: skip


class MemoryReader:
    """Rows in memory, in batches of an odd size."""

    def __init__(self, n: Any = N, batch: int = 4999) -> None:
        rng = seeded(11)
        self.n, self.batch, self.opened = n, batch, 0
        self.arrays = {"x": rng.standard_cauchy(n), "g": rng.integers(0, 3, n).astype(float)}
        self.arrays["g:missing"] = rng.random(n) < 0.1

    def batches(self, columns: Any) -> Iterator[Any]:
        self.opened += 1
        names = [k for c in ["", *columns] for k in (c, c + ":missing") if k in self.arrays]
        for low in range(0, self.n, self.batch):
            cut = {k: pa.array(self.arrays[k][low : low + self.batch]) for k in names}
            yield Private(pa.RecordBatch.from_pydict(cut))


@dataclass(frozen=True)
class TestMap:
    __test__ = False

    def __call__(self, block: Any) -> tuple[Any, Any, Any]:
        x = block.columns["x"]
        vector = np.stack([x, np.sin(x), np.ones_like(x)])
        return vector, vector / 3, np.where(block.missing["g"], -1.0, block.columns["g"])


STEP = SumStep(
    "all kinds", (VectorSum(3, 2.0, 10**9), GramSum(3, 2.0, 10**9), CountSum(3, 10**9)), TestMap()
)


class Ledger:
    def __init__(self, valid: bool = True) -> None:
        self.valid = valid

    def confirm(self, reservation: Any) -> Any:
        return self.valid


def engine(reader: Any, **changes: Any) -> LocalEngine:
    options = {"cache_bytes": 1 << 24, "threads": 1, "block_rows": 8192} | changes
    ledger = options.pop("ledger", Ledger())
    return LocalEngine(lambda _: reader, ledger, **options)


def totals(step: Any = STEP, **changes: Any) -> Any:
    reader = MemoryReader(batch=changes.pop("batch", 4999))
    local = engine(reader, **changes)
    table = Table(reader, "v1", SCHEMA, ("x", "g"))
    found = [total.unwrap() for total in local.totals(table, step)]
    local.close()
    return found


@pytest.mark.sample(6)
@pytest.mark.parametrize("block_rows", [1, 64, 8192, N])
@pytest.mark.parametrize("threads", [1, 2])
def test_integer_sums_do_not_depend_on_blocks_or_threads(block_rows: int, threads: int) -> None:
    reference = totals(block_rows=997, threads=1)
    found = totals(block_rows=block_rows, threads=threads)
    for a, b in zip(reference, found, strict=True):
        assert a.dtype == b.dtype == np.int64
        assert np.array_equal(a, b)


def test_streaming_gives_the_sums_of_the_cache() -> None:
    for a, b in zip(totals(), totals(cache_bytes=0, batch=777, threads=2), strict=True):
        assert np.array_equal(a, b)


SUBSET = RowSubset(4, b"of one release")
SUBSET_BYTES = SUBSET.count(N) * (8 + 8 + 1)


def sums_by_hand(subset: Any) -> Any:
    """The step's statistics of a subset's rows, taken out of the arrays by their positions."""
    arrays, at = MemoryReader().arrays, subset.positions(0, N)
    columns = {name: arrays[name][at] for name in ("x", "g")}
    block = Block(0, len(at), columns, {"g": arrays["g:missing"][at]})
    return registry.encode_all(STEP.parts, STEP.map_fn(block))


@pytest.mark.sample(8)
@pytest.mark.parametrize("block_rows", [1, 64, 8192])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("cache_bytes", "batch"),
    [(1 << 24, 4999), (N * 17, 4999), (SUBSET_BYTES, 777), (SUBSET_BYTES - 1, 777), (0, 3)],
    ids=["cached", "table cached", "subset cached", "streamed", "streamed in small batches"],
)
def test_a_subset_is_the_same_rows_whatever_the_blocks(
    block_rows: int, threads: int, cache_bytes: int, batch: int
) -> None:
    how = {"block_rows": block_rows, "threads": threads}
    how |= {"cache_bytes": cache_bytes, "batch": batch}
    found = totals(replace(STEP, subset=SUBSET), **how)
    for a, b in zip(found, sums_by_hand(SUBSET), strict=True):
        assert a.dtype == b.dtype == np.int64
        assert np.array_equal(a, b)


def test_a_subset_and_the_table_are_cached_side_by_side() -> None:
    """The subset's columns are kept where the table's do not fit, and are not taken for these."""
    reader = MemoryReader()
    local = engine(reader, cache_bytes=SUBSET_BYTES)
    table = Table(reader, "v1", SCHEMA, ("x", "g"))
    for _ in range(2):
        part = [t.unwrap() for t in local.totals(table, replace(STEP, subset=SUBSET))]
    assert reader.opened == 1
    whole = [t.unwrap() for t in local.totals(table, STEP)]
    assert reader.opened == 2
    local.close()
    assert all(map(np.array_equal, part, sums_by_hand(SUBSET)))
    assert all(map(np.array_equal, whole, totals()))


def test_a_release_leaves_only_the_table_in_the_cache() -> None:
    """Its part of the rows is of no use to others, who have secrets of their own."""
    plan, reservation = prepared(OneStep(replace(STEP, subset=RowSubset(4))))
    local = engine(MemoryReader())
    assert local.execute(plan, reservation).status == "reply"
    assert {version for version, _ in local._cache._kept} == {"v1"}
    assert sum(local._cache._sizes.values()) == N * 17
    local.close()


def test_a_part_of_the_rows_takes_no_other_table_s_place() -> None:
    """With room for two tables and for nothing else, both stay."""
    readers = [MemoryReader(), MemoryReader()]
    local = engine(readers[0], cache_bytes=2 * N * 17)
    tables = [Table(r, f"v{k}", SCHEMA, ("x", "g")) for k, r in enumerate(readers)]
    for _ in range(3):
        for table in tables:
            local.totals(table, replace(STEP, subset=SUBSET))
    assert [reader.opened for reader in readers] == [1, 1]
    local.close()


LEVELS = (2.0, 0.0)
BY_GROUP = disjoint_groups.grouped("by group", "g", LEVELS, [STEP, STEP])
ORDERED_BYTES = N * (8 + 8 + 1 + 8)
"""Of the columns in the order of the groups, with the places that are there for a while."""


def sums_of_groups() -> Any:
    """The statistics of each group's records, taken out of the arrays by hand."""
    arrays = MemoryReader().arrays
    found = []
    for level in LEVELS:
        at = np.flatnonzero((arrays["g"] == level) & ~arrays["g:missing"])
        columns = {name: arrays[name][at] for name in ("x", "g")}
        block = Block(0, len(at), columns, {"g": arrays["g:missing"][at]})
        found += registry.encode_all(STEP.parts, STEP.map_fn(block))
    return found


@pytest.mark.sample(8)
@pytest.mark.parametrize("block_rows", [1, 64, 8192])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("release", ["", "of one release"])
@pytest.mark.parametrize(
    "cache_bytes",
    [N * 17 + ORDERED_BYTES, N * 17 + ORDERED_BYTES - 1, 0],
    ids=["ordered", "cached", "streamed"],
)
def test_a_group_s_sums_are_those_of_its_records_whatever_the_blocks_and_their_order(
    block_rows: int, threads: int, release: str, cache_bytes: int
) -> None:
    reader = MemoryReader()
    local = engine(reader, block_rows=block_rows, threads=threads, cache_bytes=cache_bytes)
    table = Table(reader, "v1", SCHEMA, ("x", "g"), release=release)
    found = [total.unwrap() for total in local.totals(table, BY_GROUP)]
    room = cache_bytes == N * 17 + ORDERED_BYTES
    assert len(local._cache._kept) == 3 * (cache_bytes > 0) + 4 * (room and bool(release))
    local.close()
    for a, b in zip(found, sums_of_groups(), strict=True):
        assert a.dtype == b.dtype == np.int64
        assert np.array_equal(a, b)


def test_records_are_brought_into_the_order_of_groups_once_a_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what other groups ask is not answered from it, nor another release."""
    ordered, real = [], GroupsMap.order
    monkeypatch.setattr(
        GroupsMap, "order", lambda self, b: (ordered.append(b.rows), real(self, b))[1]
    )
    plan, reservation = prepared(OneStep(BY_GROUP, steps=2, rho=12 * 10**9))
    plan = replace(plan, cost=PrivacyCost(10**9, 10**12, 12 * 10**9))
    reservation = replace(reservation, cost=plan.cost)
    local = engine(MemoryReader())
    for k in (1, 2):
        assert local.execute(plan, reservation).status == "reply"
        assert ordered == [N] * k
        assert {version for version, _ in local._cache._kept} == {"v1"}
        assert sum(local._cache._sizes.values()) == N * 17
    table = Table(MemoryReader(), "v1", SCHEMA, ("x", "g"), release="a")
    both = [local.totals(table, BY_GROUP)[0].unwrap()]
    step = disjoint_groups.grouped("one", "g", (0.0,), [STEP])
    both.append(local.totals(table, step)[0].unwrap())
    local.close()
    assert np.array_equal(both[0], sums_of_groups()[0])
    assert np.array_equal(both[1], sums_of_groups()[3])


def test_cached_columns_are_read_once_and_cannot_be_written() -> None:
    reader = MemoryReader()
    local = engine(reader)
    table = Table(reader, "v1", SCHEMA, ("x", "g"))
    local.totals(table, STEP)
    local.totals(table, STEP)
    assert reader.opened == 1
    block = next(table.blocks(local._cache, 100))
    with pytest.raises(ValueError, match="read-only"):
        block.columns["x"][0] = 1.0


@dataclass(frozen=True)
class OneStep:
    """An estimator that yields `steps` times the same step."""

    step: SumStep = STEP
    steps: int = 1
    columns: tuple[str, ...] = ("x", "g")
    passes: int = 1
    mechanism: str = "test"
    reference: str = "test"
    rho: int = 3 * 10**9

    @property
    def forecast(self) -> dict[str, Any]:
        return {}

    def run(self) -> Iterator[Any]:
        for _ in range(self.steps):
            released = yield self.step
        return {"sum": [float(v) for v in released[0].values]}


def prepared(estimator: Any = None) -> tuple[Any, Any]:
    cost = PrivacyCost(10**9, 10**12, 3 * 10**9)
    facts = DatasetFacts("d", "d", 1, "v1", N, SCHEMA)
    guarantee = Guarantee("unconditional", "row", 1.0, 1e-6, "test", "test", "test")
    plan = Plan(facts, Count(), 1.0, 1e-6, cost, guarantee, estimator or OneStep(), 100)
    return plan, Reservation("rel_1", "v1", cost, "2026-01-01T00:00:00Z")


def test_executes_a_paid_plan() -> None:
    plan, reservation = prepared()
    release = engine(MemoryReader()).execute(plan, reservation)
    assert release.status == "reply"
    assert len(release.result["sum"]) == 3


def test_columns_are_in_memory_once_they_were_read() -> None:
    plan, reservation = prepared()
    local = engine(MemoryReader())
    assert not local.holds(plan)
    local.execute(plan, reservation)
    assert local.holds(plan)
    assert not local.holds(replace(plan, facts=replace(plan.facts, version_id="v2")))


def test_a_release_is_due_when_it_is_to_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its plan's deadline, from the beginning of its computation on, in all of its passes."""
    plan, reservation = prepared()
    local, dues = engine(MemoryReader()), []
    whole = local._workers.totals

    def spied(*given: Any) -> Any:
        dues.append(given[-1])
        return whole(*given)

    monkeypatch.setattr(local._workers, "totals", spied)
    monkeypatch.setattr(local_engine, "monotonic", lambda: 1000.0)
    for deadline_ms in (100, 250):
        local.execute(replace(plan, deadline_ms=deadline_ms), reservation)
    assert dues == [1000.1, 1000.25]


def test_nothing_is_read_without_a_valid_reservation() -> None:
    plan, reservation = prepared()
    reader = MemoryReader()
    with pytest.raises(Unavailable):
        engine(reader, ledger=Ledger(valid=False)).execute(plan, reservation)
    assert reader.opened == 0


def test_a_plan_that_is_not_what_was_paid_for_is_not_computed() -> None:
    plan, reservation = prepared()
    reader = MemoryReader()
    cheaper = replace(reservation, cost=PrivacyCost(1, 1, 1))
    for other in (replace(reservation, version_id="v2"), cheaper):
        release = engine(reader).execute(plan, other)
        assert (release.status, release.result) == ("failed", None)
    assert reader.opened == 0


def test_an_estimator_cannot_take_more_than_was_paid(capfd: Any) -> None:
    plan, reservation = prepared(OneStep(steps=2))
    release = engine(MemoryReader()).execute(plan, reservation)
    assert (release.status, release.result) == ("failed", None)


@dataclass(frozen=True)
class NotFinite(OneStep):
    def run(self) -> Iterator[Any]:
        yield self.step
        return {"value": float("nan")}


def test_a_result_that_is_not_finite_is_a_failed_release() -> None:
    plan, reservation = prepared(NotFinite())
    assert engine(MemoryReader()).execute(plan, reservation).status == "failed"


def test_noise_for_another_unit_is_refused() -> None:
    plan, reservation = prepared()
    unit = replace(plan.facts.schema.unit, max_rows=2)
    facts = replace(plan.facts, schema=replace(plan.facts.schema, unit=unit))
    reader = MemoryReader(facts.slots)
    reader.arrays[":missing"] = np.zeros(facts.slots, np.bool_)
    release = engine(reader).execute(replace(plan, facts=facts), reservation)
    assert release.status == "failed"
    made = replace(STEP, parts=tuple(replace(part, unit_rows=2) for part in STEP.parts))
    wide, paid = prepared(OneStep(step=made))
    release = engine(reader).execute(replace(wide, facts=facts), paid)
    assert release.status == "reply", "with noise for two rows there is nothing else against it"


def test_rows_of_several_a_person_that_are_not_in_places_cannot_be_read() -> None:
    plan, reservation = prepared()
    unit = replace(plan.facts.schema.unit, max_rows=2)
    facts = replace(plan.facts, schema=replace(plan.facts.schema, unit=unit))
    with pytest.raises(Unavailable, match="cannot be read"):
        engine(MemoryReader()).execute(replace(plan, facts=facts), reservation)


@dataclass(frozen=True)
class Failing:
    def __call__(self, block: Any) -> None:
        raise ValueError(f"secret {block.columns['x'][0]}")


def test_a_failure_tells_nothing_of_its_cause(capfd: Any) -> None:
    plan, reservation = prepared(OneStep(step=replace(STEP, map_fn=Failing())))
    release = engine(MemoryReader()).execute(plan, reservation)
    assert (release.status, release.result) == ("failed", None)
    text = "".join(capfd.readouterr())
    assert "secret" not in text
    assert "Failing" not in text
