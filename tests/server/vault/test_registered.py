# SPDX-License-Identifier: Apache-2.0
"""Rows by reference: the values of a load, whatever the source; and no row that decides about
others.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent_server.domain.facts import DatasetFacts
from reticent_server.domain.query import Privacy
from reticent_server.domain.row_subset import RowSubset
from reticent_server.domain.schema import Column, ColumnKind, Recode, Schema
from reticent_server.domain.steps import CountSum, GramSum, QuantileTree, Released, VectorSum
from reticent_server.engine.blocks import Table
from reticent_server.engine.local import LocalEngine
from reticent_server.errors import CuratorError, Unavailable
from reticent_server.kinds.shared.linear.query import LinearRegression
from reticent_server.pipeline import planning
from reticent_server.vault.adbc import DRIVER_ERRORS, execute
from reticent_server.vault.readers import open_reader
from reticent_server.vault.registered import UNREADABLE
from reticent_server.vault.sql_source import opened, source_url
from support.attacks.privacy_losses import loss_of_sums
from support.databases.vaults import Vault, integer, schema
from support.tables.sources import (
    ALL,
    SCHEMA,
    N,
    new_url,
    read,
    reader,
    registered,
    rows,
    sql,
    write_csv,
    write_parquet,
    write_sql,
)

SQL = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]
SOURCES = [*SQL, "parquet"]
QUERY = LinearRegression("y ~ x + C(g) + b + m", where="k >= 2")


def placed(kind: Any, folder: Any, table: Any) -> Any:
    if kind == "parquet":
        return write_parquet(folder / "files", table)
    return write_sql(new_url(kind, folder), table)


def sums(opened_reader: Any, threads: int = 2, subset: Any = None, **engine: Any) -> Any:
    """The exact integer sums of a regression's first steps."""
    facts = DatasetFacts("t", "t", 1, "v", opened_reader.n, SCHEMA)
    plan = planning.plan(facts, QUERY, Privacy(1.0, 1e-6))
    options = {"cache_bytes": 1 << 24, "threads": threads, "block_rows": 511} | engine
    local = LocalEngine(lambda _: opened_reader, None, **options)
    table = Table(opened_reader, "v", SCHEMA, plan.planned.columns)
    steps, found = plan.planned.run(), []
    step = next(steps)
    for _ in range(2):
        trees = any(isinstance(part, QuantileTree) for part in step.parts)
        totals = local.totals(table, step if trees else replace(step, subset=subset))
        found.append((step.parts, [t.unwrap() for t in totals]))
        step = steps.send(tuple(fixed(p) for p in step.parts))
    local.close()
    return found


def fixed(part: Any) -> Released:
    """What a release might be: the same for every source."""
    match part:
        case QuantileTree():
            values = np.quantile(part.candidates.points, part.probabilities)
        case GramSum():
            values = N * np.eye(part.size)
        case VectorSum():
            values = np.ones(part.size)
        case CountSum():
            values = np.full(part.bins, N / part.bins)
    return Released(values=values, sd=1.0)


def moved(part: Any, a: Any, b: Any) -> Any:
    """What one record's change costs, in shares of what is charged; at most 1."""
    if isinstance(part, QuantileTree):
        return np.abs(a - b).sum() / 2
    return loss_of_sums(part, a, b) / part.rho


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any, Any]:
    """The table as it is loaded: its stored columns and a regression's sums."""
    folder = tmp_path_factory.mktemp("loaded")
    vault = Vault(f"sqlite:///{folder}/vault.db")
    stored = vault.load(write_csv(folder / "rows.csv", rows()), SCHEMA)
    opened = open_reader(vault.url, stored.source)
    return vault.read(stored.source, ALL), sums(opened), stored, opened


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_sums_of_a_load(kind: str, tmp_path: Path, loaded: Any) -> None:
    table, expected, stored, _ = loaded
    place = placed(kind, tmp_path, rows())
    key = (
        {"order": ("id",)} if kind == "postgresql" else {}
    )  # whose pages are filled in its own way
    registration = registered(place, **key)
    assert registration.source.n == N
    assert dict(registration.clipped) == dict(stored.clipped)
    found = read(place, registration.source)
    for name in table.column_names:
        assert found.column(name).to_pylist() == table.column(name).to_pylist(), name
    assert not any(np.any(found.column(f"{name}:bad")) for name in ALL)
    for engine in ({}, {"cache_bytes": 0, "threads": 1, "block_rows": 4096}):
        again = sums(reader(place, registration.source), **engine)
        for (_, a), (_, b) in zip(again, expected, strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_a_subset_is_of_the_same_rows_in_every_source(
    kind: str, tmp_path: Path, loaded: Any
) -> None:
    opened_load = loaded[-1]
    place = placed(kind, tmp_path, rows())
    source = registered(place, **({"order": ("id",)} if kind == "postgresql" else {})).source
    subset = RowSubset(8, b"of one release")
    expected = sums(opened_load, subset=subset)
    assert not np.array_equal(expected[1][1][0], loaded[1][1][1][0])
    for engine in ({}, {"cache_bytes": 0, "threads": 1}, {"cache_bytes": 1 << 15}):
        again = sums(reader(place, source), subset=subset, **engine)
        for (_, a), (_, b) in zip(again, expected, strict=True):
            assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


POISON = {
    "sqlite": ["x = 'secret'", "x = NULL", "x = 9e999", "x = x'ff'", "g = 'zz'", "g = x'ff'",
               "g = CAST(x'ff' AS TEXT)", "k = 2.5", "b = 7", "y = 1e300", "m = 'secret'"],
    "postgresql": ["x = 'NaN'", "x = NULL", "x = '-Infinity'", "g = 'zz'", "y = 1e300",
                   "m = 'NaN'", "m = 1e-400", "m = -1e400", "b = NULL"],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.sample(24)
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        pytest.param(kind, change, marks=[pytest.mark.postgres] if kind[0] == "p" else [])
        for kind, changes in POISON.items()
        for change in changes
    ],
)
def test_a_changed_cell_moves_no_sum_by_more_than_its_own_record(
    kind: str, change: str, tmp_path: Path
) -> None:
    place = placed(kind, tmp_path, rows(300))
    source = registered(place).source
    before = sums(reader(place, source))
    sql(place, f"UPDATE people SET {change} WHERE id = 100")
    assert read(place, source).num_rows == 300
    for (parts, old), (_, new) in zip(before, sums(reader(place, source)), strict=True):
        for part, a, b in zip(parts, old, new, strict=True):
            assert moved(part, a, b) <= 1 + 1e-9


@pytest.mark.parametrize("kind", SQL)
def test_a_bad_record_contributes_nothing_where_the_cell_is_used(kind: str, tmp_path: Path) -> None:
    place = placed(kind, tmp_path, rows(300))
    source = registered(place).source
    sql(place, "UPDATE people SET x = NULL WHERE id = 12")
    table = read(place, source)
    assert np.flatnonzero(table.column("x:bad")).tolist() == [12]
    assert table.column("x")[12].as_py() == 0.0
    assert not np.any(table.column("y:bad"))
    without = [row for row in rows(300) if row[0] != 12]
    other = write_parquet(tmp_path / "without", without)
    fewer = sums(reader(other, registered(other).source))
    for (_, a), (_, b) in zip(sums(reader(place, source))[1:], fewer[1:], strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kind", SQL)
def test_rows_that_come_and_go_do_not_show(kind: str, tmp_path: Path) -> None:
    place = placed(kind, tmp_path, rows(300))
    source = registered(place).source
    columns = "1000 + id, y, x, k, b, g, m"
    sql(place, f"INSERT INTO people SELECT {columns} FROM people WHERE id < 50")
    assert read(place, source).num_rows == 300
    sql(place, "DELETE FROM people WHERE id >= 200")
    found = read(place, source)
    assert found.num_rows == 300
    sql(place, "DELETE FROM people")
    found = read(place, source)
    assert np.all(found.column("x:bad"))
    assert read(place, source, ()).num_rows == 300


def test_a_file_that_was_cut_or_has_grown_keeps_its_number_of_rows(tmp_path: Path) -> None:
    place = write_parquet(tmp_path / "files", rows(90), files=2)
    source = registered(place).source
    whole = pq.read_table(place / "part-0.parquet")
    pq.write_table(whole.slice(0, 40), place / "part-0.parquet")
    pq.write_table(pa.concat_tables([whole, whole]), place / "part-1.parquet")
    pq.write_table(whole, place / "part-2.parquet")
    found = read(place, source)
    assert np.flatnonzero(found.column("y:bad")).tolist() == [40, 41, 42, 43, 44]
    assert found.column("y")[45:].to_pylist() == whole.column("y").to_pylist()


def test_a_text_that_is_not_utf8_spoils_its_own_cell_only(tmp_path: Path) -> None:
    place = write_parquet(tmp_path / "files", rows(60), files=1)
    source = registered(place).source
    table = pq.read_table(place / "part-0.parquet")
    texts = [b"a"] * 60
    texts[7] = b"\xff\xfe"
    broken = pa.array(texts, pa.binary()).view(pa.string())
    pq.write_table(table.set_column(4, "g", broken), place / "part-0.parquet")
    found = read(place, source, ("g",))
    assert np.flatnonzero(found.column("g:bad")).tolist() == [7]
    assert found.column("g").to_pylist() == [0.0] * 60


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_that_is_gone_says_one_constant_sentence(kind: str, tmp_path: Path) -> None:
    place = placed(kind, tmp_path, rows(30))
    source = registered(place).source
    if kind == "parquet":
        (place / "part-0.parquet").write_bytes(b"secret")
    else:
        sql(place, "ALTER TABLE people RENAME TO secret")
    with pytest.raises(Unavailable) as failed:
        read(place, source)
    assert failed.value.detail == UNREADABLE
    assert failed.value.__cause__ is failed.value.__context__ is None


@pytest.mark.parametrize("kind", SQL)
def test_rows_can_be_ordered_by_a_key_and_a_view_must_be(kind: str, tmp_path: Path) -> None:
    place = placed(kind, tmp_path, rows(300))
    sql(place, "CREATE VIEW seen AS SELECT 1000 - id AS key, y, x, k, b, g, m FROM people")
    with pytest.raises(CuratorError, match="--order"):
        registered(place, table="seen")
    source = registered(place, table="seen", order=("key",)).source
    expected = [min(40.0, max(-40.0, row[1])) for row in reversed(rows(300))]
    assert read(place, source, ("y",)).column("y").to_pylist() == expected
    if kind == "postgresql":
        sql(place, "ALTER TABLE people DROP CONSTRAINT people_pkey")
        with pytest.raises(CuratorError, match="--order"):
            registered(place)
    with pytest.raises(CuratorError, match="declared column is private"):
        registered(place, order=("k",))
    narrow = replace(SCHEMA, columns=SCHEMA.columns[:1])
    with pytest.raises(CuratorError, match="name each row once"):
        registered(place, narrow, order=("k",))


@pytest.mark.parametrize(
    "definition",
    [
        "k INTEGER PRIMARY KEY",
        "k INTEGER, z INTEGER PRIMARY KEY) WITHOUT ROWID; --",
        "k, rowid TEXT",
    ],
)
def test_a_private_or_hidden_key_orders_nothing(definition: str, tmp_path: Path) -> None:
    url = new_url("sqlite", tmp_path)
    (tmp_path / "external.db").touch()
    sql(url, f"CREATE TABLE people ({definition})")
    with pytest.raises(CuratorError, match="--order"):
        registered(url, schema(integer("k", 0, 9)))


@pytest.mark.parametrize("kind", SQL)
def test_connections_only_read(kind: str, tmp_path: Path) -> None:
    place = placed(kind, tmp_path, rows(30))
    with opened(source_url(place)) as connection, pytest.raises(DRIVER_ERRORS):
        execute(connection, "DELETE FROM people")
    assert registered(place).source.n == 30


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        ("sqlite", "UPDATE people SET g = 'zz' WHERE id = 5", "row 6, column g: 'zz' is not one"),
        (
            "sqlite",
            "UPDATE people SET x = NULL WHERE id = 5",
            "row 6, column x: the cell is miss",
        ),
        ("sqlite", "UPDATE people SET x = x'00'", "Column x holds BLOBs"),
        ("sqlite", "UPDATE people SET x = 'a' WHERE id = 0", "Column x holds texts and numbers"),
        ("sqlite", "DELETE FROM people", "has no rows"),
        ("sqlite", "ALTER TABLE people RENAME COLUMN x TO z", "no column 'x'"),
        ("sqlite", "DROP TABLE people", "no such table"),
        ("postgresql", "UPDATE people SET k = -1 WHERE id = 0", "row 1, column k: '-1' is outside"),
        ("postgresql", "ALTER TABLE people ALTER y TYPE text[] USING NULL", "type _text"),
        ("postgresql", "DROP TABLE people", "no such table"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_registered(
    kind: str, change: str, words: str, tmp_path: Path, request: Any
) -> None:
    if kind == "postgresql":
        request.applymarker(pytest.mark.postgres)
    place = placed(kind, tmp_path, rows(30))
    sql(place, change)
    with pytest.raises(CuratorError) as refused:
        registered(place, strict="outside" in words)
    assert words in refused.value.detail


@pytest.mark.parametrize(
    "name", ["people; DROP TABLE people", 'a"b', "", "main.people", "people --"]
)
def test_only_plain_names_are_tables(name: str, tmp_path: Path) -> None:
    place = placed("sqlite", tmp_path, rows(3))
    with pytest.raises(CuratorError, match="plain name"):
        registered(place, table=name)


def test_texts_in_sqlite_are_read_as_they_would_be_in_a_file(tmp_path: Path) -> None:
    place = placed("sqlite", tmp_path, rows(30))
    sql(place, "CREATE TABLE texts AS SELECT *, CAST(k AS TEXT) || ' ' AS t FROM people")
    sql(place, "ALTER TABLE texts DROP COLUMN k")
    sql(place, "ALTER TABLE texts RENAME COLUMN t TO k")
    source = registered(place, table="texts").source
    assert read(place, source).column("k").to_pylist() == [float(row[3]) for row in rows(30)]


WORDS = (("1", 1.0), ("true", 1.0), ("0", 0.0), ("false", 0.0))
RECODED = Schema(
    (
        Column("outcome", ColumnKind.NUMERIC, -40, 40, recode=Recode("y")),
        Column("sure", ColumnKind.BOOLEAN, 0, 1, recode=Recode("b", WORDS)),
        Column(
            "place",
            ColumnKind.CATEGORICAL,
            0,
            1,
            ("a", "rest"),
            ("", "NA"),
            Recode("g", (("a", 0.0),), 1.0),
        ),
        Column("group", ColumnKind.CATEGORICAL, 0, 2, ("a", "b", "c"), ("", "NA"), Recode("g")),
        Column(
            "grade",
            ColumnKind.CATEGORICAL,
            0,
            1,
            ("low", "high"),
            recode=Recode("k", (("0", 0.0), ("1", 0.0), ("2", 0.0)), 1.0),
        ),
    )
)


@pytest.mark.parametrize("kind", SOURCES)
def test_recodes_are_the_same_in_every_source(kind: str, tmp_path: Path) -> None:
    table = rows()
    vault = Vault(f"sqlite:///{tmp_path}/vault.db")
    stored = vault.load(write_csv(tmp_path / "rows.csv", table), RECODED)
    names = [column.name for column in RECODED.columns]
    expected = vault.read(stored.source, names)
    place = placed(kind, tmp_path, table)
    key = {"order": ("id",)} if kind == "postgresql" else {}
    registration = registered(place, RECODED, **key)
    batches = reader(place, registration.source, RECODED).batches(names)
    found = pa.Table.from_batches([batch.unwrap() for batch in batches])
    for name in names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name
    assert expected.column("grade").to_pylist() == [float(row[3] > 2) for row in table]
    assert expected.column("sure").to_pylist() == [float(row[4]) for row in table]
