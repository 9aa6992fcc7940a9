# SPDX-License-Identifier: Apache-2.0
"""Dates in files and databases: days since 1970-01-01, strictly by the calendar, each cell by
itself.
"""

import sqlite3
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent_server.domain.dates import date_days, date_format_error, date_text
from reticent_server.domain.schema import Column, ColumnKind, Recode, Schema
from reticent_server.vault.cells import Encoded, Fault, check, encode
from support.databases.vaults import Vault
from support.tables.drafts import draft_schema
from support.tables.sources import new_url, reader, registered, sql

FIRST, LAST = date_days("1900-01-01"), date_days("2100-12-31")
SOLD = Column("sold", ColumnKind.INTEGER, FIRST, LAST, (), ("NA",), Recode(date="%Y-%m-%d"))
SCHEMA = Schema((SOLD,))


def days(texts: list[str], form: str = "%Y-%m-%d") -> list[float | None]:
    """What a registered table's cells become; None where they cannot be stored."""
    column = replace(SOLD, recode=Recode(date=form))
    found = check(column, pa.array(texts))
    return [None if bad else v for v, bad in zip(found.values, found.bad, strict=True)]


def test_days_are_those_of_the_calendar() -> None:
    every = [date(1899, 12, 31) + timedelta(days=k) for k in range(1, 73_000, 3)]
    texts = [day.isoformat() for day in every]
    expected = [float((day - date(1970, 1, 1)).days) for day in every]
    assert days(texts) == expected
    assert [date_text(value) for value in expected] == texts
    assert [date_days(text) for text in texts] == expected


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        ("%Y-%m-%d", ["2020-01-05", "2020-1-5", "2020-01-05 23:59", "2020-01-05T00:00:00Z"],
         ["2020-02-30", "2021-02-29", "2020-13-01", "0000-01-01", "2020-00-05", "2020-01-00",
             "05.01.2020", "2020-01-05x", "", "infinity", "20200105", "٢020-01-05"]),
        ("%d.%m.%Y", ["5.1.2020", "05.01.2020"],
            ["31.02.2020", "1.5.20", "5x1x2020", "2020-01-05"]),
        ("%m/%d/%Y", ["01/05/2020"], ["13/05/2020"]),
        ("%Y%m%dT%H%M%S", ["20200105T000000"], ["20200105", "20200105T00"]),
    ],
)  # fmt: skip
def test_a_format_is_read_strictly(form: str, good: list[str], bad: list[str]) -> None:
    assert days(good, form) == [18266.0] * len(good)
    assert days(bad, form) == [None] * len(bad)


def test_no_cell_decides_about_another() -> None:
    cells = ["2020-01-05", "2020-02-30", "NA", None, "x", "2500-01-01", "2020-01-05"]
    found = check(SOLD, pa.array(cells))
    assert found.bad.tolist() == [False, True, False, False, True, False, False]
    assert found.missing.tolist() == [False, False, True, True, False, False, False]
    assert found.values[[0, 5, 6]].tolist() == [18266.0, LAST, 18266.0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_are_their_day(unit: Any) -> None:
    moments = [
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2020, 1, 5, 23, tzinfo=UTC),
        None,
    ]
    for zone in (None, "America/New_York"):
        cells = pa.array(moments, pa.timestamp(unit, zone))
        found = encode(SOLD, cells, strict=True)
        assert isinstance(found, Encoded)
        assert found.values.tolist() == [-1.0, 18266.0, 0.0]
        assert found.missing.tolist() == [False, False, True]
    for kind in (pa.date32(), pa.date64()):
        dated = encode(SOLD, pa.array([date(2020, 1, 5), date(1969, 12, 31)], kind), strict=True)
        assert isinstance(dated, Encoded)
        assert dated.values.tolist() == [18266.0, -1.0]


def test_a_fault_is_told_in_dates() -> None:
    wrong = encode(SOLD, pa.array(["2020-02-30"]), strict=False)
    assert isinstance(wrong, Fault)
    assert wrong.reason == "'2020-02-30' is not a date written as %Y-%m-%d"
    late = encode(SOLD, pa.array(["2101-01-01"]), strict=True)
    assert isinstance(late, Fault)
    assert late.reason == "'2101-01-01' is outside [1900-01-01, 2100-12-31] (strict)"


def test_a_format_says_a_day() -> None:
    for right in ("%d.%m.%Y %H:%M:%S %%", "%b %d %Y", "%d%b%y"):
        assert date_format_error(right) is None
    for wrong in (
        "%Y-%m",
        "%Y-%m-%d-%d",
        "",
        "%b %m %d %Y",
        "%y %Y-%m-%d",
        "%Y-%m-%d %p",
        "%Y-%m-%d %",
    ):
        assert date_format_error(wrong), wrong


DAYS = ["2014-05-02", "1969-12-31", None, "2000-02-29"]
EXPECTED = [16192.0, -1.0, 0.0, 11016.0]


def sold(place: Any, source: Any) -> Any:
    batches = [b.unwrap() for b in reader(place, source, SCHEMA).batches(["sold"])]
    return pa.Table.from_batches(batches).column("sold").to_pylist()


@pytest.mark.parametrize("kind", ["csv", "parquet", "sqlite"])
def test_sources_hold_the_same_days(kind: str, tmp_path: Path) -> None:
    if kind == "sqlite":
        place = new_url("sqlite", tmp_path)
        sqlite3.connect(tmp_path / "external.db").close()
        sql(place, "CREATE TABLE people (sold TEXT)")
        for day in DAYS:
            sql(place, f"INSERT INTO people VALUES ({'NULL' if day is None else repr(day)})")
        assert sold(place, registered(place, SCHEMA).source) == EXPECTED
        return
    file = tmp_path / f"rows.{kind}"
    if kind == "csv":
        file.write_text("sold\n" + "\n".join(day or "NA" for day in DAYS) + "\n")
    else:
        typed = [day and date.fromisoformat(day) for day in DAYS]
        pq.write_table(pa.table({"sold": pa.array(typed, pa.date32())}), file)
    vault = Vault(f"sqlite:///{tmp_path}/vault.db")
    loaded = vault.load(file, SCHEMA)
    assert vault.read(loaded.source, ["sold"]).column("sold").to_pylist() == EXPECTED


@pytest.mark.slow
@pytest.mark.postgres
def test_postgresql_holds_the_same_days(tmp_path: Path) -> None:
    """In columns of four types, in a role that writes dates in another way, and with a date that is
    none.
    """
    place = new_url("postgresql", tmp_path)
    kinds = ("date", "timestamp", "timestamptz", "text")
    columns = ", ".join(f"{kind}_sold {kind}" for kind in kinds)
    sql(place, f"CREATE TABLE people (id integer PRIMARY KEY, {columns})")
    texts = ["NULL" if day is None else repr(day) for day in (*DAYS, "2000-01-01")]
    lines = [f"({k}, {', '.join([text] * 4)})" for k, text in enumerate(texts)]
    sql(place, f"INSERT INTO people VALUES {', '.join(lines)}")
    sql(place, "ALTER ROLE CURRENT_USER SET datestyle = 'German'")
    schema = Schema(tuple(replace(SOLD, name=f"{kind}_sold") for kind in kinds))
    source = registered(place, schema).source
    never = ", ".join(f"{kind}_sold = 'infinity'" for kind in kinds)
    sql(place, f"UPDATE people SET {never} WHERE id = 4")
    names = [column.name for column in schema.columns]
    batches = [b.unwrap() for b in reader(place, source, schema).batches(names)]
    sql(place, "ALTER ROLE CURRENT_USER RESET datestyle")
    for name in names:
        assert pa.Table.from_batches(batches).column(name).to_pylist() == [*EXPECTED, 0.0]


def test_a_draft_says_the_format_and_no_date(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("a,b,c\n2014-05-02,20140502T000000,2.5.2014\nNA,20141231T000000,31.12.2014\n")
    text = draft_schema(file)
    assert '  a: {kind: date, lower: , upper: , missing: ["", "NA",' in text
    assert '  b: {kind: date, format: "%Y%m%dT%H%M%S", lower: , upper: , missing:' in text
    assert '  c: {kind: date, format: "%d.%m.%Y", lower: , upper: , missing:' in text
    assert "2014" not in text
    typed = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": pa.array([date(2014, 5, 2)], pa.date32())}), typed)
    assert "  a: {kind: date, lower: , upper: , missing:" in draft_schema(typed)


def test_dates_are_whole_days_in_every_row() -> None:
    found = check(SOLD, pa.array([f"{1900 + k % 200}-0{k % 9 + 1}-15" for k in range(5000)]))
    assert np.array_equal(found.values, np.floor(found.values))
