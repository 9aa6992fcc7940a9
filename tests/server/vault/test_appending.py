# SPDX-License-Identifier: Apache-2.0
"""A wave beside the stored rows, on both databases, and the names by which persons are found
again.
"""

from pathlib import Path

import numpy as np
import pytest

from reticent_server.domain.schema import Unit
from reticent_server.domain.source import VaultTable
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.vault.adbc import connected, execute, parse_url
from reticent_server.vault.appending import Wave, append
from reticent_server.vault.ingest import Loaded, ingest
from reticent_server.vault.loading import loading
from reticent_server.vault.names import fingerprint, hashes
from reticent_server.vault.person_tables import _names
from support.databases.vaults import OWNER, Vault, boolean, csv_file, numeric, schema

KEY = bytes(range(32))
SCHEMA = schema(numeric("x", missing=("NA",)), boolean("b"), unit=Unit("id", 2))


def loaded(vault: Vault, file: Path, key: bytes = KEY) -> VaultTable:
    with loading(vault.url, OWNER, vault.tables) as load:
        found = ingest(load, file, SCHEMA, key=key)
        vault.kept.add(found.source.table)
    return found.source


def appended(vault: Vault, old: VaultTable, file: Path, key: bytes = KEY) -> Loaded:
    with loading(vault.url, OWNER, vault.tables) as load:
        found = append(load, old, SCHEMA, Wave(file, False, key))
        vault.kept.add(found.source.table)
    return found


def rows_by_person(vault: Vault, source: VaultTable) -> dict[int, list[tuple[object, ...]]]:
    names = _names(parse_url(vault.url), source, None)
    table = vault.read(source, ["x", "b"]).to_pylist()
    found: dict[int, list[tuple[object, ...]]] = {}
    for place, row in enumerate(table):
        if not row[":missing"]:
            own = found.setdefault(int(names[place // 2]), [])
            own.append((None if row["x:missing"] else row["x"], bool(row["b"])))
    return found


@pytest.mark.slow
def test_a_wave_is_put_to_the_persons_of_the_stored_names(vault: Vault, tmp_path: Path) -> None:
    first = csv_file(tmp_path, "id,x,b\nann,1,true\nbob,NA,false\n")
    old = loaded(vault, first)
    before = vault.read(old, ["x", "b"])
    wave = csv_file(tmp_path, "id,x,b\nbob,4,true\ncy,5,true\nann,0,false\nann,3,false\n", "w.csv")
    new = appended(vault, old, wave)
    ann, bob, cy = hashes(["ann", "bob", "cy"], KEY).tolist()
    assert rows_by_person(vault, new.source) == {
        ann: [(0.0, False), (1.0, True)],
        bob: [(None, False), (4.0, True)],
        cy: [(5.0, True)],
    }
    assert (new.n, new.left_out, new.source.names) == (3, 1, fingerprint(KEY))
    assert vault.read(old, ["x", "b"]).equals(before)


def test_names_are_hashed_under_a_key() -> None:
    names = ["ann", "bob", "ann"]
    found = hashes(names, KEY)
    assert found[0] == found[2] != found[1]
    assert not np.isin(hashes(names, KEY[::-1]), found).any()
    assert fingerprint(KEY) != fingerprint(KEY[::-1])
    assert fingerprint(KEY) not in KEY.hex()


def test_identifiers_are_not_stored(sqlite_vault: Vault, tmp_path: Path) -> None:
    loaded(sqlite_vault, csv_file(tmp_path, "id,x,b\nquite-an-identifier,1,true\n"))
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("vault.db*"))
    assert b"quite-an-identifier" not in stored


def test_a_table_without_names_or_under_another_key_takes_no_wave(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    file = csv_file(tmp_path, "id,x,b\nann,1,true\n")
    for key, other in ((b"", KEY), (KEY, KEY[::-1]), (KEY, b""), (b"", b"")):
        old = loaded(sqlite_vault, file, key)
        tables = sqlite_vault.stored_tables()
        with pytest.raises(CuratorError, match="load the whole table again"):
            appended(sqlite_vault, old, file, other)
        assert sqlite_vault.stored_tables() == tables


def test_a_table_that_was_changed_by_others_has_no_names(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    source = loaded(sqlite_vault, csv_file(tmp_path, "id,x,b\nann,1,true\nbob,1,true\n"))
    vault = parse_url(sqlite_vault.url)
    with connected(vault, autocommit=True) as connection:
        execute(connection, f"DELETE FROM {source.table} WHERE position = 0")
    with pytest.raises(Unavailable):
        _names(vault, source, None)
