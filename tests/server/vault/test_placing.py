# SPDX-License-Identifier: Apache-2.0
"""Places of a population's persons in the tables of the vault, on both databases."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reticent_server.domain.schema import Schema, Unit
from reticent_server.domain.source import Spine, VaultTable
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.vault.adbc import connected, execute, parse_url
from reticent_server.vault.ingest import Loaded, ingest
from reticent_server.vault.loading import loading
from reticent_server.vault.names import hashes
from reticent_server.vault.placing import OUTSIDE, Placing, persons_of, placing
from support.databases.vaults import OWNER, Vault, csv_file, numeric, schema

KEY = bytes(range(32))
MANY = schema(numeric("x"), unit=Unit("id", 2))
ONE = schema(numeric("x"), unit=Unit("id", 1, gaps=True))


def loaded(vault: Vault, file: Path, of: Schema, places: Placing | None = None) -> Loaded:
    with loading(vault.url, OWNER, vault.tables) as load:
        found = ingest(load, file, of, key=KEY, placing=places)
        vault.kept.add(found.source.table)
    return found


def who(vault: Vault, table: VaultTable) -> dict[int, int]:
    names, places = persons_of(parse_url(vault.url), table)
    return dict(zip(names.tolist(), places.tolist(), strict=True))


@pytest.mark.slow
def test_a_person_has_one_place_in_all_tables(vault: Vault, tmp_path: Path) -> None:
    first = loaded(vault, csv_file(tmp_path, "id,x\nann,1\nbob,2\ncy,3\nann,4\n"), MANY).source
    spine = Spine("s", first.persons, False, replace(first, spine="s"), "visits")
    places = placing(parse_url(vault.url), spine, [])
    second = loaded(vault, csv_file(tmp_path, "id,x\nzoe,9\ncy,7\nann,5\n"), ONE, places)
    assert (second.n, second.source.n, second.outside) == (3, 3, 1)
    ann, cy = hashes(["ann", "cy"], KEY).tolist()
    before = who(vault, first)
    assert who(vault, second.source) == {ann: before[ann], cy: before[cy]}
    read = vault.read(second.source, ["x"]).to_pydict()
    assert np.array(read["x"])[[before[ann], before[cy]]].tolist() == [5, 7]
    assert sum(read[":missing"]) == 1


@pytest.mark.slow
def test_who_comes_later_takes_the_next_free_place(vault: Vault, tmp_path: Path) -> None:
    spine, tables, url = Spine("s", 4, grows=True), list[VaultTable](), parse_url(vault.url)
    found: dict[int, int] = {}
    for text in ("bob,1\n", "ann,1\nbob,2\n", "cy,3\n", "di,2\nann,1\n"):
        places = placing(url, spine, tables)
        tables.append(loaded(vault, csv_file(tmp_path, "id,x\n" + text), MANY, places).source)
        own = who(vault, tables[-1])
        assert all(found.get(name, place) == place for name, place in own.items())
        found |= own
        assert tables[-1].n == 4 * 2
    assert sorted(found.values()) == [0, 1, 2, 3]
    with pytest.raises(CuratorError, match="has 5 persons, and 4 places"):
        loaded(vault, csv_file(tmp_path, "id,x\neve,1\n"), MANY, placing(url, spine, tables))


def test_where_nobody_has_a_place_nothing_is_loaded(sqlite_vault: Vault, tmp_path: Path) -> None:
    places = Placing(Spine("s", 1), {1: 0})
    assert places.places(["1", "2"]).tolist() == [0, OUTSIDE]
    with pytest.raises(CuratorError, match="has no rows of persons of the population"):
        loaded(sqlite_vault, csv_file(tmp_path, "id,x\neve,1\n"), MANY, places)


def test_a_spine_that_is_gone_is_one_constant_sentence(sqlite_vault: Vault, tmp_path: Path) -> None:
    first = loaded(sqlite_vault, csv_file(tmp_path, "id,x\nann,1\n"), MANY).source
    url = parse_url(sqlite_vault.url)
    with connected(url, autocommit=True) as connection:
        execute(connection, f"DROP TABLE {first.table}")
    with pytest.raises(Unavailable):
        persons_of(url, first)
    with pytest.raises(CuratorError, match="cannot be read; nothing was loaded"):
        placing(url, Spine("s", 1, False, first), [])
