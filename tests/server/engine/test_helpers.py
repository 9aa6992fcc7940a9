# SPDX-License-Identifier: Apache-2.0
"""Processes that help threads: the same integers, whatever happens to them; and nothing left
behind.
"""

import os
import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.private import Private
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import Column, ColumnKind, Schema
from reticent_server.domain.steps import CountSum, GramSum, SumStep, VectorSum
from reticent_server.engine import helper as helpers
from reticent_server.engine import shared_memory, workers
from reticent_server.engine.blocks import Table
from reticent_server.engine.local import LocalEngine
from reticent_server.mechanisms.disjoint_groups import grouped
from support.processes.cluster_maps import Fails, KillsItsWorker, Moments
from support.processes.waiting import until
from support.seeds import seeded

N = 20_011
SCHEMA = Schema((
    Column("y", ColumnKind.NUMERIC, -10, 10),
    Column("x", ColumnKind.NUMERIC, -10, 10),
    Column("g", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"), ("NA",)),
))  # fmt: skip
STEP = SumStep(
    "moments",
    (VectorSum(2, 4.0, 10**9), GramSum(2, 4.0, 10**9), CountSum(1, 10**9)),
    Moments(),
)


class MarkedRows:
    """Rows in memory, some of which cannot be read."""

    n = N
    marks_bad_cells = True

    def __init__(self) -> None:
        rng = seeded(3)
        self.arrays = {"y": rng.standard_cauchy(N), "x": rng.normal(size=N)}
        self.arrays["g"] = rng.integers(0, 3, N).astype(float)
        self.arrays["g:missing"] = rng.random(N) < 0.1
        self.arrays |= {f"{name}:bad": rng.random(N) < 0.01 for name in ("y", "x", "g")}

    def batches(self, columns: Any) -> Iterator[Any]:
        names = [k for c in columns for k in (c, f"{c}:missing", f"{c}:bad") if k in self.arrays]
        yield Private(pa.RecordBatch.from_pydict({k: pa.array(self.arrays[k]) for k in names}))


class Ledger:
    def confirm(self, _reservation: Any) -> bool:
        return True


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[Any]:
    """Processes help with small tables too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "HELPED_ROWS", 1)
        patch.setattr(shared_memory, "LEAST_BYTES", 1)
        yield patch


def engine(threads: Any) -> LocalEngine:
    return LocalEngine(
        lambda _: MarkedRows(), Ledger(), cache_bytes=1 << 24, threads=threads, block_rows=512
    )


def sums(local: Any, step: Any = STEP) -> list[Any]:
    table = Table(MarkedRows(), "v", SCHEMA, ("y", "x", "g"), release="of a test")
    return [total.unwrap().tolist() for total in local.totals(table, step)]


def alone(step: Any = STEP) -> Any:
    local = engine(1)
    found = sums(local, step)
    local.close()
    return found


@pytest.fixture(scope="module")
def asked(small: Any) -> Any:
    """The answers of helper processes."""
    found = []
    real = helpers.Helper.sums

    def watched(self: Any, *arguments: Any) -> Any:
        answer = real(self, *arguments)
        if answer is not None:
            found.append(answer)
        return answer

    small.setattr(helpers.Helper, "sums", watched)
    return found


def is_right(local: Any, step: Any = STEP) -> bool:
    """Fails where sums are not those of a thread alone."""
    assert sums(local, step) == alone(step)
    return True


def both_ready(local: Any) -> bool:
    workers = local._workers._helpers
    return len(workers) == 2 and all(h._ready for h in workers)


@pytest.fixture(scope="module")
def helped(asked: Any) -> Iterator[Any]:
    """An engine of two threads whose processes are at work."""
    local = engine(2)
    until(lambda: is_right(local) and len(asked) >= 8, every=0)
    yield local
    local.close()


@pytest.mark.parametrize(
    "step",
    [
        STEP,
        replace(STEP, subset=RowSubset(4, b"of one release")),
        grouped("moments", "g", (2.0, 0.0), [STEP, STEP]),
    ],
    ids=["all", "part", "by group"],
)
def test_helped_sums_are_the_thread_s_own(helped: Any, asked: Any, step: Any) -> None:
    asked.clear()
    # On a busy machine the thread may do a small table before a process has begun.
    until(lambda: is_right(helped, step) and asked, every=0)


def test_a_map_that_fails_says_nothing(helped: Any) -> None:
    with pytest.raises(RuntimeError, match=r"^a block could not be computed$") as caught:
        sums(helped, replace(STEP, map_fn=Fails(Moments(), 7000)))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    lost = [helper for helper in helped._workers._helpers if helper.lost]
    assert not lost, "a process ended, with the text of what went wrong"
    assert sums(helped) == alone()


def test_a_map_that_another_process_cannot_have_is_computed_here(helped: Any, asked: Any) -> None:
    asked.clear()

    def local_map(block: Any) -> Any:
        return Moments()(block)

    step = replace(STEP, map_fn=local_map)
    assert sums(helped, step) == alone()
    assert not asked


def test_a_process_gives_up_what_the_cache_gives_up(helped: Any) -> None:
    step = replace(STEP, subset=RowSubset(4, b"of one release"))
    sums(helped, step)
    before = shared_memory.numbers()
    helped._cache.forget(b"of one release".hex())
    helped._workers.tidy()
    gone = before - shared_memory.numbers()
    assert len(gone) == 7
    for each in helped._workers._helpers:
        assert not each._known & gone
    assert sums(helped, step) == alone(step)


@pytest.mark.slow
def test_a_process_has_none_of_the_settings_and_ends_with_the_server(
    asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETICENT_DATABASE_URL", "postgresql://somebody:secret@localhost/x")
    local = engine(2)
    sums(local)
    processes = [each._process for each in local._workers._helpers]
    assert processes
    for process in processes:
        seen = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"RETICENT" not in seen
    local.close()
    assert all(process.poll() is not None for process in processes)


def test_columns_leave_most_descriptors_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = len(shared_memory.numbers())
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 * taken + 16, 1 << 20))
    arrays = [shared_memory.shared_empty(1000, np.float64) for _ in range(5)]
    in_files = [shared_memory.file_of(array) is not None for array in arrays]
    assert in_files == [True, True, False, False, False]


def test_a_server_asks_for_as_many_descriptors_as_it_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    engine(1).close()
    assert not asked
    engine(2).close()
    assert asked == [(4096, 4096)]


@pytest.mark.slow
def test_small_passes_and_single_threads_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "HELPED_ROWS", N + 1)
    for threads in (1, 2):
        local = engine(threads)
        sums(local)
        assert not local._workers._helpers
        local.close()


@pytest.mark.slow
def test_a_process_that_is_killed_changes_nothing_but_time(
    helped: Any, asked: Any, tmp_path: Path
) -> None:
    ours = os.getpid()
    marker = tmp_path / "killed"
    killing = replace(STEP, map_fn=KillsItsWorker(Moments(), 7000, marker, spared=ours))
    until(lambda: sums(helped, killing) == alone() and marker.exists(), every=0)
    asked.clear()
    until(lambda: is_right(helped) and both_ready(helped), every=0)


@pytest.mark.slow
def test_after_many_losses_threads_work_alone(
    helped: Any, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MOST_LOSSES", 1)
    for each in helped._workers._helpers:
        each._process.kill()
    for _ in range(2):
        assert sums(helped) == alone()
    asked.clear()
    assert sums(helped) == alone()
    assert not asked
