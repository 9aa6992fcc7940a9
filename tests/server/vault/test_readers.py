"""Readers yield private batches, and a failing vault says one constant sentence."""

from dataclasses import replace
from pathlib import Path

import pytest

from reticent_server.domain.private import Private
from reticent_server.domain.source import StoredColumn, VaultTable
from reticent_server.errors import Unavailable
from reticent_server.vault.adbc import connected, execute, parse_url
from reticent_server.vault.readers import UNREADABLE, open_reader
from support.databases.vaults import Vault, csv_file, numeric, schema


@pytest.fixture
def source(vault: Vault, tmp_path: Path) -> VaultTable:
    file = csv_file(tmp_path, "x\n1\n2\n3\n")
    return vault.load(file, schema(numeric("x", missing=("",)))).source


def test_every_batch_is_private(vault: Vault, source: VaultTable) -> None:
    reader = open_reader(vault.url, source)
    assert reader.n == 3
    batches = list(reader.batches(["x"]))
    assert batches
    assert all(isinstance(batch, Private) for batch in batches)


def failure(vault: Vault, source: VaultTable) -> None:
    with pytest.raises(Unavailable) as failed:
        vault.read(source, ["x"])
    assert failed.value.detail == UNREADABLE
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None, "the driver's text may quote cells"


def test_another_number_of_rows_is_unavailable(vault: Vault, source: VaultTable) -> None:
    for n in (2, 4):
        failure(vault, replace(source, n=n))


def test_a_driver_error_is_replaced(vault: Vault, source: VaultTable) -> None:
    failure(vault, replace(source, table="absent"))
    with connected(parse_url(vault.url), autocommit=True) as connection:
        execute(connection, f"DROP TABLE {source.table}")
    failure(vault, source)


def test_a_cell_that_the_driver_cannot_convert_is_not_quoted(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    file = csv_file(tmp_path, "x\n1\n2\n")
    source = sqlite_vault.load(file, schema(numeric("x"))).source
    with connected(parse_url(sqlite_vault.url), autocommit=True) as connection:
        execute(connection, f"UPDATE {source.table} SET v0 = 'secret' WHERE position = 1")
    failure(sqlite_vault, source)


def test_an_absent_vault_is_not_created_by_reading(tmp_path: Path) -> None:
    vault = Vault(f"sqlite:///{tmp_path}/absent.db")
    failure(vault, VaultTable("t", 1, (StoredColumn("x", "v0"),)))
    assert not (tmp_path / "absent.db").exists()
