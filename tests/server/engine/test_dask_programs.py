# SPDX-License-Identifier: Apache-2.0
"""A cluster as the guide starts it: a worker dies in the middle of each pass of a fit, and the sums
are those of one process."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.private import Private
from reticent_server.domain.query import Privacy
from reticent_server.domain.steps import SumStep
from reticent_server.engine.blocks import Table
from reticent_server.engine.cluster_engine import ClusterEngine
from reticent_server.engine.dask_cluster import Certificates, remote_cluster
from reticent_server.engine.local import LocalEngine
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import registry
from reticent_server.pipeline import planning
from reticent_server.vault import parquet_source
from support.processes.cluster_maps import KillsItsWorker
from support.processes.dask_programs import dask_programs
from support.processes.waiting import until
from support.tables.sources import SCHEMA, N, reader, registered, rows, write_parquet


class Ledger:
    def confirm(self, _reservation: Any) -> bool:
        return True


OPTIONS = {"cache_bytes": 1 << 24, "threads": 1, "block_rows": 256}


def passes(table: Table, engine: LocalEngine) -> Iterator[tuple[SumStep, list[Any]]]:
    """Each step of a regression, and its sums in one process."""
    facts = DatasetFacts("d", "d", 1, "v", N, SCHEMA)
    plan = planning.plan(facts, LinearRegression("y ~ x"), Privacy(2.0, 1e-6))
    recipe = plan.planned.run()
    step = next(recipe)
    while True:
        assert isinstance(step, SumStep)
        sums = [total.unwrap() for total in engine.totals(table, step)]
        yield step, sums
        released = zip(step.parts, sums, strict=True)
        try:
            step = recipe.send(tuple(registry.release(p, Private(total)) for p, total in released))
        except StopIteration:
            return


@pytest.mark.audit
def test_a_worker_that_dies_in_each_pass_changes_no_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_source, "PARTITION_ROWS", 400)
    place = write_parquet(tmp_path / "files", rows())
    found = reader(place, registered(place).source)
    local = LocalEngine(lambda _: found, Ledger(), **OPTIONS)
    table = Table(found, "v", SCHEMA, ("y", "x"))
    killed = 0
    with dask_programs(tmp_path, workers=2) as programs:
        folder = programs.certificates
        member = Certificates(*(folder / name for name in ("ca.pem", "server.pem", "server.key")))
        cluster = remote_cluster(programs.address, member, cache_bytes=1 << 24)
        engine = ClusterEngine(cluster, lambda _: found, Ledger(), **OPTIONS)
        try:
            for k, (step, sums) in enumerate(passes(table, local)):
                until(lambda: len(cluster._client.nthreads()) == 2)
                marker = tmp_path / f"killed in pass {k}"
                deadly = replace(step, map_fn=KillsItsWorker(step.map_fn, 1234, marker))
                totals = [total.unwrap() for total in engine.totals(table, deadly)]
                assert marker.exists()
                for mine, theirs in zip(sums, totals, strict=True):
                    assert mine.dtype == theirs.dtype
                    assert np.array_equal(mine, theirs)
                killed += 1
        finally:
            cluster.close()
            engine.close()
            local.close()
    assert killed >= 4, "a whitening, steps, a scale and a last step"
