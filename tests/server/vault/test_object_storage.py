# SPDX-License-Identifier: Apache-2.0
"""Parquet files on S3: the values of local files, what may change meanwhile, and no credentials in
any text.
"""

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError

from reticent_server.domain.source import ParquetFile
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.settings import Settings
from reticent_server.vault import parquet_folder, parquet_source
from reticent_server.vault.object_store import AWS, ObjectStore, store_of
from reticent_server.vault.parquet_folder import folder_at
from reticent_server.vault.parquet_source import ParquetReader
from reticent_server.vault.registered import UNREADABLE
from reticent_server.vault.registering import register_files
from support.seeds import seeded
from support.tables.object_storage import BUCKET, KEY_ID, SECRET, Storage, object_storage
from support.tables.sources import ALL, SCHEMA, registered, rows, write_parquet
from support.tables.sources import read as read_local


@pytest.fixture(scope="module")
def storage() -> Iterator[Storage]:
    with object_storage() as started:
        yield started


def register(storage: Storage, address: str) -> Any:
    return register_files(address, SCHEMA, storage.store)


def opened(storage: Storage, source: Any) -> ParquetReader:
    return ParquetReader(SCHEMA, source, storage.store)


def read(reader: Any, columns: Any = ALL) -> pa.Table:
    return pa.Table.from_batches([batch.unwrap() for batch in reader.batches(columns)])


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.slow
def test_objects_have_the_rows_of_the_files(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_source, "AHEAD_ROWS", 700)  # two row groups and a part of one
    place = write_parquet(tmp_path / "files", rows(3000))
    (place / "readme.txt").write_text("not a table")
    (place / "old").mkdir()
    local = registered(place)
    (place / "old").rmdir()
    address = storage.put(place)
    storage.write(f"{address}/old/part-0.parquet", b"in a folder of its own, which is not read")
    found = register(storage, address + "/")
    assert found.source.directory == address
    assert (
        found.source.files
        == local.source.files
        == tuple(ParquetFile(f"part-{k}.parquet", 1000) for k in range(3))
    )
    assert dict(found.clipped) == dict(local.clipped)
    expected = read_local(place, local.source)
    reader = opened(storage, found.source)
    assert read(reader).equals(expected)
    monkeypatch.setattr(parquet_source, "PARTITION_ROWS", 800)
    parts = pickle.loads(pickle.dumps(reader.partitions()))
    assert [first for first, _ in parts] == [0, 800, 1000, 1800, 2000, 2800]
    assert pa.concat_tables([read(part) for _, part in parts]).equals(expected)


@pytest.mark.slow
def test_only_the_columns_that_are_asked_for_are_fetched(storage: Storage, tmp_path: Path) -> None:
    rng = seeded(5)
    place = tmp_path / "wide"
    place.mkdir()
    values = rng.normal(size=100_000)
    others = {f"z{k}": values + k for k in range(20)}
    names = [column.name for column in SCHEMA.columns]
    plain = write_parquet(tmp_path / "plain", rows(300), files=1)
    wanted = pq.read_table(plain / "part-0.parquet").take(pa.array(np.arange(100_000) % 300))
    table = pa.table({name: wanted.column(name) for name in names} | others)
    pq.write_table(table, place / "part-0.parquet", row_group_size=1 << 14)
    reader = opened(storage, register(storage, storage.put(place)).source)
    before = len(storage.requests)
    assert read(reader, ("y",)).num_rows == 100_000
    ranges = [r.removeprefix("bytes=").split("-") for *_, r in storage.requests[before:] if r]
    fetched = sum(int(high) - int(low) + 1 for low, high in ranges)
    assert fetched < 0.1 * (place / "part-0.parquet").stat().st_size


@pytest.mark.slow
def test_objects_that_change_keep_the_number_of_rows(storage: Storage, tmp_path: Path) -> None:
    place = write_parquet(tmp_path / "files", rows(90), files=2)
    address = storage.put(place)
    source = register(storage, address).source
    whole = pq.read_table(place / "part-0.parquet")
    storage.write(f"{address}/part-0.parquet", parquet(whole.slice(0, 40)))
    storage.write(f"{address}/part-1.parquet", parquet(pa.concat_tables([whole, whole])))
    storage.write(f"{address}/part-2.parquet", parquet(whole))
    found = read(opened(storage, source))
    assert np.flatnonzero(found.column("y:bad")).tolist() == [40, 41, 42, 43, 44]
    assert found.column("y")[45:].to_pylist() == whole.column("y").to_pylist()
    again = register(storage, address).source
    assert [file.rows for file in again.files] == [40, 90, 45]


@pytest.mark.parametrize("content", [b"secret", None])
def test_an_object_that_is_gone_says_one_constant_sentence(
    content: bytes | None, storage: Storage, tmp_path: Path
) -> None:
    address = storage.put(write_parquet(tmp_path / "files", rows(30), files=1))
    reader = opened(storage, register(storage, address).source)
    if content is None:
        storage.remove(f"{address}/part-0.parquet")
    else:
        storage.write(f"{address}/part-0.parquet", content)
    for attempt in (lambda: read(reader), reader.partitions):
        with pytest.raises(Unavailable) as failed:
            attempt()
        assert failed.value.detail == UNREADABLE
        assert failed.value.__cause__ is failed.value.__context__ is None


@pytest.mark.parametrize("address", [f"s3://{BUCKET}/absent", "s3://no-such-bucket/absent"])
def test_what_is_not_there_cannot_be_registered(address: str, storage: Storage) -> None:
    with pytest.raises(CuratorError, match="is empty or cannot be listed") as refused:
        register(storage, address)
    assert address in refused.value.detail


@pytest.mark.parametrize(
    "address",
    [
        "s3://KEY:hush@tables/prefix",
        "s3://tables/prefix?secret=hush",
        "s3://tables/prefix#hush",
        "s3://Tables/hush",
        "s3://tables//hush",
        "s3://tables/../hush",
        "s3://t",
        "s3:///hush",
    ],
)
def test_an_address_with_credentials_or_options_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(CuratorError, match="without credentials") as refused:
        folder_at(address)
    assert "hush" not in refused.value.detail


def test_credentials_come_from_the_environment_and_are_in_no_text(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    address = storage.put(write_parquet(tmp_path / "files", rows(30), files=1))
    source = register(storage, address).source
    reader = opened(storage, source)
    parts = reader.partitions()
    for kept in (source, reader._folder, parts):
        assert SECRET.encode() not in pickle.dumps(kept)
        assert KEY_ID.encode() not in pickle.dumps(kept)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "STRANGER")
    parquet_folder._service.cache_clear()
    with pytest.raises(CuratorError, match="cannot be listed") as refused:
        register(storage, address)
    with pytest.raises(Unavailable) as failed:
        read(reader)
    parquet_folder._service.cache_clear()
    assert refused.value.__suppress_context__
    assert failed.value.__context__ is None
    said = (
        f"{refused.value.detail} {failed.value.detail} {reader!r} {source!r} "
        f"{''.join(capfd.readouterr())}"
    )
    assert SECRET not in said
    assert "STRANGER" not in said


@pytest.mark.slow
def test_https_is_read_from_an_authority_that_is_known_and_from_no_other(tmp_path: Path) -> None:
    certificate = signed_by_itself(tmp_path / "own.pem")
    place = write_parquet(tmp_path / "files", rows(30), files=1)
    with object_storage(certificate, str(certificate)) as secure:
        address = secure.put(place)
        assert register(secure, address).source.n == 30
        stranger = ObjectStore(secure.store.endpoint, "us-east-1")
        with pytest.raises(CuratorError, match="cannot be listed"):
            register_files(address, SCHEMA, stranger)


def signed_by_itself(path: Path) -> Path:
    """A certificate of 127.0.0.1 with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "storage of tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    return path


def test_other_machines_are_reached_by_https_only(tmp_path: Path) -> None:
    for endpoint in ("http://storage.example", "https://user:hush@storage.example", "storage"):
        with pytest.raises(ValidationError):
            Settings(s3_endpoint=endpoint)
    given = Settings(
        s3_endpoint="https://storage.example:9000",
        s3_region="eu-west-1",
        s3_ca=tmp_path / "ca.pem",
    )
    assert store_of(given) == ObjectStore(
        "https://storage.example:9000", "eu-west-1", str(tmp_path / "ca.pem")
    )
    assert store_of(Settings()) == AWS
    own = parquet_folder._service(ObjectStore("", "eu-west-1"))
    assert own.__reduce__()[1][0]["scheme"] == "https"
