# SPDX-License-Identifier: Apache-2.0
"""The schema's form says what a schema file says."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reticent_server.catalog.schema_file import read_schema
from reticent_server.console.schema_form import check, proposed_fields
from reticent_server.domain.schema import USUAL_MARKERS, ColumnKind
from reticent_server.intake.versions import checked
from reticent_server.vault.draft import propose

HEADER = "age,edu-num,married,zip,when\n"
FILE = f"{HEADER}39,13,Yes,10115,2020\n"
YAML = """
description: People
unit: {column: zip, max_rows: 3}
columns:
  age: {kind: integer, lower: -1, upper: 1.2e+2, missing: ["", "NA", "?"]}
  edu: {kind: numeric, from: "edu-num", lower: 0, upper: 16.5}
  married: {kind: boolean, true: ["Yes", "oui"], false: ["No"]}
  zip: {kind: categorical, levels: {east: ["10115", "10117"], "<=50K": ["<=50K"]}, other: "rest"}
"""
FIELDS = {
    "description": "People",
    "unit": "zip",
    "max_rows": "3",
    "c0.use": "yes",
    "c0.name": "age",
    "c0.kind": "integer",
    "c0.lower": "-1",
    "c0.upper": "1.2e+2",
    "c0.missing": "NA |?",
    "c0.empty": "yes",
    "c1.use": "yes",
    "c1.name": "edu",
    "c1.kind": "numeric",
    "c1.lower": "0",
    "c1.upper": "16.5",
    "c1.levels": "of another kind",
    "c2.use": "yes",
    "c2.name": "married",
    "c2.kind": "boolean",
    "c2.true": "Yes | oui",
    "c2.false": "No",
    "c3.use": "yes",
    "c3.name": "zip",
    "c3.kind": "categorical",
    "c3.levels": "east = 10115 | 10117\r\n<=50K\r\n",
    "c3.other": "rest",
    "c4.name": "when",
    "c4.kind": "integer",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "a.csv"
    written.write_text(FILE)
    return written


def test_a_form_is_a_schema_file(file: Path, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(YAML)
    form = check(propose(file).columns, FIELDS)
    assert (form.errors, form.problem) == ({}, "")
    assert form.schema == read_schema(tmp_path / "s.yaml")


def test_a_proposal_leaves_bounds_and_levels_open(file: Path) -> None:
    """They are published: a value of the file must not become one by pressing a button."""
    fields = proposed_fields(propose(file).columns)
    parts = {"use", "name", "kind", "missing", "empty"}
    assert {name for name in fields if name.startswith("c1.")} == {f"c1.{part}" for part in parts}
    assert len({fields[f"c{i}.missing"] for i in range(5)}) == 1
    assert fields["c1.name"] == "edu_num"
    assert [fields[f"c{i}.kind"] for i in range(5)] == [
        ColumnKind.NUMERIC,
        ColumnKind.NUMERIC,
        ColumnKind.BOOLEAN,
        ColumnKind.NUMERIC,
        ColumnKind.NUMERIC,
    ]
    assert not {"39", "10115", "2020"} & set(fields.values())
    assert sorted(check(propose(file).columns, fields).errors) == [0, 1, 3, 4]


def test_the_units_column_is_proposed_without_missing_texts(file: Path) -> None:
    """As it cannot have any; those that somebody writes are refused, as ever."""
    columns = propose(file).columns
    fields = FIELDS | {
        name: text for name, text in proposed_fields(columns).items() if "c3" in name
    }
    fields |= {"c3.kind": "categorical", "c3.levels": "a\nb"}
    form = check(columns, fields)
    assert form.schema is not None
    assert [bool(column.missing) for column in form.schema.columns] == [True, False, False, False]
    assert "names the unit" in check(columns, fields | {"c3.missing": "x"}).problem


def test_a_label_of_the_file_is_proposed_and_the_curator_has_the_last_word(file: Path) -> None:
    columns = [replace(column, label="From the file") for column in propose(file).columns]
    assert proposed_fields(columns)["c0.label"] == "From the file"
    said = check(columns, FIELDS | {"c0.label": "Age at the visit"})
    assert said.schema is not None
    assert [c.label for c in said.schema.columns][:2] == ["Age at the visit", ""]
    assert "one line" in check(columns, FIELDS | {"c0.label": "a\u202eb"}).errors[0]


@pytest.mark.parametrize(
    ("changed", "column", "said"),
    [
        ({"c0.lower": "1_0"}, 0, "lower must be a number"),
        ({"c0.lower": "inf"}, 0, "finite"),
        ({"c0.lower": "200"}, 0, "lower must be less"),
        ({"c0.upper": ""}, 0, "Fill in lower and upper"),
        ({"c0.name": "a b"}, 0, "a name is a letter"),
        ({"c0.kind": "date of birth"}, 0, "kind must be one of"),
        ({"c1.name": "age"}, 1, "Another column is called age"),
        ({"c2.false": ""}, 2, "both `true` and `false`"),
        ({"c3.levels": " \n "}, 3, "Write its levels"),
        ({"c3.levels": "a\na"}, 3, "appears twice"),
        ({"c3.levels": "a = 1\nb = 1"}, 3, "1"),
    ],
)
def test_what_is_wrong_is_said_of_its_column(
    file: Path, changed: dict[str, str], column: int, said: str
) -> None:
    form = check(propose(file).columns, FIELDS | changed)
    assert form.schema is None
    assert list(form.errors) == [column]
    assert said in form.errors[column]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"max_rows": "0"}, "`max_rows` must be"),
        ({"max_rows": ""}, "`max_rows` must be"),
        ({"description": "x" * 4001}, "`description` must be"),
        (dict.fromkeys([f"c{i}.use" for i in range(5)], ""), "at least one column"),
    ],
)
def test_what_is_about_no_column_is_said_above(
    file: Path, changed: dict[str, str], said: str
) -> None:
    form = check(propose(file).columns, FIELDS | changed)
    assert (form.schema, form.errors) == (None, {})
    assert said in form.problem


def test_dates_and_derived_columns_are_what_a_schema_file_says(tmp_path: Path) -> None:
    (tmp_path / "b.csv").write_text("born,kg,m\n31.12.1999,80,1.8\n01.02.2000,60,1.7\n")
    columns = propose(tmp_path / "b.csv").columns
    fields = proposed_fields(columns) | {"derive": "bmi = kg / (m * m)\r\n"}
    assert (fields["c0.kind"], fields["c0.format"]) == ("date", "%d.%m.%Y")
    bounds = {"c0": ("1900-01-01", "2020-12-31"), "c1": ("20", "300"), "c2": ("1", "2.5")}
    for name, (lower, upper) in bounds.items():
        fields |= {f"{name}.lower": lower, f"{name}.upper": upper}
    (tmp_path / "s.yaml").write_text(
        """
unit: row
columns:
  born: {kind: date, format: "%d.%m.%Y", lower: 1900-01-01, upper: 2020-12-31, missing: LIST}
  kg: {kind: numeric, lower: 20, upper: 300, missing: LIST}
  m: {kind: numeric, lower: 1, upper: 2.5, missing: LIST}
derive: {bmi: "kg / (m * m)"}
""".replace("LIST", json.dumps(USUAL_MARKERS))
    )
    assert check(columns, fields).schema == checked(read_schema(tmp_path / "s.yaml"))
    assert check(columns, fields | {"derive": "bmi"}).problem
    assert "derive" in check(columns, fields | {"derive": "bmi = kg / nobody"}).problem
