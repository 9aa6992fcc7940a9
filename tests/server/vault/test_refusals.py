# SPDX-License-Identifier: Apache-2.0
"""A bad cell anywhere is named exactly, and nothing of the file stays behind."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent_server.domain.reading import Reading
from reticent_server.domain.schema import Column, Unit
from reticent_server.errors import CuratorError
from support.databases.vaults import Vault, boolean, categorical, csv_file, integer, numeric, schema

KINDS = [
    numeric("x", 0, 9),
    integer("k", 0, 9, missing=("NA",)),
    boolean("b"),
    categorical("g", "u", "v", missing=("",)),
]
GOOD = ["1.5", "2", "yes", "u"]
BAD = {
    "x": ["", "abc", "nan", "inf", "-Infinity", "1e999", "1,5", "0x10", "1_0", "1 2", "١", "."],
    "k": ["", "1.5", "two", "NaN", "NA2", "na", "inf"],
    "b": ["", "2", "t", "-1", "0.0", "maybe"],
    "g": ["w", "U", "0", "u v", "NA"],
}


def refusal(vault: Vault, file: Path, *columns: Column, strict: bool = False) -> str:
    with pytest.raises(CuratorError) as refused:
        vault.load(file, schema(*columns), strict=strict)
    assert vault.stored_tables() <= vault.kept, "nothing half-loaded"
    return refused.value.detail


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), column=st.integers(0, 3), total=st.integers(1, 12), parquet=st.booleans())
def test_a_bad_cell_is_named_by_row_line_and_column(
    sqlite_vault: Vault, tmp_path: Path, data: st.DataObject, column: int, total: int, parquet: bool
) -> None:
    name = KINDS[column].name
    row = data.draw(st.integers(0, total - 1))
    rows = [list(GOOD) for _ in range(total)]
    cell = rows[row][column] = data.draw(st.sampled_from(BAD[name]))
    for later in range(row + 1, total):  # a later fault in an earlier column is not the first
        rows[later][0] = "abc"
    if parquet:
        file, place = tmp_path / "rows.parquet", f"row {row + 1}"
        pq.write_table(pa.table(list(map(list, zip(*rows, strict=True))), list("xkbg")), file)
    else:
        text = "\n".join(["x,k,b,g", *(",".join(f'"{c}"' for c in r) for r in rows)])
        file, place = csv_file(tmp_path, text), f"row {row + 1} (line {row + 2})"
    size = data.draw(st.integers(1, 13))
    module = "parquet_file" if parquet else "csv_file"
    with patch(f"reticent_server.vault.{module}.rows_per_block", return_value=size):
        message = refusal(sqlite_vault, file, *KINDS)
    assert message.startswith(f"In {place}, column {name}: ")
    assert ("missing" if cell == "" else repr(cell)) in message


def test_lines_are_counted_through_line_breaks_in_cells(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    text = 'note,x\n"two\nlines",1\n\n"three\r\nmore\nlines",2\nplain,bad\n'
    message = refusal(sqlite_vault, csv_file(tmp_path, text), numeric("x"))
    assert message.startswith("In row 3 (line 8), column x: 'bad' is not a finite number")


CSV_FAULTS = {
    "x,y\n1,2\n3\n": "Row 2 (line 3) must have 2 cells, like the header, but has 1.",
    "x\nbad\n1,2\n": "In row 1 (line 2), column x: 'bad'",
    "y\n1\n": "has no column 'x'",
    "y;z\n1;2\n": "has no column 'x' in its header, which was read as: 'y', 'z'.",
    "x,x\n1,1\n": "more than one column 'x'",
    "x\n": "rows.csv has no rows.",
    "": "has no column 'x'",
    'x\n1\n"2\n3\n': "line 3: unexpected end of data",
    'x\n"1"2\n': "line 2: ',' expected after '\"'",
    "x\n" + "1" * 200_000 + "\n": "line 2: field larger than field limit",
    f"x\n{'9' * 99}a\n": f"'{'9' * 40}…' is not a finite number",
}


@pytest.mark.parametrize(("text", "message"), CSV_FAULTS.items(), ids=range(len(CSV_FAULTS)))
def test_a_csv_file_that_is_not_a_table(
    sqlite_vault: Vault, tmp_path: Path, text: str, message: str
) -> None:
    assert message in refusal(sqlite_vault, csv_file(tmp_path, text), numeric("x"))


@pytest.mark.slow
def test_files_that_cannot_be_read(sqlite_vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"x\n" + b"1\n" * 9000 + b"\xe9\n")
    message = refusal(sqlite_vault, tmp_path / "latin.csv", numeric("x"))
    assert message == "In row 9001 (line 9002), column x: 'é' is not a finite number."
    stated = replace(schema(numeric("x")), reading=Reading(encoding="utf-8"))
    with pytest.raises(CuratorError, match="line 9002: not UTF-8"):
        sqlite_vault.load(tmp_path / "latin.csv", stated)
    (tmp_path / "bad.parquet").write_bytes(b"secret cell")
    message = refusal(sqlite_vault, tmp_path / "bad.parquet", numeric("x"))
    assert message == "bad.parquet cannot be read as Parquet."
    for name in ("absent.csv", "absent.parquet"):
        assert "cannot be opened" in refusal(sqlite_vault, tmp_path / name, numeric("x"))


def test_parquet_types_that_hold_no_such_column(sqlite_vault: Vault, tmp_path: Path) -> None:
    file = tmp_path / "typed.parquet"
    pq.write_table(pa.table({"x": [date(2020, 1, 1)], "f": [2.0], "n": [None]}), file)
    assert "Column x has type date32" in refusal(sqlite_vault, file, numeric("x"))
    assert "Column x has type date32" in refusal(sqlite_vault, file, categorical("x", "a", "b"))
    assert "row 1, column f: '2' is not a word for true" in refusal(
        sqlite_vault, file, boolean("f")
    )
    assert "row 1, column n: the cell is missing" in refusal(sqlite_vault, file, integer("n"))
    pq.write_table(pa.table({"x": [1.0, float("nan")]}), file)
    assert "row 2, column x: the cell is missing" in refusal(sqlite_vault, file, numeric("x"))


def test_strict_refuses_what_would_be_clipped(vault: Vault, tmp_path: Path) -> None:
    file = csv_file(tmp_path, "x,k\n0,0\n9,9\n9.5,-1\n-4,4\n")
    columns = (numeric("x", 0, 9), integer("k", 0, 9))
    loaded = vault.load(file, schema(*columns))
    assert loaded.clipped == {"x": 2, "k": 1}
    assert vault.read(loaded.source, ["x"]).to_pydict() == {"x": [0.0, 9.0, 9.0, 0.0]}
    message = refusal(vault, file, *columns, strict=True)
    assert message == (
        "In row 3 (line 4), column x: '9.5' is outside [0, 9] (strict); in row 4 (line 5): '-4' "
        "is outside [0, 9] (strict). "
        "In row 3 (line 4), column k: '-1' is outside [0, 9] (strict)."
    )


UNIT_ROWS = "id,x\n a,1\nb,2\na,3\nb ,4\nc,5\na,6\n"


def test_rows_per_unit_are_bounded_over_the_whole_table(
    sqlite_vault: Vault, tmp_path: Path
) -> None:
    file = csv_file(tmp_path, UNIT_ROWS)
    with patch("reticent_server.vault.csv_file.rows_per_block", return_value=2):
        loaded = sqlite_vault.load(file, schema(numeric("x"), unit=Unit("id", 3)))
        assert [c.name for c in loaded.source.columns] == ["x"], "the unit's column is not stored"
        with pytest.raises(CuratorError, match=r"In row 6 \(line 7\), column id: the unit 'a' has"):
            sqlite_vault.load(file, schema(numeric("x"), unit=Unit("id", 2)), strict=True)


def test_a_row_without_a_unit_is_refused(sqlite_vault: Vault, tmp_path: Path) -> None:
    unit = schema(numeric("x"), unit=Unit("id", 9))
    with pytest.raises(CuratorError, match=r"In row 2 \(line 3\), column id: no unit"):
        sqlite_vault.load(csv_file(tmp_path, "id,x\n1,1\n  ,2\n"), unit)
    pq.write_table(pa.table({"id": [7.0, None], "x": [1, 2]}), tmp_path / "u.parquet")
    with pytest.raises(CuratorError, match="In row 2, column id: no unit"):
        sqlite_vault.load(tmp_path / "u.parquet", unit)
    with pytest.raises(CuratorError, match="has no column 'id'"):
        sqlite_vault.load(csv_file(tmp_path, "x\n1\n"), unit)
