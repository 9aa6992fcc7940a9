# SPDX-License-Identifier: Apache-2.0
"""The schema file is checked strictly: every refusal names the column and says what to change."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent_server.catalog.json_values import schema_from_json, schema_to_json
from reticent_server.catalog.schema_file import read_schema
from reticent_server.domain.schema import WEIGHT, Column, ColumnKind, Recode, Schema, Unit
from reticent_server.errors import CuratorError

GOOD = """
description: King County house sales
unit: {column: person id, max_rows: 3}
columns:
  price:      {kind: numeric, lower: 0, upper: 10000000}
  grade:      {kind: integer, lower: 1, upper: 13}
  waterfront: {kind: categorical, levels: ["0", "1"], missing: ["", "NA", "?"]}
  renovated:  {kind: boolean}
"""


def read(tmp_path: Path, text: str) -> Schema:
    file = tmp_path / "schema.yaml"
    file.write_text(text, encoding="utf-8")
    return read_schema(file)


def test_the_documented_file_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == Schema(
        columns=(
            Column("price", ColumnKind.NUMERIC, 0.0, 1e7),
            Column("grade", ColumnKind.INTEGER, 1.0, 13.0),
            Column("waterfront", ColumnKind.CATEGORICAL, 0.0, 1.0, ("0", "1"), ("", "NA", "?")),
            Column("renovated", ColumnKind.BOOLEAN, 0.0, 1.0),
        ),
        unit=Unit("person id", 3),
        description="King County house sales",
    )


BAD_COLUMNS = {
    "x: {kind: numeric, lower: 1, upper: 1}": "Column x: lower must be less than upper",
    "x: {kind: numeric, lower: .nan, upper: 1}": "Column x: lower must be finite",
    "x: {kind: numeric, lower: 0, upper: .inf}": "Column x: upper must be finite",
    "x: {kind: numeric, lower: 0}": "Column x: upper must be a number",
    "x: {kind: numeric, lower: false, upper: 1}": "Column x: lower must be a number",
    'x: {kind: numeric, lower: "0", upper: 1}': "Column x: lower must be a number",
    "x: {kind: numeric, lower: 0, upper: 1.0e+60}": "Column x: upper must be between",
    f"x: {{kind: numeric, lower: 0, upper: 1{'0' * 400}}}": "Column x: upper must be between",
    "x: {kind: integer, lower: 0.5, upper: 2}": "Column x: lower must be an integer",
    "x: {kind: integer, lower: 0, upper: 9007199254740993}": "Column x: upper must be between",
    "x: {kind: text}": (
        "Column x: kind must be one of numeric, integer, categorical, ordered, boolean"
    ),
    "x: {kind: [numeric]}": "Column x: kind must be one of",
    "x: {kind: boolean, lower: 0}": "Column x (boolean): the key 'lower' is not known",
    "x: {kind: numeric, lower: 0, upper: 1, bound: 2}": "Column x (numeric): the key 'bound'",
    "x: {kind: categorical}": "Column x: levels must be a list",
    "x: {kind: categorical, levels: []}": "Fill in levels of x.",
    'x: {kind: categorical, levels: ["a"]}': "Column x: levels must have at least two",
    'x: {kind: categorical, levels: ["a", ""]}': "Column x: a level is empty",
    'x: {kind: categorical, levels: ["a", "a"]}': "Column x: 'a' appears twice in levels",
    'x: {kind: categorical, levels: ["a", " b"]}': "Column x: an entry of levels has blanks",
    'x: {kind: categorical, levels: ["a", "b\\0"]}': "Column x: an entry of levels has blanks",
    "x: {kind: categorical, levels: [0, 1]}": "Column x: put quotes around the entry 0",
    "x: {kind: categorical, levels: [yes, no]}": "Column x: put quotes around the entry True",
    'x: {kind: categorical, levels: ["a", "b"], missing: ["b"]}': "Column x: 'b' is both",
    'x: {kind: boolean, missing: ["No"]}': "Column x: 'No' is both a value and",
    "x: {kind: boolean, missing: NA}": "Column x: missing must be a list",
    "x: {kind: boolean, missing: []}": "Column x: missing must be a list",
    "x: {kind: boolean, from: 3}": "Column x: from must be the quoted name",
    'x: {kind: boolean, from: " "}': "Column x: from must be the quoted name",
    'x: {kind: boolean, true: ["a"]}': "Column x: give both `true` and `false`",
    'x: {kind: boolean, true: [a], false: ["a"]}': "Column x: 'a' is read as two values",
    "x: {kind: boolean, true: [1], false: [0]}": "Column x: put quotes around the entry 1 of true",
    'x: {kind: boolean, true: [a], false: [b], missing: ["a"]}': "Column x: 'a' is both a value",
    'x: {kind: numeric, lower: 0, upper: 1, other: "a"}': "Column x (numeric): the key 'other'",
    'x: {kind: categorical, levels: {a: ["1"]}}': "Column x: levels must have at least two",
    'x: {kind: categorical, levels: {a: ["1"], b: ["1"]}}': "Column x: '1' is read as two values",
    'x: {kind: categorical, levels: {a: ["1"], b: []}}': "Column x: levels: b must be a list",
    'x: {kind: categorical, levels: {1: ["1"], b: ["2"]}}': "put quotes around the entry 1",
    'x: {kind: categorical, levels: {a: ["1"], b: ["2"]}, missing: ["2"]}': "Column x: '2' is both",
    'x: {kind: categorical, levels: ["a"], other: 3}': "put quotes around the entry 3 of other",
    'x: {kind: categorical, levels: ["a", "b"], other: ""}': "Column x: a level is empty",
    "x: {kind: date, lower: 2020-01-01, upper: 2019-01-01}": "Column x: lower must be before upper",
    "x: {kind: date, lower: 0, upper: 2019-01-01}": "Column x: lower must be a date, such as",
    "x: {kind: date, lower: 2019-01-01 12:00:00, upper: "
    "2020-01-01}": "Column x: lower must be a date",
    'x: {kind: date, lower: "2019-02-29", upper: 2020-01-01}': "Column x: lower must be a date",
    "x: {kind: date, lower: , upper: 2020-01-01}": "Fill in lower and upper of x.",
    "x: {kind: numeric, lower: 0, upper: 1, role: response}": "Column x: role must be weight",
    "x: {kind: numeric, lower: -1, upper: 1, role: "
    "weight}": "Column x: a weight needs a lower bound",
    "x: {kind: boolean, role: weight}": "Column x (boolean): the key 'role' is not known",
    "x: {kind: boolean, label: 3}": "Column x: label must be one line of text of at most 256",
    'x: {kind: boolean, label: " "}': "Column x: label must be one line",
    'x: {kind: boolean, label: "a\\nb"}': "Column x: label must be one line",
    'x: {kind: boolean, label: "a\\u202eb"}': "Column x: label must be one line",
    f'x: {{kind: boolean, label: "{257 * "a"}"}}': "Column x: label must be one line",
    "x: {kind: date, levels: [a]}": "Column x (date): the key 'levels' is not known",
    'x: {kind: date, lower: 2019-01-01, upper: 2020-01-01, format: "%Y"}': "must have %Y, %m",
    'x: {kind: date, lower: 2019-01-01, upper: 2020-01-01, format: "%p %Y%m%d"}': "format may have",
    "x: {kind: date, lower: 2019-01-01, upper: 2020-01-01, format: "
    "3}": "format must be a quoted text",
    "x: {kind: boolean}\n  x: {kind: boolean}": "line 3: the key x appears twice",
    "x: {kind: boolean, kind: numeric}": "line 2: the key kind appears twice",
    "x y: {kind: boolean}": "Column 'x y': a name is",
    "yes: {kind: boolean}": "Column 'True': a name is",
    f"{'x' * 65}: {{kind: boolean}}": "a name is a letter or _",
    "x:": "Column x: write {kind: …} after the name",
    "x: {kind: numeric, lower: 0, upper: 1:30:00}": "1:30:00 is read as a number of base 60",
    "x: {kind: numeric, lower: 0, upper: 1:30.5}": "1:30.5 is read as a number of base 60",
    "x: &a {kind: boolean}\n  y: *a": "aliases (*name) are not allowed",
    "x: {<<: {kind: boolean}}": "line 2: could not determine a constructor",
    "? [a]\n  : {kind: boolean}": "line 2: a key must be a plain name",
}


@pytest.mark.parametrize(("column", "message"), BAD_COLUMNS.items(), ids=range(len(BAD_COLUMNS)))
def test_a_bad_column_is_refused_by_name(tmp_path: Path, column: str, message: str) -> None:
    with pytest.raises(CuratorError) as refused:
        read(tmp_path, f"columns:\n  {column}\n")
    assert message in refused.value.detail
    assert refused.value.detail.endswith(".")
    assert len(refused.value.detail) < 500


BAD_FILES = {
    "": "must be a mapping",
    "- columns": "must be a mapping",
    "columns: {}": "`columns` is empty",
    "unit: row": "`columns` must be a mapping",
    "columns: {x: {kind: boolean}}\nepsilon: 1": "The schema file: the key 'epsilon'",
    "columns: {x: {kind: boolean}}\nunit: person": "`unit` must be `row`",
    "columns: {x: {kind: boolean}}\nunit: {column: x}": "`max_rows` must be an integer",
    "columns: {x: {kind: boolean}}\nunit: {column: x, max_rows: true}": "`max_rows` must be",
    "columns: {x: {kind: boolean}}\nunit: {column: x, max_rows: 0}": "`max_rows` must be",
    "columns: {x: {kind: boolean}}\nunit: {column: 3, max_rows: 1}": "`column` must be the name",
    "columns: {x: {kind: boolean}}\ndescription: [a]": "`description` must be a text",
    'columns: {x: {kind: boolean, missing: [""]}}\nunit: {column: x, max_rows: 1}': "Column x: it",
    "columns: !!python/object/apply:os.system [ls]": "could not determine a constructor",
    "columns: " + "[" * 5000: "",
    "columns: {x: [": "schema.yaml, line 1",
    "columns:\n" + "\n".join(f"  x{i}: {{kind: boolean}}" for i in range(501)): "more than 500",
    "columns: {x: {kind: categorical, other: rest, levels: ["
    + ", ".join(f'"{i}"' for i in range(1024))
    + "]}}": ("Column x: levels may have at most 1024 entries, with `other`"),
    "columns: {x: {kind: categorical, levels: ["
    + ", ".join(f'"{i}"' for i in range(1025))
    + "]}}": ("Column x: levels may have at most 1024"),
    "# " + "x" * (1 << 20): "larger than",
}


@pytest.mark.sample(4)
@pytest.mark.parametrize(("text", "message"), BAD_FILES.items(), ids=range(len(BAD_FILES)))
def test_a_bad_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CuratorError, match=r"\.$") as refused:
        read(tmp_path, text)
    assert message in refused.value.detail


def test_absent_and_undecodable_files(tmp_path: Path) -> None:
    with pytest.raises(CuratorError, match="cannot be opened"):
        read_schema(tmp_path / "absent.yaml")
    (tmp_path / "latin.yaml").write_bytes(b"description: \xe9\n")
    with pytest.raises(CuratorError, match="not UTF-8"):
        read_schema(tmp_path / "latin.yaml")


@pytest.mark.slow
@given(
    st.floats(-1e50, 1e50),
    st.floats(-1e50, 1e50),
    st.lists(st.text(min_size=1), min_size=2, unique=True),
)
def test_stored_schemas_come_back_exactly(lower: float, upper: float, levels: list[str]) -> None:
    schema = Schema(
        columns=(
            Column("x", ColumnKind.NUMERIC, lower, upper, missing=("",)),
            Column("g", ColumnKind.CATEGORICAL, 0.0, len(levels) - 1.0, tuple(levels)),
            Column(
                "b", ColumnKind.BOOLEAN, 0.0, 1.0, recode=Recode("b-b", (("y", 1.0), ("n", 0.0)))
            ),
            Column("o", ColumnKind.CATEGORICAL, 0.0, 1.0, ("a", "z"), recode=Recode(other=1.0)),
        ),
        unit=Unit("person", 2),
        description="δ",
    )
    assert schema_from_json(schema_to_json(schema)) == schema


def test_what_the_texts_of_a_file_stand_for(tmp_path: Path) -> None:
    text = """
columns:
  schooling: {kind: integer, from: "education-num", lower: 1, upper: 16}
  rich: {kind: boolean, from: Salary, true: [">50K", ">50K."], false: ["<=50K"]}
  school: {kind: categorical, levels: {low: ["9th", "10th"], college: "Bachelors"}, other: "rest"}
  cut: {kind: categorical, levels: ["Fair", "Good"], other: "Good"}
"""
    schooling, rich, school, cut = read(tmp_path, text).columns
    assert (schooling.name, schooling.source) == ("schooling", "education-num")
    assert rich.recode == Recode("Salary", ((">50K", 1.0), (">50K.", 1.0), ("<=50K", 0.0)))
    assert school.levels == ("low", "college", "rest")
    assert school.upper == 2.0
    assert school.recode == Recode("", (("9th", 0.0), ("10th", 0.0), ("Bachelors", 1.0)), 2.0)
    assert cut.levels == ("Fair", "Good")
    assert cut.recode == Recode("", (("Fair", 0.0), ("Good", 1.0)), 1.0)


def test_dates_are_days(tmp_path: Path) -> None:
    text = """
columns:
  a: {kind: date, lower: 1969-12-31, upper: "2020-02-29", missing: [""]}
  b: {kind: date, from: sold, lower: 2014-05-02, upper: 2015-05-27, format: "%Y%m%dT%H%M%S"}
"""
    schema = read(tmp_path, text)
    a, b = schema.columns
    assert (a.kind, a.shown_kind, a.lower, a.upper) == (ColumnKind.INTEGER, "date", -1.0, 18321.0)
    assert (a.missing, a.recode.date) == (("",), "%Y-%m-%d")
    assert b.recode == Recode("sold", date="%Y%m%dT%H%M%S")
    assert b.shown(b.lower) == "2014-05-02"
    assert schema_from_json(schema_to_json(schema)) == schema


def test_a_weight_is_declared_and_kept(tmp_path: Path) -> None:
    text = (
        "columns:\n  w: {kind: numeric, lower: 0.5, upper: 40, role: weight}\n  x: {kind: "
        "boolean}\n"
    )
    schema = read(tmp_path, text)
    assert [column.role for column in schema.columns] == [WEIGHT, ""]
    stored = schema_to_json(schema)
    assert [column.get("role") for column in stored["columns"]] == ["weight", None]
    assert "role" not in stored["columns"][1]  # as in schemas of earlier versions
    assert schema_from_json(stored) == schema


def test_a_label_of_every_kind_is_kept_and_older_schemas_have_none(tmp_path: Path) -> None:
    text = (
        "columns:\n"
        '  a: {kind: numeric, label: "Income, 2019", lower: 0, upper: 1}\n'
        '  b: {kind: integer, label: "Age", lower: 0, upper: 1}\n'
        '  c: {kind: categorical, label: "Town", levels: ["1", "2"]}\n'
        '  d: {kind: ordered, label: "Schooling", levels: ["1", "2"]}\n'
        '  e: {kind: boolean, label: "Smokes"}\n'
        '  f: {kind: date, label: "Visit", lower: 2019-01-01, upper: 2020-01-01}\n'
        "  g: {kind: boolean}\n"
    )
    schema = read(tmp_path, text)
    found = ["Income, 2019", "Age", "Town", "Schooling", "Smokes", "Visit", ""]
    assert [column.label for column in schema.columns] == found
    stored = schema_to_json(schema)
    assert "label" not in stored["columns"][-1]  # as in schemas of earlier versions
    assert schema_from_json(stored) == schema


def test_a_schema_without_dates_is_stored_as_it_was() -> None:
    stored = schema_to_json(Schema((Column("b", ColumnKind.BOOLEAN, 0.0, 1.0),)))
    assert set(stored["columns"][0]["recode"]) == {"source", "codes", "other"}


def test_a_schema_stored_before_there_were_recodes_is_read() -> None:
    schema = Schema((Column("b", ColumnKind.BOOLEAN, 0.0, 1.0),))
    stored = schema_to_json(schema)
    del stored["columns"][0]["recode"]
    assert schema_from_json(stored) == schema
