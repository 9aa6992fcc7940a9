# SPDX-License-Identifier: Apache-2.0
"""The Dask cluster: the local engine's sums bit for bit, whatever happens to a worker; TLS; no
text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from distributed import Security

from reticent_server.domain.cost import PrivacyCost
from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.plan import Guarantee, Plan
from reticent_server.domain.query import Privacy
from reticent_server.domain.reservation import Reservation
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.steps import CountSum, GramSum, SumStep, VectorSum
from reticent_server.engine import dask_cluster
from reticent_server.engine.blocks import Table
from reticent_server.engine.cluster_engine import ClusterEngine
from reticent_server.engine.clusters import cluster_for
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.kinds.count.kind import Count
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.mechanisms import registry
from reticent_server.pipeline import planning
from reticent_server.settings import Settings
from reticent_server.vault import parquet_source
from reticent_server.vault.parquet_source import ParquetReader
from reticent_server.vault.registering import register_files
from support.processes.cluster_maps import Fails, KillsItsWorker, Moments
from support.tables.object_storage import Storage, object_storage
from support.tables.sources import SCHEMA, N, reader, registered, rows, write_parquet

STEP = SumStep(
    "moments",
    (VectorSum(2, 4.0, 10**9), GramSum(2, 4.0, 10**9), CountSum(1, 10**9)),
    Moments(),
)
COST = PrivacyCost(10**9, 10**12, 3 * 10**9)


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with object_storage() as started:
        yield started


@pytest.fixture(scope="module")
def cluster(storage: Storage) -> Iterator[Any]:
    """Whose workers find the credentials of the storage in their environment."""
    started = cluster_for(Settings(engine="dask", cache_bytes=1 << 24))
    yield started
    started.close()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Three files in nine partitions."""
    monkeypatch.setattr(parquet_source, "PARTITION_ROWS", 400)
    place = write_parquet(tmp_path / "files", rows())
    return place, reader(place, registered(place).source)


@dataclass
class Ledger:
    def confirm(self, _reservation: Any) -> bool:
        return True


def engine(found: Any, cluster: Any = None) -> LocalEngine:
    options = {"cache_bytes": 1 << 24, "threads": 1, "block_rows": 256}
    if cluster is None:
        return LocalEngine(lambda _: found, Ledger(), **options)
    return ClusterEngine(cluster, lambda _: found, Ledger(), **options)


def sums(found: Any, step: Any, cluster: Any = None, columns: Any = ("y", "x", "g")) -> list[Any]:
    totals = engine(found, cluster).totals(Table(found, "v", SCHEMA, columns), step)
    return [total.unwrap() for total in totals]


def same(a: Any, b: Any) -> Any:
    return all(np.array_equal(x, y) and x.dtype == y.dtype for x, y in zip(a, b, strict=True))


def test_parts_are_the_table(files: Any) -> None:
    _, found = files
    parts = Table(found, "v", SCHEMA, ("y",)).parts()
    assert [part.n for part in parts] == 3 * [400, 400, 200]
    assert sum(part.n for part in parts) == N


def test_workers_have_equal_shares_the_same_in_every_pass(
    files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = files
    parts = Table(found, "v", SCHEMA, ("y",)).parts()
    shares = dask_cluster.equal_shares(parts, 2)
    assert [sum(part.n for part in share) for share in shares] == [1600, 1400]
    assert [part for share in shares for part in share] != parts
    assert sorted(map(id, (part for share in shares for part in share))) == sorted(map(id, parts))
    assert dask_cluster.equal_shares(parts, 2) == shares
    assert [len(share) for share in dask_cluster.equal_shares(parts[:1], 3)] == [1, 0, 0]
    monkeypatch.setattr(parquet_source, "PARTITION_ROWS", 1 << 20)
    monkeypatch.setattr(parquet_source, "LEAST_PARTITION_ROWS", 1)
    monkeypatch.setattr(parquet_source, "PARTITIONS", 4)  # of 750 rows: two row groups of 400
    assert [reader.n for _, reader in found.partitions()] == 3 * [800, 200]


@pytest.mark.slow
def test_sums_are_those_of_one_process(files: Any, cluster: Any) -> None:
    _, found = files
    assert same(sums(found, STEP, cluster), sums(found, STEP))
    facts = DatasetFacts("t", "t", 1, "v", N, SCHEMA)
    query = LinearRegression("y ~ x + C(g)", where="k >= 2")
    plan = planning.plan(facts, query, Privacy(1.0, 1e-6))
    step = next(plan.planned.run())
    columns = plan.planned.columns
    assert same(sums(found, step, cluster, columns), sums(found, step, columns=columns))


@pytest.mark.slow
def test_workers_read_objects_with_credentials_of_their_own(
    files: Any, cluster: Any, storage: Storage
) -> None:
    place, local = files
    address = storage.put(place)
    source = register_files(address, SCHEMA, storage.store).source
    found = ParquetReader(SCHEMA, source, storage.store)
    before = len(storage.requests)
    table = Table(found, "s3", SCHEMA, ("y", "x", "g"))
    assert len(table.parts()) == 9
    footers = len(storage.requests)
    assert same(cluster.totals(table.parts(), STEP, 256), sums(local, STEP))
    assert before < footers < len(storage.requests), "the workers' requests are their own"


@pytest.mark.slow
@pytest.mark.parametrize("stride", [4, 128])
def test_a_subset_is_of_the_same_rows_on_every_worker(
    files: Any, cluster: Any, stride: int
) -> None:
    _, found = files
    step = replace(STEP, subset=RowSubset(stride, b"of one release"))
    assert same(sums(found, step, cluster), sums(found, step))


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing_but_time(
    files: Any, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, found = files
    step = replace(STEP, map_fn=KillsItsWorker(Moments(), 1234, tmp_path / "killed"))
    drawn = []
    real = registry.release

    def release(part: Any, total: Any) -> Any:
        drawn.append(total.unwrap())
        return real(part, total)

    monkeypatch.setattr(registry, "release", release)
    released = engine(found, cluster).execute(*paid(step))
    assert (tmp_path / "killed").exists()
    assert released.status == "reply"
    assert same(drawn, sums(found, STEP)), "one draw for each part of the step, of the exact sums"


@dataclass(frozen=True)
class OneStep:
    step: SumStep
    columns: tuple[str, ...] = ("y", "x", "g")
    passes: int = 1
    mechanism: str = "test"
    reference: str = "test"
    rho: int = 3 * 10**9

    @property
    def forecast(self) -> dict[str, Any]:
        return {}

    def run(self) -> Iterator[Any]:
        released = yield self.step
        return {"sum": [float(v) for v in released[0].values]}


def paid(step: Any) -> tuple[Any, Any]:
    facts = DatasetFacts("d", "d", 1, "v", N, SCHEMA)
    guarantee = Guarantee("unconditional", "row", 1.0, 1e-6, "test", "test", "test")
    plan = Plan(facts, Count(), 1.0, 1e-6, COST, guarantee, OneStep(step), 100)
    return plan, Reservation("rel_1", "v", COST, "2026-01-01T00:00:00Z")


def test_a_failing_part_is_a_failed_release_without_a_word(
    files: Any, cluster: Any, capfd: Any
) -> None:
    _, found = files
    released = engine(found, cluster).execute(*paid(replace(STEP, map_fn=Fails(Moments(), 1234))))
    assert (released.status, released.result) == ("failed", None)
    assert "secret" not in "".join(capfd.readouterr())
    assert engine(found, cluster).execute(*paid(STEP)).status == "reply"


def test_a_file_that_is_gone_is_unavailable(files: Any, cluster: Any) -> None:
    place, found = files
    parts = Table(found, "gone", SCHEMA, ("y", "x", "g")).parts()
    (place / "part-1.parquet").unlink()
    with pytest.raises(Unavailable) as failed:
        cluster.totals(parts, STEP, 256)
    assert failed.value.__cause__ is failed.value.__context__ is None
    with pytest.raises(Unavailable):
        sums(found, STEP, cluster)


@pytest.mark.slow
def test_connections_are_encrypted_and_authenticated_and_there_is_no_dashboard(
    files: Any, cluster: Any, tmp_path: Path
) -> None:
    own = cluster._client.cluster
    assert own.scheduler_address.startswith("tls://127.0.0.1")
    ports = [own.scheduler.http_server.port]
    ports += [w["services"]["dashboard"] for w in own.scheduler_info["workers"].values()]
    for path in ("status", "health", "metrics", "info/main/workers.html", "json/counts.json"):
        for port in ports:
            assert httpx.get(f"http://127.0.0.1:{port}/{path}", timeout=60).status_code == 404
    stranger = certificates(Security.temporary(), tmp_path / "stranger")
    with pytest.raises(CuratorError, match="does not answer"):
        dask_cluster.remote_cluster(own.scheduler_address, stranger, cache_bytes=1 << 20)
    member = certificates(own.security, tmp_path / "member")
    joined = dask_cluster.remote_cluster(own.scheduler_address, member, cache_bytes=1 << 20)
    _, found = files
    assert same(sums(found, STEP, joined), sums(found, STEP))
    joined.close()
    assert same(sums(found, STEP, cluster), sums(found, STEP)), "the cluster goes on without it"


def certificates(security: Any, folder: Any) -> Any:
    folder.mkdir()
    texts = (security.tls_ca_file, security.tls_client_cert, security.tls_client_key)
    paths = [folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return dask_cluster.Certificates(*paths)


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://10.0.0.1:8786", "must be tls://"),
        ("tcp://cluster.example:8786", "must be tls://"),
        ("10.0.0.1:8786", "must be tls://"),
        ("ws://127.0.0.1:8786", "must be tls://"),
        ("tls://10.0.0.1:8786", "RETICENT_DASK_CA"),
    ],
)
def test_a_scheduler_that_others_could_listen_to_is_refused(address: str, words: str) -> None:
    with pytest.raises(CuratorError, match=words):
        cluster_for(Settings(engine="dask", dask_scheduler=address))
    assert cluster_for(Settings()) is None
