# SPDX-License-Identifier: Apache-2.0
"""Excel, SPSS, Stata, SAS, DuckDB and Arrow give the table that was written, with their
dictionaries.
"""

import sys
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyreadstat
import pytest
import xlsxwriter
import yaml

from reticent_server.catalog.schema_file import read_schema
from reticent_server.domain.reading import UNSAID, Reading
from reticent_server.errors import CuratorError
from reticent_server.vault.draft import Proposal, propose
from reticent_server.vault.files import read_blocks
from support.databases.vaults import Vault
from support.tables.drafts import draft_schema

FRAME = pd.DataFrame(
    {
        "id": [1.0, 2.0, 3.0, 4.0],
        "sex": [1.0, 2.0, 9.0, 1.0],
        "q": [1.5, 2.5, np.nan, 4.0],
        "name": ["ä", "b", "", "d"],
        "day": [date(2020, 1, k) for k in (1, 2, 3, 4)],
    }
)
LABELS = ["Person", "Sex of the person", "", "", "Day of the visit"]
CODES = {"sex": {1: "Male", 2: "Female", 9: "No answer"}}


def cells(file: Path, proposal: Proposal) -> dict[str, list[Any]]:
    names = [column.source for column in proposal.columns]
    blocks = list(read_blocks(file, names, proposal.reading, 3))
    assert [block.start for block in blocks] == [0, 3]
    return {n: [c for block in blocks for c in block.columns[n].to_pylist()] for n in names}


def book(file: Path) -> Path:
    """Two sheets; the second has a title, its names in row 4, and empty columns on both sides."""
    with xlsxwriter.Workbook(str(file), {"default_date_format": "dd.mm.yyyy"}) as written:
        written.add_worksheet("Notes").write(0, 0, "of the ward")
        sheet = written.add_worksheet("Data 2024")
        sheet.write(0, 0, "Admissions")
        sheet.write_row(3, 1, ["id", "Admitted", "weight (kg)", "ward", "", "ok"])
        for k in range(4):
            sheet.write(4 + k, 1, k + 1)
            sheet.write_datetime(4 + k, 2, datetime(2024, 1, k + 1))  # noqa: DTZ001
            sheet.write(4 + k, 3, "NA" if k == 2 else 70.1 + k)
            sheet.write(4 + k, 4, "ab"[k % 2])
            sheet.write(4 + k, 6, k % 2 == 0)
    return file


def test_a_sheet_of_excel(tmp_path: Path) -> None:
    file = book(tmp_path / "a.xlsx")
    proposal = propose(file)
    assert proposal.reading == Reading(
        "xlsx", decimal="point", thousands="none", header=4, sheet="Data 2024"
    )
    assert proposal.sheets == ("Notes", "Data 2024")
    kinds = {column.source: column.kind for column in proposal.columns}
    assert kinds == {
        "id": "numeric",
        "Admitted": "date",
        "weight (kg)": "numeric",
        "ward": "categorical",
        "ok": "boolean",
    }
    read = cells(file, proposal)
    assert read["Admitted"][3] == "2024-01-04"
    assert read["weight (kg)"] == ["70.1", "71.1", "NA", "73.1"]
    assert read["ok"] == ["true", "false", "true", "false"]
    with pytest.raises(CuratorError, match="no sheet 'Data'; it has 'Notes', 'Data 2024'"):
        propose(file, Reading(sheet="Data"))
    block = next(read_blocks(file, ["id"], proposal.reading))
    assert block.place(1) == "row 2 (line 6)"  # of the sheet


def test_a_record_of_a_sheet_that_is_all_missing_is_a_record(tmp_path: Path) -> None:
    """n does not tell how many of them there are; rows at the end that only have a format are
    none.
    """
    file = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(file)) as written:
        sheet, bold = written.add_worksheet("Data"), written.add_format({"bold": True})
        sheet.write_column(2, 0, ["income", 31, "", 33, "", "", 36])
        sheet.write_blank(9, 0, None, bold)
        sheet.write(10, 0, "")
    reading = propose(file).reading
    blocks = list(read_blocks(file, ["income"], reading, 3))
    read = [cell for block in blocks for cell in block.columns["income"].to_pylist()]
    assert read == ["31", "", "33", "", "", "36"]
    assert blocks[1].place(2) == "row 6 (line 9)"


def with_notes(file: Path, *notes: str) -> Path:
    """Three records, from the second column on, and below a blank row one cell a row."""
    with xlsxwriter.Workbook(str(file)) as made:
        sheet = made.add_worksheet("Data")
        sheet.write(0, 0, "Admissions")
        for k, cells in enumerate([["ward", "age"], ["a", 31], ["", ""], ["b", 33]]):
            sheet.write_row(2 + k, 1, cells)
        sheet.write_column(7, 1, notes)
    return file


def test_rows_below_a_sheets_table_are_asked_about(sqlite_vault: Vault, tmp_path: Path) -> None:
    """Notes are no records; a draft leaves open whether they are some, and so does a load."""
    file = with_notes(tmp_path / "a.xlsx", "Source: the ward", "", "Made in May")
    asked = propose(file)
    assert asked.reading.skip_last is None
    assert len(asked.questions) == 1
    assert "(2 of them, below a blank row)" in asked.questions[0]
    assert "skip_last: }" in draft_schema(file)
    known = propose(file, Reading(skip_last=2))
    assert (known.rows, known.questions) == (3, ())
    assert known.of("ward") == ("a", "", "b")
    assert (propose(file, Reading(skip_last=0)).rows, known.of("age")) == (7, ("31", "", "33"))

    (tmp_path / "s.yaml").write_text(
        'unit: row\ncolumns:\n  age: {kind: numeric, lower: 0, upper: 99, missing: [""]}\n'
    )
    schema = read_schema(tmp_path / "s.yaml")
    with pytest.raises(CuratorError, match=r"`skip_last: 2`.*Answer it under `file`"):
        sqlite_vault.load(file, schema)
    said = replace(schema, reading=Reading(skip_last=2))
    assert sqlite_vault.load(file, said).source.n == 3


@pytest.mark.parametrize("header", [["ward", "age"], ["ward"]])
def test_records_at_a_sheets_end_are_not_asked_about(tmp_path: Path, header: list[str]) -> None:
    """A record of a first cell alone, and a blank one among others, of one column too."""
    file = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(file)) as made:
        sheet = made.add_worksheet("Data")
        for k, cells in enumerate([header, ["a", 31], [], ["b", 33], ["c"]]):
            sheet.write_row(k, 0, cells[: len(header)])
    proposal = propose(file)
    assert (proposal.questions, proposal.rows) == ((), 4)


def test_a_sheet_is_loaded_by_what_its_draft_says(sqlite_vault: Vault, tmp_path: Path) -> None:
    file = book(tmp_path / "a.xlsx")
    text = draft_schema(file).replace("levels: []", 'levels: ["a", "b"]')
    text = text.replace("date, lower: , upper: ", "date, lower: 2000-01-01, upper: 2030-01-01")
    (tmp_path / "s.yaml").write_text(text.replace("lower: , upper: ", "lower: 0, upper: 100"))
    schema = read_schema(tmp_path / "s.yaml")
    read = sqlite_vault.read(sqlite_vault.load(file, schema).source, ["weight_kg"]).to_pydict()
    assert read["weight_kg"] == [70.1, 71.1, 0.0, 73.1]


def test_spss_labels_are_levels_and_missing_codes_missing(tmp_path: Path) -> None:
    file = tmp_path / "a.sav"
    pyreadstat.write_sav(
        FRAME,
        str(file),
        column_labels=LABELS,
        variable_value_labels=CODES,
        missing_ranges={"sex": [9]},
    )
    proposal = propose(file)
    known = {column.source: column for column in proposal.columns}
    assert known["sex"].levels == (("Male", ("1",)), ("Female", ("2",)))
    assert (known["sex"].found, known["sex"].label) == (("",), "Sex of the person")
    assert (known["id"].kind, known["q"].kind, known["day"].kind) == ("numeric", "numeric", "date")
    read = cells(file, proposal)
    assert read["sex"] == [1.0, 2.0, None, 1.0]
    assert read["name"] == ["ä", "b", None, "d"]
    assert read["day"][0] == date(2020, 1, 1)
    assert (
        'sex: {kind: categorical, label: "Sex of the person", levels: {"Male": ["1"], '
        '"Female": ["2"]}'
    ) in draft_schema(file)


def test_labels_of_special_missing_values_are_no_levels(tmp_path: Path) -> None:
    """Stata's .a to .z are missing cells, which no level is read from."""
    file = tmp_path / "a.dta"
    frame = pd.DataFrame({"x": [1.0, 2.0, 1.0, "a"], "y": [1.5, 2.5, "b", "a"]})
    labels = {"x": {1: "one", 2: "two", "a": "dont know"}, "y": {"a": "dont know", "b": "refused"}}
    pyreadstat.write_dta(
        frame,
        str(file),
        variable_value_labels=labels,
        missing_user_values={"x": ["a"], "y": ["a", "b"]},
    )
    known = {column.source: column for column in propose(file).columns}
    assert known["x"].levels == (("one", ("1",)), ("two", ("2",)))
    assert (known["y"].levels, known["y"].kind) == ((), "numeric")
    assert cells(file, propose(file))["x"] == [1.0, 2.0, 1.0, None]


def test_flags_that_are_a_letter_or_nothing_are_read_from_every_format(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    """As CDISC writes them; files with types have a null where a text has nothing."""
    schema = tmp_path / "s.yaml"
    schema.write_text(
        'columns:\n  f: {kind: boolean, true: ["Y"], false: [""]}\n'
        '  g: {kind: categorical, from: f, levels: {"yes": ["Y"], "no": [""]}}\n'
    )
    frame = pd.DataFrame({"f": ["Y", "", "Y", ""]})
    (tmp_path / "a.csv").write_text("f,x\nY,1\n,1\nY,1\n,1\n")
    pyreadstat.write_xport(frame, str(tmp_path / "a.xpt"))
    pyreadstat.write_sav(frame, str(tmp_path / "a.sav"))
    pyreadstat.write_dta(frame, str(tmp_path / "a.dta"))
    nulls = pa.table({"f": ["Y", None, "Y", None]})
    pa.parquet.write_table(nulls, tmp_path / "a.parquet")
    for ending in ("csv", "xpt", "sav", "dta", "parquet"):
        source = sqlite_vault.load(tmp_path / f"a.{ending}", read_schema(schema)).source
        read = sqlite_vault.read(source, ["f", "g"]).to_pydict()
        assert (read["f"], read["g"]) == ([1, 0, 1, 0], [0, 1, 0, 1]), ending


def test_a_book_whose_parts_stand_at_the_root(tmp_path: Path) -> None:
    book(tmp_path / "a.xlsx")
    with ZipFile(tmp_path / "a.xlsx") as usual, ZipFile(tmp_path / "b.xlsx", "w") as flat:
        for name in usual.namelist():
            content = usual.read(name).replace(b"xl/", b"")
            flat.writestr(name.replace("xl/", ""), content)
    assert propose(tmp_path / "b.xlsx").sheets == ("Notes", "Data 2024")


def test_labels_of_strangers_are_one_short_line_of_text(tmp_path: Path) -> None:
    """In the draft they stand in a comment, which a line end or a control character would end."""
    file = tmp_path / "a.sav"
    label = "Sex\x07\x1b[31m\n  unit: {column: id}\x85" + "x" * 220
    values = {"sex": {1.0: "Ma\x00\x08le", 2.0: "Female"}}
    pyreadstat.write_sav(
        FRAME, str(file), column_labels={"sex": label}, variable_value_labels=values
    )
    (column,) = [each for each in propose(file).columns if each.source == "sex"]
    assert column.label.startswith("Sex [31m unit: {column: id} x")
    assert len(column.label) == 200
    assert all(text.isprintable() for text, _ in column.levels)
    assert yaml.safe_load(draft_schema(file))["unit"] != {"column": "id"}


def test_stata_and_sas(tmp_path: Path) -> None:
    stata, sas = tmp_path / "a.dta", tmp_path / "a.xpt"
    pyreadstat.write_dta(FRAME, str(stata), column_labels=LABELS, variable_value_labels=CODES)
    pyreadstat.write_xport(FRAME.drop(columns="day"), str(sas))
    for file, form in ((stata, "stata"), (sas, "sas")):
        proposal = propose(file)
        assert proposal.reading.format == form
        assert cells(file, proposal)["q"] == [1.5, 2.5, None, 4.0]
    assert dict(propose(stata).columns[1].levels)["No answer"] == ("9",)


@pytest.mark.slow
def test_a_table_of_duckdb_and_nothing_else_in_reach(tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "a.duckdb", tmp_path / "secret.csv"
    elsewhere.write_text("x\n1\n")
    with duckdb.connect(str(file)) as connection:
        connection.execute("create table t as select range as i, 'x' as g from range(4)")
        connection.execute(f"create view v as select * from read_csv('{elsewhere}')")
    with pytest.raises(CuratorError, match="as `sheet`: it has 't', 'v'"):
        propose(file)
    proposal = propose(file, Reading(sheet="t"))
    assert cells(file, proposal) == {"i": [0, 1, 2, 3], "g": ["x"] * 4}
    with pytest.raises(CuratorError, match="cannot be read as DuckDB"):
        propose(file, Reading(sheet="v"))


def test_an_arrow_file(tmp_path: Path) -> None:
    file = tmp_path / "a.feather"
    pa.feather.write_feather(pa.Table.from_pandas(FRAME), str(file))
    assert cells(file, propose(file))["q"] == [1.5, 2.5, None, 4.0]
    file.write_bytes(b"ARROW1 secret")
    with pytest.raises(CuratorError, match=r"^a.feather cannot be read as Arrow\.$"):
        propose(file)


ABSENT = {
    "python_calamine": (b"PK\x03\x04", r"Excel files need .*reticent-server\[xlsx\]"),
    "pyreadstat": (b"$FL2", r"SAS, Stata and SPSS need .*reticent-server\[stats\]"),
    "duckdb": (bytes(8) + b"DUCK", r"DuckDB files need .*reticent-server\[duckdb\]"),
}


@pytest.mark.parametrize("module", ABSENT)
def test_what_is_not_installed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    content, message = ABSENT[module]
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(CuratorError, match=message):
        propose(tmp_path / "a", UNSAID)
