# SPDX-License-Identifier: Apache-2.0
"""Rows of persons in their places: nobody's number of rows moves anybody else."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from reticent_server.domain.schema import Unit
from reticent_server.domain.source import VaultTable
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.vault import person_rows, places
from reticent_server.vault.adbc import connected, execute, parse_url
from support.databases.vaults import Vault, csv_file, numeric, schema
from support.seeds import seeded

M = 3
SCHEMA = schema(numeric("year"), numeric("x", missing=("NA",)), unit=Unit("id", M))
ROWS = {
    "ann": [(2001, "1"), (2000, "NA"), (2002, "3")],
    "bob": [(2000, "4")],
    "cy": [(2003, "9"), (2001, "7"), (2000, "6"), (2002, "8")],
    "di": [(2000, "5"), (2000, "2")],
}


def text(rows: dict[str, list[tuple[int, str]]], seed: int = 0) -> str:
    lines = [f"{name},{year},{x}" for name, own in rows.items() for year, x in own]
    order = seeded(seed).permutation(len(lines))
    return "\n".join(["id,year,x", *(lines[k] for k in order)]) + "\n"


def stored(vault: Vault, folder: Path, rows: Any, seed: int = 0) -> pa.Table:
    loaded = vault.load(csv_file(folder, text(rows, seed)), SCHEMA)
    assert (loaded.n, loaded.source.n) == (len(rows), M * len(rows))
    return vault.read(loaded.source, ["year", "x"])


def persons(table: pa.Table) -> list[list[tuple[float, float | None]]]:
    """The rows of each place's person."""
    found = []
    for start in range(0, table.num_rows, M):
        part = table.slice(start, M).to_pylist()
        rows = [(r["year"], None if r["x:missing"] else r["x"]) for r in part if not r[":missing"]]
        assert [r[":missing"] for r in part] == [False] * len(rows) + [True] * (M - len(rows))
        assert all(r["year"] == r["x"] == 0 for r in part[len(rows) :])
        found.append(rows)
    return found


def test_persons_have_m_places_and_keep_their_first_rows_in_canonical_order(
    vault: Vault, tmp_path: Path
) -> None:
    found = persons(stored(vault, tmp_path, ROWS))
    assert sorted(found, key=repr) == sorted(
        [
            [(2000, None), (2001, 1), (2002, 3)],
            [(2000, 4)],
            [(2000, 6), (2001, 7), (2002, 8)],
            [(2000, 2), (2000, 5)],
        ],
        key=repr,
    )


def test_the_order_of_the_file_does_not_matter(sqlite_vault: Vault, tmp_path: Path) -> None:
    first = stored(sqlite_vault, tmp_path, ROWS)
    with patch("reticent_server.vault.csv_file.rows_per_block", return_value=2):
        for seed in range(1, 6):
            assert stored(sqlite_vault, tmp_path, ROWS, seed).equals(first)


@pytest.mark.parametrize("own", [0, 1, 2, M, M + 1])
def test_a_person_of_any_number_of_rows_changes_its_own_places_only(
    own: int, sqlite_vault: Vault, tmp_path: Path
) -> None:
    before = persons(stored(sqlite_vault, tmp_path, ROWS))
    changed = [(2000 + k, "50") for k in range(max(own, 1))]
    after = persons(stored(sqlite_vault, tmp_path, ROWS | {"bob": changed}))
    differ = [k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    assert differ == [before.index([(2000, 4)])]
    assert len(after[differ[0]]) == min(max(own, 1), M)


def test_rows_beyond_the_limit_are_counted_for_the_curator_and_refused_when_strict(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    file = csv_file(tmp_path, text(ROWS))
    assert sqlite_vault.load(file, SCHEMA).left_out == 1
    with pytest.raises(CuratorError, match="the unit 'cy' has more than 3 rows"):
        sqlite_vault.load(file, SCHEMA, strict=True)


def test_too_many_places_are_refused(sqlite_vault: Vault, tmp_path: Path) -> None:
    with (
        patch.object(person_rows, "MOST_PLACES", 4 * M - 1),
        pytest.raises(CuratorError, match="declare a smaller `max_rows`"),
    ):
        stored(sqlite_vault, tmp_path, ROWS)


@pytest.mark.parametrize("at_once", [1, 2, 5, 1 << 16])
def test_places_come_in_pieces_of_any_size(
    at_once: int, sqlite_vault: Vault, tmp_path: Path
) -> None:
    whole = stored(sqlite_vault, tmp_path, ROWS)
    with patch.object(places, "PLACES_AT_ONCE", at_once):
        assert stored(sqlite_vault, tmp_path, ROWS).combine_chunks().equals(whole.combine_chunks())


def test_for_no_columns_there_are_the_places(sqlite_vault: Vault, tmp_path: Path) -> None:
    loaded = sqlite_vault.load(csv_file(tmp_path, text(ROWS)), SCHEMA)
    found = sqlite_vault.read(loaded.source, [])
    assert found.schema.names == [":missing"]
    assert sum(found[":missing"].to_pylist()) == 4 * M - 9


def test_a_table_that_others_have_emptied_cannot_be_read(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    loaded = sqlite_vault.load(csv_file(tmp_path, text(ROWS)), SCHEMA)
    with connected(parse_url(sqlite_vault.url), autocommit=True) as connection:
        execute(connection, f"DELETE FROM {loaded.source.table}")
    with pytest.raises(Unavailable):
        sqlite_vault.read(loaded.source, ["x"])


def test_a_row_a_person_is_stored_as_ever(sqlite_vault: Vault, tmp_path: Path) -> None:
    one = schema(numeric("x"), unit=Unit("id", 1))
    loaded = sqlite_vault.load(csv_file(tmp_path, "id,x\nb,2\na,1\nc,3\n"), one)
    assert loaded.source == VaultTable(loaded.source.table, 3, loaded.source.columns)
    assert sqlite_vault.read(loaded.source, ["x"]).to_pydict() == {"x": [2.0, 1.0, 3.0]}
