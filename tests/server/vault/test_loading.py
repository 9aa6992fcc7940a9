# SPDX-License-Identifier: Apache-2.0
"""A load is all or nothing, whatever interrupts it, and loads do not take each other's tables."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reticent_server.domain.schema import Schema
from reticent_server.errors import CuratorError
from reticent_server.vault.adbc import connected, create_vault, execute, parse_url
from reticent_server.vault.adbc import refuse_shared_file as refuse
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import WRITE_FAILED, loading
from support.databases.vaults import OWNER, Vault, csv_file, numeric, schema

SCHEMA: Schema = schema(numeric("x"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return csv_file(tmp_path, "x\n" + "1\n" * 500)


KILLED = """
import os, signal, sys
from pathlib import Path
from unittest.mock import patch
from reticent_server.vault.ingest import ingest
from reticent_server.vault.loading import WRITE_FAILED, loading
from support.databases.vaults import OWNER, numeric, schema

url, file, moment, kept = sys.argv[1:]

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def late(done):
    if moment == "mid-load" and load.rows >= 300:
        die()

with patch("reticent_server.vault.csv_file.rows_per_block", return_value=100):
    with loading(url, OWNER, lambda: {kept}) as load:
        ingest(load, Path(file), schema(numeric("x")), progress=late)
        die()
"""


@pytest.mark.slow
@pytest.mark.sample(4)
@pytest.mark.parametrize("moment", ["mid-load", "before the catalogue"])
def test_a_killed_load_leaves_nothing_that_is_visible(
    vault: Vault, file: Path, moment: str
) -> None:
    before = vault.load(file, SCHEMA).source
    command = [sys.executable, "-c", KILLED, vault.url, str(file), moment, before.table]
    paths = os.pathsep.join(p for p in sys.path if p)
    died = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False, timeout=600)
    assert died.returncode == -signal.SIGKILL
    orphans = vault.stored_tables() - vault.kept
    assert len(orphans) == (0 if moment == "mid-load" else 1)
    assert vault.read(before, ["x"]).num_rows == 500, "earlier versions are untouched"
    after = vault.load(file, SCHEMA).source
    assert vault.stored_tables() == vault.kept == {before.table, after.table}
    assert vault.read(after, ["x"]).num_rows == 500


@pytest.mark.sample(6)
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
def test_an_interrupted_load_drops_its_table(
    vault: Vault, file: Path, error: type[BaseException], published: bool
) -> None:
    def interrupted() -> None:
        with loading(vault.url, OWNER, vault.tables) as load:
            if published:
                ingest(load, file, SCHEMA)
            raise error

    with pytest.raises(error):
        interrupted()
    assert vault.stored_tables() == set()


def test_a_table_that_the_catalogue_names_outlives_a_late_interrupt(
    vault: Vault, file: Path
) -> None:
    def interrupted() -> None:
        with loading(vault.url, OWNER, vault.tables) as load:
            vault.kept.add(ingest(load, file, SCHEMA).source.table)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert vault.stored_tables() == vault.kept != set()


def test_two_loads_at_once_are_kept_apart(vault: Vault, file: Path) -> None:
    with loading(vault.url, OWNER, vault.tables) as load:
        source = ingest(load, file, SCHEMA).source
        with pytest.raises(CuratorError, match="Another load of this vault is running"):
            vault.load(file, SCHEMA)
        vault.kept.add(source.table)
    assert vault.stored_tables() == vault.kept
    vault.load(file, SCHEMA)


@pytest.mark.slow
def test_another_catalogues_tables_and_strangers_stay(vault: Vault, file: Path) -> None:
    mine = vault.load(file, SCHEMA).source.table
    with connected(parse_url(vault.url), autocommit=True) as connection:
        execute(connection, "CREATE TABLE stranger (x INTEGER)")
    nothing: Collection[str] = ()
    with loading(vault.url, "another", lambda: nothing):
        pass
    assert vault.stored_tables() == {mine, "stranger"}
    with loading(vault.url, OWNER, lambda: nothing):
        pass
    assert vault.stored_tables() == {"stranger"}


@pytest.mark.slow
def test_rows_can_be_read_while_a_load_writes(vault: Vault, file: Path) -> None:
    source = vault.load(file, SCHEMA).source
    rows = 400_000  # more than SQLite keeps in its cache before it needs the file for itself
    with loading(vault.url, OWNER, vault.tables) as load:
        load.create(SCHEMA)
        load.append({"v0": pa.array(np.ones(rows))}, rows)
        assert vault.read(source, ["x"]).num_rows == 500


def test_a_driver_error_while_writing_is_replaced(vault: Vault, file: Path) -> None:
    def load_into_a_table_that_is_there() -> None:
        with loading(vault.url, OWNER, vault.tables) as load:
            with connected(parse_url(vault.url), autocommit=True) as connection:
                execute(connection, f"CREATE TABLE {load.table} (secret INTEGER)")
            ingest(load, file, SCHEMA)

    with pytest.raises(CuratorError) as failed:
        load_into_a_table_that_is_there()
    assert failed.value.detail == WRITE_FAILED
    assert failed.value.__suppress_context__


def test_the_vaults_file_is_for_its_owner_only(tmp_path: Path) -> None:
    create_vault(f"sqlite:///{tmp_path}/vault.db")
    create_vault(f"sqlite:///{tmp_path}/vault.db")
    assert stat.S_IMODE((tmp_path / "vault.db").stat().st_mode) == 0o600


def test_a_vault_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is not a database, but a secret. " * 200)
    for url in (
        f"sqlite:///{tmp_path}/text.db",
        f"sqlite:///{tmp_path}/absent/vault.db",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://host/secret",
        "postgresql://user:secret@127.0.0.1:1/absent",
    ):
        with pytest.raises(CuratorError) as refused:
            create_vault(url)
        assert "secret" not in refused.value.detail


def test_catalogue_and_vault_must_be_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "a.db")
    for database in ("a.db", f"{tmp_path}/a.db", "./a.db?timeout=3", "link.db", "file:a.db"):
        with pytest.raises(CuratorError, match="different files"):
            refuse(f"sqlite:///{database}", "sqlite:///a.db")
    refuse("sqlite:///b.db", "sqlite:///a.db")
    refuse("postgresql://h/a.db", "sqlite:///a.db")
    refuse("sqlite:///a.db", "postgresql://h/a.db")
